/* Runs the policy against the model: samples as a daemon would read them, writes as it would do. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

uint64_t sim_random(struct sim *sim)
{
	uint64_t z = sim->random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

int64_t sim_between(struct sim *sim, int64_t low, int64_t high)
{
	return low + (int64_t)(sim_random(sim) % (uint64_t)(high - low + 1));
}

bool sim_chance(struct sim *sim, int percent)
{
	return sim_between(sim, 1, 100) <= percent;
}

int64_t sim_now_ms(const struct sim *sim)
{
	return sim->model->now_ns / 1000000;
}

void sim_fail(struct sim *sim, const char *format, ...)
{
	struct sim_failure *failure = &sim->failure[sim->failures];
	va_list args;

	for (uint32_t i = 0; i < sim->failures; i++)
		if (sim->failure[i].format == format)
			return;
	if (sim->failures == SIM_FAILURES)
		return;
	sim->failures++;
	failure->format = format;
	va_start(args, format);
	vsnprintf(failure->text, sizeof failure->text, format, args);
	va_end(args);
	if (sim->verbose)
		printf("# FAILED at %.1f s: %s\n", (double)sim_now_ms(sim) / 1000, failure->text);
}

static void sim_sample(struct sim *sim, struct policy_sample *sample)
{
	struct model *model = sim->model;
	struct model_counters c;
	int64_t used;

	sim_see(sim, sim_now_ms(sim));
	model_counters(model, &c);
	used = 4 * (c.resident_pages - c.saved_pages + c.zero_pages) + sim->mem_other_kib;
	*sample = (struct policy_sample){
		.now_ms = sim_now_ms(sim),
		.stale = sim->stale,
		.run = model->run,
		.pages_to_scan = model->pages_to_scan,
		.sleep_ms = model->sleep_ms,
		.smart_scan = sim->no_smart_scan ? -1 : model->smart_scan,
		.use_zero_pages = model->use_zero_pages,
		.advisor = sim->advisor,
		.pages_shared = c.pages_shared,
		.pages_sharing = c.pages_sharing,
		.zero_pages = sim->no_scanned ? -1 : c.zero_pages,
		.pages_unshared = c.pages_unshared,
		.pages_volatile = c.pages_volatile,
		.pages_skipped = sim->no_smart_scan ? -1 : c.pages_skipped,
		.pages_scanned = sim->no_scanned ? -1 : c.pages_scanned,
		.full_scans = c.full_scans,
		.profit_bytes = sim->no_profit ? INT64_MIN : c.profit_bytes,
		.ksmd_cpu_ns = sim->no_cpu ? -1 : c.cpu_ns,
		.mem_total_kib = sim->mem_total_kib,
		.mem_available_kib = used < sim->mem_total_kib ? sim->mem_total_kib - used : 0,
		.memory_psi_centi = sim->no_psi ? -1 : sim->memory_psi_centi,
		.cpu_psi_centi = sim->no_psi ? -1 : sim->cpu_psi_centi,
		.registered_processes = sim->seen.processes,
		.registered_kib =
			4 * (sim->seen.pages > c.zero_pages ? sim->seen.pages - c.zero_pages : 0),
		.news = sim->seen.news,
		.look_now = sim->look_now,
	};
	sim->look_now = false;
}

/* What must hold for every decision. */
static void sim_check_decision(struct sim *sim, const struct policy_sample *sample)
{
	const struct policy_decision *d = &sim->decision;

	if ((unsigned)d->phase >= POLICY_PHASES || (unsigned)d->reason >= POLICY_R_COUNT)
		sim_fail(sim, "phase %d, reason %d", (int)d->phase, (int)d->reason);
	if (d->next_look_ms < 10 || d->next_look_ms > 600000)
		sim_fail(sim, "next look in %u ms", d->next_look_ms);
	if (sample->stale && d->write)
		sim_fail(sim, "writes on a stale sample");
	if (d->phase == POLICY_HOLD && d->write &&
		(d->reason == POLICY_R_FOREIGN || d->reason == POLICY_R_STALE))
		sim_fail(sim, "writes while holding");
	if (!d->write)
		return;
	if (d->run < 0 || d->run > 1)
		sim_fail(sim, "run %lld", (long long)d->run);
	if (d->pages_to_scan < 1 || d->pages_to_scan > UINT32_MAX)
		sim_fail(sim, "pages_to_scan %lld", (long long)d->pages_to_scan);
	if (d->sleep_ms < 1 || d->sleep_ms > 3600000)
		sim_fail(sim, "sleep %lld ms", (long long)d->sleep_ms);
	if (d->smart_scan < -1 || d->smart_scan > 1 || d->use_zero_pages < -1 ||
		d->use_zero_pages > 1)
		sim_fail(sim, "smart_scan %lld, use_zero_pages %lld", (long long)d->smart_scan,
			(long long)d->use_zero_pages);
	if (sim->no_smart_scan && d->smart_scan >= 0)
		sim_fail(sim, "sets smart_scan where there is none");
}

