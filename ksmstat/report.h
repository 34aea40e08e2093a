/* The report on processes: read, sort, print, and say what could not be read. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_REPORT_H
#define KSMSTAT_REPORT_H

#include "ksmstat/entry.h"
#include "ksmstat/options.h"
#include "sysfs/frames.h"
#include "sysfs/root.h"

/* How processes are read, once or again and again. It must not be moved: the request points into it. */
struct report_source {
	const struct root *root;
	struct frames frames;
	struct entry_request request;
};

/* Returns 0, or an exit code after telling what this kernel lacks; close in any case. */
int report_open(
	struct report_source *source, const struct options *options, const struct root *root);
void report_close(struct report_source *source);

/* What is read for these columns. report_open says it for those of the options. */
void report_want(struct report_source *source, enum group_by by, const struct column *sort,
	const struct column_choice *shown);

/* entry_read of it. */
int report_read(const struct report_source *source, struct entry_list *list);

/* Sort processes; those that are equal by PID. */
void report_sort(struct entry_list *list, const struct column *column, bool reverse);

/* Returns an exit code of ksmstat. */
int report(const struct options *options, const struct root *root);

#endif
