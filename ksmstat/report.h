/* The report on processes: read, sort, print, and say what could not be read. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_REPORT_H
#define KSMSTAT_REPORT_H

#include "ksmstat/options.h"
#include "sysfs/root.h"

/* Returns an exit code of ksmstat. */
int report(const struct options *options, const struct root *root);

#endif