static void sim_write(struct sim *sim)
{
	const struct policy_decision *d = &sim->decision;
	struct model *model = sim->model;
	uint32_t before = sim->writes;

	if (!d->write)
		return;
	sim->allowed_ppm = d->budget_ppm;
	sim->advisor = sim->advisor > 0 ? 0 : sim->advisor; /* the daemon takes it over */
	if (d->pages_to_scan != model->pages_to_scan)
		sim->writes++;
	model_set_pages(model, d->pages_to_scan);
	if (d->sleep_ms != model->sleep_ms)
		sim->writes++;
	model_set_sleep(model, d->sleep_ms);
	if (d->smart_scan >= 0 && (d->smart_scan != 0) != model->smart_scan) {
		model->smart_scan = d->smart_scan != 0;
		sim->writes++;
	}
	if (d->use_zero_pages >= 0 && (d->use_zero_pages != 0) != model->use_zero_pages) {
		model->use_zero_pages = d->use_zero_pages != 0;
		sim->writes++;
	}
	if (d->run != model->run) {
		model_set_run(model, d->run);
		sim->writes++;
	}
	if (sim->foreign_ms && sim->writes > before)
		sim->writes_after_foreign++;
}

static bool sim_same(const struct policy_decision *a, const struct policy_decision *b)
{
	return a->phase == b->phase && a->reason == b->reason && a->write == b->write &&
	       a->run == b->run && a->pages_to_scan == b->pages_to_scan &&
	       a->sleep_ms == b->sleep_ms && a->smart_scan == b->smart_scan &&
	       a->use_zero_pages == b->use_zero_pages && a->budget_ppm == b->budget_ppm &&
	       a->next_look_ms == b->next_look_ms;
}

static void sim_tell(const struct sim *sim, const struct policy_sample *s)
{
	const struct policy_decision *d = &sim->decision;
	const struct model *model = sim->model;

	printf("%9.2f %-8s %c run %lld %7lld/%-5lld smart %2lld budget %6u next %6u | saved %7lld "
	       "of "
	       "%7lld unshared %7lld volatile %7lld scanned %9lld full %4lld at %u.%u cpu %8.3f | "
	       "procs %lld news %lld kib %lld | %s\n",
		(double)s->now_ms / 1000, policy_phase_name(d->phase), d->write ? 'w' : '-',
		(long long)d->run, (long long)d->pages_to_scan, (long long)d->sleep_ms,
		(long long)d->smart_scan, d->budget_ppm, d->next_look_ms, (long long)model->saved,
		(long long)model->possible, (long long)s->pages_unshared,
		(long long)s->pages_volatile, (long long)model->scanned, (long long)s->full_scans,
		model->cursor, model->chunk, (double)model->cpu_ns / 1e9,
		(long long)s->registered_processes, (long long)s->news,
		(long long)s->registered_kib, policy_reason_text(d->reason));
}

/* The CPU time that decisions have allowed since the last one. */
static void sim_allow(struct sim *sim, int64_t now_ms)
{
	int64_t elapsed = now_ms - sim->budget_from_ms;

	if (sim->model->run == 1)
		sim->second[sim->seconds].budget_ns += elapsed * sim->allowed_ppm;
	sim->budget_from_ms = now_ms;
}

static bool sim_rests(enum policy_phase phase)
{
	return phase == POLICY_IDLE || phase == POLICY_STEADY || phase == POLICY_PARKED;
}

static bool sim_works(enum policy_phase phase)
{
	return phase == POLICY_BOOST || phase == POLICY_SETTLE || phase == POLICY_PRESSURE;
}

static void sim_look(struct sim *sim)
{
	struct policy_sample sample;
	struct policy_decision again;
	enum policy_phase before = sim->looks ? sim->decision.phase : POLICY_IDLE;

	sim_sample(sim, &sample);
	sim_allow(sim, sample.now_ms);
	memset(&sim->decision, 0x5a, sizeof sim->decision);
	policy_step(&sim->config, &sim->state, &sample, &sim->decision);
	policy_step(&sim->config, &sim->shadow, &sample, &again);
	if (!sim_same(&sim->decision, &again))
		sim_fail(sim, "the same inputs gave another decision");
	sim_check_decision(sim, &sample);
	sim->turns += sim->decision.phase != before;
	sim->rises += sim_rests(before) && sim_works(sim->decision.phase);
	if (sim->verbose)
		sim_tell(sim, &sample);
	sim->looks++;
	sim_write(sim);
	sim->last_look_ms = sim_now_ms(sim);
	sim->look_ms = sim->last_look_ms + sim->decision.next_look_ms + sim_between(sim, 0, 5);
}

