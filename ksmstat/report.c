/* The report on processes: read, sort, print, and say what could not be read. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/report.h"

#include <errno.h>
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
	if (list->too_large)
		error("%zu %s larger than --max-rss and left out", list->too_large,
			list->too_large == 1 ? "process is" : "processes are");
	if (!select_any(&options->selection))
		return STAT_OK;
	if (list->count && !list->missing && !list->unreadable && !list->too_large)
		return STAT_OK;
	return list->count > list->unreadable ? STAT_SOME_FOUND : STAT_NONE_FOUND;
}

/* The control group is one more file of each process: read where it is needed. */
static bool needs_places(const struct options *options)
{
	bool needs = (options->by >= GROUP_CGROUP && options->by <= GROUP_POD) ||
		     options->sort->kind == COLUMN_PLACE;
	for (size_t i = 0; i < options->print.columns.count; i++)
		needs |= options->print.columns.column[i]->kind == COLUMN_PLACE;
	return needs;
}

static int print_groups(
	const struct options *options, const struct entry_list *list, const struct root *root)
{
	const struct group_order order = { options->sort, options->sort_reverse };
	struct print_options print = options->print;
	struct group_list groups;
	int err = options->tree ? group_make_tree(&groups, list, &order, print.form != PRINT_TABLE)
				: group_make(&groups, options->by, list, &order);
	if (!err && options->by == GROUP_SYSTEM) {
		group_add_machine(&groups.groups[0], root);
		print.total = false; /* the one row is the total */
	}
	if (!err)
		err = group_print(&groups, options->by, options->tree, &print);
	group_free(&groups);
	return err;
}

static unsigned needs(const struct options *options)
{
	unsigned needs = options->sort->needs;
	for (size_t i = 0; i < options->print.columns.count; i++)
		needs |= options->print.columns.column[i]->needs;
	return needs;
}

int report(const struct options *options, const struct root *root)
{
	struct frames frames;
	int pagemap_err = pagemap_probe(root);
	if (options->gentle && pagemap_err == -ENOTTY) {
		error("--gentle needs Linux 6.11 or later, and /proc of the running system");
		return STAT_FAILED;
	}
	bool exact = frames_open(&frames, root) == 0;
	const struct entry_request request = {
		.selection = &options->selection,
		.places = needs_places(options),
		.needs = needs(options),
		.frames = exact ? &frames : NULL,
		.pagemap = pagemap_err == 0,
		.gentle = options->gentle,
		.max_rss_bytes = options->max_rss_bytes,
	};
	struct entry_list list;
	int err = entry_read(&list, root, &request);
	frames_close(&frames);
	if (err) {
		error("cannot read /proc: %s", strerror(-err));
		entry_free(&list);
		return STAT_FAILED;
	}
	sort_options = options;
	if (!options->by && list.count)
		qsort(list.entries, list.count, sizeof(*list.entries), compare_entries);
	if (options->mode == MODE_CLASSIC)
		print_classic(&list);
	else if (options->by)
		err = print_groups(options, &list, root);
	else
		err = print_entries(&list, &options->print, select_any(&options->selection));
	if (err)
		error("cannot make the table: %s", strerror(-err));
	if (list.unreadable)
		error("%zu of %zu processes could not be read%s", list.unreadable, list.count,
			geteuid() ? "; as root more can be" : "");
	int code = err ? STAT_FAILED : found_code(options, &list);
	entry_free(&list);
	return code;
}
