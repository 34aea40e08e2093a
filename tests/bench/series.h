/* One run's samples over time, and the figures computed from them. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_BENCH_SERIES_H
#define TESTS_BENCH_SERIES_H

#include <stdint.h>
#include <stdio.h>

/* Ten a second for ten minutes. */
#define SERIES_MAX 6000

struct sample {
	double t_s; /* since the first process started */
	int64_t saved_pages, possible_pages, scanned_pages;
	uint64_t ksmd_ns;
	uint64_t work; /* of busy loops */
};

struct series {
	int count, strangers;	/* most processes of others at once that may be merged too */
	double seconds, join_s; /* wanted length; when the second group started, 0 without one */
	struct sample samples[SERIES_MAX];
};

/* NAN: does not apply. INFINITY: never. */
struct figures {
	double t95_first_s, t95_join_s;	  /* from the start of the processes */
	double steady_first, steady_last; /* ksmd's share of a core, percent */
	double ksmd_s;			  /* CPU */
	double mib_s, mib_s_per_cpu_s;	  /* saved, over time */
	double saved_end_mib, saved_end;  /* percent of the possible */
	double saved_mean;		  /* percent of the possible, over all the time */
	double scanned_mib;		  /* by ksmd */
	double peak_ksmd;		  /* its highest share over two seconds, percent */
	double busy_slowdown;		  /* busy loops, first ten seconds against the last ten */
	double controller_s, controller_mib; /* its CPU and peak memory */
	double others;	  /* CPU used by the rest of the machine, percent of a core */
	double strangers; /* processes of others with memory that may be merged */
};

/* The steady share is taken over this long: a quarter of a half of the run, at least 20 s. */
double series_steady_window_s(double seconds);

void series_figures(const struct series *series, struct figures *figures);

/* ksmd's share of a core in the `window_s` before sample i, percent. */
double series_ksmd_percent(const struct series *series, int i, double window_s);

/* Lines "workload,controller,run,seconds,saved MiB,possible MiB,ksmd CPU s,ksmd percent". */
void series_csv(const struct series *series, const char *workload, const char *controller, int run,
	FILE *file);

/* Field by field the median of `count` runs (at most 16). */
void figures_median(const struct figures *runs, int count, struct figures *median);

#endif
