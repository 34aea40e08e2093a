/* The adaptive policy: from what the kernel shows to how fast ksmd shall scan. A pure function. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/policy.h"

#include <stddef.h>
#include <string.h>

#include "ksmctl/math64.h"

/*
 * How it thinks.
 *
 * ksmd merges a page in the second pass that meets it, so two whole passes after the last arrival
 * of memory find most of what is equal. That is the boost: pass one only has to take checksums
 * and may skip old pages (smart_scan on), pass two has to look at all of them, because an arrival
 * can be the late twin of an old page that found no partner so far (smart_scan off). Memory that
 * changes spoils the kernel's search tree within a pass, so some twins miss each other: while a
 * pass gains much, another follows at full speed, and what still gains a little is followed at a
 * budget that halves with each pass (settle). Then ksmd is
 * stopped exactly between two passes (parked): there an arrival joins the end of the very next
 * pass. From time to time, as often as the steady budget pays for, a whole pass at a low rate
 * (steady) finds what changed in place.
 *
 * Boosts that gain nothing make the next one wait longer, so memory that never merges costs little.
 */

enum {
	NS_PER_PAGE_GUESS = 3000, /* where the kernel does not count pages */
	NEWS_MIN_KIB = 4096,	  /* smaller arrivals wait for the next steady pass */
	NEWS_PART = 64,		  /* so does growth by less than this part of what is registered */
	/* During a boost, and soon after one, growth has to be larger: the boosts shall not follow
	 * each other for ever behind a heap that grows. */
	NEWS_PART_WORKING = 8,
	NEWS_PART_EARLY = 4,
	REST_FACTOR = 2, /* rest so many times the CPU time of the last boost before the next; */
	REST_FACTOR_GROWTH = 8, /* and so many for a boost that only growth asks for */
	WHOLE_PASSES = 2,
	OLD_UNMATCHED_PART = 32, /* fewer old pages without a partner are not worth a dearer pass */
	BARREN_PART = 16,
	BARREN_SCANNED_PART = 256,
	MUCH_PART = 16,	    /* a pass that merged so much is followed by another at full speed */
	CHANGED_PART = 64,  /* so much changed since the last pass asks for a second one */
	DRY_PASSES_MAX = 4, /* a boost ends after so many passes without gain, arrivals or not */
	BACKOFF_FIRST_MS = 5000,
	BACKOFF_MAX_MS = 600 * 1000,
	PRESSURE_PAUSE_MS = 60 * 1000,
	FULL_BOOST_PART = 8, /* arrivals of this part of all memory deserve the full boost */
	/* Sleep and look that catch ksmd at the end of its pass, see may_park(). */
	CATCH_SLEEP_MS = 60,
	CATCH_LOOK_MS = 40,
	MILLION = 1000000,
	ELAPSED_MAX_MS = 3600 * 1000, /* a longer gap, as over a suspend, tells no rates */
};
#define COUNT_MAX ((int64_t)1 << 55)

void policy_defaults(struct policy_config *config)
{
	*config = (struct policy_config){
		.boost_cpu_ppm = 850000,
		.steady_cpu_ppm = 2000,
		.pressure_cpu_ppm = 400000,
		.batch_us = 8000,
		.interval_ms = 200,
		.rest_interval_ms = 1000,
		.pass_s = 120,
		.converged_ppm = 2000,
		.pressure_psi_centi = 1000,
		.pressure_available_permille = 100,
		.cpu_psi_centi = 3000,
		.foreign_retry_s = 60,
		.smart_scan = 2,
		.use_zero_pages = 1,
	};
}

void policy_init(struct policy_state *state)
{
	memset(state, 0, sizeof(*state));
	rate_init(&state->rate);
	state->news_seen = state->registered_kib_seen = state->tracked_pages_seen = -1;
	state->met_kib = -1;
	state->boost_cpu_ns = -1;
}

/* Pages that ksmd has met: grows when new memory is scanned, also where no process can be seen. */
static int64_t tracked_pages(const struct policy_sample *sample)
{
	return policy_saved_pages(sample) + max64(sample->pages_shared, 0) +
	       max64(sample->pages_unshared, 0) + max64(sample->pages_volatile, 0);
}

