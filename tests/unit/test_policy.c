/* ksmctl/policy: single steps, each phase and reason by example, and samples beyond all bounds. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <string.h>

#include "ksmctl/policy.h"
#include "tests/tap.h"

#define GIB_KIB (1 << 20)
#define PAGES_PER_GIB (1 << 18)

static struct policy_config config;
static struct policy_state state;
static struct policy_sample sample;
static struct policy_decision decision;
static int produced[POLICY_R_COUNT];

/* A machine with four processes that registered 1 GiB, not scanned yet. */
static void start(void)
{
	policy_defaults(&config);
	policy_init(&state);
	memset(&decision, 0, sizeof(decision));
	sample = (struct policy_sample){
		.now_ms = 1000000,
		.pages_to_scan = 100,
		.sleep_ms = 20,
		.smart_scan = 1,
		.profit_bytes = 0,
		.ksmd_cpu_ns = 5000000000,
		.mem_total_kib = 16 * GIB_KIB,
		.mem_available_kib = 8 * GIB_KIB,
		.registered_processes = 4,
		.registered_kib = GIB_KIB,
		.news = 4,
	};
}

static void step_at(int64_t later_ms)
{
	sample.now_ms += later_ms;
	policy_step(&config, &state, &sample, &decision);
	ck_assert_uint_lt(decision.phase, POLICY_PHASES);
	ck_assert_uint_lt(decision.reason, POLICY_R_COUNT);
	produced[decision.reason]++;
	ck_assert_uint_gt(decision.next_look_ms, 0);
	sample.look_now = false;
	if (!decision.write)
		return;
	/* The kernel keeps what is written. */
	ck_assert(decision.run == 0 || decision.run == 1);
	ck_assert_int_ge(decision.pages_to_scan, 1);
	ck_assert_int_le(decision.pages_to_scan, 1000000);
	ck_assert_int_ge(decision.sleep_ms, 0);
	ck_assert_int_le(decision.sleep_ms, 60000);
	ck_assert_uint_le(decision.budget_ppm, 960000);
	sample.run = decision.run;
	sample.pages_to_scan = decision.pages_to_scan;
	sample.sleep_ms = decision.sleep_ms;
	if (decision.smart_scan >= 0)
		sample.smart_scan = decision.smart_scan;
	if (decision.use_zero_pages >= 0)
		sample.use_zero_pages = decision.use_zero_pages;
}

static void expect(enum policy_phase phase, enum policy_reason reason)
{
	ck_assert_msg(decision.phase == phase && decision.reason == reason, "%s: %s; not %s: %s",
		policy_phase_name(decision.phase), policy_reason_text(decision.reason),
		policy_phase_name(phase), policy_reason_text(reason));
	ck_assert_int_eq(decision.write, phase != POLICY_HOLD);
	if (phase == POLICY_PARKED)
		ck_assert_int_eq(decision.run, 0);
	else if (phase != POLICY_IDLE && phase != POLICY_HOLD)
		ck_assert_int_eq(decision.run, 1);
}

/* ksmd ends a pass over all that is registered, and merged so many pages more. */
static void pass(int64_t gain)
{
	int64_t scanned = sample.registered_kib > 0 ? sample.registered_kib / 4 : PAGES_PER_GIB;
	sample.full_scans++;
	sample.pages_sharing += gain;
	sample.pages_scanned += scanned;
	sample.ksmd_cpu_ns += scanned * 2000;
	step_at(700);
}

/* From the start to the rest, with half of all merged. */
static void come_to_rest(void)
{
	start();
	step_at(0);
	expect(POLICY_BOOST, POLICY_R_FIRST_LOOK);
	pass(0);
	pass(PAGES_PER_GIB / 2);
	pass(0);
	expect(POLICY_PARKED, POLICY_R_CONVERGED);
}

