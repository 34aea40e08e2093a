/* Runs the policy through all simulated stories; `test_sim SCENARIO SEED [-v]` through one. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"
#include "tests/tap.h"

static int test_compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* What came out of all seeds of a scenario. */
struct test_figures {
	int64_t *reached_ms, *cpu_ms, *rest_ppm;
	struct {
		const char *format;
		char text[SIM_FAILURE];
		uint32_t seeds, first;
	} broken[SIM_FAILURES];
	uint32_t failed;
};

static int64_t test_middle(int64_t *values, uint32_t count)
{
	qsort(values, count, sizeof *values, test_compare);
	return values[count / 2];
}

/* For people who tune: how soon, how much CPU in all, and the last quarter's average. */
static void test_tell(const struct sim_scenario *scenario, struct test_figures *f)
{
	uint32_t n = scenario->seeds;
	long long reached_ms = test_middle(f->reached_ms, n), cpu_ms = test_middle(f->cpu_ms, n);
	long long rest_ppm = test_middle(f->rest_ppm, n);

	printf("# %s: %s; %u seeds, median and worst: t95 %lld %lld ms, ksmd %lld %lld ms, last "
	       "quarter %lld %lld ppm\n",
		scenario->name, scenario->story, n, reached_ms, (long long)f->reached_ms[n - 1],
		cpu_ms, (long long)f->cpu_ms[n - 1], rest_ppm, (long long)f->rest_ppm[n - 1]);
	for (int i = 0; i < SIM_FAILURES && f->broken[i].format; i++)
		printf("#   %u of %u seeds, first `test_sim %s %u -v`: %s\n", f->broken[i].seeds, n,
			scenario->name, f->broken[i].first, f->broken[i].text);
}

static void test_count(struct test_figures *f, const struct sim *sim)
{
	for (uint32_t i = 0; i < sim->failures; i++) {
		int slot = 0;

		while (slot < SIM_FAILURES - 1 && f->broken[slot].format &&
			f->broken[slot].format != sim->failure[i].format)
			slot++;
		if (!f->broken[slot].format) {
			f->broken[slot].format = sim->failure[i].format;
			f->broken[slot].first = (uint32_t)sim->seed;
			memcpy(f->broken[slot].text, sim->failure[i].text, SIM_FAILURE);
		}
		f->broken[slot].seeds++;
	}
	f->failed += sim->failures != 0;
}

static void test_scenario(const struct sim_scenario *scenario)
{
	struct test_figures f = {
		.reached_ms = calloc(scenario->seeds, sizeof(int64_t)),
		.cpu_ms = calloc(scenario->seeds, sizeof(int64_t)),
		.rest_ppm = calloc(scenario->seeds, sizeof(int64_t)),
	};

	ck_assert(f.reached_ms && f.cpu_ms && f.rest_ppm);
	for (uint32_t seed = 0; seed < scenario->seeds; seed++) {
		struct sim *sim = sim_run(scenario, seed, false);

		test_count(&f, sim);
		f.reached_ms[seed] = sim->reached_ms;
		f.cpu_ms[seed] = sim->model->cpu_ns / 1000000;
		f.rest_ppm[seed] = sim_average_ppm(sim, sim->seconds * 3 / 4, sim->seconds);
		sim_free(sim);
	}
	test_tell(scenario, &f);
	free(f.reached_ms);
	free(f.cpu_ms);
	free(f.rest_ppm);
	fflush(stdout);
	ck_assert_msg(
		!f.failed, "%s: %u of %u seeds failed", scenario->name, f.failed, scenario->seeds);
}