/* Nobody can tell the policy what is registered: it has to find out by scanning. */
static bool is_blind(const struct policy_sample *sample)
{
	return sample->registered_processes < 0 || sample->registered_kib < 0;
}

static bool is_registered(const struct policy_sample *sample)
{
	return is_blind(sample) ? tracked_pages(sample) > 0 : sample->registered_processes > 0;
}

/* Pages scanned since boot; where the kernel does not count them, what the CPU time allows for. */
static int64_t scanned_pages(const struct policy_sample *sample)
{
	if (sample->pages_scanned >= 0)
		return sample->pages_scanned;
	return sample->ksmd_cpu_ns >= 0 ? sample->ksmd_cpu_ns / NS_PER_PAGE_GUESS : 0;
}

static void begin_pass(struct policy_state *state, const struct policy_sample *sample, bool whole)
{
	state->pass_whole = whole;
	state->pass_saved_pages = policy_saved_pages(sample);
	state->pass_scanned_pages = scanned_pages(sample);
	state->pass_cpu_ns = sample->ksmd_cpu_ns;
	state->pass_volatile_pages = sample->pages_volatile;
	state->pass_registered_kib = sample->registered_kib;
}

static void enter(struct policy_state *state, enum policy_phase phase)
{
	state->phase = phase;
	rate_restart(&state->rate);
}

/*
 * A boost, or more of one. Memory that came while a pass was under way may lie behind its cursor,
 * so that pass does not count.
 */
static void boost(
	struct policy_state *state, const struct policy_sample *sample, int64_t arrived_kib)
{
	bool at_boundary = state->phase == POLICY_IDLE ||
			   (state->phase == POLICY_PARKED && state->parked_at_boundary);
	if (state->phase != POLICY_BOOST) {
		enter(state, POLICY_BOOST);
		state->arrived_kib = state->boost_gain_pages = state->boost_scanned_pages = 0;
		state->dry_passes = 0;
		state->met_kib = -1;
		state->boost_cpu_ns = sample->ksmd_cpu_ns;
		/* These may be passed over by smart_scan just when their twins arrive. */
		state->old_unmatched =
			(max64(sample->pages_unshared, 0) + max64(sample->pages_volatile, 0)) *
				OLD_UNMATCHED_PART >
			tracked_pages(sample);
		begin_pass(state, sample, at_boundary);
	} else {
		state->pass_whole = false;
	}
	state->whole_passes = 0;
	state->smart_off = false;
	state->arrived_kib = min64(state->arrived_kib + max64(arrived_kib, 0), COUNT_MAX);
}

static void park(struct policy_state *state, const struct policy_sample *sample)
{
	if (state->phase == POLICY_BOOST || state->phase == POLICY_SETTLE) {
		/* Too little of what came found a partner, and too little of all that was scanned. */
		bool barren =
			state->boost_gain_pages < state->arrived_kib / 4 / BARREN_PART &&
			state->boost_gain_pages < state->boost_scanned_pages / BARREN_SCANNED_PART;
		state->barren_boosts = barren ? state->barren_boosts + 1 : 0;
	}
	if (state->boost_cpu_ns >= 0 && sample->ksmd_cpu_ns >= 0)
		state->boost_cost_ms = (sample->ksmd_cpu_ns - state->boost_cpu_ns) / MILLION;
	state->boost_cpu_ns = -1;
	state->parked_since_ms = sample->now_ms;
	state->dry_passes = 0;
	/* Both looks fell into one sleep: ksmd has not begun the next pass. */
	state->parked_at_boundary = sample->now_ms - state->last.now_ms < state->written.sleep_ms;
	state->smart_off = false;
	enter(state, is_blind(sample) ? POLICY_STEADY : POLICY_PARKED);
	begin_pass(state, sample, true);
}

/* How long a boost waits after the last one, given how many gained nothing. */
static int64_t backoff_ms(const struct policy_state *state)
{
	int64_t paid_ms = state->boost_cost_ms * REST_FACTOR;
	if (!state->barren_boosts)
		return paid_ms;
	uint32_t doublings = state->barren_boosts - 1 < 10 ? state->barren_boosts - 1 : 10;
	return max64(paid_ms, min64((int64_t)BACKOFF_FIRST_MS << doublings, BACKOFF_MAX_MS));
}

