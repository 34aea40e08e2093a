/* The arguments of ksmstat's options: what they say, or what is wrong with them. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/argument.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sysfs/file.h"

/* Of --estimate. */
#define SETTLE_MAX_S 86400
#define TOP_PAGES_MAX 1000
/* Of DELAY. */
#define DELAY_MIN_S 0.1
#define DELAY_MAX_S 86400

int argument_usage(void)
{
	fputs("Try 'ksmstat --help'.\n", stderr);
	return STAT_USAGE;
}

int argument_selection(struct options *options, int c, const char *list)
{
	struct selection *selection = &options->selection;
	const char *bad = list;
	size_t len = strlen(list);
	int err = c == 'p'   ? select_add_pids(selection, list, &bad, &len)
		  : c == 'c' ? select_add_comms(selection, list, &bad, &len)
		  : c == 'u' ? select_add_users(selection, list, &bad, &len)
			     : select_add_cgroup(selection, list);
	if (!err)
		return -1;
	if (err == -ENOMEM) {
		error("out of memory");
		return STAT_FAILED;
	}
	error("'%.*s' is not a %s", (int)len, bad,
		c == 'p'   ? "process ID"
		: c == 'c' ? "name of a program"
		: c == 'u' ? "user known here"
			   : "path of a control group");
	return argument_usage();
}

int argument_by(struct options *options, const char *word)
{
	options->by = group_parse(word);
	options->by_all |= 1U << options->by;
	if (options->by)
		return -1;
	error("--by wants one of " GROUP_WORDS ", not '%s'", word);
	return argument_usage();
}

int argument_sort(struct options *options, const char *name)
{
	options->sort_reverse = *name == '-';
	if (*name == '-' || *name == '+')
		name++;
	options->sort = column_find(name, strlen(name));
	if (options->sort)
		return -1;
	error("unknown column '%s' to sort by", name);
	return argument_usage();
}

/* With a fraction or without. */
int argument_settle(struct options *options, const char *text)
{
	char *end;
	double seconds = strtod(text, &end);
	if (*text < '0' || *text > '9' || *end || !(seconds <= SETTLE_MAX_S)) {
		error("--settle wants seconds, from 0 to %d, not '%s'", SETTLE_MAX_S, text);
		return argument_usage();
	}
	options->settle_ms = (unsigned)(seconds * 1000 + 0.5);
	return -1;
}

int argument_top_pages(struct options *options, const char *text)
{
	int64_t count;
	if (file_parse_i64(text, strlen(text), &count) || count < 1 || count > TOP_PAGES_MAX) {
		error("--top-pages wants a number from 1 to %d, not '%s'", TOP_PAGES_MAX, text);
		return argument_usage();
	}
	options->top_pages = (size_t)count;
	return -1;
}

/* A number of bytes, or of the unit behind it: K, M, G, T, with or without "iB". */
int argument_max_rss(struct options *options, const char *text)
{
	static const char units[] = "KMGT";
	size_t digits = strspn(text, "0123456789");
	const char *unit =
		text[digits] ? strchr(units, toupper((unsigned char)text[digits])) : NULL;
	const char *rest = text + digits + (unit != NULL);
	int shift = unit ? 10 * (int)(unit - units + 1) : 0;
	int64_t number;

	if (file_parse_i64(text, digits, &number) || number < 1 || number > INT64_MAX >> shift ||
		(*rest && (!unit || strcasecmp(rest, "iB") != 0))) {
		error("--max-rss wants a size as 512M or 4G, not '%s'", text);
		return argument_usage();
	}
	options->max_rss_bytes = (uint64_t)number << shift;
	return -1;
}

int argument_delay(struct options *options, int argc, char **argv)
{
	const char *delay = argv[optind], *count = argv[optind + 1];
	char *end;
	double seconds = strtod(delay, &end);
	int64_t lines = 0;

	bool watch = options->mode == MODE_WATCH;
	if ((options->mode != MODE_REPORT && !watch) || *delay < '0' || *delay > '9') {
		error("unexpected argument '%s'", delay);
		return argument_usage();
	}
	if (delay[strspn(delay, "0123456789.")] || *end ||
		!(seconds >= DELAY_MIN_S && seconds <= DELAY_MAX_S)) {
		error("DELAY wants seconds, from %g to %d, not '%s'", DELAY_MIN_S, DELAY_MAX_S,
			delay);
		return argument_usage();
	}
	if (count && (file_parse_i64(count, strlen(count), &lines) || lines < 1)) {
		error("COUNT wants a number of lines, not '%s'", count);
		return argument_usage();
	}
	if (argc - optind > 2 - watch) {
		error("unexpected argument '%s'", argv[optind + 2 - watch]);
		return argument_usage();
	}
	options->delay_ns = (uint64_t)(seconds * 1e9 + 0.5);
	options->lines = (uint64_t)lines;
	if (!watch)
		options->mode = MODE_INTERVAL;
	return -1;
}

/* Returns an exit code after telling why a column cannot be had, or -1 to go on. */
static int check_column(const struct options *options, const struct column *column)
{
	const char *refusal = group_refusal(options->by, column);
	if (!refusal)
		return -1;
	error("column %s %s", column->name, refusal);
	return argument_usage();
}

static int report_columns(struct options *options)
{
	struct column_choice *choice = &options->print.columns;
	const char *bad, *list = options->columns;
	size_t bad_len;
	int err = 0, code = check_column(options, options->sort);
	if (code >= 0)
		return code;
	if (options->by)
		err = group_columns(options->by, choice, list, &bad, &bad_len);
	else if (list)
		err = column_parse(choice, list, &bad, &bad_len);
	if (err == -E2BIG)
		error("more than %d columns", COLUMN_CHOICE_MAX);
	else if (err)
		error("unknown column '%.*s'", (int)bad_len, bad);
	if (err)
		return argument_usage();
	for (size_t i = 0; i < choice->count && code < 0; i++)
		code = check_column(options, choice->column[i]);
	return code;
}

/* Columns of lines. JSON has all of them unless some are chosen, and in any case the time. */
static int interval_columns_of(struct options *options)
{
	bool json = options->print.form == PRINT_JSON;
	struct interval_choice *choice = &options->interval;
	const char *bad;
	size_t bad_len;

	bool of_processes = select_any(&options->selection);
	interval_default(choice, of_processes);
	if (json && !options->columns)
		interval_all(choice);
	if (options->columns &&
		interval_parse(choice, options->columns, of_processes, &bad, &bad_len)) {
		error("unknown column '%.*s' of lines with DELAY", (int)bad_len, bad);
		return argument_usage();
	}
	if (json)
		interval_add_time(choice);
	return -1;
}

int argument_columns(struct options *options)
{
	return options->mode == MODE_INTERVAL ? interval_columns_of(options)
					      : report_columns(options);
}
