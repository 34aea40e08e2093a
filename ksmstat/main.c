/* ksmstat: what processes share and own, what merging saved, and what it would save. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <getopt.h>
#include <libsmartcols.h>
#include <limits.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ksmstat/column.h"
#include "ksmstat/entry.h"
#include "ksmstat/estimate.h"
#include "ksmstat/print.h"
#include "ksmstat/privilege.h"
#include "sysfs/file.h"

/* Exit codes, as the manual page documents them; the last two as in util-linux. */
enum {
	STAT_OK = 0,
	STAT_FAILED = 1,
	STAT_USAGE = 2,
	STAT_NONE_FOUND = 32,
	STAT_SOME_FOUND = 64,
};

struct options {
	const char *prefix;
	struct print_options print;
	const struct column *sort;
	bool sort_reverse;
	bool classic, estimate;
	pid_t *pids;
	size_t pid_count;
};

static void error(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void error(const char *format, ...)
{
	va_list args;
	fflush(stdout);
	fputs("ksmstat: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

static int usage(void)
{
	fputs("Try 'ksmstat --help'.\n", stderr);
	return STAT_USAGE;
}

/* Say which option getopt_long did not take: its result was '?' or ':'. */
static int bad_option(int result, char **argv)
{
	const char *last = argv[optind - 1];
	char letter[3] = { '-', (char)optopt, '\0' };
	const char *option = last && !strncmp(last, "--", 2) ? last : letter;
	if (result == ':')
		error("option '%s' requires an argument", option);
	else
		error("unrecognized option '%s'", option);
	return usage();
}

static void print_help(void)
{
	fputs("Usage: ksmstat [OPTION...]\n\n"
	      "Shows code and data, private and shared, of every process, and what\n"
	      "merging equal pages (KSM) saved.\n\n"
	      "  -p, --pid PID,...     these processes only\n"
	      "  -o, --output LIST     columns; +LIST adds to the default, 'all' shows all\n"
	      "      --sort COLUMN     sort by it, numbers large first; -COLUMN turns it round\n"
	      "  -t, --total           a last line with totals of the columns that add up\n"
	      "  -b, --bytes           sizes in bytes\n"
	      "  -n, --noheadings      no line of headings\n"
	      "  -J, --json            JSON; sizes in bytes, null where not known\n"
	      "  -r, --raw             raw, blank between fields\n"
	      "  -P, --pairs           KEY=\"value\" pairs\n"
	      "      --classic         name(pid) code:(p=.., s=..) data:(p=.., s=..) total=..\n"
	      "      --estimate        what merging would save in the processes of -p\n"
	      "      --root DIR        read /proc below DIR\n"
	      "  -h, --help            this help\n"
	      "  -V, --version         the version\n\nColumns:\n",
		stdout);
	for (size_t i = 0; i < columns_count; i++)
		printf("  %-10s %s\n", columns[i].name, columns[i].help);
	fputs("\nExit codes: 0 shown, 1 failed, 2 wrong arguments, 32 none and 64 only some\n"
	      "of the processes of -p found and readable. More in ksmstat(8).\n",
		stdout);
}

/* "1,2,3", added to the list. Returns an exit code after telling what is wrong. */
static int parse_pids(struct options *options, const char *list)
{
	for (;;) {
		size_t len = strcspn(list, ",");
		int64_t pid;
		if (file_parse_i64(list, len, &pid) || pid < 1 || pid > INT_MAX) {
			error("'%.*s' is not a process ID", (int)len, list);
			return usage();
		}
		pid_t *pids = reallocarray(options->pids, options->pid_count + 1, sizeof(*pids));
		if (!pids) {
			error("out of memory");
			return STAT_FAILED;
		}
		options->pids = pids;
		options->pids[options->pid_count++] = (pid_t)pid;
		if (!list[len])
			return STAT_OK;
		list += len + 1;
	}
}

static int parse_columns(struct options *options, const char *list)
{
	const char *bad;
	size_t bad_len;
	int err = column_parse(&options->print.columns, list, &bad, &bad_len);
	if (err == -E2BIG)
		error("more than %d columns", COLUMN_CHOICE_MAX);
	else if (err)
		error("unknown column '%.*s'", (int)bad_len, bad);
	return err ? usage() : STAT_OK;
}

static int parse_sort(struct options *options, const char *name)
{
	options->sort_reverse = *name == '-';
	if (*name == '-' || *name == '+')
		name++;
	options->sort = column_find(name, strlen(name));
	if (options->sort)
		return STAT_OK;
	error("unknown column '%s' to sort by", name);
	return usage();
}

enum { OPT_SORT = 256, OPT_CLASSIC, OPT_ESTIMATE, OPT_ROOT };

/* Returns an exit code, or -1 to go on. */
static int parse_option(struct options *options, int c, char **argv)
{
	int code = STAT_OK;
	switch (c) {
	case 'p':
		code = parse_pids(options, optarg);
		break;
	case 'o':
		code = parse_columns(options, optarg);
		break;
	case OPT_SORT:
		code = parse_sort(options, optarg);
		break;
	case 't':
		options->print.total = true;
		break;
	case 'b':
		options->print.bytes = true;
		break;
	case 'n':
		options->print.no_headings = true;
		break;
	case 'J':
		options->print.form = PRINT_JSON;
		break;
	case 'r':
		options->print.form = PRINT_RAW;
		break;
	case 'P':
		options->print.form = PRINT_PAIRS;
		break;
	case OPT_CLASSIC:
		options->classic = true;
		break;
	case OPT_ESTIMATE:
		options->estimate = true;
		break;
	case OPT_ROOT:
		options->prefix = optarg;
		break;
	case 'h':
		print_help();
		return STAT_OK;
	case 'V':
		puts("ksmstat " KSM_VERSION);
		return STAT_OK;
	default:
		return bad_option(c, argv);
	}
	return code == STAT_OK ? -1 : code;
}

/* Returns an exit code, or -1 to go on. */
static int parse_options(struct options *options, int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "pid", required_argument, NULL, 'p' },
		{ "output", required_argument, NULL, 'o' },
		{ "sort", required_argument, NULL, OPT_SORT },
		{ "total", no_argument, NULL, 't' },
		{ "bytes", no_argument, NULL, 'b' },
		{ "noheadings", no_argument, NULL, 'n' },
		{ "json", no_argument, NULL, 'J' },
		{ "raw", no_argument, NULL, 'r' },
		{ "pairs", no_argument, NULL, 'P' },
		{ "classic", no_argument, NULL, OPT_CLASSIC },
		{ "estimate", no_argument, NULL, OPT_ESTIMATE },
		{ "root", required_argument, NULL, OPT_ROOT },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int c;
	opterr = 0; /* bad_option says it */
	while ((c = getopt_long(argc, argv, ":p:o:tbnJrPhV", long_options, NULL)) != -1) {
		int code = parse_option(options, c, argv);
		if (code >= 0)
			return code;
	}
	if (optind < argc) {
		error("unexpected argument '%s'", argv[optind]);
		return usage();
	}
	if (options->estimate && !options->pid_count) {
		error("--estimate needs the processes to read: -p PID,...");
		return usage();
	}
	return -1;
}

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

static int report(const struct options *options, const struct root *root)
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
	if (options->classic)
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

int main(int argc, char **argv)
{
	struct options options = { 0 };
	struct root root;

	setlocale(LC_CTYPE, "");
	column_default(&options.print.columns);
	options.sort = column_find("SAVED", 5);
	int code = parse_options(&options, argc, argv);
	if (code < 0) {
		privilege_drop();
		int err = root_open(&root, options.prefix);
		if (err) {
			error("cannot open %s: %s", options.prefix ? options.prefix : "/",
				strerror(-err));
			code = STAT_FAILED;
		} else {
			code = options.estimate
				       ? estimate_print(&root, options.pids, options.pid_count)
				       : report(&options, &root);
			root_close(&root);
		}
	}
	free(options.pids);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		if (errno != EPIPE)
			error("cannot write the output: %s", strerror(errno));
		return STAT_FAILED;
	}
	return code;
}