/* Memory that came since it was last asked, in KiB; 0 when it is too little to mind. */
static int64_t take_news(struct policy_state *state, const struct policy_sample *sample)
{
	int64_t arrived = 0, threshold;
	if (is_blind(sample)) {
		int64_t tracked_kib = tracked_pages(sample) * 4;
		threshold = max64(NEWS_MIN_KIB, tracked_kib / NEWS_PART);
		arrived = tracked_kib - max64(state->tracked_pages_seen, 0) * 4;
		if (arrived < threshold && arrived >= 0)
			return 0;
		state->tracked_pages_seen = tracked_pages(sample);
		return max64(arrived, 0);
	}
	arrived = sample->registered_kib - max64(state->registered_kib_seen, 0);
	if (arrived < 0) { /* somebody left; growth counts from here */
		state->registered_kib_seen = sample->registered_kib;
		arrived = 0;
	}
	/* A newcomer may take the place of one that left: then only the count of newcomers shows it. */
	int64_t newcomers = sample->news - max64(state->news_seen, 0);
	if (newcomers > 0 && sample->registered_processes > 0)
		arrived = max64(arrived,
			min64(sample->registered_kib, mul_div64(newcomers, sample->registered_kib,
							      sample->registered_processes)));
	int64_t part = NEWS_PART;
	if (newcomers <= 0 && state->phase != POLICY_PARKED && state->phase != POLICY_STEADY)
		part = NEWS_PART_WORKING;
	else if (newcomers <= 0 && sample->now_ms - state->parked_since_ms <
					   state->boost_cost_ms * REST_FACTOR_GROWTH)
		part = NEWS_PART_EARLY;
	threshold = max64(NEWS_MIN_KIB, sample->registered_kib / part);
	if (arrived < threshold)
		return 0;
	state->registered_kib_seen = sample->registered_kib;
	state->news_seen = sample->news;
	return arrived;
}

/* Learn what scanning costs, from what came of the last decision. */
static void measure(const struct policy_config *config, struct policy_state *state,
	const struct policy_sample *sample)
{
	const struct policy_sample *last = &state->last;
	const struct policy_decision *decision = &state->decision;
	int64_t elapsed_ms = sample->now_ms - last->now_ms;
	if (sample->ksmd_cpu_ns < 0 || last->ksmd_cpu_ns < 0 || elapsed_ms <= 0 ||
		elapsed_ms > ELAPSED_MAX_MS)
		return;
	bool counted = sample->pages_scanned >= 0 && last->pages_scanned >= 0;
	bool ours = decision->write && decision->run == 1;
	rate_learn(&state->rate, decision->smart_scan != 0, elapsed_ms,
		sample->ksmd_cpu_ns - last->ksmd_cpu_ns,
		counted ? sample->pages_scanned - last->pages_scanned : 0,
		ours ? decision->budget_ppm : 0, config->interval_ms);
}

/*
 * A batch of ksmd ends where a pass ends, and a sleep follows. Where each look comes before that
 * sleep is over, ksmd can be stopped exactly between two passes. It is worth the slower scan in the
 * phases that lead to a rest.
 */
static bool may_park(enum policy_phase phase)
{
	return phase == POLICY_SETTLE || phase == POLICY_STEADY;
}

/* Fill in the batch and the sleep that cost budget_ppm of a core. */
static void set_rate(const struct policy_config *config, const struct policy_state *state,
	struct policy_decision *decision, int64_t budget_ppm)
{
	struct rate_plan plan;
	bool smart = config->smart_scan == 2 ? !state->smart_off : config->smart_scan != 0;
	rate_make(&state->rate, smart, budget_ppm, config->batch_us,
		may_park(state->phase) ? CATCH_SLEEP_MS : 1, &plan);
	decision->run = 1;
	decision->budget_ppm = plan.budget_ppm;
	decision->sleep_ms = plan.sleep_ms;
	decision->pages_to_scan = plan.pages_to_scan;
	/* Small corrections are not worth a write. */
	const struct policy_decision *old = &state->written;
	if (state->has_written && old->run == 1 && old->sleep_ms == plan.sleep_ms &&
		plan.pages_to_scan > old->pages_to_scan * 3 / 4 &&
		plan.pages_to_scan < old->pages_to_scan * 5 / 4)
		decision->pages_to_scan = old->pages_to_scan;
}

