/* Runs one program in several environments, in turns, and compares its speeds. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/machine.h"
#include "tests/bench/reg_stat.h"

static const char usage_text[] =
	"usage: reg_pairs --group G --name N [--seconds S] [--extra S] [--least RATIO]\n"
	"       [--us] --variant NAME=VAR=VALUE,... --variant... -- COMMAND...\n"
	"The first variant is the base. The speed of each other one is held against\n"
	"--least, but for \"again\", which is the base once more and shows the noise.\n"
	"Where that may be chance, --extra seconds more are spent. Where COMMAND has\n"
	"the word {env} the settings stand there as words, else they are made. A line\n"
	"\"measure WALL CPU\" (seconds) of its output counts instead of its own time.\n"
	"--us shows also the microseconds that it took longer.\n"
	"Exit code 1: slower than --least; 2: usage, or the command failed.\n";

#define VARIANTS_MAX 6
#define SETTINGS_MAX 8
#define WORDS_MAX 128
#define ROUNDS_MAX 2000
#define ROUNDS_LEAST 6

enum { WALL, CPU, TIMES };
/* For each of both. */
enum { RATIO, DIFFERENCE, FIGURES };

struct variant {
	const char *name;
	char *settings[SETTINGS_MAX];
	int count;
	double values[FIGURES][TIMES][ROUNDS_MAX];
};

static struct variant variants[VARIANTS_MAX];
static int variant_count;
static struct {
	const char *group, *name;
	double seconds, extra, least;
	int us;
	char **command;
} options = { .seconds = 10 };

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "reg_pairs: %s: %s\n", options.name, what);
	exit(2);
}

static void add_variant(char *text)
{
	struct variant *variant = &variants[variant_count++];
	char *equals = strchr(text, '='), *rest;

	if (variant_count > VARIANTS_MAX)
		fail("too many variants");
	variant->name = text;
	if (!equals)
		return;
	*equals = '\0';
	for (char *word = strtok_r(equals + 1, ",", &rest); word;
		word = strtok_r(NULL, ",", &rest)) {
		if (variant->count == SETTINGS_MAX)
			fail("too many settings");
		variant->settings[variant->count++] = word;
	}
}

/* In the child. */
static _Noreturn void start(const struct variant *variant)
{
	char *words[WORDS_MAX];
	int n = 0, inserted = 0;

	for (char **word = options.command; word && *word && n < WORDS_MAX - SETTINGS_MAX - 1;
		word++) {
		if (strcmp(*word, "{env}") != 0) {
			words[n++] = *word;
			continue;
		}
		for (int i = 0; i < variant->count; i++)
			words[n++] = variant->settings[i];
		inserted = 1;
	}
	if (!n)
		_exit(127);
	words[n] = NULL;
	for (int i = 0; i < variant->count && !inserted; i++)
		putenv(variant->settings[i]);
	execvp(words[0], words);
	_exit(127);
}

static void run(const struct variant *variant, double *times)
{
	char out[65536], *line;
	double begin = machine_now_s();
	struct rusage usage;
	size_t len = 0;
	ssize_t got;
	int ends[2], status;
	pid_t pid;

	if (pipe(ends))
		fail(strerror(errno));
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		start(variant);
	}
	close(ends[1]);
	/* what does not fit is of no interest, but is read on, or the program would wait */
	while ((got = read(ends[0], out + len, sizeof(out) - 1 - len)) > 0)
		len = len + (size_t)got < sizeof(out) - 1024 ? len + (size_t)got : 0;
	close(ends[0]);
	out[len] = '\0';
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status)
		fail("the command failed");
	times[WALL] = machine_now_s() - begin;
	times[CPU] = machine_rusage_s(&usage);
	line = strstr(out, "measure ");
	if (line && sscanf(line, "measure %lf %lf", &times[WALL], &times[CPU]) != 2)
		fail("its measure cannot be read");
	if (times[WALL] <= 0 || times[CPU] <= 0)
		fail("it took no time");
}

/* Each round begins with another variant, so that none is always the one after an idle time. */
static void one_round(int round)
{
	double times[VARIANTS_MAX][TIMES];

	for (int i = 0; i < variant_count; i++) {
		int turn = (round + variant_count + i) % variant_count;

		run(&variants[turn], times[turn]);
	}
	for (int i = 1; i < variant_count && round >= 0; i++) {
		for (int t = 0; t < TIMES; t++) {
			variants[i].values[RATIO][t][round] = times[0][t] / times[i][t];
			variants[i].values[DIFFERENCE][t][round] =
				(times[i][t] - times[0][t]) * 1e6;
		}
	}
}

static struct row row_of(int i, int figure, int t, int rounds)
{
	static double sorted[ROUNDS_MAX];
	static char name[256];
	struct row row = { .group = options.group, .name = name, .limit = options.least };

	snprintf(name, sizeof(name), "%s: %s", options.name, variants[i].name);
	row.what = t == WALL ? "wall" : "cpu";
	row.unit = figure == RATIO ? "ratio" : "us";
	if (figure == RATIO && options.least > 0 && strcmp(variants[i].name, "again") != 0)
		row.kind = LIMIT_LEAST;
	memcpy(sorted, variants[i].values[figure][t], sizeof(sorted[0]) * (size_t)rounds);
	reg_stat_row(&row, sorted, rounds);
	return row;
}

static bool unclear(int rounds)
{
	for (int i = 1; i < variant_count; i++) {
		for (int t = 0; t < TIMES; t++) {
			struct row row = row_of(i, RATIO, t, rounds);

			if (reg_stat_beyond(&row) && !reg_stat_missed(&row))
				return true;
		}
	}
	return false;
}

static bool print(int rounds)
{
	bool missed = false;

	for (int i = 1; i < variant_count; i++) {
		for (int figure = 0; figure <= options.us; figure++) {
			for (int t = 0; t < TIMES; t++) {
				struct row row = row_of(i, figure, t, rounds);

				missed |= reg_stat_print(&row);
			}
		}
	}
	return missed;
}

static void parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "group", required_argument, NULL, 'g' },
		{ "name", required_argument, NULL, 'n' },
		{ "seconds", required_argument, NULL, 's' },
		{ "least", required_argument, NULL, 'l' },
		{ "variant", required_argument, NULL, 'v' },
		{ "extra", required_argument, NULL, 'x' },
		{ "us", no_argument, &options.us, DIFFERENCE },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "+", names, NULL)) != -1) {
		switch (c) {
		case 0:
			break;
		case 'g':
			options.group = optarg;
			break;
		case 'n':
			options.name = optarg;
			break;
		case 's':
			options.seconds = strtod(optarg, NULL);
			break;
		case 'x':
			options.extra = strtod(optarg, NULL);
			break;
		case 'l':
			options.least = strtod(optarg, NULL);
			break;
		case 'v':
			add_variant(optarg);
			break;
		default:
			fputs(usage_text, stderr);
			exit(2);
		}
	}
	options.command = argv + optind; /* ends with NULL, as argv does */
	if (optind == argc || variant_count < 2 || !options.group || !options.name) {
		fputs(usage_text, stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	double begin;
	int round = 0;

	parse(argc, argv);
	one_round(-1); /* warms up */
	begin = machine_now_s();
	for (; round < ROUNDS_MAX; round++) {
		double used = machine_now_s() - begin;

		if (round >= ROUNDS_LEAST && used > options.seconds &&
			(used > options.seconds + options.extra || !unclear(round)))
			break;
		one_round(round);
	}
	return print(round);
}
