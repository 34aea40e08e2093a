/* The options of ksmstat: one table that feeds the parser and the help. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ksmstat/argument.h"

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

#define SETTLE_DEFAULT_MS 2000
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

/* Modes that an option goes with. */
#define IN(mode) (1U << MODE_##mode)
#define ANY (~0U)
#define REPORTS (IN(REPORT) | IN(CLASSIC) | IN(WATCH))
#define GROUPS (IN(REPORT) | IN(ESTIMATE) | IN(AUDIT) | IN(PROM) | IN(WATCH))
#define TABLES (IN(REPORT) | IN(ESTIMATE) | IN(AUDIT) | IN(WATCH))

static const struct {
	int key;	/* its letter, or a number above them */
	unsigned modes; /* that it goes with */
	const char *name;
	const char *argument; /* what stands for it in the help; NULL when there is none */
	const char *help;
} table[] = {
	{ 'p', ANY, "pid", "PID,...", "these processes only" },
	{ 'c', ANY, "comm", "NAME,...", "processes of these names, or patterns like 'py*'" },
	{ 'u', ANY, "user", "USER,...", "processes of these users, by name or number" },
	{ 'g', ANY, "cgroup", "PATH", "processes in this control group, or below it" },
	{ 'o', IN(REPORT) | IN(WATCH) | IN(INTERVAL), "output", "LIST",
		"columns; +LIST adds to the default, 'all' shows all" },
	{ OPT_SORT, REPORTS, "sort", "COLUMN",
		"sort, large numbers first; -COLUMN turns it round" },
	{ OPT_BY, GROUPS, "by", "GROUP", "program, user, cgroup, unit, container, pod, system" },
	{ 'T', IN(REPORT), "tree", NULL, "--by cgroup, as a tree with the sums of all below" },
	{ 't', IN(REPORT), "total", NULL, "a last line with totals of the columns that add up" },
	{ 'b', TABLES | IN(INTERVAL), "bytes", NULL, "sizes in bytes" },
	{ 'n', TABLES | IN(CLASSIC) | IN(INTERVAL), "noheadings", NULL, "no line of headings" },
	{ 'J', IN(REPORT) | IN(ESTIMATE) | IN(AUDIT) | IN(INTERVAL), "json", NULL,
		"JSON; sizes in bytes, null where not known" },
	{ 'r', IN(REPORT) | IN(INTERVAL), "raw", NULL, "raw, blank between fields" },
	{ 'P', IN(REPORT) | IN(INTERVAL), "pairs", NULL, "KEY=\"value\" pairs" },
	{ OPT_CLASSIC, IN(CLASSIC), "classic", NULL,
		"name(pid) code:(p=.., s=..) data:(p=.., s=..) total=.." },
	{ OPT_ESTIMATE, IN(ESTIMATE), "estimate", NULL,
		"what merging would save, from the pages themselves" },
	{ OPT_SETTLE, IN(ESTIMATE), "settle", "SECONDS",
		"--estimate: look again after so long (2); 0: once" },
	{ OPT_TOP_PAGES, IN(ESTIMATE), "top-pages", "N",
		"--estimate: the N contents that repeat most" },
	{ OPT_GENTLE, ANY & ~(IN(ESTIMATE) | IN(CAPTURE)), "gentle", NULL,
		"in small steps: hardly stops what it looks at" },
	{ OPT_MAX_RSS, ANY & ~(IN(ESTIMATE) | IN(AUDIT) | IN(CAPTURE)), "max-rss", "SIZE",
		"leave out processes with more resident memory" },
	{ OPT_AUDIT, IN(AUDIT), "audit", NULL, "who shares merged pages, and across what" },
	{ OPT_PROM, IN(PROM), "prom", NULL,
		"metrics for Prometheus; any number of --by for groups" },
	{ OPT_PER_PROCESS, IN(PROM), "per-process", NULL, "--prom: of each process too, by PID" },
	{ OPT_OUTPUT_FILE, IN(PROM), "output-file", "FILE", "--prom: replace FILE, as a whole" },
	{ OPT_WATCH, IN(WATCH), "watch", NULL,
		"full screen, again after DELAY (2) seconds; ? for keys" },
	{ OPT_CAPTURE, IN(CAPTURE), "capture", "DIR",
		"copy what is read into DIR, for --root elsewhere" },
	{ OPT_ANONYMISE, IN(CAPTURE), "anonymise", NULL,
		"--capture: replace names, users, paths, addresses" },
	{ OPT_ROOT, ANY, "root", "DIR", "read /proc below DIR" },
	{ 'h', ANY, "help", NULL, "this help" },
	{ 'V', ANY, "version", NULL, "the version" },
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
	return argument_usage();
}

