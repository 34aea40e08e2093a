/* The workloads: which processes start when, and what merging could save of their memory. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_BENCH_WORKLOAD_H
#define TESTS_BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#define WORKLOAD_GROUPS 3

struct workload {
	const char *name, *what;
	struct workload_group {
		int at_percent;	       /* of the run's time */
		int count, children;   /* processes, and children that each forks */
		const char *arguments; /* for load */
	} groups[WORKLOAD_GROUPS];     /* ends with count 0 */
};

extern const struct workload workloads[];
const struct workload *workload_find(const char *name);

/* Prepare for a run. 0 or -errno. */
int workload_open(const char *load_program);
/* Start one process per count. Returns 0 or -errno. */
int workload_start(const struct workload_group *group);
/* Kill the one that was started first, of which there must be one, with its children. */
void workload_end_oldest(void);
/* False when a process ended early. */
bool workload_lives(void);
/* How many processes it consists of, with children. */
int workload_processes(void);
/* What merging can save of what is built by now, in pages. */
int64_t workload_possible_pages(void);
/* Rounds of all busy loops, and pages that read back wrong. */
uint64_t workload_work(void);
uint64_t workload_damaged(void);
/* Kill all. Returns the CPU seconds that they used. */
double workload_close(void);

#endif
