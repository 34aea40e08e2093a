/* The options of ksmstat: one table that feeds the parser and the help. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sysfs/file.h"

void error(const char *format, ...)
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

/* Of the options without a letter. */
enum { OPT_SORT = 256, OPT_CLASSIC, OPT_ESTIMATE, OPT_ROOT };

static const struct {
	int key; /* its letter, or a number above them */
	const char *name;
	const char *argument; /* what stands for it in the help; NULL when there is none */
	const char *help;     /* a newline in it goes on below */
} table[] = {
	{ 'p', "pid", "PID,...", "these processes only" },
	{ 'o', "output", "LIST", "columns; +LIST adds to the default, 'all' shows all" },
	{ OPT_SORT, "sort", "COLUMN", "sort by it, numbers large first; -COLUMN turns it round" },
	{ 't', "total", NULL, "a last line with totals of the columns that add up" },
	{ 'b', "bytes", NULL, "sizes in bytes" },
	{ 'n', "noheadings", NULL, "no line of headings" },
	{ 'J', "json", NULL, "JSON; sizes in bytes, null where not known" },
	{ 'r', "raw", NULL, "raw, blank between fields" },
	{ 'P', "pairs", NULL, "KEY=\"value\" pairs" },
	{ OPT_CLASSIC, "classic", NULL, "name(pid) code:(p=.., s=..) data:(p=.., s=..) total=.." },
	{ OPT_ESTIMATE, "estimate", NULL, "what merging would save in the processes of -p" },
	{ OPT_ROOT, "root", "DIR", "read /proc below DIR" },
	{ 'h', "help", NULL, "this help" },
	{ 'V', "version", NULL, "the version" },
};
#define OPTIONS (sizeof(table) / sizeof(*table))

static void print_help(void)
{
	fputs("Usage: ksmstat [OPTION...]\n\n"
	      "Shows code and data, private and shared, of every process, and what\n"
	      "merging equal pages (KSM) saved.\n\n",
		stdout);
	for (size_t i = 0; i < OPTIONS; i++) {
		const char *argument = table[i].argument;
		char letter[] = "    ", name[32];
		if (table[i].key < 256)
			snprintf(letter, sizeof(letter), "-%c, ", table[i].key);
		snprintf(name, sizeof(name), "--%s%s%s", table[i].name, argument ? " " : "",
			argument ? argument : "");
		printf("  %s%-17s %s\n", letter, name, table[i].help);
	}
	fputs("\nColumns:\n", stdout);
	for (size_t i = 0; i < columns_count; i++)
		printf("  %-10s %s\n", columns[i].name, columns[i].help);
	fputs("\nExit codes: 0 shown, 1 failed, 2 wrong arguments, 32 none and 64 only some\n"
	      "of the processes of -p found and readable. More in ksmstat(8).\n",
		stdout);
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

/* "1,2,3", added to the list. Returns an exit code after telling what is wrong, or -1 to go on. */
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
			return -1;
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
	return err ? usage() : -1;
}

static int parse_sort(struct options *options, const char *name)
{
	options->sort_reverse = *name == '-';
	if (*name == '-' || *name == '+')
		name++;
	options->sort = column_find(name, strlen(name));
	if (options->sort)
		return -1;
	error("unknown column '%s' to sort by", name);
	return usage();
}

/* Returns an exit code, or -1 to go on. */
static int parse_option(struct options *options, int c, char **argv)
{
	switch (c) {
	case 'p':
		return parse_pids(options, optarg);
	case 'o':
		return parse_columns(options, optarg);
	case OPT_SORT:
		return parse_sort(options, optarg);
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
		options->mode = MODE_CLASSIC;
		break;
	case OPT_ESTIMATE:
		options->mode = MODE_ESTIMATE;
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
	return -1;
}

/* What only the whole command line tells. Returns an exit code, or -1 to go on. */
static int check_together(const struct options *options)
{
	if (options->mode == MODE_ESTIMATE && !options->pid_count) {
		error("--estimate needs the processes to read: -p PID,...");
		return usage();
	}
	return -1;
}

int options_parse(struct options *options, int argc, char **argv)
{
	struct option long_options[OPTIONS + 1] = { { 0 } };
	char letters[2 * OPTIONS + 2] = ":"; /* tell a missing argument from an unknown option */
	size_t at = 1;

	for (size_t i = 0; i < OPTIONS; i++) {
		int takes = table[i].argument ? required_argument : no_argument;
		long_options[i] = (struct option){ table[i].name, takes, NULL, table[i].key };
		if (table[i].key < 256)
			letters[at++] = (char)table[i].key;
		if (table[i].key < 256 && table[i].argument)
			letters[at++] = ':';
	}
	column_default(&options->print.columns);
	options->sort = column_find("SAVED", 5);
	opterr = 0; /* bad_option says it */
	for (int c; (c = getopt_long(argc, argv, letters, long_options, NULL)) != -1;) {
		int code = parse_option(options, c, argv);
		if (code >= 0)
			return code;
	}
	if (optind < argc) {
		error("unexpected argument '%s'", argv[optind]);
		return usage();
	}
	return check_together(options);
}

void options_free(struct options *options)
{
	free(options->pids);
}
