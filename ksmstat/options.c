/* The options of ksmstat: one table that feeds the parser and the help. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

/* Of --estimate. */
#define SETTLE_DEFAULT_MS 2000
#define SETTLE_MAX_S 86400
#define TOP_PAGES_MAX 1000
/* Of DELAY. */
#define DELAY_MIN_S 0.1
#define DELAY_MAX_S 86400
#define WATCH_DELAY_NS 2000000000u

/* Of the options without a letter. */
enum {
	OPT_SORT = 256,
	OPT_CLASSIC,
	OPT_ESTIMATE,
	OPT_SETTLE,
	OPT_TOP_PAGES,
	OPT_ROOT,
	OPT_BY,
	OPT_GENTLE,
	OPT_MAX_RSS,
	OPT_AUDIT,
	OPT_PROM,
	OPT_PER_PROCESS,
	OPT_OUTPUT_FILE,
	OPT_WATCH,
	OPT_CAPTURE,
	OPT_ANONYMISE,
};

static const struct {
	int key; /* its letter, or a number above them */
	const char *name;
	const char *argument; /* what stands for it in the help; NULL when there is none */
	const char *help;     /* a newline in it goes on below */
} table[] = {
	{ 'p', "pid", "PID,...", "these processes only" },
	{ 'c', "comm", "NAME,...", "processes of these names, or patterns like 'py*'" },
	{ 'u', "user", "USER,...", "processes of these users, by name or number" },
	{ 'g', "cgroup", "PATH", "processes in this control group, or below it" },
	{ 'o', "output", "LIST", "columns; +LIST adds to the default, 'all' shows all" },
	{ OPT_SORT, "sort", "COLUMN", "sort, large numbers first; -COLUMN turns it round" },
	{ OPT_BY, "by", "GROUP", "program, user, cgroup, unit, container, pod, system" },
	{ 'T', "tree", NULL, "--by cgroup, as a tree with the sums of all below" },
	{ 't', "total", NULL, "a last line with totals of the columns that add up" },
	{ 'b', "bytes", NULL, "sizes in bytes" },
	{ 'n', "noheadings", NULL, "no line of headings" },
	{ 'J', "json", NULL, "JSON; sizes in bytes, null where not known" },
	{ 'r', "raw", NULL, "raw, blank between fields" },
	{ 'P', "pairs", NULL, "KEY=\"value\" pairs" },
	{ OPT_CLASSIC, "classic", NULL, "name(pid) code:(p=.., s=..) data:(p=.., s=..) total=.." },
	{ OPT_ESTIMATE, "estimate", NULL, "what merging would save, from the pages themselves" },
	{ OPT_SETTLE, "settle", "SECONDS", "--estimate: look again after so long (2); 0: once" },
	{ OPT_TOP_PAGES, "top-pages", "N", "--estimate: the N contents that repeat most" },
	{ OPT_GENTLE, "gentle", NULL, "in small steps: hardly stops what it looks at" },
	{ OPT_MAX_RSS, "max-rss", "SIZE", "leave out processes with more resident memory" },
	{ OPT_AUDIT, "audit", NULL, "who shares merged pages, and across what" },
	{ OPT_PROM, "prom", NULL, "metrics for Prometheus; any number of --by for groups" },
	{ OPT_PER_PROCESS, "per-process", NULL, "--prom: of each process too, by PID" },
	{ OPT_OUTPUT_FILE, "output-file", "FILE", "--prom: replace FILE, as a whole" },
	{ OPT_WATCH, "watch", NULL, "full screen, again after DELAY (2) seconds; ? for keys" },
	{ OPT_CAPTURE, "capture", "DIR", "copy what is read into DIR, for --root elsewhere" },
	{ OPT_ANONYMISE, "anonymise", NULL, "--capture: replace names, users, paths, addresses" },
	{ OPT_ROOT, "root", "DIR", "read /proc below DIR" },
	{ 'h', "help", NULL, "this help" },
	{ 'V', "version", NULL, "the version" },
};
#define OPTIONS (sizeof(table) / sizeof(*table))

