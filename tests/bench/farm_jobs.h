/* Three identical jobs of a farm, run to their end in one of several ways. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_BENCH_FARM_JOBS_H
#define TESTS_BENCH_FARM_JOBS_H

#include <stdbool.h>
#include <stdio.h>

#include "tests/bench/run.h"

#define FARM_JOBS 3

struct farm_way {
	const char *name;
	bool registered, scanned; /* the hook is on; `ksmctl daemon` runs */
	bool huge;		  /* the jobs ask for huge pages */
	const char *thp;	  /* for transparent_hugepage/enabled, NULL to leave it */
};

/* Sizes are of one moment, after 85 % of the events. */
struct farm_job {
	double real_s, cpu_s;		  /* CPU: user and system */
	double late_real_ms, late_cpu_ms; /* of one event, in the last quarter of the events */
	double faults;			  /* minor ones, from start to end */
	double data_p_kib, data_s_kib, saved_kib, huge_kib;
	char result[32]; /* computed by the job from all that it read */
};

struct farm_run {
	struct farm_job jobs[FARM_JOBS];
	double ksmd_s, service_s; /* CPU */
	double others;		  /* CPU used by the rest of the machine, per cent of a core */
	int strangers;		  /* processes of others that may be merged too, at most */
};

/*
 * Run the jobs once. `classic` receives the lines of ksmstat --classic, `series` what was saved
 * over time as "way,round,seconds,saved MiB,ksmd CPU s".
 */
struct outcome farm_jobs_run(const struct farm_way *way, int round, unsigned long events,
	FILE *classic, FILE *series, struct farm_run *run);

#endif
