/* One reading of what KSM counts: of the whole machine, and of the processes that are meant. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_SAMPLE_H
#define KSMSTAT_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ksmstat/entry.h"
#include "sysfs/ksm.h"
#include "sysfs/ksmd.h"
#include "sysfs/root.h"

/* Sums over processes. What none of them has is not known. */
struct sample_processes {
	size_t count, unreadable;
	bool has_ksm, has_zero, has_saved;
	int64_t ksm_bytes, zero_bytes, saved_bytes;
};

struct sample {
	uint64_t monotonic_ns; /* CLOCK_MONOTONIC; both clocks at the end of the reading */
	int64_t epoch_ms;      /* CLOCK_REALTIME */
	int64_t page_bytes;
	struct ksm_state ksm;
	bool has_ksmd;
	uint64_t ksmd_ns;	     /* CPU time of ksmd since boot */
	int64_t cow_ksm, swpin_copy; /* of vmstat; -1: not there */
	bool of_processes;	     /* processes holds: some are meant, not the machine */
	struct sample_processes processes;
};

/* Where samples come from. */
struct sampler {
	const struct root *root;
	struct ksm ksm;	  /* closed where the kernel has no KSM */
	struct ksmd ksmd; /* closed where it cannot be seen */
};

/* Returns 0, or -errno where there is no KSM (-ENOENT); can be read and must be closed in any case. */
int sample_open(struct sampler *sampler, const struct root *root);
void sample_close(struct sampler *sampler);

/* Read the machine. What cannot be read is not known; never fails. */
void sample_read(struct sampler *sampler, struct sample *sample);

/* Make it a sample of these processes. They may be read before or after. */
void sample_add_processes(struct sample *sample, const struct entry_list *list);

#endif
