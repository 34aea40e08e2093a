/* What two readings of the counters tell: how things stand, what changed, and how fast. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/rates.h"

#include <limits.h>
#include <string.h>

#include "ksmstat/column.h"

static void put(struct rates *rates, enum rates_key key, int64_t value)
{
	rates->known[key] = true;
	rates->value[key] = value;
}

/* a * b / c without overflow on the way; what does not fit is the largest there is. */
static int64_t scaled(uint64_t a, uint64_t b, uint64_t c)
{
	unsigned __int128 product = (unsigned __int128)a * b / c;
	return product > INT64_MAX ? INT64_MAX : (int64_t)product;
}

static int64_t in_bytes(int64_t pages, int64_t page_bytes)
{
	int64_t bytes;
	return !__builtin_mul_overflow(pages, page_bytes, &bytes) ? bytes
	       : pages < 0					  ? INT64_MIN
								  : INT64_MAX;
}

/* So many in the time between, in thousandths per second. */
static void put_rate(struct rates *rates, enum rates_key key, uint64_t count, uint64_t elapsed_ns)
{
	if (elapsed_ns)
		put(rates, key, scaled(count, 1000000000000u, elapsed_ns));
}

static void put_bytes(
	struct rates *rates, enum rates_key key, const struct sample *now, enum ksm_key from)
{
	if (ksm_has(&now->ksm, from))
		put(rates, key, in_bytes(now->ksm.value[from], now->page_bytes));
}

/* By how much a counter that only grows grew. */
static bool grown(
	const struct sample *before, const struct sample *now, enum ksm_key key, uint64_t *by)
{
	if (!ksm_has(&before->ksm, key) || !ksm_has(&now->ksm, key) || before->ksm.value[key] < 0 ||
		now->ksm.value[key] < before->ksm.value[key])
		return false;
	*by = (uint64_t)(now->ksm.value[key] - before->ksm.value[key]);
	return true;
}

static bool same_zero(const struct sample *before, const struct sample *now)
{
	return ksm_has(&before->ksm, KSM_ZERO_PAGES) == ksm_has(&now->ksm, KSM_ZERO_PAGES);
}

/* Mappings of merged pages: the page itself, those that share it, and those of the zero page. */
static bool merged_pages(const struct sample *sample, int64_t *pages)
{
	int64_t saved;
	if (!ksm_has(&sample->ksm, KSM_PAGES_SHARED) || !ksm_saved_pages(&sample->ksm, &saved))
		return false;
	return !__builtin_add_overflow(saved, sample->ksm.value[KSM_PAGES_SHARED], pages);
}

/* The growth of a number that also falls. */
static void put_growth(
	struct rates *rates, int64_t before_pages, int64_t now_pages, uint64_t elapsed_ns)
{
	int64_t grew;
	if (!__builtin_sub_overflow(now_pages, before_pages, &grew))
		put_rate(rates, RATES_MERGED, grew > 0 ? (uint64_t)grew : 0, elapsed_ns);
}

static void put_delta(struct rates *rates, int64_t before_bytes, int64_t now_bytes)
{
	int64_t delta;
	if (!__builtin_sub_overflow(now_bytes, before_bytes, &delta))
		put(rates, RATES_DELTA, delta);
}

/* Copies made of merged pages. A kernel may count only those made by writing. */
static void put_broken(struct rates *rates, const struct sample *before, const struct sample *now,
	uint64_t elapsed_ns)
{
	if (before->cow_ksm < 0 || now->cow_ksm < before->cow_ksm)
		return;
	uint64_t copies = (uint64_t)(now->cow_ksm - before->cow_ksm);
	if (before->swpin_copy >= 0 && now->swpin_copy >= 0) {
		if (now->swpin_copy < before->swpin_copy)
			return;
		copies += (uint64_t)(now->swpin_copy - before->swpin_copy);
	}
	put_rate(rates, RATES_BROKEN, copies, elapsed_ns);
}

