/* The adaptive policy: from what the kernel shows to how fast ksmd shall scan. A pure function. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_POLICY_H
#define KSMCTL_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "ksmctl/rate.h"

/*
 * No clock, file, log or allocation is reached from here: time comes in with the sample, memory
 * is the caller's, arithmetic is integer and saturating. The same inputs give the same outputs.
 * CPU shares are parts per million of one core (10 000 = 1 %).
 */
struct policy_config {
	uint32_t boost_cpu_ppm;	   /* ksmd's share while new memory is being merged */
	uint32_t steady_cpu_ppm;   /* its average share when nothing changes */
	uint32_t pressure_cpu_ppm; /* its share while memory is short and scanning still yields */
	uint32_t batch_us;	   /* longest wanted batch: ksmd holds its lock that long */
	uint32_t interval_ms;	   /* time between looks while scanning fast */
	uint32_t rest_interval_ms; /* time between looks while parked */
	uint32_t
		pass_s; /* at rest, start a pass this long after the last; 0: budget alone decides */
	uint32_t
		converged_ppm; /* a pass that gains less than this part of what it scanned gained nothing */
	uint32_t
		pressure_psi_centi; /* memory "some" avg10 that counts as pressure, percent x 100 */
	uint32_t pressure_available_permille; /* so does MemAvailable below this part of MemTotal */
	uint32_t cpu_psi_centi;		      /* cpu "some" above which a boost is halved */
	uint32_t foreign_retry_s; /* how long to leave the kernel to another controller */
	int8_t smart_scan;	  /* -1 leave as found, 0 off, 1 on, 2 managed */
	int8_t use_zero_pages;	  /* -1 leave as found, 0 off, 1 on */
};

/* One look at the machine. Fields that could not be read are -1; a wholly failed look has stale set. */
struct policy_sample {
	int64_t now_ms; /* monotonic */
	bool stale;
	int64_t run, pages_to_scan, sleep_ms, smart_scan, use_zero_pages; /* as read back */
	int64_t advisor; /* 0 none, else at work; -1 absent */
	int64_t pages_shared, pages_sharing, zero_pages;
	int64_t pages_unshared, pages_volatile, pages_skipped;
	int64_t pages_scanned; /* cumulative; -1 before 6.6: estimated from batches then */
	int64_t full_scans;
	int64_t profit_bytes; /* may be negative; INT64_MIN when absent */
	int64_t ksmd_cpu_ns;  /* cumulative; -1 when ksmd cannot be seen */
	int64_t mem_total_kib, mem_available_kib;
	int64_t memory_psi_centi;     /* "some" avg10, percent x 100 */
	int64_t cpu_psi_centi;	      /* "some" over the last second or so, percent x 100 */
	int64_t registered_processes; /* opted in now */
	int64_t registered_kib;	      /* their resident size */
	int64_t news;  /* cumulative count of opt-ins, forks and execs of opted-in processes */
	bool look_now; /* somebody asked for a boost */
};

/* Pages saved: merged ones and zero pages; what could not be read counts as none. */
static inline int64_t policy_saved_pages(const struct policy_sample *sample)
{
	return (sample->pages_sharing > 0 ? sample->pages_sharing : 0) +
	       (sample->zero_pages > 0 ? sample->zero_pages : 0);
}

enum policy_phase {
	POLICY_IDLE,	 /* nothing is registered: ksmd stopped */
	POLICY_BOOST,	 /* new memory: scanning at the boost budget */
	POLICY_SETTLE,	 /* yield falls: budget halves pass by pass */
	POLICY_STEADY,	 /* a rare pass at a modest rate */
	POLICY_PARKED,	 /* at rest at the pass boundary */
	POLICY_PRESSURE, /* memory is short and scanning yields */
	POLICY_HOLD,	 /* hands off: foreign controller, stale sample, or it does not pay */
	POLICY_PHASES
};

enum policy_reason {
	POLICY_R_NOTHING_REGISTERED,
	POLICY_R_FIRST_LOOK,
	POLICY_R_NEW_PROCESS,
	POLICY_R_GROWTH,
	POLICY_R_ASKED,
	POLICY_R_GAINING,
	POLICY_R_LATE_TWINS,
	POLICY_R_CONVERGED,
	POLICY_R_NO_GAIN,
	POLICY_R_PASS_DUE,
	POLICY_R_CHANGED,
	POLICY_R_DRIFT,
	POLICY_R_BLIND,
	POLICY_R_MEMORY_PRESSURE,
	POLICY_R_FOREIGN,
	POLICY_R_STALE,
	POLICY_R_COUNTER_RESET,
	POLICY_R_NO_PROFIT,
	POLICY_R_COUNT
};

struct policy_decision {
	enum policy_phase phase;
	enum policy_reason reason;
	bool write; /* false: leave the kernel alone (hold) */
	int64_t run, pages_to_scan, sleep_ms;
	int64_t smart_scan, use_zero_pages; /* -1: leave */
	uint32_t budget_ppm;		    /* what this rate should cost */
	uint32_t next_look_ms;		    /* look again after this long at the latest */
};

/* The policy's memory. Zeroed by policy_init; its fields are policy.c's own. */
struct policy_state {
	enum policy_phase phase;
	bool has_last, has_written;
	struct policy_sample last;	 /* the last good sample */
	struct policy_decision decision; /* the last decision */
	struct policy_decision written;	 /* the last one that was to be written */

	/* What scanning costs. */
	struct rate rate;
	int64_t pass_cost_ns; /* CPU time of the last whole pass */

	/* The pass under way. */
	bool pass_whole; /* it began after the last news */
	int64_t pass_saved_pages, pass_scanned_pages, pass_cpu_ns, pass_volatile_pages;
	int64_t pass_registered_kib; /* when it began */
	int64_t met_kib; /* of that, what a whole pass just before it met too; -1: there was none */
	uint32_t whole_passes, dry_passes;
	bool changed;	    /* a steady pass found much memory changed */
	bool old_unmatched; /* there were pages without a partner before the boost */
	bool smart_off;	    /* this pass looks at old pages too */

	/* News. */
	int64_t news_seen, registered_kib_seen, tracked_pages_seen;
	int64_t arrived_kib; /* since the boost began */
	int64_t boost_gain_pages, boost_scanned_pages;
	int64_t boost_cpu_ns, boost_cost_ms; /* at its start; and what the last one cost */
	uint32_t barren_boosts;		     /* in a row */

	bool parked_at_boundary;

	/* Times. */
	int64_t parked_since_ms, pressure_until_ms;
	uint32_t settle_ppm;

	/* Another controller. */
	bool foreign;
	struct policy_sample foreign_seen;
	int64_t foreign_since_ms;
	uint32_t foreign_times;
};

void policy_defaults(struct policy_config *config);
void policy_init(struct policy_state *state);

/* Take one look in, say what to do. `decision` is always filled. */
void policy_step(const struct policy_config *config, struct policy_state *state,
	const struct policy_sample *looked, struct policy_decision *decision);

/* What was decided could not be written: the kernel's values are not to be taken for a foreign hand. */
void policy_forget_written(struct policy_state *state);

const char *policy_phase_name(enum policy_phase phase);	   /* "boost" */
const char *policy_reason_text(enum policy_reason reason); /* one sentence */

#endif