/* The boost budget: less for little news in much memory, halved while processes wait for the CPU. */
static int64_t boost_ppm(const struct policy_config *config, const struct policy_state *state,
	const struct policy_sample *sample)
{
	int64_t ppm = config->boost_cpu_ppm;
	if (sample->registered_kib > 0 && state->arrived_kib > 0) {
		int64_t part = mul_div64(
			ppm * FULL_BOOST_PART, state->arrived_kib, sample->registered_kib);
		ppm = clamp64(part, min64(ppm, (int64_t)config->steady_cpu_ppm * 10), ppm);
	}
	if (sample->cpu_psi_centi >= (int64_t)config->cpu_psi_centi)
		ppm /= 2;
	if (sample->cpu_psi_centi >= (int64_t)config->cpu_psi_centi * 2)
		ppm /= 2;
	return ppm;
}

/* A steady pass goes at several times the steady budget, and is paid for by the rest before it. */
static int64_t steady_pass_ppm(const struct policy_config *config)
{
	return min64(max64((int64_t)config->steady_cpu_ppm * 25, 10000), config->boost_cpu_ppm);
}

static bool under_pressure(const struct policy_config *config, const struct policy_sample *sample)
{
	if (sample->memory_psi_centi >= (int64_t)config->pressure_psi_centi)
		return true;
	return sample->mem_total_kib > 0 && sample->mem_available_kib >= 0 &&
	       mul_div64(sample->mem_available_kib, 1000, sample->mem_total_kib) <
		       (int64_t)config->pressure_available_permille;
}

/* Why it rests: nothing is left to merge, or it does not pay. */
static enum policy_reason rest_reason(const struct policy_sample *sample)
{
	bool loss = sample->profit_bytes < 0 && sample->profit_bytes != INT64_MIN;
	return loss ? POLICY_R_NO_PROFIT : POLICY_R_CONVERGED;
}

/* Whether the rest has been long enough to pay for a pass. */
static bool pass_due(const struct policy_config *config, const struct policy_state *state,
	const struct policy_sample *sample)
{
	int64_t rested_ms = sample->now_ms - state->parked_since_ms;
	int64_t wait_ms = (int64_t)config->pass_s * 1000;
	int64_t paid_ms = mul_div64(state->pass_cost_ns, 1, max64(config->steady_cpu_ppm, 1));
	if (rest_reason(sample) == POLICY_R_NO_PROFIT)
		paid_ms = mul_div64(paid_ms, 4, 1);
	return rested_ms >= max64(wait_ms, paid_ms);
}

/*
 * Of huge pages the second pass, too, only takes checksums: they merge in the third. It shows in that
 * most of what arrived is still counted as volatile, and nothing of it has merged.
 */
static uint32_t unsettled(const struct policy_state *state, const struct policy_sample *sample)
{
	return state->boost_gain_pages < state->arrived_kib / 4 / BARREN_PART &&
	       sample->pages_volatile > state->arrived_kib / 4 / 2;
}

/*
 * Growth too small for a boost of its own is no news any more once two whole passes met it: what
 * grew while a boost was under way shall not ask for another one after it.
 */
static void meet(struct policy_state *state, const struct policy_sample *sample)
{
	if (state->pass_whole && !unsettled(state, sample))
		state->registered_kib_seen = max64(state->registered_kib_seen, state->met_kib);
	state->met_kib = state->pass_whole ? state->pass_registered_kib : -1;
}