static void print_help(void)
{
	fputs("Usage: ksmstat [OPTION...] [DELAY [COUNT]]\n\n"
	      "Shows code and data, private and shared, of every process, and what\n"
	      "merging equal pages (KSM) saved. With DELAY: a line every so many seconds,\n"
	      "COUNT of them, with what KSM does.\n\n",
		stdout);
	for (size_t i = 0; i < OPTIONS; i++) {
		const char *argument = table[i].argument;
		char letter[] = "    ", name[32];
		if (table[i].key < 256)
			snprintf(letter, sizeof(letter), "-%c, ", table[i].key);
		snprintf(name, sizeof(name), "--%s%s%s", table[i].name, argument ? " " : "",
			argument ? argument : "");
		printf("  %s%-19s %s\n", letter, name, table[i].help);
	}
	fputs("\nColumns:\n", stdout);
	for (size_t i = 0; i < columns_count; i++)
		printf("  %-13s %s\n", columns[i].name, columns[i].help);
	fputs("\nColumns with DELAY:\n", stdout);
	for (size_t i = 0; i < RATES_KEYS; i++)
		printf("  %-13s %s\n", interval_columns[i].name, interval_columns[i].help);
	fputs("\nExit codes: 0 shown, 1 failed, 2 wrong arguments, 3 --audit: pages cross,\n"
	      "32 none and 64 only some of the processes asked for found and readable.\n"
	      "More in ksmstat(8).\n",
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

/* What -p, -c, -u or -g says. Returns an exit code after telling what is wrong, or -1 to go on. */
static int parse_selection(struct options *options, int c, const char *list)
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
	return usage();
}

/* Returns an exit code after telling why a column cannot be had, or -1 to go on. */
static int check_column(const struct options *options, const struct column *column)
{
	const char *refusal = group_refusal(options->by, column);
	if (!refusal)
		return -1;
	error("column %s %s", column->name, refusal);
	return usage();
}

/* What is shown depends on the groups; so this is the last to be looked at. */
static int parse_columns(struct options *options)
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
		return usage();
	for (size_t i = 0; i < choice->count && code < 0; i++)
		code = check_column(options, choice->column[i]);
	return code;
}

/* Columns of lines. JSON has all of them unless some are chosen, and in any case the time. */
static int parse_interval_columns(struct options *options)
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
		return usage();
	}
	if (json)
		interval_add_time(choice);
	return -1;
}

static int parse_by(struct options *options, const char *word)
{
	options->by = group_parse(word);
	options->by_all |= 1U << options->by;
	if (options->by)
		return -1;
	error("--by wants one of " GROUP_WORDS ", not '%s'", word);
	return usage();
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

/* Seconds, with a fraction or without. */
static int parse_settle(struct options *options, const char *text)
{
	char *end;
	double seconds = strtod(text, &end);
	if (*text < '0' || *text > '9' || *end || !(seconds <= SETTLE_MAX_S)) {
		error("--settle wants seconds, from 0 to %d, not '%s'", SETTLE_MAX_S, text);
		return usage();
	}
	options->settle_ms = (unsigned)(seconds * 1000 + 0.5);
	return -1;
}

static int parse_top_pages(struct options *options, const char *text)
{
	int64_t count;
	if (file_parse_i64(text, strlen(text), &count) || count < 1 || count > TOP_PAGES_MAX) {
		error("--top-pages wants a number from 1 to %d, not '%s'", TOP_PAGES_MAX, text);
		return usage();
	}
	options->top_pages = (size_t)count;
	return -1;
}

/* A number of bytes, or of the unit behind it: K, M, G, T, with or without "iB". */
static int parse_max_rss(struct options *options, const char *text)
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
		return usage();
	}
	options->max_rss_bytes = (uint64_t)number << shift;
	return -1;
}

/* DELAY and COUNT, which make a line by the interval of what would be a report. */
static int parse_delay(struct options *options, int argc, char **argv)
{
	const char *delay = argv[optind], *count = argv[optind + 1];
	char *end;
	double seconds = strtod(delay, &end);
	int64_t lines = 0;

	bool watch = options->mode == MODE_WATCH;
	if ((options->mode != MODE_REPORT && !watch) || *delay < '0' || *delay > '9') {
		error("unexpected argument '%s'", delay);
		return usage();
	}
	if (delay[strspn(delay, "0123456789.")] || *end ||
		!(seconds >= DELAY_MIN_S && seconds <= DELAY_MAX_S)) {
		error("DELAY wants seconds, from %g to %d, not '%s'", DELAY_MIN_S, DELAY_MAX_S,
			delay);
		return usage();
	}
	if (count && (file_parse_i64(count, strlen(count), &lines) || lines < 1)) {
		error("COUNT wants a number of lines, not '%s'", count);
		return usage();
	}
	if (argc - optind > 2 - watch) {
		error("unexpected argument '%s'", argv[optind + 2 - watch]);
		return usage();
	}
	options->delay_ns = (uint64_t)(seconds * 1e9 + 0.5);
	options->lines = (uint64_t)lines;
	if (!watch)
		options->mode = MODE_INTERVAL;
	return -1;
}

