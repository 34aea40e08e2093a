/* What merging would save, found by hashing the resident pages of processes. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/estimate.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "ksmstat/text.h"
#include "sysfs/proc.h"
#include "sysfs/smaps.h"

#define PAGES_AT_ONCE 256
/* Bits of a pagemap entry: Documentation/admin-guide/mm/pagemap.rst. */
#define PAGEMAP_PRESENT (1ULL << 63)
#define PAGEMAP_FILE (1ULL << 61)

/* Contents met so far: an open-addressed set of 128-bit hashes; all-zero marks a free slot. */
struct hash_set {
	XXH128_hash_t *slots;
	size_t size, used; /* size is a power of two */
};

struct reader {
	struct estimate *estimate;
	struct hash_set seen;
	XXH128_hash_t zero;
	size_t page_bytes;
	int mem_fd, pagemap_fd;
	char *buffer; /* PAGES_AT_ONCE pages */
};

static bool is_free(XXH128_hash_t hash)
{
	return hash.low64 == 0 && hash.high64 == 0;
}

static bool insert(struct hash_set *set, XXH128_hash_t hash)
{
	size_t at = hash.low64 & (set->size - 1);
	while (!is_free(set->slots[at])) {
		if (XXH128_isEqual(set->slots[at], hash))
			return false;
		at = (at + 1) & (set->size - 1);
	}
	set->slots[at] = hash;
	set->used++;
	return true;
}

static int grow(struct hash_set *set)
{
	struct hash_set bigger = { .size = set->size ? set->size * 2 : 1 << 16 };
	bigger.slots = calloc(bigger.size, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < set->size; i++) {
		if (!is_free(set->slots[i]))
			insert(&bigger, set->slots[i]);
	}
	free(set->slots);
	*set = bigger;
	return 0;
}

static int count_page(struct reader *reader, const char *page)
{
	XXH128_hash_t hash = XXH3_128bits(page, reader->page_bytes);
	reader->estimate->pages++;
	if (XXH128_isEqual(hash, reader->zero)) {
		reader->estimate->zero_pages++;
		return 0;
	}
	if (reader->seen.used * 4 >= reader->seen.size * 3) {
		int err = grow(&reader->seen);
		if (err)
			return err;
	}
	if (!insert(&reader->seen, hash))
		reader->estimate->equal_pages++;
	return 0;
}

/* Read `count` neighbouring pages at `address`; what has gone away meanwhile is passed over. */
static int count_run(struct reader *reader, uint64_t address, size_t count)
{
	ssize_t len =
		pread(reader->mem_fd, reader->buffer, count * reader->page_bytes, (off_t)address);
	for (ssize_t at = 0; at + (ssize_t)reader->page_bytes <= len;
		at += (ssize_t)reader->page_bytes) {
		int err = count_page(reader, reader->buffer + at);
		if (err)
			return err;
	}
	return 0;
}

/* ksmd merges anonymous pages only; those of a private file mapping after they were written. */
static int visit(const struct smaps_area *area, void *data)
{
	struct reader *reader = data;
	uint64_t entries[PAGES_AT_ONCE];
	uint64_t page = area->start / reader->page_bytes, last = area->end / reader->page_bytes;

	if (area->bits & SMAPS_MAYSHARE ||
		((area->seen & 1u << SMAPS_ANONYMOUS) && area->kib[SMAPS_ANONYMOUS] == 0))
		return 0;
	while (page < last) {
		size_t want = last - page < PAGES_AT_ONCE ? (size_t)(last - page) : PAGES_AT_ONCE;
		ssize_t len = pread(reader->pagemap_fd, entries, want * sizeof(*entries),
			(off_t)(page * sizeof(*entries)));
		if (len < (ssize_t)sizeof(*entries))
			return 0;
		size_t got = (size_t)len / sizeof(*entries);
		for (size_t i = 0; i < got;) {
			size_t run = 0;
			while (i + run < got &&
				(entries[i + run] & (PAGEMAP_PRESENT | PAGEMAP_FILE)) ==
					PAGEMAP_PRESENT)
				run++;
			int err = run ? count_run(reader, (page + i) * reader->page_bytes, run) : 0;
			if (err)
				return err;
			i += run + 1;
		}
		page += got;
	}
	return 0;
}

static int read_process(struct reader *reader, const struct root *root, pid_t pid)
{
	struct proc proc;
	int err = proc_open(&proc, root, pid);
	if (err)
		return err;
	reader->mem_fd = openat(proc.fd, "mem", O_RDONLY | O_CLOEXEC);
	reader->pagemap_fd = openat(proc.fd, "pagemap", O_RDONLY | O_CLOEXEC);
	if (reader->mem_fd < 0 || reader->pagemap_fd < 0)
		err = -EACCES;
	else
		err = smaps_read(&proc, visit, reader);
	if (reader->mem_fd >= 0)
		close(reader->mem_fd);
	if (reader->pagemap_fd >= 0)
		close(reader->pagemap_fd);
	proc_close(&proc);
	return err;
}

int estimate_read(
	struct estimate *estimate, const struct root *root, const pid_t *pids, size_t count)
{
	struct reader reader = { .estimate = estimate,
		.page_bytes = (size_t)sysconf(_SC_PAGESIZE) };
	memset(estimate, 0, sizeof(*estimate));
	reader.buffer = calloc(PAGES_AT_ONCE, reader.page_bytes);
	int err = reader.buffer ? grow(&reader.seen) : -ENOMEM;
	if (!err)
		reader.zero = XXH3_128bits(reader.buffer, reader.page_bytes);
	for (size_t i = 0; i < count && !err; i++) {
		err = read_process(&reader, root, pids[i]);
		if (err && err != -ENOMEM) {
			estimate->unreadable++;
			err = 0;
		} else {
			estimate->processes++;
		}
	}
	free(reader.seen.slots);
	free(reader.buffer);
	return err;
}

int estimate_print(const struct root *root, const pid_t *pids, size_t count)
{
	struct estimate estimate;
	char total[16], equal[16], zero[16];
	int64_t page_bytes = sysconf(_SC_PAGESIZE);

	int err = estimate_read(&estimate, root, pids, count);
	if (err) {
		fprintf(stderr, "ksmstat: cannot estimate: %s\n", strerror(-err));
		return 1;
	}
	if (estimate.processes) {
		printf("%zu processes with %s of private memory: merging would save %s",
			estimate.processes,
			text_size((int64_t)estimate.pages * page_bytes, total, sizeof(total)),
			text_size(
				(int64_t)estimate.equal_pages * page_bytes, equal, sizeof(equal)));
		printf(", and %s more by use_zero_pages=1\n",
			text_size((int64_t)estimate.zero_pages * page_bytes, zero, sizeof(zero)));
	}
	if (estimate.unreadable)
		fprintf(stderr, "ksmstat: %zu of %zu processes could not be read\n",
			estimate.unreadable, count);
	return !estimate.unreadable ? 0 : estimate.processes ? 64 : 32;
}