static void sim_record(struct sim *sim)
{
	struct sim_second *second = &sim->second[sim->seconds];

	sim_allow(sim, sim_now_ms(sim));
	second->cpu_ns = sim->model->cpu_ns;
	second->saved_pages = sim->model->saved;
	second->possible_pages = sim->model->possible;
	second->news = sim->news;
	second->looks = sim->looks;
	second->writes = sim->writes;
	second->turns = sim->turns;
	second->rises = sim->rises;
	second->phase = (uint8_t)sim->decision.phase;
	second->reason = (uint8_t)sim->decision.reason;
	sim->seconds++;
	if (sim->seconds < SIM_SECONDS)
		sim->second[sim->seconds].budget_ns = second->budget_ns;
}

static int64_t sim_least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void sim_reached(struct sim *sim)
{
	const struct model *model = sim->model;

	if (sim->reached_ms < 0 && model->possible && model->saved * 100 >= model->possible * 95)
		sim->reached_ms = sim_now_ms(sim) - sim->quiet_ms;
}

static void sim_loop(struct sim *sim)
{
	while (sim->seconds * 1000 <= sim->end_ms && sim->seconds < SIM_SECONDS) {
		int64_t next =
			sim_least(sim_least(sim->event_ms, sim->look_ms), sim->seconds * 1000);

		/* In small steps, to see when a goal is reached. */
		next = sim_least(next, sim_now_ms(sim) + 100);
		model_advance(sim->model, next * 1000000);
		sim_reached(sim);
		if (sim_now_ms(sim) >= sim->event_ms && sim->event_ms <= next)
			sim->event_ms = sim->scenario->event(sim);
		else if (sim_now_ms(sim) >= sim->look_ms && sim->look_ms <= next)
			sim_look(sim);
		else if (sim_now_ms(sim) >= sim->seconds * 1000)
			sim_record(sim);
	}
}

static uint32_t sim_scale(uint32_t ns, int64_t percent)
{
	return (uint32_t)(ns * percent / 100);
}

void sim_begin(struct sim *sim)
{
	static const uint32_t jiffies_us[] = { 4000, 1000, 4000, 10000 };
	struct model_cost *cost = &sim->params.cost;
	int64_t percent = sim_between(sim, 50, 200);

	sim->params.jiffy_us = jiffies_us[sim_between(sim, 0, 3)];
	if (sim->seed == 0) {
		/* The plain case, to tune with: costs and ticks as measured. */
		percent = 100;
		sim->params.jiffy_us = 4000;
	}
	cost->checksum = sim_scale(cost->checksum, percent);
	cost->known = sim_scale(cost->known, percent);
	cost->merge = sim_scale(cost->merge, percent);
	cost->unmatched = sim_scale(cost->unmatched, percent);
	cost->stable = sim_scale(cost->stable, percent);
	cost->unstable = sim_scale(cost->unstable, percent);
	sim->model = model_new(&sim->params);
	if (sim->seed && sim_chance(sim, 30)) {
		model_set_pages(sim->model, sim_between(sim, 1, 100000));
		model_set_sleep(sim->model, sim_between(sim, 1, 1000));
		model_set_run(sim->model, sim_between(sim, 0, 1));
		sim->found_running = sim->model->run == 1;
	}
}

struct sim *sim_run(const struct sim_scenario *scenario, uint64_t seed, bool verbose)
{
	struct sim *sim = calloc(1, sizeof *sim);

	if (!sim)
		abort();
	sim->scenario = scenario;
	sim->seed = seed;
	sim->random = seed * 0x100000001b3u + 1;
	sim->verbose = verbose;
	sim->params = model_defaults;
	sim->params.chunk_pages = 64;
	sim->news_delay_ms = 300;
	sim->walk_ms = 5000;
	sim->mem_total_kib = 64 << 20;
	sim->mem_other_kib = 4 << 20;
	sim->advisor = 0;
	sim->end_ms = 600000;
	sim->rest_percent = 115;
	sim->event_ms = INT64_MAX;
	sim->reached_ms = -1;
	policy_defaults(&sim->config);
	policy_init(&sim->state);
	policy_init(&sim->shadow);
	scenario->setup(sim);
	sim_loop(sim);
	sim_check_always(sim);
	if (scenario->check)
		scenario->check(sim);
	return sim;
}

void sim_free(struct sim *sim)
{
	model_free(sim->model);
	free(sim);
}
