/* The clock, and what the rest of the machine does meanwhile. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_BENCH_MACHINE_H
#define TESTS_BENCH_MACHINE_H

#include <sys/resource.h>

double machine_now_s(void);

/* CPU seconds that all of the machine has used since boot; 0 when unknown. */
double machine_cpu_s(void);

/* How many processes have memory that may be merged; -1 when this kernel does not tell. */
int machine_registered(void);

/* Processes started since boot; 0 when unknown. */
double machine_forks(void);

double machine_rusage_s(const struct rusage *usage);

#endif