static void of_machine(struct rates *rates, const struct sample *before, const struct sample *now,
	uint64_t elapsed_ns)
{
	int64_t pages, before_pages;

	put_bytes(rates, RATES_SHARED, now, KSM_PAGES_SHARED);
	put_bytes(rates, RATES_SHARING, now, KSM_PAGES_SHARING);
	put_bytes(rates, RATES_ZERO, now, KSM_ZERO_PAGES);
	if (ksm_has(&now->ksm, KSM_PAGES_SHARED) && ksm_has(&now->ksm, KSM_PAGES_SHARING) &&
		!__builtin_add_overflow(now->ksm.value[KSM_PAGES_SHARED],
			now->ksm.value[KSM_PAGES_SHARING], &pages))
		put(rates, RATES_KSM, in_bytes(pages, now->page_bytes));
	if (ksm_has(&now->ksm, KSM_GENERAL_PROFIT))
		put(rates, RATES_PROFIT, now->ksm.value[KSM_GENERAL_PROFIT]);
	if (ksm_saved_pages(&now->ksm, &pages)) {
		put(rates, RATES_SAVING, in_bytes(pages, now->page_bytes));
		if (same_zero(before, now) && ksm_saved_pages(&before->ksm, &before_pages))
			put_delta(rates, in_bytes(before_pages, now->page_bytes),
				rates->value[RATES_SAVING]);
	}
	if (same_zero(before, now) && merged_pages(before, &before_pages) &&
		merged_pages(now, &pages))
		put_growth(rates, before_pages, pages, elapsed_ns);
	put_broken(rates, before, now, elapsed_ns);
}

static void of_processes(struct rates *rates, const struct sample *before, const struct sample *now,
	uint64_t elapsed_ns)
{
	const struct sample_processes *then = &before->processes, *sum = &now->processes;

	put(rates, RATES_PROCS, (int64_t)sum->count);
	put(rates, RATES_UNREADABLE, (int64_t)sum->unreadable);
	if (sum->has_ksm)
		put(rates, RATES_KSM, sum->ksm_bytes);
	if (sum->has_zero)
		put(rates, RATES_ZERO, sum->zero_bytes);
	/* SAVED of processes is without the zero pages; the saving is of both, as of the machine. */
	bool same = sum->has_zero == then->has_zero || !sum->count || !then->count;
	if (sum->has_saved)
		put(rates, RATES_SAVING, column_add(sum->saved_bytes, sum->zero_bytes));
	if (sum->has_saved && then->has_saved && same)
		put_delta(rates, column_add(then->saved_bytes, then->zero_bytes),
			rates->value[RATES_SAVING]);
	if (sum->has_ksm && then->has_ksm && same)
		put_growth(rates, column_add(then->ksm_bytes, then->zero_bytes) / now->page_bytes,
			column_add(sum->ksm_bytes, sum->zero_bytes) / now->page_bytes, elapsed_ns);
}

void rates_between(const struct sample *before, const struct sample *now, struct rates *rates)
{
	uint64_t elapsed_ns = now->monotonic_ns > before->monotonic_ns
				      ? now->monotonic_ns - before->monotonic_ns
				      : 0;
	uint64_t by;

	memset(rates, 0, sizeof(*rates));
	put(rates, RATES_TIME, now->epoch_ms);
	put(rates, RATES_SECONDS, (int64_t)((elapsed_ns + 500000) / 1000000));
	if (now->of_processes)
		of_processes(rates, before, now, elapsed_ns);
	else
		of_machine(rates, before, now, elapsed_ns);
	if (ksm_has(&now->ksm, KSM_RUN))
		put(rates, RATES_RUN, now->ksm.value[KSM_RUN]);
	if (ksm_has(&now->ksm, KSM_FULL_SCANS))
		put(rates, RATES_FULL_SCANS, now->ksm.value[KSM_FULL_SCANS]);
	if (grown(before, now, KSM_FULL_SCANS, &by))
		put(rates, RATES_PASSES, (int64_t)by);
	if (grown(before, now, KSM_PAGES_SCANNED, &by))
		put_rate(rates, RATES_SCANNED, by, elapsed_ns);
	if (grown(before, now, KSM_PAGES_SKIPPED, &by))
		put_rate(rates, RATES_SKIPPED, by, elapsed_ns);
	if (before->has_ksmd && now->has_ksmd && now->ksmd_ns >= before->ksmd_ns && elapsed_ns)
		put(rates, RATES_KSMD,
			scaled(now->ksmd_ns - before->ksmd_ns, 100 * 1000, elapsed_ns));
}
