/* The table that people read and the JSON that programs read, from one list of columns. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_BENCH_REPORT_H
#define TESTS_BENCH_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "tests/bench/series.h"
#include "tests/bench/short.h"

struct report {
	FILE *json;
	bool first_workload, first_row;
	bool strangers; /* seen with this workload */
};

/* 0, or -1 when the JSON file cannot be written; json_path may be NULL. */
int report_open(struct report *report, const char *json_path, double seconds, int repeat);
int report_close(struct report *report);

void report_begin(struct report *report, const char *workload, const char *what, double window_s);
void report_run(struct report *report, const char *controller, int run, const struct figures *f);
void report_median(struct report *report, const char *controller, const struct figures *f);

void report_begin_short(struct report *report, const char *workload, const char *what);
void report_short(struct report *report, const char *controller, const struct short_figures *f);

/* A controller without figures, and why. */
void report_missing(
	struct report *report, const char *controller, const char *reason, bool skipped);
void report_end(struct report *report);

#endif