/* Four jobs of 256 MiB, as measured once on 6.18. Returns the time to 95 % of the saving. */
static int64_t test_model_t95_ms(int64_t pages_to_scan, int64_t sleep_ms)
{
	struct model_params params = model_defaults;
	struct model *model;
	uint32_t group;
	int64_t t95_ms;

	params.chunk_pages = 16;
	model = model_new(&params);
	group = model_group(model, 26214, false);
	for (int i = 0; i < 4; i++) {
		uint32_t job = model_process(model);

		model_map(model, job, MODEL_EQUAL, group, 0, 26214);
		model_map(model, job, MODEL_ZERO, 0, 0, 6553);
		model_map(model, job, MODEL_UNIQUE, 0, 0, 19660);
		model_map_volatile(model, job, 13107, 1000);
	}
	model_set_pages(model, pages_to_scan);
	model_set_sleep(model, sleep_ms);
	model_set_run(model, 1);
	while (model->saved * 100 < model->possible * 95 && model->now_ns < 1000000000000)
		model_advance(model, model->now_ns + 20000000);
	t95_ms = model->now_ns / 1000000;
	printf("# model: %lld pages, %lld ms: t95 %lld ms, %lld ms of CPU\n",
		(long long)pages_to_scan, (long long)sleep_ms, (long long)t95_ms,
		(long long)model->cpu_ns / 1000000);
	fflush(stdout);
	model_free(model);
	return t95_ms;
}

START_TEST(test_model)
{
	/* The kernel's defaults took 117 s, the scanner wide open 2.5 s (2.15 s of CPU). */
	int64_t slow_ms = test_model_t95_ms(100, 20), fast_ms = test_model_t95_ms(50000, 1);

	ck_assert_msg(
		slow_ms > 100000 && slow_ms < 134000, "defaults: %lld ms", (long long)slow_ms);
	ck_assert_msg(fast_ms > 1200 && fast_ms < 3000, "wide open: %lld ms", (long long)fast_ms);
}
END_TEST

START_TEST(test_story)
{
	test_scenario(sim_scenarios[_i]);
}
END_TEST

static Suite *test_suite(void)
{
	Suite *suite = suite_create("sim");
	TCase *model = tcase_create("model");

	tcase_add_test(model, test_model);
	suite_add_tcase(suite, model);
	for (int i = 0; sim_scenarios[i]; i++) {
		TCase *tcase = tcase_create(sim_scenarios[i]->name);

		tcase_set_timeout(tcase, 120);
		tcase_add_loop_test(tcase, test_story, i, i + 1);
		suite_add_tcase(suite, tcase);
	}
	return suite;
}

static int test_one(const char *name, uint64_t seed, bool verbose)
{
	for (int i = 0; sim_scenarios[i]; i++) {
		struct sim *sim;
		uint32_t failures;

		if (strcmp(sim_scenarios[i]->name, name) != 0)
			continue;
		sim = sim_run(sim_scenarios[i], seed, verbose);
		failures = sim->failures;
		printf("%s %llu: %s\n", name, (unsigned long long)seed, failures ? "failed" : "ok");
		for (uint32_t n = 0; n < failures; n++)
			printf("  %s\n", sim->failure[n].text);
		printf("saved %lld of %lld pages, t95 %lld ms, ksmd %lld ms, last quarter %lld "
		       "ppm, %u "
		       "looks, %u writes\n",
			(long long)sim->model->saved, (long long)sim->model->possible,
			(long long)sim->reached_ms, (long long)(sim->model->cpu_ns / 1000000),
			(long long)sim_average_ppm(sim, sim->seconds * 3 / 4, sim->seconds),
			sim->looks, sim->writes);
		sim_free(sim);
		return failures != 0;
	}
	fprintf(stderr, "test_sim: no scenario %s; there are:\n", name);
	for (int i = 0; sim_scenarios[i]; i++)
		fprintf(stderr, "  %-12s %s\n", sim_scenarios[i]->name, sim_scenarios[i]->story);
	return 2;
}

int main(int argc, char **argv)
{
	bool verbose = argc > 3 && strcmp(argv[3], "-v") == 0;

	if (argc > 1)
		return test_one(argv[1], argc > 2 ? strtoull(argv[2], NULL, 10) : 0, verbose);
	return tap_run(test_suite());
}
