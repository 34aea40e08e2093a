/* The memory of one process as an estimate reads it: which pages are there, and their contents. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_ESTIMATE_SOURCE_H
#define KSMSTAT_ESTIMATE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ksmstat/estimate_plan.h"
#include "sysfs/proc.h"
#include "sysfs/root.h"

/* Bits of a pagemap entry: Documentation/admin-guide/mm/pagemap.rst. */
#define SOURCE_PRESENT (UINT64_C(1) << 63)
#define SOURCE_FILE (UINT64_C(1) << 61)
#define SOURCE_EXCLUSIVE (UINT64_C(1) << 56)
#define SOURCE_FRAME ((UINT64_C(1) << 55) - 1)

/* Pages that are read at once: half a MiB, which the cache still holds when they are hashed. */
#define SOURCE_BATCH 128

struct source {
	struct proc proc;
	int mem_fd, pagemap_fd;
	size_t page_bytes;
	bool no_scan; /* this kernel has no PAGEMAP_SCAN */
};

/*
 * Open a process of a plan. Returns 0, -ESRCH when it is gone (or its PID another's), -EACCES, or
 * -errno. Closed with source_close after success.
 */
int source_open(struct source *source, const struct root *root, const struct plan_process *process,
	size_t page_bytes);
void source_close(struct source *source);

/* Is it still there? Until then nothing that was read under its PID can be another's. */
bool source_alive(const struct source *source);

/*
 * Visit the pages from `start` to `end` that are resident and anonymous, in the order of their
 * addresses: the number of the page, and its pagemap entry. Never the kernel's own page of zeros,
 * unless !source_knows_zero. Ends when the visitor returns other than 0, and returns that; else 0
 * or -errno.
 */
typedef int (*source_visit)(uint64_t number, uint64_t entry, void *data);
int source_find(
	struct source *source, uint64_t start, uint64_t end, source_visit visit, void *data);
static inline bool source_knows_zero(const struct source *source)
{
	return !source->no_scan;
}

/* The entries of `count` pages from `number` on. Returns how many could be read. */
size_t source_entries(
	const struct source *source, uint64_t number, uint64_t *entries, size_t count);

/*
 * Copy the pages with these ascending numbers, at most SOURCE_BATCH, into buffer.
 * there[i] tells whether page i could be read.
 */
void source_copy(const struct source *source, const uint64_t *numbers, size_t count, char *buffer,
	bool *there);

#endif
