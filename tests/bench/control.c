/* Compares controllers of KSM on the real kernel: same workload, one after the other, one table. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/place.h"
#include "tests/bench/report.h"
#include "tests/bench/run.h"
#include "tests/bench/series.h"
#include "tests/bench/short.h"
#include "tests/bench/workload.h"

#define RUNS_MAX 16
/* Not a workload like the others: what is measured is the time of its processes. */
#define SHORT_LIVED "short-lived"

static struct {
	double seconds;
	const char *controllers, *workloads, *json, *csv, *config;
	int repeat;
	bool keep;
} options = { .seconds = 80,
	.controllers = "ours,defaults,advisor,ksmtuned,wide-open",
	.workloads = "main",
	.repeat = 1 };

static struct series series;

/* Keep log and state when they are wanted or tell why a controller failed, and say where. */
static void tidy(const char *controller, bool failed)
{
	char line[512];
	if (options.keep || failed)
		fprintf(stderr, "control: %s: log and state are in %s\n", controller,
			place_scratch);
	else
		place_remove_scratch();
	if (failed)
		fprintf(stderr, "control: its last words: %s\n", place_log_end(line, sizeof(line)));
}

/* All repetitions of one controller. Returns false when it failed. */
static bool compare_one(const struct workload *workload, const struct controller *controller,
	struct report *report, FILE *csv)
{
	struct figures runs[RUNS_MAX], median;
	for (int i = 0; i < options.repeat; i++) {
		if (isatty(STDERR_FILENO))
			fprintf(stderr, "(%s, run %d of %d, %.0f s)\r", controller->name, i + 1,
				options.repeat, options.seconds);
		struct outcome outcome = run_workload(
			workload, controller, options.config, options.seconds, &series, &runs[i]);
		tidy(controller->name, outcome.wrong && !outcome.skipped && !run_stop_signal);
		if (run_stop_signal)
			return false;
		if (outcome.wrong) {
			report_missing(report, controller->name, outcome.wrong, outcome.skipped);
			return outcome.skipped;
		}
		if (csv)
			series_csv(&series, workload->name, controller->name, i, csv);
		if (options.repeat > 1)
			report_run(report, controller->name, i, &runs[i]);
	}
	figures_median(runs, options.repeat, &median);
	report_median(report, controller->name, &median);
	return true;
}

static bool compare_short(const struct controller *controller, struct report *report)
{
	struct short_figures figures;
	if (!strcmp(controller->name, "none"))
		return true;
	struct outcome outcome =
		short_compare(controller, options.config, options.repeat, &figures);
	if (outcome.wrong)
		tidy(controller->name, !outcome.skipped && !run_stop_signal);
	if (run_stop_signal)
		return false;
	if (outcome.wrong)
		report_missing(report, controller->name, outcome.wrong, outcome.skipped);
	else
		report_short(report, controller->name, &figures);
	return !outcome.wrong || outcome.skipped;
}

/* One workload with all controllers. Returns false when one of them failed. */
static bool compare_controllers(const char *name, struct report *report, FILE *csv)
{
	const struct workload *workload = workload_find(name);
	char list[256], *save;
	bool good = true;
	snprintf(list, sizeof(list), "%s", options.controllers);
	if (workload)
		report_begin(report, workload->name, workload->what,
			series_steady_window_s(options.seconds));
	else
		report_begin_short(report, SHORT_LIVED, short_what);
	for (char *c = strtok_r(list, ",", &save); c && !run_stop_signal;
		c = strtok_r(NULL, ",", &save)) {
		const struct controller *controller = controller_find(c);
		good &= workload ? compare_one(workload, controller, report, csv)
				 : compare_short(controller, report);
	}
	report_end(report);
	return good;
}

static bool compare_all(FILE *csv)
{
	char list[256], *save;
	struct report report;
	bool good = true;
	snprintf(list, sizeof(list), "%s", options.workloads);
	if (report_open(&report, options.json, options.seconds, options.repeat))
		return false;
	for (char *name = strtok_r(list, ",", &save); name && !run_stop_signal;
		name = strtok_r(NULL, ",", &save))
		good &= compare_controllers(name, &report, csv);
	return report_close(&report) == 0 && good;
}

static _Noreturn void usage(void)
{
	fputs("usage: control [--seconds N] [--controllers a,b,...] [--workload a,b,...]\n"
	      "               [--repeat N] [--config 'key=value;...'] [--json FILE] [--csv FILE] "
	      "[--keep]\n"
	      "controllers:\n",
		stderr);
	for (const struct controller *c = controllers; c->name; c++)
		fprintf(stderr, "  %-12s %s\n", c->name, c->what);
	fputs("workloads:\n", stderr);
	for (const struct workload *w = workloads; w->name; w++)
		fprintf(stderr, "  %-12s %s\n", w->name, w->what);
	fprintf(stderr, "  %-12s %s\n", SHORT_LIVED, short_what);
	exit(2);
}

static bool known(const char *list, bool workload)
{
	char copy[256], *save;
	if (strlen(list) >= sizeof(copy))
		return false;
	snprintf(copy, sizeof(copy), "%s", list);
	for (char *name = strtok_r(copy, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		if (workload ? !workload_find(name) && strcmp(name, SHORT_LIVED) != 0
			     : !controller_find(name)) {
			fprintf(stderr, "control: no %s '%s'\n",
				workload ? "workload" : "controller", name);
			return false;
		}
	}
	return true;
}

static void parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "controllers", required_argument, NULL, 'c' },
		{ "workload", required_argument, NULL, 'w' },
		{ "repeat", required_argument, NULL, 'r' },
		{ "json", required_argument, NULL, 'j' },
		{ "csv", required_argument, NULL, 'v' },
		{ "config", required_argument, NULL, 'o' },
		{ "keep", no_argument, NULL, 'k' },
		{ NULL, 0, NULL, 0 },
	};
	const char *seconds = "80", *repeat = "1";
	const char **const values[128] = { ['s'] = &seconds,
		['c'] = &options.controllers,
		['w'] = &options.workloads,
		['r'] = &repeat,
		['j'] = &options.json,
		['v'] = &options.csv,
		['o'] = &options.config };
	int c;
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 'k')
			options.keep = true;
		else if (c == '?')
			usage();
		else
			*values[c] = optarg;
	}
	if (optind < argc || !known(options.controllers, false) || !known(options.workloads, true))
		usage();
	options.seconds = strtod(seconds, NULL);
	options.repeat = (int)strtol(repeat, NULL, 10);
	if (!(options.seconds >= 10 && options.seconds <= 590) || options.repeat < 1 ||
		options.repeat > RUNS_MAX) {
		fputs("control: seconds from 10 to 590, repeat from 1 to 16\n", stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	FILE *csv = NULL;
	parse(argc, argv);
	if (place_find()) {
		perror("control: /proc/self/exe");
		return 1;
	}
	run_prepare();
	if (options.csv) {
		csv = fopen(options.csv, "we");
		if (!csv) {
			perror(options.csv);
			return 1;
		}
		fputs("workload,controller,run,seconds,saved_mib,possible_mib,ksmd_cpu_s,"
		      "ksmd_percent\n",
			csv);
	}
	bool good = compare_all(csv);
	if (csv && fclose(csv)) {
		perror(options.csv);
		good = false;
	}
	return run_stop_signal ? 128 + run_stop_signal : !good;
}
