/* The pages that an estimate has read: one small record each, in chunks that threads fill. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/estimate_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Memory that costs nothing until it is written. */
static void *reserve(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

int page_store_make(struct page_store *store, const struct plan *plan, bool with_seen)
{
	memset(store, 0, sizeof(*store));
	store->chunk_max = 2 * (plan->pages / PAGE_CHUNK + plan->task_count) + 64;
	store->mapped_bytes = store->chunk_max * PAGE_CHUNK * sizeof(*store->pages);
	store->pages = reserve(store->mapped_bytes);
	store->chunks = calloc(store->chunk_max, sizeof(*store->chunks));
	if (!store->pages || !store->chunks)
		return -ENOMEM;
	if (with_seen) {
		store->seen_size = 1 << 16;
		while (store->seen_size < 4 * plan->pages)
			store->seen_size *= 2;
		/* Four of them in a byte. */
		store->seen = reserve(store->seen_size / 4);
		if (!store->seen)
			return -ENOMEM;
	}
	return 0;
}

void page_store_free(struct page_store *store)
{
	if (store->pages)
		munmap(store->pages, store->mapped_bytes);
	if (store->seen)
		munmap(store->seen, store->seen_size / 4);
	free(store->chunks);
	memset(store, 0, sizeof(*store));
}

struct page_chunk *page_chunk_take(struct page_store *store, uint32_t process)
{
	size_t i = atomic_fetch_add(&store->chunk_count, 1);
	if (i >= store->chunk_max) {
		atomic_fetch_sub(&store->chunk_count, 1);
		return NULL;
	}
	store->chunks[i].process = process;
	return &store->chunks[i];
}

void page_seen(struct page_store *store, XXH128_hash_t hash)
{
	size_t i = hash.low64 & (store->seen_size - 1);
	unsigned once = 1u << (i % 4 * 2);
	unsigned before = atomic_fetch_or_explicit(
		&store->seen[i / 4], (unsigned char)once, memory_order_relaxed);
	if (before & once && !(before & once << 1))
		atomic_fetch_or_explicit(
			&store->seen[i / 4], (unsigned char)(once << 1), memory_order_relaxed);
}

bool page_repeats(const struct page_store *store, XXH128_hash_t hash)
{
	size_t i = hash.low64 & (store->seen_size - 1);
	unsigned twice = 2u << (i % 4 * 2);
	return atomic_load_explicit(&store->seen[i / 4], memory_order_relaxed) & twice;
}

void page_pack(struct page_store *store)
{
	size_t chunks = atomic_load(&store->chunk_count);
	store->count = 0;
	for (size_t i = 0; i < chunks; i++) {
		size_t used = store->chunks[i].used;
		memmove(store->pages + store->count, page_chunk_pages(store, &store->chunks[i]),
			used * sizeof(*store->pages));
		store->count += used;
	}
	/* What stands behind them would be memory of ours for nothing. */
	size_t keep = (store->count * sizeof(*store->pages) + 0xfffff) & ~(size_t)0xfffff;
	if (keep < store->mapped_bytes)
		madvise((char *)store->pages + keep, store->mapped_bytes - keep, MADV_DONTNEED);
}
