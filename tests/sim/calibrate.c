/* Compares the model of ksmd with the kernel's: same memory, same knobs, same course of events? */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/live/guard.h"
#include "tests/sim/model.h"
#include "tests/sim/real.h"
#include "tests/tap.h"

enum { CALIBRATE_PERCENT = 20, MIB = 256 };

static const struct real_workload calibrate_workloads[] = {
	{ .name = "equal 1000/20",
		.process = { { .equal = 64 * MIB }, { .equal = 64 * MIB } },
		.pages_to_scan = 1000,
		.sleep_ms = 20,
		.end_ms = 4000 },
	{ .name = "defaults 100/20",
		.process = { { .equal = 8 * MIB }, { .equal = 8 * MIB } },
		.pages_to_scan = 100,
		.sleep_ms = 20,
		.smart_scan = true,
		.end_ms = 4000 },
	{ .name = "mixed, smart",
		.process = { { 0, 6554, 1638, 4915, 3277 }, { 0, 6554, 1638, 4915, 3277 },
			{ 0, 6554, 1638, 4915, 3277 }, { 0, 6554, 1638, 4915, 3277 } },
		.period_ms = 1000,
		.pages_to_scan = 2000,
		.sleep_ms = 20,
		.smart_scan = true,
		.use_zero_pages = true,
		.end_ms = 8000 },
	{ .name = "mixed, plain",
		.process = { { 0, 6554, 1638, 4915, 3277 }, { 0, 6554, 1638, 4915, 3277 },
			{ 0, 6554, 1638, 4915, 3277 }, { 0, 6554, 1638, 4915, 3277 } },
		.period_ms = 1000,
		.pages_to_scan = 2000,
		.sleep_ms = 20,
		.end_ms = 8000 },
	{ .name = "joiner in mid-pass",
		.process = { { .equal = 48 * MIB, .unique = 16 * MIB },
			{ .equal = 48 * MIB, .unique = 16 * MIB },
			{ .equal = 48 * MIB, .unique = 16 * MIB, .start_ms = 3500 } },
		.pages_to_scan = 1000,
		.sleep_ms = 20,
		.smart_scan = true,
		.measure_from_ms = 3500,
		.end_ms = 8000 },
	{ .name = "late twin of aged pages",
		.process = { { .equal = 16 * MIB }, { .equal = 16 * MIB, .start_ms = 4000 } },
		.pages_to_scan = 500,
		.sleep_ms = 20,
		.smart_scan = true,
		.measure_from_ms = 4000,
		.end_ms = 9000 },
	{ .name = "wide open",
		.process = { { .equal = 64 * MIB, .unique = 64 * MIB },
			{ .equal = 64 * MIB, .unique = 64 * MIB },
			{ .equal = 64 * MIB, .unique = 64 * MIB } },
		.pages_to_scan = 5000,
		.sleep_ms = 1,
		.smart_scan = true,
		.end_ms = 3000 },
};
enum { CALIBRATE_COUNT = sizeof calibrate_workloads / sizeof *calibrate_workloads };

/* What is compared. */
struct calibrate_result {
	int64_t t95_ms, scanned, saved, skipped, full_scans;
	int64_t ns_per_page;
};

static void calibrate_result(const struct real_workload *workload, const struct real_record *record,
	struct calibrate_result *result)
{
	uint32_t last = record->points - 1;
	int64_t before = 0;

	*result = (struct calibrate_result){
		.t95_ms = -1,
		.scanned = record->scanned_pages[last],
		.saved = record->saved_pages[last],
		.skipped = record->skipped_pages[last],
		.full_scans = record->full_scans[last],
	};
	if (result->scanned)
		result->ns_per_page = record->cpu_ns[last] / result->scanned;
	for (uint32_t i = 0; i <= last; i++) {
		if (record->at_ms[i] <= (int64_t)workload->measure_from_ms) {
			before = record->saved_pages[i];
			continue;
		}
		/* Of what is gained from then on. */
		if ((record->saved_pages[i] - before) * 100 < (result->saved - before) * 95)
			continue;
		result->t95_ms = record->at_ms[i] - workload->measure_from_ms;
		return;
	}
}