static void nothing_registered(void)
{
	start();
	sample.registered_processes = sample.registered_kib = sample.news = 0;
	step_at(0);
	expect(POLICY_IDLE, POLICY_R_NOTHING_REGISTERED);
	ck_assert_int_eq(decision.run, 0);
	ck_assert_uint_eq(decision.next_look_ms, config.rest_interval_ms);
	sample.registered_processes = sample.news = 1;
	sample.registered_kib = 64; /* little, but the first */
	step_at(1000);
	expect(POLICY_BOOST, POLICY_R_NEW_PROCESS);
	sample.registered_processes = sample.registered_kib = 0;
	step_at(200);
	expect(POLICY_IDLE, POLICY_R_NOTHING_REGISTERED);
}

static void boost_and_settle(void)
{
	start();
	step_at(0);
	expect(POLICY_BOOST, POLICY_R_FIRST_LOOK);
	ck_assert_uint_gt(decision.budget_ppm, config.boost_cpu_ppm * 9 / 10);
	ck_assert_uint_le(decision.budget_ppm, config.boost_cpu_ppm);
	ck_assert_uint_eq(decision.next_look_ms, config.interval_ms);
	pass(0); /* the first pass takes checksums only */
	expect(POLICY_BOOST, POLICY_R_GAINING);
	pass(PAGES_PER_GIB / 2);
	expect(POLICY_BOOST, POLICY_R_GAINING);
	pass(PAGES_PER_GIB / 100);
	expect(POLICY_SETTLE, POLICY_R_GAINING);
	uint32_t budget = state.settle_ppm;
	ck_assert_uint_le(budget, config.boost_cpu_ppm / 2);
	pass(PAGES_PER_GIB / 200);
	expect(POLICY_SETTLE, POLICY_R_GAINING);
	ck_assert_uint_eq(state.settle_ppm, budget / 2);
	pass(PAGES_PER_GIB / 1000); /* below `converged` */
	expect(POLICY_PARKED, POLICY_R_CONVERGED);
	ck_assert_uint_eq(decision.budget_ppm, 0);
	ck_assert_uint_eq(decision.next_look_ms, config.rest_interval_ms);
	for (int i = 0; i < 20; i++) { /* and it rests */
		step_at(1000);
		expect(POLICY_PARKED, POLICY_R_CONVERGED);
	}
}

static void late_twins(void)
{
	start();
	sample.pages_unshared = PAGES_PER_GIB / 2;
	step_at(0);
	ck_assert_int_eq(decision.smart_scan, 1);
	pass(0);
	expect(POLICY_BOOST, POLICY_R_LATE_TWINS);
	ck_assert_int_eq(decision.smart_scan, 0);
	config.smart_scan = 1; /* not ours to manage */
	step_at(200);
	ck_assert_int_eq(decision.smart_scan, 1);
	config.smart_scan = -1;
	step_at(200);
	ck_assert_int_eq(decision.smart_scan, -1);
}

static void news(void)
{
	come_to_rest();
	sample.registered_processes = 5;
	sample.news = 5;
	sample.registered_kib += GIB_KIB / 4;
	step_at(60000);
	expect(POLICY_BOOST, POLICY_R_NEW_PROCESS);

	come_to_rest(); /* one that takes the place of another */
	sample.news = 5;
	step_at(60000);
	expect(POLICY_BOOST, POLICY_R_NEW_PROCESS);

	come_to_rest();
	sample.registered_kib += 1024; /* too little to scan for */
	step_at(60000);
	expect(POLICY_PARKED, POLICY_R_CONVERGED);
	sample.registered_kib += GIB_KIB / 2;
	step_at(1000);
	expect(POLICY_BOOST, POLICY_R_GROWTH);

	come_to_rest();
	sample.registered_processes = 3;
	sample.registered_kib -= GIB_KIB / 4;
	step_at(60000); /* somebody left: nothing to merge */
	expect(POLICY_PARKED, POLICY_R_CONVERGED);
}

/* Rest for so long; it asks for no boost. */
static void rests(int64_t seconds)
{
	for (int64_t i = 0; i < seconds; i++) {
		step_at(1000);
		expect(POLICY_PARKED, POLICY_R_CONVERGED);
	}
}