/* A pass has ended. What follows depends on what it gained. */
static enum policy_reason end_pass(const struct policy_config *config, struct policy_state *state,
	const struct policy_sample *sample)
{
	int64_t gain = policy_saved_pages(sample) - state->pass_saved_pages;
	int64_t scanned = max64(scanned_pages(sample) - state->pass_scanned_pages, 1);
	bool gained =
		gain > 0 && mul_div64(gain, MILLION, scanned) >= (int64_t)config->converged_ppm;
	bool whole = state->pass_whole;
	bool changed =
		(sample->pages_volatile - state->pass_volatile_pages) * CHANGED_PART > scanned;

	if (sample->ksmd_cpu_ns >= 0 && state->pass_cpu_ns >= 0)
		state->pass_cost_ns = sample->ksmd_cpu_ns - state->pass_cpu_ns;
	state->boost_gain_pages += max64(gain, 0);
	state->boost_scanned_pages += scanned;
	state->dry_passes = gained ? 0 : state->dry_passes + 1;
	meet(state, sample);
	begin_pass(state, sample, true);

	switch (state->phase) {
	case POLICY_BOOST:
		state->whole_passes += whole;
		if (state->whole_passes == 1)
			state->smart_off = config->smart_scan == 2 && state->old_unmatched;
		if (state->whole_passes < WHOLE_PASSES + unsettled(state, sample) &&
			state->dry_passes < DRY_PASSES_MAX)
			return state->smart_off ? POLICY_R_LATE_TWINS : POLICY_R_GAINING;
		if (!gained) {
			park(state, sample);
			return state->barren_boosts ? POLICY_R_NO_GAIN : rest_reason(sample);
		}
		/*
		 * The next pass still looks at old pages where twins came out only in an extra pass, and
		 * where passes are so short that this one was half over when it was told to.
		 */
		bool brief = state->pass_cost_ns < 2 * (int64_t)config->interval_ms * MILLION;
		state->smart_off =
			state->smart_off && (brief || state->whole_passes > WHOLE_PASSES);
		if (gain > scanned / MUCH_PART)
			return POLICY_R_GAINING;
		state->settle_ppm = (uint32_t)(boost_ppm(config, state, sample) / 2);
		enter(state, POLICY_SETTLE);
		return POLICY_R_GAINING;
	case POLICY_SETTLE:
		if (gained) {
			state->settle_ppm =
				(uint32_t)max64(state->settle_ppm / 2, steady_pass_ppm(config));
			return POLICY_R_GAINING;
		}
		park(state, sample);
		return rest_reason(sample);
	case POLICY_PRESSURE:
		if (gained)
			return POLICY_R_MEMORY_PRESSURE;
		state->pressure_until_ms = sample->now_ms + PRESSURE_PAUSE_MS;
		park(state, sample);
		return POLICY_R_NO_GAIN;
	case POLICY_STEADY:
		if (gained) { /* things changed in place: follow them faster */
			state->settle_ppm = config->boost_cpu_ppm / 4;
			state->boost_gain_pages = gain;
			state->boost_scanned_pages = scanned;
			enter(state, POLICY_SETTLE);
			return POLICY_R_DRIFT;
		}
		state->whole_passes += whole;
		state->changed |= changed;
		if (state->changed && state->whole_passes < WHOLE_PASSES)
			return POLICY_R_CHANGED; /* this pass took new checksums; the next may merge */
		park(state, sample);
		return is_blind(sample) ? POLICY_R_BLIND : rest_reason(sample);
	default:
		return state->decision.reason;
	}
}