static void calibrate_start(
	struct model *model, const struct real_process *process, uint32_t group, uint32_t period_ms)
{
	uint32_t number;

	if (!process->equal && !process->zero && !process->unique && !process->volatiles)
		return;
	number = model_process(model);
	model_map(model, number, MODEL_EQUAL, group, 0, process->equal);
	model_map(model, number, MODEL_ZERO, 0, 0, process->zero);
	model_map(model, number, MODEL_UNIQUE, 0, 0, process->unique);
	model_map_volatile(model, number, process->volatiles, period_ms);
}

static void calibrate_point(const struct model *model, struct real_record *record)
{
	struct model_counters c;
	uint32_t n = record->points++;

	model_counters(model, &c);
	record->at_ms[n] = model->now_ns / 1000000;
	record->saved_pages[n] = c.pages_sharing + c.zero_pages;
	record->scanned_pages[n] = c.pages_scanned;
	record->skipped_pages[n] = c.pages_skipped;
	record->full_scans[n] = c.full_scans;
	record->cpu_ns[n] = c.cpu_ns;
}

/* The kernel's tick, which is not the clock tick of sysconf(). */
static uint32_t calibrate_tick_us(void)
{
	struct timespec tick = { 0 };

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	return (uint32_t)(tick.tv_nsec / 1000);
}

static void calibrate_model(const struct real_workload *workload, int64_t cost_permille,
	int64_t share_ppm, struct real_record *record)
{
	struct model_params params = model_defaults;
	uint32_t costs[sizeof(params.cost) / sizeof(uint32_t)], group;
	struct model *model;

	_Static_assert(sizeof(costs) == sizeof(params.cost), "costs are all uint32_t");
	memcpy(costs, &params.cost, sizeof(costs));
	for (size_t i = 0; i < sizeof(costs) / sizeof(*costs); i++)
		costs[i] = (uint32_t)(costs[i] * cost_permille / 1000);
	memcpy(&params.cost, costs, sizeof(costs));
	params.jiffy_us = calibrate_tick_us();
	model = model_new(&params);
	model->share_ppm = (uint32_t)share_ppm;
	group = model_group(model, 65536, false);
	model->smart_scan = workload->smart_scan;
	model->use_zero_pages = workload->use_zero_pages;
	model_set_pages(model, workload->pages_to_scan);
	model_set_sleep(model, workload->sleep_ms);
	for (int i = 0; i < REAL_PROCESSES; i++)
		if (!workload->process[i].start_ms)
			calibrate_start(model, &workload->process[i], group, workload->period_ms);
	memset(record, 0, sizeof *record);
	calibrate_point(model, record);
	model_set_run(model, 1);
	for (int64_t at = REAL_STEP_MS; at <= workload->end_ms; at += REAL_STEP_MS) {
		for (int i = 0; i < REAL_PROCESSES; i++)
			if (workload->process[i].start_ms &&
				at - REAL_STEP_MS == workload->process[i].start_ms)
				calibrate_start(
					model, &workload->process[i], group, workload->period_ms);
		model_advance(model, at * 1000000);
		calibrate_point(model, record);
	}
	model_free(model);
}

static bool calibrate_near(int64_t model, int64_t real)
{
	/* A batch and a sleep more or less, and the grid of looks, are no difference. */
	return llabs(model - real) * 100 <= real * CALIBRATE_PERCENT ||
	       llabs(model - real) <= 2 * REAL_STEP_MS;
}

static void calibrate_print(const char *who, const struct calibrate_result *r)
{
	printf("#   %-6s t95 %5lld ms  scanned %8lld  skipped %8lld  passes %3lld  saved %7lld  "
	       "%5lld ns/page\n",
		who, (long long)r->t95_ms, (long long)r->scanned, (long long)r->skipped,
		(long long)r->full_scans, (long long)r->saved, (long long)r->ns_per_page);
}

