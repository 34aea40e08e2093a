/* The report on processes: read, sort, print, and say what could not be read. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ksmstat/entry.h"

static const struct options *sort_options; /* qsort has no argument of its own to pass */

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = column_compare(sort_options->sort, sort_options->sort_reverse, x, y);
	return order ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

/* Of the processes asked for: all, some or none were there and could be read. */
static int found_code(const struct options *options, const struct entry_list *list)
{
	if (list->missing)
		error("%zu of the processes asked for %s not there", list->missing,
			list->missing == 1 ? "is" : "are");
	if (!options->pid_count || (!list->missing && !list->unreadable))
		return STAT_OK;
	return list->count > list->unreadable ? STAT_SOME_FOUND : STAT_NONE_FOUND;
}

int report(const struct options *options, const struct root *root)
{
	struct entry_list list = { 0 };
	int err = options->pid_count
			  ? entry_read_pids(&list, root, options->pids, options->pid_count)
			  : entry_read_all(&list, root);
	if (err) {
		error("cannot read /proc: %s", strerror(-err));
		entry_free(&list);
		return STAT_FAILED;
	}
	sort_options = options;
	if (options->sort && list.count)
		qsort(list.entries, list.count, sizeof(*list.entries), compare_entries);
	if (options->mode == MODE_CLASSIC)
		print_classic(&list);
	else
		err = print_entries(&list, &options->print, options->pid_count > 0);
	if (err)
		error("cannot make the table: %s", strerror(-err));
	if (list.unreadable)
		error("%zu of %zu processes could not be read%s", list.unreadable, list.count,
			geteuid() ? "; as root more can be" : "");
	int code = err ? STAT_FAILED : found_code(options, &list);
	entry_free(&list);
	return code;
}
