/* Brings pages with equal content together and sums up what merging would make of them. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/estimate_sum.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Pages go to one of these by the first byte of their hash, and pages of zeros to the last. */
#define SHARDS 257
#define THREADS_MAX 16

static unsigned shard_of(const struct page *page)
{
	return page->zero ? SHARDS - 1 : (unsigned)(page->hash.high64 >> 56);
}

static int compare_hashes(const void *a, const void *b)
{
	const struct page *x = a, *y = b;
	return XXH128_cmp(&x->hash, &y->hash);
}

/* Note every page, and keep those that count. */
static void sift(struct class_sums *sums, struct page_store *store, const struct plan *plan)
{
	size_t kept = 0;
	page_pack(store);
	for (size_t i = 0; i < store->count; i++) {
		const struct page *page = &store->pages[i];
		if (!atomic_load_explicit(
			    &plan->processes[page->process].error, memory_order_relaxed) &&
			class_note(sums, plan, page))
			store->pages[kept++] = *page;
	}
	store->count = kept;
}

/* Bring the pages into the order of their shards, in place. begin[] has one more than there are. */
static void partition(struct page_store *store, size_t *begin)
{
	size_t next[SHARDS], count[SHARDS] = { 0 };
	for (size_t i = 0; i < store->count; i++)
		count[shard_of(&store->pages[i])]++;
	begin[0] = 0;
	for (unsigned s = 0; s < SHARDS; s++) {
		next[s] = begin[s];
		begin[s + 1] = begin[s] + count[s];
	}
	for (unsigned s = 0; s < SHARDS; s++) {
		while (next[s] < begin[s + 1]) {
			struct page page = store->pages[next[s]];
			unsigned to = shard_of(&page);
			/* Each exchange brings one page home. */
			while (to != s) {
				struct page other = store->pages[next[to]];
				store->pages[next[to]++] = page;
				page = other;
				to = shard_of(&page);
			}
			store->pages[next[s]++] = page;
		}
	}
}

struct summing {
	const struct plan *plan;
	struct page_store *store;
	const size_t *begin;
	atomic_uint next;
};

struct summer {
	struct summing *summing;
	struct class_sums sums;
	pthread_t thread;
};

static void add_shard(struct summer *summer, struct page *pages, size_t count)
{
	/* One content alone needs no order. */
	if (count && !pages->zero)
		qsort(pages, count, sizeof(*pages), compare_hashes);
	for (size_t i = 0, n; i < count; i += n) {
		n = 1;
		while (i + n < count && XXH128_isEqual(pages[i].hash, pages[i + n].hash))
			n++;
		class_add(&summer->sums, summer->summing->plan, pages + i, n);
	}
}

static void *summer_main(void *data)
{
	struct summer *summer = data;
	struct summing *summing = summer->summing;
	for (;;) {
		/* The pages of zeros are the last shard and often the largest: first. */
		unsigned i = atomic_fetch_add(&summing->next, 1);
		if (i >= SHARDS)
			return NULL;
		unsigned s = SHARDS - 1 - i;
		add_shard(summer, summing->store->pages + summing->begin[s],
			summing->begin[s + 1] - summing->begin[s]);
	}
}

int sum_pages(struct class_sums *sums, struct page_store *store, const struct plan *plan,
	size_t group_count, const struct class_rules *rules, size_t top_max, unsigned threads)
{
	struct summer summers[THREADS_MAX];
	size_t begin[SHARDS + 1];
	struct summing summing = { plan, store, begin, 0 };
	unsigned made = 0, started = 0;

	int err = class_sums_make(sums, plan, group_count, rules, top_max);
	if (err)
		return err;
	sift(sums, store, plan);
	partition(store, begin);
	threads = threads ? threads : 1;
	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	for (; made < threads && !err; made++) {
		summers[made].summing = &summing;
		err = class_sums_make(&summers[made].sums, plan, group_count, rules, top_max);
	}
	for (; started < made && !err; started++) {
		if (pthread_create(&summers[started].thread, NULL, summer_main, &summers[started]))
			break;
	}
	if (!err && made && !started)
		summer_main(&summers[0]);
	for (unsigned i = 0; i < started; i++)
		pthread_join(summers[i].thread, NULL);
	for (unsigned i = 0; i < made; i++) {
		if (!err)
			class_merge(sums, &summers[i].sums);
		class_sums_free(&summers[i].sums);
	}
	together_sort(&sums->together);
	return err;
}
