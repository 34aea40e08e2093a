/* One reading of what KSM counts: of the whole machine, and of the processes that are meant. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/sample.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ksmstat/column.h"
#include "sysfs/mem.h"

int sample_open(struct sampler *sampler, const struct root *root)
{
	sampler->root = root;
	int err = ksm_open(&sampler->ksm, root);
	ksmd_open(&sampler->ksmd, root);
	return err;
}

void sample_close(struct sampler *sampler)
{
	ksm_close(&sampler->ksm);
	ksmd_close(&sampler->ksmd);
}

void sample_read(struct sampler *sampler, struct sample *sample)
{
	struct mem_vmstat vmstat = { .cow_ksm = -1, .ksm_swpin_copy = -1 };
	struct timespec monotonic, now;

	memset(sample, 0, sizeof(*sample));
	sample->page_bytes = sysconf(_SC_PAGESIZE);
	if (sampler->ksm.fd >= 0) {
		ksm_read(&sampler->ksm, &sample->ksm);
	} else {
		for (int key = 0; key < KSM_KEYS; key++)
			sample->ksm.error[key] = -ENOENT;
	}
	mem_read_vmstat(sampler->root, &vmstat);
	sample->cow_ksm = vmstat.cow_ksm;
	sample->swpin_copy = vmstat.ksm_swpin_copy;
	sample->has_ksmd = sampler->ksmd.fd >= 0 && !ksmd_cpu_ns(&sampler->ksmd, &sample->ksmd_ns);
	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	clock_gettime(CLOCK_REALTIME, &now);
	sample->monotonic_ns =
		(uint64_t)monotonic.tv_sec * 1000000000u + (uint64_t)monotonic.tv_nsec;
	sample->epoch_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool add(const struct column *column, const struct entry *entry, int64_t *sum)
{
	int64_t value;
	if (!column->number(entry, &value))
		return false;
	*sum = column_add(*sum, value);
	return true;
}

void sample_add_processes(struct sample *sample, const struct entry_list *list)
{
	const struct column *ksm = column_find("KSM", 3), *zero = column_find("ZERO", 4),
			    *saved = column_find("SAVED", 5);
	struct sample_processes *sum = &sample->processes;

	memset(sum, 0, sizeof(*sum));
	sample->of_processes = true;
	sum->count = list->count;
	sum->unreadable = list->unreadable;
	/* Of no processes at all the sums are 0, and that is certain. */
	sum->has_ksm = sum->has_zero = sum->has_saved = !list->count;
	for (size_t i = 0; i < list->count; i++) {
		sum->has_ksm |= add(ksm, &list->entries[i], &sum->ksm_bytes);
		sum->has_zero |= add(zero, &list->entries[i], &sum->zero_bytes);
		sum->has_saved |= add(saved, &list->entries[i], &sum->saved_bytes);
	}
}
