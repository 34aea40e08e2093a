/* The report on processes: read, sort, print, and say what could not be read. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ksmstat/entry.h"

/* qsort has no argument of its own to pass. */
static const struct column *sort_column;
static bool sort_reverse;

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = column_compare(sort_column, sort_reverse, x, y);
	return order ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

void report_sort(struct entry_list *list, const struct column *column, bool reverse)
{
	sort_column = column;
	sort_reverse = reverse;
	if (list->count)
		qsort(list->entries, list->count, sizeof(*list->entries), compare_entries);
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

void report_want(struct report_source *source, enum group_by by, const struct column *sort,
	const struct column_choice *shown)
{
	struct entry_request *request = &source->request;
	request->needs = sort->needs;
	/* The control group is one more file of each process: read where it is needed. */
	request->places = (by >= GROUP_CGROUP && by <= GROUP_POD) || sort->kind == COLUMN_PLACE;
	for (size_t i = 0; i < shown->count; i++) {
		request->needs |= shown->column[i]->needs;
		request->places |= shown->column[i]->kind == COLUMN_PLACE;
	}
}

int report_open(
	struct report_source *source, const struct options *options, const struct root *root)
{
	int pagemap_err = pagemap_probe(root);
	bool exact = frames_open(&source->frames, root) == 0;

	source->root = root;
	source->request = (struct entry_request){
		.selection = &options->selection,
		.frames = exact ? &source->frames : NULL,
		.pagemap = pagemap_err == 0,
		.gentle = options->gentle,
		.max_rss_bytes = options->max_rss_bytes,
	};
	report_want(source, options->by, options->sort, &options->print.columns);
	if (options->gentle && pagemap_err == -ENOTTY) {
		error("--gentle needs Linux 6.11 or later, and /proc of the running system");
		return STAT_FAILED;
	}
	return 0;
}

void report_close(struct report_source *source)
{
	frames_close(&source->frames);
}

int report_read(const struct report_source *source, struct entry_list *list)
{
	return entry_read(list, source->root, &source->request);
}

int report(const struct options *options, const struct root *root)
{
	struct report_source source;
	struct entry_list list;
	int code = report_open(&source, options, root);
	if (code) {
		report_close(&source);
		return code;
	}
	int err = report_read(&source, &list);
	report_close(&source);
	if (err) {
		error("cannot read /proc: %s", strerror(-err));
		entry_free(&list);
		return STAT_FAILED;
	}
	if (!options->by)
		report_sort(&list, options->sort, options->sort_reverse);
	if (options->mode == MODE_CLASSIC)
		print_classic(&list);
	else if (options->by)
		err = print_groups(options, &list, root);
	else
		err = print_entries(&list, &options->print, select_any(&options->selection));
	if (err)
		error("cannot make the table: %s", strerror(-err));
	if (!err && list.unreadable)
		error("%zu of %zu processes could not be read%s", list.unreadable, list.count,
			geteuid() ? "; as root more can be" : "");
	code = err ? STAT_FAILED : found_code(options, &list);
	entry_free(&list);
	return code;
}
