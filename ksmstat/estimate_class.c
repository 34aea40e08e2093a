/* What merging makes of pages with equal content: the arithmetic of one such class, and its sums. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/estimate_class.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One class as seen by all, by a group or by a process. */
struct count {
	uint64_t mappings;
	uint64_t pages;	 /* physical */
	uint64_t merged; /* mappings of KSM pages, and these pages */
	uint64_t merged_pages;
	uint64_t last; /* the number of the physical page that was counted last, from 1 */
};

/* Counts by group and by process, and which of them are in use. */
struct counts {
	struct count *all;
	uint32_t *used;
	size_t used_count;
};

struct class_work {
	struct counts groups, processes;
};

static int counts_make(struct counts *counts, size_t count)
{
	counts->all = calloc(count + 1, sizeof(*counts->all));
	counts->used = calloc(count + 1, sizeof(*counts->used));
	return counts->all && counts->used ? 0 : -ENOMEM;
}

static void counts_free(struct counts *counts)
{
	free(counts->all);
	free(counts->used);
}

int class_sums_make(struct class_sums *sums, const struct plan *plan, size_t group_count,
	const struct class_rules *rules, size_t top_max)
{
	memset(sums, 0, sizeof(*sums));
	sums->rules = *rules;
	sums->group_count = group_count;
	sums->process_count = plan->process_count;
	sums->top_max = top_max;
	sums->groups = calloc(group_count + 1, sizeof(*sums->groups));
	sums->processes = calloc(plan->process_count + 1, sizeof(*sums->processes));
	sums->top = calloc(top_max + 1, sizeof(*sums->top));
	sums->work = calloc(1, sizeof(*sums->work));
	if (!sums->groups || !sums->processes || !sums->top || !sums->work)
		return -ENOMEM;
	int err = counts_make(&sums->work->groups, group_count);
	return err ? err : counts_make(&sums->work->processes, plan->process_count);
}

void class_sums_free(struct class_sums *sums)
{
	if (sums->work) {
		counts_free(&sums->work->groups);
		counts_free(&sums->work->processes);
	}
	free(sums->work);
	free(sums->groups);
	free(sums->processes);
	free(sums->top);
	together_free(&sums->together);
	memset(sums, 0, sizeof(*sums));
}

static void note(struct class_share *share, const struct page *page)
{
	share->pages++;
	share->zero += page->zero;
	share->merged += page->merged;
	share->changed += page->changed;
}

bool class_note(struct class_sums *sums, const struct plan *plan, const struct page *page)
{
	note(&sums->total, page);
	note(&sums->kinds[page->kind], page);
	note(&sums->groups[plan->processes[page->process].group], page);
	note(&sums->processes[page->process], page);
	return !page->changed;
}

/*
 * Which physical page it is, among pages of equal content. Without frame numbers: one that is
 * mapped only once is its own, merged ones are as few as they can be, and what is left is
 * shared since a fork and so found at the same address.
 */
