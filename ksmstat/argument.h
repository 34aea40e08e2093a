/* The arguments of ksmstat's options: what they say, or what is wrong with them. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_ARGUMENT_H
#define KSMSTAT_ARGUMENT_H

#include "ksmstat/options.h"

/* Each returns -1 to go on, or an exit code after telling what is wrong. */

/* Of -p, -c, -u or -g, which is c. */
int argument_selection(struct options *options, int c, const char *list);
int argument_by(struct options *options, const char *word);
int argument_sort(struct options *options, const char *name);
int argument_settle(struct options *options, const char *text);
int argument_top_pages(struct options *options, const char *text);
int argument_max_rss(struct options *options, const char *text);

/* DELAY and COUNT, from argv[optind] on. They make a line by the interval of what would be a report. */
int argument_delay(struct options *options, int argc, char **argv);

/* Of -o. What can be shown depends on mode and groups, so this is the last to be looked at. */
int argument_columns(struct options *options);

/* Point to the help. Returns STAT_USAGE. */
int argument_usage(void);

#endif
