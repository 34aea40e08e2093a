/* Reads the pages of a plan with several threads: once, and a second time to see which change. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_ESTIMATE_READ_H
#define KSMSTAT_ESTIMATE_READ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ksmstat/estimate_page.h"
#include "ksmstat/estimate_plan.h"
#include "ksmstat/progress.h"
#include "sysfs/frames.h"
#include "sysfs/root.h"

/* What one reading took. */
struct read_cost {
	uint64_t bytes; /* that were copied and hashed */
	uint64_t wall_ns;
	uint64_t cpu_ns; /* of all threads */
	unsigned threads;
};

struct reading {
	const struct root *root;
	struct plan *plan;
	struct page_store *store;
	size_t page_bytes;
	unsigned threads_max;
	struct progress progress;
	const atomic_bool *stop; /* set from outside: end soon, with what there is */

	/* Found out on the way. */
	atomic_bool knows_frames; /* page frame numbers could be read */
	bool knows_merged;	  /* and whether their pages are merged */
	atomic_bool out_of_room;  /* processes grew too much: some was not read */
	atomic_bool failed;	  /* no memory for a thread */
	bool first_partial, second_partial;
	struct read_cost first, second;

	/* Of the threads. */
	struct frames frames; /* closed where they cannot be looked at */
	uint64_t zero_frame;  /* the kernel's page of zeros; 0 when not known */
	atomic_size_t next;
	atomic_uint running;
	atomic_uint_fast64_t done_bytes, copied_bytes, cpu_ns;
};

/* Read every page of the plan into the store. Returns 0 or -ENOMEM. */
int read_first(struct reading *reading);

/*
 * Read again those pages whose content was met more than once, and mark the ones that are another
 * now, or gone. The store needs its filter. Returns 0 or -ENOMEM.
 */
int read_second(struct reading *reading);

#endif
