/* The pages that an estimate has read: one small record each, in chunks that threads fill. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_ESTIMATE_PAGE_H
#define KSMSTAT_ESTIMATE_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

#include "ksmstat/estimate_plan.h"

/*
 * 32 bytes for a page of 4096: with the filter below 0.9 % of what is read. The number of a page in
 * its process fits into 45 bits on every 64-bit machine (57 bits of address), a frame into 40.
 */
struct page {
	XXH128_hash_t hash;
	uint64_t number : 48;
	uint64_t kind : 3;
	uint64_t zero : 1;
	uint64_t exclusive : 1; /* mapped once in the whole machine */
	uint64_t merged : 1;	/* a KSM page */
	uint64_t mergeable : 1; /* in an area that is open to merging */
	uint64_t changed : 1;	/* at the second look, or gone */
	uint64_t frame : 40;	/* 0: not known */
	uint64_t process : PLAN_PROCESS_BITS;
};

#define PAGE_CHUNK 4096 /* pages of one process each */

struct page_chunk {
	uint32_t process, used;
};

struct page_store {
	struct page *pages; /* address space for all that may come; memory for what did */
	struct page_chunk *chunks;
	size_t chunk_max, mapped_bytes;
	atomic_size_t chunk_count;
	size_t count; /* after page_pack */
	/*
	 * Which hashes came more than once: two bits each, in a table so large that few are taken
	 * for another's. NULL when nobody asks.
	 */
	atomic_uchar *seen;
	size_t seen_size; /* a power of two */
};

/* Room for the pages of a plan, which may have grown to twice as many. Returns 0 or -ENOMEM. */
int page_store_make(struct page_store *store, const struct plan *plan, bool with_seen);
void page_store_free(struct page_store *store);

/* An empty chunk for pages of a process, or NULL when there is no more room. Safe among threads. */
struct page_chunk *page_chunk_take(struct page_store *store, uint32_t process);
static inline struct page *page_chunk_pages(
	const struct page_store *store, const struct page_chunk *chunk)
{
	return store->pages + (size_t)(chunk - store->chunks) * PAGE_CHUNK;
}

/* Tell that a hash came; ask whether it came more than once (sometimes true for one that did not). */
void page_seen(struct page_store *store, XXH128_hash_t hash);
bool page_repeats(const struct page_store *store, XXH128_hash_t hash);

/* Move the pages of all chunks together. The chunks are of no use then. */
void page_pack(struct page_store *store);

#endif
