/* Brings pages with equal content together and sums up what merging would make of them. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_ESTIMATE_SUM_H
#define KSMSTAT_ESTIMATE_SUM_H

#include "ksmstat/estimate_class.h"
#include "ksmstat/estimate_page.h"
#include "ksmstat/estimate_plan.h"

/*
 * Sum up all pages of the store, which are put into another order and in part dropped: those that
 * changed, and those of processes with an error. The plan's processes have their groups by now.
 * Returns 0 or -ENOMEM; *sums is freed with class_sums_free in any case.
 */
int sum_pages(struct class_sums *sums, struct page_store *store, const struct plan *plan,
	size_t group_count, const struct class_rules *rules, size_t top_max, unsigned threads);

#endif
