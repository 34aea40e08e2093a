/* What two readings of the counters tell: how things stand, what changed, and how fast. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_RATES_H
#define KSMSTAT_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "ksmstat/sample.h"

enum rates_key {
	RATES_TIME,    /* ms since the epoch */
	RATES_SECONDS, /* between the two readings, in thousandths */
	RATES_RUN,
	RATES_PROCS,
	RATES_UNREADABLE,
	RATES_KSM, /* bytes, as the others down to RATES_PROFIT */
	RATES_SHARED,
	RATES_SHARING,
	RATES_ZERO,
	RATES_SAVING,
	RATES_DELTA,
	RATES_PROFIT,
	RATES_MERGED, /* thousandths of a page per second, as the next three */
	RATES_BROKEN,
	RATES_SCANNED,
	RATES_SKIPPED,
	RATES_PASSES,
	RATES_FULL_SCANS,
	RATES_KSMD, /* thousandths of a percent of one CPU */
	RATES_KEYS
};

struct rates {
	bool known[RATES_KEYS];
	int64_t value[RATES_KEYS]; /* holds where it is known */
};

/*
 * What `now` tells, and what changed since `before`. A counter that is missing in either of the
 * two, or that went backwards (run=2 begins full_scans anew, and counters of 32 bits wrap), gives
 * no rate for this time; it gives one again the next time. Where a sample is of processes KSM,
 * ZERO, SAVING, DELTA and MERGED are theirs, and SHARED, SHARING, PROFIT and BROKEN not known.
 */
void rates_between(const struct sample *before, const struct sample *now, struct rates *rates);

#endif