static void growth_in_a_boost(void)
{
	start();
	step_at(0);
	sample.registered_kib += GIB_KIB / 10; /* too little to begin anew */
	step_at(200);
	expect(POLICY_BOOST, POLICY_R_FIRST_LOOK);
	pass(0);
	pass(PAGES_PER_GIB / 2);
	pass(PAGES_PER_GIB / 100);
	pass(0);
	expect(POLICY_PARKED, POLICY_R_CONVERGED);
	rests(100); /* two passes met it */

	sample.registered_kib -= GIB_KIB / 2; /* who left is not remembered: this is news */
	rests(1);
	sample.registered_kib += GIB_KIB / 4;
	step_at(1000);
	expect(POLICY_BOOST, POLICY_R_GROWTH);

	start();
	step_at(0);
	pass(0);
	pass(PAGES_PER_GIB / 2);
	sample.registered_kib += GIB_KIB / 10;
	pass(0);
	rests(1); /* for the boost before has to be rested for */
	step_at(60000);
	expect(POLICY_BOOST, POLICY_R_GROWTH); /* one pass met it */
}

static void asked(void)
{
	come_to_rest();
	sample.look_now = true;
	step_at(100);
	expect(POLICY_BOOST, POLICY_R_ASKED);
	step_at(200); /* asked once */
	expect(POLICY_BOOST, POLICY_R_ASKED);
	pass(0);
	expect(POLICY_BOOST, POLICY_R_GAINING);
}

/* Passes that gain nothing, until it rests: one more where the first began in the middle. */
static void dry_passes(void)
{
	for (int i = 0; i < 3 && decision.phase == POLICY_BOOST; i++)
		pass(0);
	expect(POLICY_PARKED, POLICY_R_NO_GAIN);
}

/* Boosts without a gain make the next one wait, and being asked does not. */
static void no_gain(void)
{
	int64_t last_wait_ms = 0;
	start();
	step_at(0);
	for (int i = 0; i < 4; i++) {
		dry_passes();
		sample.news++;
		sample.registered_processes++;
		sample.registered_kib += GIB_KIB / 4;
		int64_t wait_ms = 0;
		do {
			step_at(100);
			wait_ms += 100;
			ck_assert_int_lt(wait_ms, 700000);
		} while (decision.phase == POLICY_PARKED);
		expect(POLICY_BOOST, POLICY_R_NEW_PROCESS);
		ck_assert_int_ge(wait_ms, i ? last_wait_ms * 3 / 2 : 4000);
		last_wait_ms = wait_ms;
	}
	dry_passes();
	sample.look_now = true;
	step_at(100);
	expect(POLICY_BOOST, POLICY_R_ASKED);
}

/* Rest as long as it takes until a steady pass. Returns how long that was. */
static int64_t rest_until_pass(void)
{
	int64_t waited_ms = 0;
	while (decision.phase == POLICY_PARKED && waited_ms < 100000000) {
		step_at(1000);
		waited_ms += 1000;
	}
	expect(POLICY_STEADY, POLICY_R_PASS_DUE);
	ck_assert_int_eq(decision.smart_scan, 0);
	ck_assert_int_ge(waited_ms, (int64_t)config.pass_s * 1000);
	/* What a pass costs is paid for by the rest. */
	ck_assert_int_ge(waited_ms + 1000, state.pass_cost_ns / config.steady_cpu_ppm);
	return waited_ms;
}

