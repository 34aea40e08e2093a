/* From a CPU budget to a batch and a sleep of ksmd, by what scanning was found to cost. Pure. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/rate.h"

#include "ksmctl/math64.h"

enum {
	NS_PER_PAGE_FIRST = 3000, /* before anything was measured: a typical mixed pass */
	NS_PER_PAGE_MIN = 100,
	NS_PER_PAGE_MAX = 1000000,
	PAGES_MIN = 1000,	 /* fewer tell nothing about the cost of one */
	STRETCH_PERMILLE = 2500, /* a batch may get so much longer than wanted to meet its budget */
	PERMILLE_MIN = 100,
	PERMILLE_MAX = 4000,
	SLEEP_MAX_MS = 60 * 1000,
	BUDGET_MAX_PPM = 960000,
	PAGES_MAX = 1000000,
	MILLION = 1000000,
};

void rate_init(struct rate *rate)
{
	*rate = (struct rate){ .ns_per_page = { NS_PER_PAGE_FIRST, NS_PER_PAGE_FIRST } };
	rate_restart(rate);
}

void rate_restart(struct rate *rate)
{
	rate->batch_permille = 1000;
	rate->window_ms = rate->window_wanted_ns = rate->window_cpu_ns = 0;
}

void rate_learn(struct rate *rate, bool smart, int64_t elapsed_ms, int64_t cpu_ns, int64_t pages,
	int64_t budget_ppm, int64_t window_ms)
{
	if (pages >= PAGES_MIN && cpu_ns > 0) {
		int64_t ns = clamp64(cpu_ns / pages, NS_PER_PAGE_MIN, NS_PER_PAGE_MAX);
		int64_t *known = &rate->ns_per_page[smart];
		/* Up at once, down slowly: a batch must not get long where pages turn out dear. */
		*known = ns > *known ? ns : (*known * 7 + ns) / 8;
	}
	/* Sleeps are rounded by the kernel's timer: correct the batch, gently, by what came out. */
	rate->window_ms += elapsed_ms;
	rate->window_wanted_ns += budget_ppm * elapsed_ms;
	rate->window_cpu_ns += cpu_ns;
	if (rate->window_ms < window_ms)
		return;
	int64_t wanted_ns = rate->window_wanted_ns, used_ns = max64(rate->window_cpu_ns, 1);
	rate->window_ms = rate->window_wanted_ns = rate->window_cpu_ns = 0;
	if (wanted_ns < MILLION)
		return;
	int64_t now = rate->batch_permille;
	int64_t wanted = clamp64(mul_div64(now, wanted_ns, used_ns), now / 2, now * 2);
	rate->batch_permille = clamp64((now + wanted) / 2, PERMILLE_MIN, PERMILLE_MAX);
}

void rate_make(const struct rate *rate, bool smart, int64_t budget_ppm, int64_t batch_us,
	int64_t least_sleep_ms, struct rate_plan *plan)
{
	int64_t budget = clamp64(budget_ppm, 1, BUDGET_MAX_PPM);
	int64_t most_us = mul_div64(batch_us, STRETCH_PERMILLE, 1000);
	int64_t sleep_us = batch_us * (MILLION - budget) / budget;
	if (sleep_us < least_sleep_ms * 1000) {
		sleep_us = least_sleep_ms * 1000;
		batch_us = min64(sleep_us * budget / (MILLION - budget), most_us);
		budget = batch_us * MILLION / (batch_us + sleep_us);
	} else if (sleep_us > (int64_t)SLEEP_MAX_MS * 1000) {
		sleep_us = (int64_t)SLEEP_MAX_MS * 1000;
		batch_us = max64(sleep_us / MILLION * budget, 1);
	}
	batch_us = min64(mul_div64(batch_us, rate->batch_permille, 1000), most_us);
	plan->pages_to_scan = clamp64(batch_us * 1000 / rate->ns_per_page[smart], 1, PAGES_MAX);
	plan->sleep_ms = (sleep_us + 500) / 1000;
	plan->budget_ppm = (uint32_t)budget;
}
