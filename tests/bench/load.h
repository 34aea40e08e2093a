/* What a workload process of the benchmarks and its starter tell each other, in shared memory. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_BENCH_LOAD_H
#define TESTS_BENCH_LOAD_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * One slot for each process, filled while it builds its memory. Equal pages of all processes are
 * taken from the start of one and the same sequence, so that what merging can save is known:
 * all equal pages but those of the process with most of them, and all zero pages.
 */
struct load_report {
	_Atomic uint64_t ready; /* 1 once its memory is built */
	_Atomic uint64_t equal_pages, zero_pages, unique_pages, volatile_pages;
	_Atomic uint64_t work;	  /* rounds of a busy loop, or pages rewritten */
	_Atomic uint64_t damaged; /* equal pages that read back something else */
};

#define LOAD_SLOTS 64

#endif