static void steady(void)
{
	come_to_rest();
	int64_t waited_ms = rest_until_pass();
	pass(0);
	expect(POLICY_PARKED, POLICY_R_CONVERGED);

	come_to_rest(); /* where it does not pay, passes are rarer */
	sample.profit_bytes = -1;
	ck_assert_int_ge(rest_until_pass(), waited_ms * 2);
	pass(0);
	expect(POLICY_PARKED, POLICY_R_NO_PROFIT);

	come_to_rest();
	rest_until_pass();
	sample.pages_volatile = PAGES_PER_GIB / 4;
	pass(0);
	expect(POLICY_STEADY, POLICY_R_CHANGED);
	for (int i = 0; i < 2 && decision.phase == POLICY_STEADY; i++)
		pass(0); /* the first may have begun in the middle */
	expect(POLICY_PARKED, POLICY_R_CONVERGED);

	come_to_rest();
	rest_until_pass();
	pass(PAGES_PER_GIB / 50);
	expect(POLICY_SETTLE, POLICY_R_DRIFT);
	pass(0);
	expect(POLICY_PARKED, POLICY_R_CONVERGED);
}

static void blind(void)
{
	start();
	sample.registered_processes = sample.registered_kib = -1;
	sample.news = 0;
	step_at(0);
	expect(POLICY_IDLE, POLICY_R_NOTHING_REGISTERED);
	ck_assert_int_eq(decision.run, 1); /* ksmd sleeps until something registers */
	ck_assert_uint_le(decision.budget_ppm, config.steady_cpu_ppm * 2);
	sample.pages_volatile = PAGES_PER_GIB / 4;
	step_at(1000);
	expect(POLICY_BOOST, POLICY_R_NEW_PROCESS);
	pass(0);
	pass(PAGES_PER_GIB / 4);
	for (int i = 0; i < 20 && decision.phase != POLICY_STEADY; i++)
		pass(0);
	ck_assert_int_eq(decision.phase, POLICY_STEADY);
	ck_assert_int_eq(decision.run, 1);
	pass(0);
	expect(POLICY_STEADY, POLICY_R_BLIND);
	ck_assert_uint_le(decision.budget_ppm, config.steady_cpu_ppm * 2);
	sample.pages_unshared += PAGES_PER_GIB;
	step_at(60000);
	expect(POLICY_BOOST, POLICY_R_NEW_PROCESS);
}

static void memory_pressure(void)
{
	come_to_rest();
	sample.memory_psi_centi = config.pressure_psi_centi;
	step_at(1000);
	expect(POLICY_PRESSURE, POLICY_R_MEMORY_PRESSURE);
	ck_assert_uint_le(decision.budget_ppm, config.pressure_cpu_ppm);
	pass(PAGES_PER_GIB / 50);
	expect(POLICY_PRESSURE, POLICY_R_MEMORY_PRESSURE);
	pass(0);
	expect(POLICY_PARKED, POLICY_R_NO_GAIN);
	for (int i = 0; i < 59; i++) { /* it does not run for nothing */
		step_at(1000);
		ck_assert_int_eq(decision.phase, POLICY_PARKED);
	}
	step_at(1000);
	expect(POLICY_PRESSURE, POLICY_R_MEMORY_PRESSURE);
	sample.memory_psi_centi = 0;
	step_at(1000);
	expect(POLICY_SETTLE, POLICY_R_GAINING);
	pass(0);
	expect(POLICY_PARKED, POLICY_R_CONVERGED);
	sample.mem_available_kib = sample.mem_total_kib / 20;
	step_at(1000);
	expect(POLICY_PRESSURE, POLICY_R_MEMORY_PRESSURE);

	come_to_rest(); /* what is not known is no pressure */
	sample.mem_total_kib = sample.mem_available_kib = sample.memory_psi_centi = -1;
	step_at(1000);
	expect(POLICY_PARKED, POLICY_R_CONVERGED);
}

/* While processes wait for the CPU the boost takes half, and then a quarter. */
static void cpu_pressure(void)
{
	start();
	step_at(0);
	uint32_t full = decision.budget_ppm;
	sample.cpu_psi_centi = config.cpu_psi_centi;
	step_at(200);
	ck_assert_int_eq(decision.phase, POLICY_BOOST);
	ck_assert_uint_le(decision.budget_ppm, full / 2 + full / 20);
	sample.cpu_psi_centi *= 2;
	step_at(200);
	ck_assert_uint_le(decision.budget_ppm, full / 4 + full / 20);
	ck_assert_uint_gt(decision.budget_ppm, full / 8);
	sample.cpu_psi_centi = 0;
	step_at(200);
	ck_assert_uint_gt(decision.budget_ppm, full * 9 / 10);
}

