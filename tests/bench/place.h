/* Where the programs under test lie, and a temporary folder for each run. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_BENCH_PLACE_H
#define TESTS_BENCH_PLACE_H

#include <limits.h>

extern char place_programs[PATH_MAX];	  /* folder of ksmctl */
extern char place_load[PATH_MAX + 32];	  /* program of the workload processes */
extern char place_scratch[PATH_MAX + 32]; /* between make and remove */

/* Find the programs from where this one lies, B/tests/bench. 0 or -errno. */
int place_find(void);
int place_make_scratch(void);
void place_remove_scratch(void);
/* The last line of a controller's log, "" without one. Returns buf. */
const char *place_log_end(char *buf, int size);

#endif