/* Move to another phase where the sample asks for it. Returns why the phase is what it is now. */
static enum policy_reason move(const struct policy_config *config, struct policy_state *state,
	const struct policy_sample *sample)
{
	bool first = !state->has_last,
	     was_resting = state->phase == POLICY_PARKED || state->phase == POLICY_IDLE;
	bool ended = !first && sample->full_scans > state->last.full_scans;
	bool reset = !first && sample->full_scans < state->last.full_scans;
	enum policy_reason reason = state->decision.reason;

	/* Whoever left takes along what passes met of him. */
	state->pass_registered_kib = min64(state->pass_registered_kib, sample->registered_kib);
	state->met_kib = min64(state->met_kib, sample->registered_kib);
	if (!is_registered(sample)) {
		if (state->phase != POLICY_IDLE)
			enter(state, POLICY_IDLE);
		state->registered_kib_seen = state->tracked_pages_seen = 0;
		state->news_seen = sample->news;
		state->barren_boosts = 0;
		return POLICY_R_NOTHING_REGISTERED;
	}
	if (reset || state->phase == POLICY_HOLD) {
		/* Unmerged by hand, or the kernel was in other hands: what was known is no longer true. */
		enter(state, POLICY_PARKED);
		state->parked_since_ms = sample->now_ms;
		boost(state, sample, sample->registered_kib);
		return reset ? POLICY_R_COUNTER_RESET : POLICY_R_FIRST_LOOK;
	}
	if (ended && !was_resting)
		reason = end_pass(config, state, sample);

	bool resting = state->phase == POLICY_PARKED || state->phase == POLICY_STEADY;
	bool may_boost = resting ? sample->now_ms - state->parked_since_ms >= backoff_ms(state)
				 : state->dry_passes < DRY_PASSES_MAX;
	if (sample->look_now || may_boost) {
		int64_t known_kib = state->registered_kib_seen, known_news = state->news_seen;
		int64_t arrived_kib = take_news(state, sample);
		if (sample->look_now) {
			state->barren_boosts = 0;
			boost(state, sample, max64(sample->registered_kib, 0));
			return POLICY_R_ASKED;
		}
		if (arrived_kib > 0) {
			boost(state, sample, arrived_kib);
			return first					     ? POLICY_R_FIRST_LOOK
			       : known_kib > 0 && sample->news <= known_news ? POLICY_R_GROWTH
									     : POLICY_R_NEW_PROCESS;
		}
	}
	if (state->phase == POLICY_IDLE) {
		boost(state, sample, max64(sample->registered_kib, 0));
		return POLICY_R_NEW_PROCESS;
	}
	if (under_pressure(config, sample)) {
		if (resting && sample->now_ms >= state->pressure_until_ms) {
			enter(state, POLICY_PRESSURE);
			begin_pass(state, sample, was_resting);
			return POLICY_R_MEMORY_PRESSURE;
		}
	} else if (state->phase == POLICY_PRESSURE) {
		state->settle_ppm = (uint32_t)steady_pass_ppm(config);
		enter(state, POLICY_SETTLE);
		return POLICY_R_GAINING;
	}
	if (state->phase == POLICY_PARKED && pass_due(config, state, sample)) {
		enter(state, POLICY_STEADY);
		begin_pass(state, sample, state->parked_at_boundary);
		state->dry_passes = state->whole_passes = 0;
		state->changed = false;
		state->smart_off = config->smart_scan == 2;
		return POLICY_R_PASS_DUE;
	}
	return reason;
}

/* ksmd stopped; the rate stays as it was, there is no need to write it. */
static void rest(const struct policy_config *config, const struct policy_state *state,
	struct policy_decision *decision)
{
	if (state->has_written) {
		decision->pages_to_scan = state->written.pages_to_scan;
		decision->sleep_ms = state->written.sleep_ms;
	} else {
		set_rate(config, state, decision, config->steady_cpu_ppm);
	}
	decision->run = 0;
	decision->budget_ppm = 0;
}

/* What the phase means for the kernel. */
static void settings(const struct policy_config *config, const struct policy_state *state,
	const struct policy_sample *sample, struct policy_decision *decision)
{
	switch (state->phase) {
	case POLICY_BOOST:
		set_rate(config, state, decision, boost_ppm(config, state, sample));
		break;
	case POLICY_SETTLE:
		set_rate(config, state, decision, state->settle_ppm);
		break;
	case POLICY_PRESSURE:
		set_rate(config, state, decision, config->pressure_cpu_ppm);
		break;
	case POLICY_STEADY:
		set_rate(config, state, decision,
			is_blind(sample) ? config->steady_cpu_ppm : steady_pass_ppm(config));
		break;
	case POLICY_IDLE:
		decision->next_look_ms = config->rest_interval_ms;
		if (is_blind(
			    sample)) { /* ksmd sleeps until something registers, and then shows it */
			set_rate(config, state, decision, config->steady_cpu_ppm);
			break;
		}
		rest(config, state, decision);
		break;
	case POLICY_PARKED:
	default:
		decision->next_look_ms = config->rest_interval_ms;
		rest(config, state, decision);
		break;
	}
	if (decision->run)
		decision->next_look_ms = config->interval_ms;
	if (may_park(state->phase) && !is_blind(sample))
		decision->next_look_ms = (uint32_t)clamp64(
			decision->sleep_ms / 2, CATCH_LOOK_MS, config->interval_ms);
	decision->write = true;
	decision->smart_scan = sample->smart_scan < 0 || config->smart_scan < 0 ? -1
			       : config->smart_scan == 2			? !state->smart_off
							 : config->smart_scan;
	decision->use_zero_pages = sample->use_zero_pages < 0 || config->use_zero_pages < 0
					   ? -1
					   : config->use_zero_pages;
}

static bool differs(int64_t wanted, int64_t found)
{
	return wanted >= 0 && found >= 0 && wanted != found;
}