static void foreign(void)
{
	for (int knob = 0; knob < 6; knob++) {
		start();
		step_at(0);
		int64_t *const knobs[] = { &sample.pages_to_scan, &sample.sleep_ms,
			&sample.smart_scan, &sample.use_zero_pages, &sample.run, &sample.advisor };
		*knobs[knob] = knob == 2 || knob == 3 ? !*knobs[knob] : knob == 5 ? 1 : 2;
		step_at(200);
		expect(POLICY_HOLD, POLICY_R_FOREIGN);
		/* Where it is not ksmd's rate alone, nobody comes back by himself. */
		for (int i = 0; knob >= 4 && i < 10000; i++) {
			step_at(1000);
			expect(POLICY_HOLD, POLICY_R_FOREIGN);
		}
	}
}

static int64_t hold_ms(void)
{
	int64_t waited_ms = 0;
	expect(POLICY_HOLD, POLICY_R_FOREIGN);
	while (decision.phase == POLICY_HOLD && waited_ms < 100000000) {
		step_at(1000);
		waited_ms += 1000;
	}
	expect(POLICY_BOOST, POLICY_R_FIRST_LOOK);
	return waited_ms;
}

static void foreign_retry(void)
{
	start();
	step_at(0);
	int64_t wait_ms = (int64_t)config.foreign_retry_s * 1000;
	for (int i = 0; i < 10; i++) { /* longer each time, but not for ever */
		sample.pages_to_scan = 12345 + i;
		step_at(200);
		int64_t waited_ms = hold_ms();
		ck_assert_int_eq(waited_ms, wait_ms << (i < 6 ? i : 6));
	}
	sample.pages_to_scan = 1;
	step_at(200);
	for (int i = 0; i < 10000; i++) { /* somebody who goes on writing is left alone */
		sample.pages_to_scan = i + 1;
		step_at(1000);
		expect(POLICY_HOLD, POLICY_R_FOREIGN);
	}
	/* A value that this kernel does not have is no sign of anybody. */
	start();
	sample.smart_scan = sample.use_zero_pages = sample.advisor = -1;
	step_at(0);
	ck_assert_int_eq(decision.smart_scan, -1);
	ck_assert_int_eq(decision.use_zero_pages, -1);
	step_at(200);
	ck_assert_int_eq(decision.phase, POLICY_BOOST);
	/* Nor is one that could not be written. */
	policy_forget_written(&state);
	sample.pages_to_scan = 77;
	step_at(200);
	ck_assert_int_eq(decision.phase, POLICY_BOOST);
}

static void stale(void)
{
	come_to_rest();
	sample.stale = true;
	for (int i = 0; i < 5; i++) {
		step_at(1000);
		expect(POLICY_HOLD, POLICY_R_STALE);
	}
	sample.stale = false;
	step_at(1000);
	expect(POLICY_PARKED, POLICY_R_CONVERGED); /* as if nothing had been */

	start(); /* from the first look on */
	sample.stale = true;
	step_at(0);
	expect(POLICY_HOLD, POLICY_R_STALE);
	sample.stale = false;
	step_at(1000);
	expect(POLICY_BOOST, POLICY_R_FIRST_LOOK);
}

static void counter_reset(void)
{
	come_to_rest();
	sample.full_scans = 0;
	sample.pages_sharing = 0;
	step_at(1000);
	expect(POLICY_BOOST, POLICY_R_COUNTER_RESET);
}

static void (*const examples[])(void) = { nothing_registered, boost_and_settle, late_twins, news,
	growth_in_a_boost, asked, no_gain, steady, blind, memory_pressure, cpu_pressure, foreign,
	foreign_retry, stale, counter_reset };
#define EXAMPLES (sizeof(examples) / sizeof(*examples))

START_TEST(example)
{
	examples[_i]();
}
END_TEST

