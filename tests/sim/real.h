/* The same small workload on the kernel and on the model, for comparing one with the other. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_SIM_REAL_H
#define TESTS_SIM_REAL_H

#include <stdbool.h>
#include <stdint.h>

enum { REAL_PROCESSES = 4, REAL_POINTS = 1000, REAL_STEP_MS = 20 };

struct real_process {
	uint32_t start_ms; /* when it opts in, after scanning began */
	/* Pages in this order. All equal ones of a workload are from one group, from its start. */
	uint32_t equal, zero, unique, volatiles;
};

struct real_workload {
	const char *name;
	struct real_process process[REAL_PROCESSES];
	uint32_t period_ms; /* of rewriting the volatile pages */
	uint32_t pages_to_scan, sleep_ms;
	bool smart_scan, use_zero_pages;
	uint32_t measure_from_ms, end_ms;
};

/* Looks every REAL_STEP_MS, from the start of scanning on. */
struct real_record {
	uint32_t points;
	int64_t waited_ns; /* by ksmd for a core */
	bool disturbed;	   /* other processes of this machine were scanned, too */
	int64_t at_ms[REAL_POINTS], saved_pages[REAL_POINTS], scanned_pages[REAL_POINTS];
	int64_t full_scans[REAL_POINTS], skipped_pages[REAL_POINTS], cpu_ns[REAL_POINTS];
};

/* On this kernel; the caller holds the guard. 0 or -errno. */
int real_run(const struct real_workload *workload, struct real_record *record);

#endif
