/* From a CPU budget to a batch and a sleep of ksmd, by what scanning was found to cost. Pure. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_RATE_H
#define KSMCTL_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* What was learnt. Its fields are rate.c's own. */
struct rate {
	int64_t ns_per_page[2]; /* with smart_scan off and on */
	int64_t batch_permille; /* correction of the batch, so that the measured share meets the budget */
	int64_t window_ms, window_wanted_ns, window_cpu_ns; /* since the last correction */
};

struct rate_plan {
	int64_t pages_to_scan, sleep_ms;
	uint32_t
		budget_ppm; /* what the plan should cost; less than asked for where limits demand it */
};

void rate_init(struct rate *rate);

/* The budget has changed: what was corrected for the old one does not hold for the new one. */
void rate_restart(struct rate *rate);

/*
 * Learn from the time since the last look: how long, ksmd's CPU time, pages scanned (0 when not
 * known), and the budget it was meant to use, 0 when it was not scanning by our plan.
 */
void rate_learn(struct rate *rate, bool smart, int64_t elapsed_ms, int64_t cpu_ns, int64_t pages,
	int64_t budget_ppm, int64_t window_ms);

/* Plan for budget_ppm of a core in batches of about batch_us, sleeping at least least_sleep_ms. */
void rate_make(const struct rate *rate, bool smart, int64_t budget_ppm, int64_t batch_us,
	int64_t least_sleep_ms, struct rate_plan *plan);

#endif
