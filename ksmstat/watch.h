/* --watch: the machine's figures and the processes on the whole terminal, again and again. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_WATCH_H
#define KSMSTAT_WATCH_H

#include "ksmstat/options.h"
#include "sysfs/root.h"

/* Until the user or a signal ends it. Returns an exit code. */
int watch(const struct options *options, const struct root *root);

#endif