static void calibrate_series(const struct real_record *real, const struct real_record *model)
{
	if (!getenv("CALIBRATE_SERIES"))
		return;
	for (uint32_t i = 0; i < real->points && i < model->points; i += 5)
		printf("#     %5lld ms: saved %7lld %7lld scanned %8lld %8lld skipped %7lld %7lld "
		       "full %lld %lld cpu ms %lld %lld\n",
			(long long)real->at_ms[i], (long long)real->saved_pages[i],
			(long long)model->saved_pages[i], (long long)real->scanned_pages[i],
			(long long)model->scanned_pages[i], (long long)real->skipped_pages[i],
			(long long)model->skipped_pages[i], (long long)real->full_scans[i],
			(long long)model->full_scans[i], (long long)real->cpu_ns[i] / 1000000,
			(long long)model->cpu_ns[i] / 1000000);
}

static int64_t calibrate_share_ppm(const struct real_record *record)
{
	int64_t cpu_ns = record->cpu_ns[record->points - 1];

	return cpu_ns * 1000000 / (cpu_ns + record->waited_ns + 1);
}

/* On the kernel. 0, -EBUSY when others took part, or -errno. */
static int calibrate_real(const struct real_workload *workload, struct real_record *record)
{
	int err = guard_take(), restored;

	if (err)
		return err;
	err = real_run(workload, record);
	restored = guard_release();
	/* Where ksmd has to wait for a core, times tell nothing of ksmd. */
	if (!err && (record->disturbed || calibrate_share_ppm(record) < 850000))
		err = -EBUSY;
	return restored ? restored : err;
}

START_TEST(test_workload)
{
	const struct real_workload *workload = &calibrate_workloads[_i];
	static struct real_record real, model;
	struct calibrate_result r, m;
	int64_t permille = 1000, share_ppm;
	int err = -EBUSY;

	for (int tries = 0; err == -EBUSY && tries < 5; tries++)
		err = calibrate_real(workload, &real);
	if (err == -EBUSY || err == -ENOENT || err == -EACCES || err == -EROFS) {
		tap_skip("%s: %s", workload->name,
			err == -EBUSY ? "other programs took part or took the cores"
				      : strerror(-err));
		return;
	}
	ck_assert_msg(!err, "%s: %s", workload->name, strerror(-err));
	calibrate_result(workload, &real, &r);
	share_ppm = calibrate_share_ppm(&real);
	/* The machine's speed is a parameter of the model; what ksmd does with it is not. */
	for (int i = 0; i < 4; i++) {
		calibrate_model(workload, permille, share_ppm, &model);
		calibrate_result(workload, &model, &m);
		if (m.ns_per_page)
			permille = permille * r.ns_per_page / m.ns_per_page;
	}
	printf("# %s: costs x %.2f, ksmd got %lld %% of a core when it wanted one\n",
		workload->name, (double)permille / 1000, (long long)share_ppm / 10000);
	calibrate_print("kernel", &r);
	calibrate_print("model", &m);
	calibrate_series(&real, &model);
	fflush(stdout);
	ck_assert_msg(r.saved > 0 && r.t95_ms > 0, "nothing was merged");
	ck_assert_msg(calibrate_near(m.t95_ms, r.t95_ms),
		"t95 differs: kernel %lld ms, model %lld ms", (long long)r.t95_ms,
		(long long)m.t95_ms);
	ck_assert_msg(calibrate_near(m.scanned, r.scanned), "scanned: kernel %lld, model %lld",
		(long long)r.scanned, (long long)m.scanned);
	ck_assert_msg(llabs(m.saved - r.saved) * 100 <= r.saved * 2,
		"saved: kernel %lld, model %lld", (long long)r.saved, (long long)m.saved);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("calibrate");
	TCase *tcase = tcase_create("kernel and model");

	tcase_set_timeout(tcase, 300); /* the lock may be taken */
	tcase_add_loop_test(tcase, test_workload, 0, CALIBRATE_COUNT);
	suite_add_tcase(suite, tcase);
	return tap_run(suite);
}