/* Returns an exit code, or -1 to go on. */
static int parse_option(struct options *options, int c, char **argv)
{
	switch (c) {
	case 'p':
	case 'c':
	case 'u':
	case 'g':
		return argument_selection(options, c, optarg);
	case 'o':
		options->columns = optarg;
		break;
	case OPT_BY:
		return argument_by(options, optarg);
	case 'T':
		options->tree = true;
		break;
	case OPT_SORT:
		return argument_sort(options, optarg);
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
		return argument_settle(options, optarg);
	case OPT_TOP_PAGES:
		return argument_top_pages(options, optarg);
	case OPT_GENTLE:
		options->gentle = true;
		break;
	case OPT_MAX_RSS:
		return argument_max_rss(options, optarg);
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

static const char *const mode_names[] = {
	[MODE_REPORT] = "the report",
	[MODE_CLASSIC] = "--classic",
	[MODE_ESTIMATE] = "--estimate",
	[MODE_AUDIT] = "--audit",
	[MODE_PROM] = "--prom",
	[MODE_INTERVAL] = "DELAY",
	[MODE_WATCH] = "--watch",
	[MODE_CAPTURE] = "--capture",
};

/* Each option that was given goes with the mode. Returns an exit code, or -1 to go on. */
static int check_modes(const struct options *options, uint64_t given)
{
	for (size_t i = 0; i < OPTIONS; i++) {
		unsigned modes = table[i].modes;
		if (!(given >> i & 1) || modes >> options->mode & 1)
			continue;
		if (options->mode == MODE_REPORT && !(modes & (modes - 1)))
			error("--%s goes with %s alone", table[i].name,
				mode_names[__builtin_ctz(modes)]);
		else
			error("--%s does not go with %s", table[i].name, mode_names[options->mode]);
		return argument_usage();
	}
	return -1;
}

/* What only the whole command line tells. Returns an exit code, or -1 to go on. */
static int check_together(struct options *options, uint64_t given)
{
	int code = check_modes(options, given);
	if (code >= 0)
		return code;
	if (options->tree && !options->by)
		options->by = GROUP_CGROUP;
	if (options->tree && options->by != GROUP_CGROUP) {
		error("--tree is of control groups: it goes with --by cgroup alone");
		return argument_usage();
	}
	if (options->by_all >> GROUP_SYSTEM & 1 &&
		(options->mode == MODE_AUDIT || options->mode == MODE_PROM)) {
		error("--by system does not go with %s", mode_names[options->mode]);
		return argument_usage();
	}
	return argument_columns(options);
}

int options_parse(struct options *options, int argc, char **argv)
{
	struct option long_options[OPTIONS + 1] = { { 0 } };
	char letters[2 * OPTIONS + 2] = ":"; /* tell a missing argument from an unknown option */
	size_t at = 1;
	uint64_t given = 0; /* a bit for each row of the table */
	_Static_assert(OPTIONS <= 64, "bits");

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
		for (size_t i = 0; i < OPTIONS; i++)
			given |= (uint64_t)(table[i].key == c) << i;
	}
	if (optind < argc) {
		int code = argument_delay(options, argc, argv);
		if (code >= 0)
			return code;
	}
	return check_together(options, given);
}

void options_free(struct options *options)
{
	select_free(&options->selection);
}
