/* What merging makes of pages with equal content: the arithmetic of one such class, and its sums. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_ESTIMATE_CLASS_H
#define KSMSTAT_ESTIMATE_CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ksmstat/estimate_page.h"
#include "ksmstat/estimate_plan.h"
#include "ksmstat/estimate_together.h"

/* Parts of pages: a class of n pages that saves s gives each of them s/n. */
#define CLASS_PART_SHIFT 20

/* Of the machine, a kind of area, a group or a process. Pages are mappings: a shared one counts for each. */
struct class_share {
	uint64_t pages;	     /* read */
	uint64_t zero;	     /* filled with zeros */
	uint64_t merged;     /* merged by the kernel before this */
	uint64_t changed;    /* left out: other content at the second look, or gone */
	int64_t saved_parts; /* by merging the rest, zeros too */
};

/* A content that repeats. */
struct class_top {
	XXH128_hash_t hash;
	bool zero;
	uint64_t pages, distinct, merged;
	uint32_t processes;
	uint64_t kinds[PLAN_KINDS];
	uint32_t groups;       /* how many hold it */
	uint32_t group_ids[4]; /* the first of them */
};

struct class_rules {
	uint64_t max_page_sharing; /* mappings that one merged page can have */
	bool zero_pages;	   /* pages of zeros go to the kernel's own */
};

/*
 * Sums over classes. Physical pages are what memory is freed of; the kernel's counters count
 * mappings, which are more where processes share pages since a fork.
 */
struct class_sums {
	struct class_rules rules;
	struct class_share total, kinds[PLAN_KINDS];
	struct class_share *groups, *processes;
	size_t group_count, process_count;

	int64_t saved;		  /* physical pages, without zeros */
	int64_t saved_in_process; /* of these: if each process merged with itself only */
	int64_t saved_in_group;	  /* of these: if each group did */
	int64_t saved_mergeable; /* if only the areas were merged that are open to it now; with zeros */
	int64_t zero_saved;	 /* pages of zeros, merged like others (up to max_page_sharing) */
	int64_t zero_saved_all; /* with use_zero_pages */
	int64_t saved_now;	/* pages that merging saves already among these processes */
	/* What the kernel's counters would say of these processes afterwards. */
	int64_t pages_shared, pages_sharing, zero_pages;

	struct together together;
	struct class_top *top; /* most pages first */
	size_t top_count, top_max;
	struct class_work *work;
};

/* Empty sums. Returns 0 or -ENOMEM; free in any case. */
int class_sums_make(struct class_sums *sums, const struct plan *plan, size_t group_count,
	const struct class_rules *rules, size_t top_max);
void class_sums_free(struct class_sums *sums);

/* Note a page that was read. Returns whether it is to be looked at further: it has not changed. */
bool class_note(struct class_sums *sums, const struct plan *plan, const struct page *page);

/* Add a class of `n` pages with equal content, in any order; it is sorted. */
void class_add(struct class_sums *sums, const struct plan *plan, struct page *pages, size_t n);

/* Add all of another's sums, made for the same plan. */
void class_merge(struct class_sums *into, const struct class_sums *from);

#endif