/* A reason that no example comes to is dead, or not tested. */
START_TEST(every_reason)
{
	memset(produced, 0, sizeof(produced));
	for (size_t i = 0; i < EXAMPLES; i++)
		examples[i]();
	for (int reason = 0; reason < POLICY_R_COUNT; reason++)
		ck_assert_msg(produced[reason] > 0, "never produced: %d, %s", reason,
			policy_reason_text((enum policy_reason)reason));
}
END_TEST

START_TEST(words)
{
	for (int i = 0; i < POLICY_PHASES; i++) {
		ck_assert_ptr_nonnull(policy_phase_name((enum policy_phase)i));
		for (int j = 0; j < i; j++)
			ck_assert_str_ne(policy_phase_name((enum policy_phase)i),
				policy_phase_name((enum policy_phase)j));
	}
	for (int i = 0; i < POLICY_R_COUNT; i++) {
		const char *text = policy_reason_text((enum policy_reason)i);
		ck_assert_ptr_nonnull(text);
		/* The state files are lines with fields divided by tabs. */
		ck_assert_msg(*text && !strpbrk(text, "\t\n=|"), "%s", text);
		for (int j = 0; j < i; j++)
			ck_assert_str_ne(text, policy_reason_text((enum policy_reason)j));
	}
	ck_assert_str_eq(policy_phase_name(POLICY_PHASES), "unknown");
	ck_assert_str_eq(policy_reason_text(POLICY_R_COUNT), "unknown");
}
END_TEST

static uint64_t random_state;

static uint64_t random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

/* Mostly the ends of what 64 bits hold, sometimes what a kernel would say. */
static int64_t extreme(void)
{
	static const int64_t values[] = { INT64_MIN, INT64_MIN + 1, -1, 0, 1, 2, 4096, INT32_MAX,
		INT64_MAX / 4, INT64_MAX / 2, INT64_MAX - 1, INT64_MAX };
	uint64_t r = random64();
	return r % 4 ? values[(r >> 8) % (sizeof(values) / sizeof(*values))]
		     : (int64_t)(random64() >> (r >> 8) % 64);
}

/* Nothing that can be read may lead out of bounds, or to what the language does not define. */
START_TEST(extremes)
{
	random_state = 0x9e3779b97f4a7c15u + (uint64_t)_i;
	start();
	for (int i = 0; i < 20000; i++) {
		int64_t *const fields[] = { &sample.pages_shared, &sample.pages_sharing,
			&sample.zero_pages, &sample.pages_unshared, &sample.pages_volatile,
			&sample.pages_skipped, &sample.pages_scanned, &sample.full_scans,
			&sample.profit_bytes, &sample.ksmd_cpu_ns, &sample.mem_total_kib,
			&sample.mem_available_kib, &sample.memory_psi_centi, &sample.cpu_psi_centi,
			&sample.registered_processes, &sample.registered_kib, &sample.news,
			&sample.run, &sample.pages_to_scan, &sample.sleep_ms, &sample.smart_scan,
			&sample.use_zero_pages, &sample.advisor };
		for (uint64_t n = random64() % 4; n; n--) /* rarely a knob: that only holds it */
			*fields[random64() % (random64() % 64 ? 17 : 23)] = extreme();
		sample.look_now = random64() % 16 == 0;
		sample.stale = random64() % 64 == 0;
		/* Time is the clock's: it goes on, though perhaps by years. */
		step_at(random64() % 64 ? (int64_t)(random64() % 2000)
					: (int64_t)(random64() >> 20));
		if (sample.now_ms > INT64_MAX / 2)
			start();
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("policy");
	TCase *tcase = tcase_create("policy");

	tcase_set_timeout(tcase, 120);
	suite_add_tcase(suite, tcase);
	tcase_add_loop_test(tcase, example, 0, EXAMPLES);
	tcase_add_test(tcase, every_reason);
	tcase_add_test(tcase, words);
	tcase_add_loop_test(tcase, extremes, 0, 8);
	return tap_run(suite);
}
