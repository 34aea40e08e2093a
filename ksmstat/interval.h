/* A line by the interval, in the manner of vmstat: the state of merging, what changed, and how fast. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_INTERVAL_H
#define KSMSTAT_INTERVAL_H

#include "ksmstat/options.h"
#include "sysfs/root.h"

/* Print a line after each delay, until there are options->lines of them. Returns an exit code. */
int interval(const struct options *options, const struct root *root);

#endif