/* The kernel shows other values than were written: somebody else controls it. */
static bool foreign_write(const struct policy_state *state, const struct policy_sample *sample)
{
	const struct policy_decision *ours = &state->written;
	if (!state->has_written)
		return false;
	return differs(ours->run, sample->run) ||
	       differs(ours->pages_to_scan, sample->pages_to_scan) ||
	       differs(ours->sleep_ms, sample->sleep_ms) ||
	       differs(ours->smart_scan, sample->smart_scan) ||
	       differs(ours->use_zero_pages, sample->use_zero_pages) || sample->advisor > 0;
}

static bool same_knobs(const struct policy_sample *a, const struct policy_sample *b)
{
	return a->run == b->run && a->pages_to_scan == b->pages_to_scan &&
	       a->sleep_ms == b->sleep_ms && a->smart_scan == b->smart_scan &&
	       a->use_zero_pages == b->use_zero_pages && a->advisor == b->advisor;
}

/* Step aside, for longer each time, and not at all back while somebody keeps merging
 * stopped or the kernel's advisor at work. */
static bool still_foreign(const struct policy_config *config, struct policy_state *state,
	const struct policy_sample *sample)
{
	if (!state->foreign) {
		if (!foreign_write(state, sample))
			return false;
		state->foreign = true;
		state->foreign_times++;
		state->foreign_since_ms = sample->now_ms;
		state->foreign_seen = *sample;
		return true;
	}
	if (!same_knobs(sample, &state->foreign_seen)) {
		state->foreign_seen = *sample;
		state->foreign_since_ms = sample->now_ms;
	}
	uint32_t doublings = state->foreign_times - 1 < 6 ? state->foreign_times - 1 : 6;
	int64_t wait_ms = (int64_t)config->foreign_retry_s * 1000 << doublings;
	if (sample->run != 1 || sample->advisor > 0 ||
		sample->now_ms - state->foreign_since_ms < wait_ms)
		return true;
	state->foreign = false;
	return false;
}

static void hold(const struct policy_config *config, const struct policy_state *state,
	enum policy_reason reason, struct policy_decision *decision)
{
	*decision = state->decision;
	decision->write = false;
	decision->phase = POLICY_HOLD;
	decision->reason = reason;
	decision->budget_ppm = 0;
	decision->next_look_ms = config->rest_interval_ms;
}

/*
 * No machine has so much of anything; where a file says so nevertheless, or says less than nothing,
 * sums and products of what it says stay within 64 bits.
 */
static void bound(struct policy_sample *sample)
{
	int64_t *const counts[] = { &sample->pages_shared, &sample->pages_sharing,
		&sample->zero_pages, &sample->pages_unshared, &sample->pages_volatile,
		&sample->pages_scanned, &sample->full_scans, &sample->ksmd_cpu_ns,
		&sample->mem_total_kib, &sample->mem_available_kib, &sample->memory_psi_centi,
		&sample->cpu_psi_centi, &sample->registered_processes, &sample->registered_kib,
		&sample->news, &sample->now_ms };
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		*counts[i] = clamp64(*counts[i], -1, COUNT_MAX);
}

void policy_step(const struct policy_config *config, struct policy_state *state,
	const struct policy_sample *looked, struct policy_decision *decision)
{
	struct policy_sample bounded = *looked;
	const struct policy_sample *sample = &bounded;
	bound(&bounded);
	if (sample->stale) {
		/* The phase goes on where it was as soon as the kernel can be read again. */
		hold(config, state, POLICY_R_STALE, decision);
		return;
	}
	if (still_foreign(config, state, sample)) {
		state->phase = POLICY_HOLD;
		state->last = *sample;
		hold(config, state, POLICY_R_FOREIGN, decision);
		return;
	}
	if (state->has_last)
		measure(config, state, sample);
	enum policy_reason reason = move(config, state, sample);
	memset(decision, 0, sizeof(*decision));
	settings(config, state, sample, decision);
	decision->phase = state->phase;
	decision->reason = reason;
	state->decision = state->written = *decision;
	state->has_written = state->has_last = true;
	state->last = *sample;
	state->last.look_now = false;
}

void policy_forget_written(struct policy_state *state)
{
	state->has_written = false;
}