/* Returns an exit code, or -1 to go on. */
static int parse_option(struct options *options, int c, char **argv)
{
	switch (c) {
	case 'p':
	case 'c':
	case 'u':
	case 'g':
		return parse_selection(options, c, optarg);
	case 'o':
		options->columns = optarg;
		break;
	case OPT_BY:
		return parse_by(options, optarg);
	case 'T':
		options->tree = true;
		break;
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
	case OPT_SETTLE:
		return parse_settle(options, optarg);
	case OPT_TOP_PAGES:
		return parse_top_pages(options, optarg);
	case OPT_GENTLE:
		options->gentle = true;
		break;
	case OPT_MAX_RSS:
		return parse_max_rss(options, optarg);
	case OPT_AUDIT:
		options->mode = MODE_AUDIT;
		break;
	case OPT_PROM:
		options->mode = MODE_PROM;
		break;
	case OPT_PER_PROCESS:
		options->per_process = true;
		break;
	case OPT_OUTPUT_FILE:
		options->output_file = optarg;
		break;
	case OPT_WATCH:
		options->mode = MODE_WATCH;
		options->delay_ns = WATCH_DELAY_NS;
		break;
	case OPT_CAPTURE:
		options->mode = MODE_CAPTURE;
		options->capture = optarg;
		break;
	case OPT_ANONYMISE:
		options->anonymise = true;
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

/* What goes with --prom, and with nothing else. Returns an exit code, or -1 to go on. */
static int check_prom(const struct options *options)
{
	bool is_prom = options->mode == MODE_PROM;
	if (!is_prom && (options->per_process || options->output_file)) {
		error("--per-process and --output-file are of --prom alone");
		return usage();
	}
	if (is_prom && (options->print.form != PRINT_TABLE || options->tree || options->columns ||
			       options->by_all >> GROUP_SYSTEM & 1)) {
		error("--prom goes with none of -J, -r, -P, -T, -o and --by system");
		return usage();
	}
	return -1;
}

/* A capture shows nothing. Returns an exit code, or -1 to go on. */
static int check_capture(const struct options *options)
{
	const struct print_options *print = &options->print;
	if (options->capture ? options->mode != MODE_CAPTURE || options->by || options->tree ||
				       options->gentle || options->max_rss_bytes ||
				       options->columns || print->total || print->bytes ||
				       print->no_headings || print->form != PRINT_TABLE
			     : options->anonymise) {
		error(options->capture ? "with --capture go -p, -c, -u, -g, --root and --anonymise"
				       : "--anonymise is of --capture alone");
		return usage();
	}
	return -1;
}

/* What only the whole command line tells. Returns an exit code, or -1 to go on. */
static int check_together(struct options *options)
{
	enum print_form form = options->print.form;
	int code = check_capture(options);
	if (code >= 0)
		return code;
	bool is_audit = options->mode == MODE_AUDIT;
	if ((options->mode == MODE_ESTIMATE || is_audit) && form != PRINT_TABLE &&
		form != PRINT_JSON) {
		error("--%s prints tables or JSON, not -r or -P", is_audit ? "audit" : "estimate");
		return usage();
	}
	if (options->mode == MODE_WATCH && (form != PRINT_TABLE || options->print.total)) {
		error("--watch shows a table on a terminal, without -J, -r, -P or -t");
		return usage();
	}
	if (options->tree && !options->by)
		options->by = GROUP_CGROUP;
	if (options->tree && options->by != GROUP_CGROUP) {
		error("--tree is of control groups: it goes with --by cgroup alone");
		return usage();
	}
	if (is_audit && (options->by == GROUP_SYSTEM || options->tree || options->max_rss_bytes)) {
		error("--audit goes with neither --by system nor --tree nor --max-rss");
		return usage();
	}
	if (options->mode == MODE_ESTIMATE
			? options->tree
			: options->by && (options->mode == MODE_CLASSIC ||
						 options->mode == MODE_INTERVAL ||
						 (options->tree && options->mode == MODE_WATCH))) {
		error("--by and --tree are of the report alone; --by of --estimate, --audit, "
		      "--watch too");
		return usage();
	}
	if (options->mode == MODE_ESTIMATE && (options->gentle || options->max_rss_bytes)) {
		error("--gentle and --max-rss are of the report alone");
		return usage();
	}
	if (options->mode == MODE_INTERVAL &&
		(options->print.total || options->sort != column_find("SAVED", 5) ||
			options->sort_reverse)) {
		error("-t and --sort are of the report alone, and not for lines with DELAY");
		return usage();
	}
	int code = check_prom(options);
	if (code >= 0)
		return code;
	return options->mode == MODE_INTERVAL ? parse_interval_columns(options)
					      : parse_columns(options);
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
	options->settle_ms = SETTLE_DEFAULT_MS;
	options->sort = column_find("SAVED", 5);
	opterr = 0; /* bad_option says it */
	for (int c; (c = getopt_long(argc, argv, letters, long_options, NULL)) != -1;) {
		int code = parse_option(options, c, argv);
		if (code >= 0)
			return code;
	}
	if (optind < argc) {
		int code = parse_delay(options, argc, argv);
		if (code >= 0)
			return code;
	}
	return check_together(options);
}

void options_free(struct options *options)
{
	select_free(&options->selection);
}