static int compare_identity(const void *a, const void *b)
{
	const struct page *x = a, *y = b;
	if (x->frame != y->frame)
		return x->frame < y->frame ? -1 : 1;
	if (x->frame)
		return 0;
	if (x->exclusive != y->exclusive)
		return x->exclusive ? 1 : -1;
	if (x->merged != y->merged)
		return x->merged ? 1 : -1;
	if (x->exclusive && x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if ((x->merged && !x->exclusive) || x->number == y->number)
		return 0;
	return x->number < y->number ? -1 : 1;
}

static void count(struct count *count, const struct page *page, uint64_t identity)
{
	bool first = count->last != identity;
	count->last = identity;
	count->mappings++;
	count->pages += first;
	count->merged += page->merged;
	count->merged_pages += first && page->merged;
}

static void count_in(struct counts *counts, uint32_t at, const struct page *page, uint64_t identity)
{
	if (!counts->all[at].mappings)
		counts->used[counts->used_count++] = at;
	count(&counts->all[at], page, identity);
}

/* Merged pages that are needed to hold all of it; those that there are stay. */
static uint64_t needed(const struct class_sums *sums, const struct count *count)
{
	uint64_t max = sums->rules.max_page_sharing;
	uint64_t least = (count->mappings + max - 1) / max;
	return least > count->merged_pages ? least : count->merged_pages;
}

/* Physical pages that merging frees. Can be negative: pages shared since a fork by more than max. */
static int64_t freed(const struct class_sums *sums, const struct count *count)
{
	/* One page alone stays, however many have it since a fork. */
	if (count->pages < 2)
		return 0;
	return (int64_t)count->pages - (int64_t)needed(sums, count);
}

/* What its members free when each of them merges with itself only. */
static int64_t freed_alone(const struct class_sums *sums, const struct counts *counts)
{
	int64_t pages = 0;
	for (size_t i = 0; i < counts->used_count; i++)
		pages += freed(sums, &counts->all[counts->used[i]]);
	return pages;
}

static void reset(struct counts *counts)
{
	for (size_t i = 0; i < counts->used_count; i++)
		counts->all[counts->used[i]] = (struct count){ 0 };
	counts->used_count = 0;
}

static int compare_ids(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static void offer_top(struct class_sums *sums, struct class_top *top)
{
	size_t at = sums->top_count;
	while (at && (sums->top[at - 1].pages < top->pages ||
			     (sums->top[at - 1].pages == top->pages &&
				     sums->top[at - 1].hash.high64 > top->hash.high64)))
		at--;
	if (at == sums->top_max)
		return;
	if (sums->top_count < sums->top_max)
		sums->top_count++;
	memmove(sums->top + at + 1, sums->top + at,
		(sums->top_count - at - 1) * sizeof(*sums->top));
	sums->top[at] = *top;
}

/* The kernel's counters after merging: all mappings of all classes that have more than one page. */
static void add_counters(struct class_sums *sums, const struct count *all, bool zero)
{
	int64_t now = (int64_t)all->merged - (int64_t)all->merged_pages;
	sums->saved_now += now;
	if (zero && sums->rules.zero_pages) {
		sums->zero_pages += (int64_t)(all->mappings - all->merged);
		sums->pages_sharing += now;
		sums->pages_shared += (int64_t)all->merged_pages;
	} else if (all->pages > 1 || all->merged) {
		uint64_t shared = needed(sums, all);
		/* A last one for which all pages are full has no partner. */
		bool lonely = all->mappings % sums->rules.max_page_sharing == 1 &&
			      shared > all->merged_pages;
		sums->pages_shared += (int64_t)(shared - lonely);
		sums->pages_sharing += (int64_t)(all->mappings - shared);
	}
}

/* Give every page that was not merged before its part of what the class saves. */
static void share_out(struct class_sums *sums, const struct plan *plan, const struct page *pages,
	size_t count, const struct count *all, int64_t saved)
{
	int64_t unmerged = (int64_t)(all->mappings - all->merged);
	if (!unmerged || !saved)
		return;
	int64_t part = saved * (1 << CLASS_PART_SHIFT) / unmerged;
	for (size_t i = 0; i < count; i++) {
		if (pages[i].merged)
			continue;
		sums->total.saved_parts += part;
		sums->kinds[pages[i].kind].saved_parts += part;
		sums->groups[plan->processes[pages[i].process].group].saved_parts += part;
		sums->processes[pages[i].process].saved_parts += part;
	}
}

static void add_top(struct class_sums *sums, const struct page *pages, size_t count,
	const struct count *all, const struct class_work *work)
{
	struct class_top top = {
		.hash = pages->hash,
		.zero = pages->zero,
		.pages = count,
		.distinct = all->pages,
		.merged = all->merged,
		.processes = (uint32_t)work->processes.used_count,
		.groups = (uint32_t)work->groups.used_count,
	};
	if (!sums->top_max ||
		(sums->top_count == sums->top_max && sums->top[sums->top_max - 1].pages > count))
		return;
	for (size_t i = 0; i < count; i++)
		top.kinds[pages[i].kind]++;
	for (size_t i = 0; i < 4 && i < top.groups; i++)
		top.group_ids[i] = work->groups.used[i];
	offer_top(sums, &top);
}

static void add_saving(struct class_sums *sums, const struct count *all, struct class_work *work)
{
	int64_t saved = freed(sums, all);
	int64_t in_process = freed_alone(sums, &work->processes);
	int64_t in_group = freed_alone(sums, &work->groups);

	/* Pages that several have since a fork are counted by each of them. */
	if (in_process > saved)
		in_process = saved;
	if (in_group > saved)
		in_group = saved;
	sums->saved += saved;
	sums->saved_in_process += in_process;
	sums->saved_in_group += in_group;
	if (saved > in_group && work->groups.used_count > 1)
		together_add(&sums->together, work->groups.used, work->groups.used_count,
			saved - in_group);
}

void class_add(struct class_sums *sums, const struct plan *plan, struct page *pages, size_t n)
{
	struct class_work *work = sums->work;
	struct count all = { 0 }, mergeable = { 0 };
	bool zero = pages->zero, shared = false;
	uint64_t identity = 0;

	if (n < 2 && !zero)
		return;
	for (size_t i = 0; i < n; i++)
		shared |= !pages[i].exclusive;
	/* Where each is mapped once, each is a physical page. */
	if (shared)
		qsort(pages, n, sizeof(*pages), compare_identity);
	for (size_t i = 0; i < n; i++) {
		if (!shared || i == 0 || compare_identity(&pages[i - 1], &pages[i]))
			identity++;
		count(&all, &pages[i], identity);
		if (pages[i].mergeable)
			count(&mergeable, &pages[i], identity);
		count_in(&work->processes, pages[i].process, &pages[i], identity);
		count_in(&work->groups, plan->processes[pages[i].process].group, &pages[i],
			identity);
	}
	qsort(work->groups.used, work->groups.used_count, sizeof(*work->groups.used), compare_ids);

	bool to_zero_page = zero && sums->rules.zero_pages;
	int64_t saved = to_zero_page ? (int64_t)(all.pages - all.merged_pages) : freed(sums, &all);
	if (zero) {
		sums->zero_saved += freed(sums, &all);
		sums->zero_saved_all += (int64_t)(all.pages - all.merged_pages);
	} else {
		add_saving(sums, &all, work);
	}
	sums->saved_mergeable += to_zero_page ? (int64_t)(mergeable.pages - mergeable.merged_pages)
					      : freed(sums, &mergeable);
	add_counters(sums, &all, zero);
	share_out(sums, plan, pages, n, &all, saved);
	add_top(sums, pages, n, &all, work);
	reset(&work->groups);
	reset(&work->processes);
}

static void merge_share(struct class_share *into, const struct class_share *from)
{
	into->pages += from->pages;
	into->zero += from->zero;
	into->merged += from->merged;
	into->changed += from->changed;
	into->saved_parts += from->saved_parts;
}

void class_merge(struct class_sums *into, const struct class_sums *from)
{
	merge_share(&into->total, &from->total);
	for (size_t i = 0; i < PLAN_KINDS; i++)
		merge_share(&into->kinds[i], &from->kinds[i]);
	for (size_t i = 0; i < into->group_count; i++)
		merge_share(&into->groups[i], &from->groups[i]);
	for (size_t i = 0; i < into->process_count; i++)
		merge_share(&into->processes[i], &from->processes[i]);
	into->saved += from->saved;
	into->saved_in_process += from->saved_in_process;
	into->saved_in_group += from->saved_in_group;
	into->saved_mergeable += from->saved_mergeable;
	into->zero_saved += from->zero_saved;
	into->zero_saved_all += from->zero_saved_all;
	into->saved_now += from->saved_now;
	into->pages_shared += from->pages_shared;
	into->pages_sharing += from->pages_sharing;
	into->zero_pages += from->zero_pages;
	together_merge(&into->together, &from->together);
	for (size_t i = 0; i < from->top_count; i++)
		offer_top(into, &from->top[i]);
}
