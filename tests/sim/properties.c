/* What every run of the policy must keep to, read from the record of a simulation. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/sim.h"

static int64_t property_most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t property_least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Whether the policy alone was in charge from second `from` to `to`. */
static bool property_ours(const struct sim *sim, int64_t from, int64_t to)
{
	for (int64_t s = from; s <= to; s++)
		if (sim->second[s].foreign || sim->second[s].phase == POLICY_HOLD)
			return false;
	return true;
}

/* ksmd's CPU time in any ten seconds: below the highest budget, and near what was decided. */
static void property_budget(struct sim *sim)
{
	const struct policy_config *config = &sim->config;
	int64_t most = property_most(config->boost_cpu_ppm,
		property_most(config->steady_cpu_ppm, config->pressure_cpu_ppm));

	for (int64_t s = 11; s < sim->seconds; s++) {
		const struct sim_second *a = &sim->second[s - 10], *b = &sim->second[s];
		int64_t used = b->cpu_ns - a->cpu_ns;
		int64_t allowed = b->budget_ns - a->budget_ns;

		if (!property_ours(sim, s - 11, s))
			continue;
		if (used > 10 * most * 1000 / 100 * 115 + 100000000)
			sim_fail(sim, "%lld ms of CPU in the 10 s before %lld s: over every budget",
				(long long)(used / 1000000), (long long)s);
		/* Where the cost cannot be measured, it can only be guessed. */
		if (used > allowed / 100 * (sim->no_cpu || sim->no_scanned ? 300 : 150) + 250000000)
			sim_fail(sim, "%lld ms of CPU in the 10 s before %lld s, decided were %lld",
				(long long)(used / 1000000), (long long)s,
				(long long)(allowed / 1000000));
	}
}

void sim_check_always(struct sim *sim)
{
	int64_t batch_us = sim->config.batch_us;

	property_budget(sim);
	if (!sim->foreign_ms && sim->model->longest_batch_ns / 1000 > 20 * batch_us + 1000 &&
		!sim->found_running)
		sim_fail(sim, "a batch of %lld us, wanted were %lld",
			(long long)(sim->model->longest_batch_ns / 1000), (long long)batch_us);
}

int64_t sim_converged_s(const struct sim *sim, int64_t from, int permille)
{
	for (int64_t s = property_most(from, 0); s < sim->seconds; s++)
		if (sim->second[s].saved_pages * 1000 >= sim->second[s].possible_pages * permille)
			return s;
	return -1;
}

void sim_check_converges(struct sim *sim, int64_t from, int64_t within)
{
	int64_t at = sim_converged_s(sim, from, 950);
	int64_t last = property_least(from + within, sim->seconds - 1);
	const struct sim_second *then = &sim->second[property_most(last, 0)];

	if (at < 0 || at > from + within)
		sim_fail(sim, "saves %lld of %lld pages %lld s after %lld s; 95 %% %s %lld s",
			(long long)then->saved_pages, (long long)then->possible_pages,
			(long long)within, (long long)from, at < 0 ? "never, end is" : "only at",
			(long long)(at < 0 ? sim->seconds : at));
}

int64_t sim_average_ppm(const struct sim *sim, int64_t from, int64_t to)
{
	to = property_least(to, sim->seconds - 1);
	if (from >= to)
		return 0;
	return (sim->second[to].cpu_ns - sim->second[from].cpu_ns) / (to - from) / 1000;
}

void sim_check_average(struct sim *sim, int64_t from, int64_t to, int64_t ppm)
{
	int64_t average = sim_average_ppm(sim, from, to);

	if (average > ppm)
		sim_fail(sim, "%lld ppm of a core from %lld s to %lld s, more than %lld",
			(long long)average, (long long)from, (long long)to, (long long)ppm);
}

/* What one pass over all that is mapped now can cost. */
static int64_t property_pass_ns(const struct sim *sim)
{
	const struct model_cost *cost = &sim->params.cost;

	return (sim->model->resident + sim->model->zero) *
	       ((int64_t)cost->merge + cost->unstable * 16 + cost->checksum);
}

void sim_check_rest(struct sim *sim, int64_t from, int64_t to)
{
	int64_t used, paid;

	to = property_least(to, sim->seconds - 1);
	if (from >= to)
		return;
	used = sim->second[to].cpu_ns - sim->second[from].cpu_ns;
	/* A pass that was saved up for may fall into any stretch of time. */
	paid = (to - from) * sim->config.steady_cpu_ppm * 10 * sim->rest_percent +
	       property_pass_ns(sim);
	if (used > paid)
		sim_fail(sim,
			"%lld ms of CPU from %lld s to %lld s, the steady budget pays for %lld",
			(long long)(used / 1000000), (long long)from, (long long)to,
			(long long)(paid / 1000000));
}

void sim_check_calm(struct sim *sim, int64_t from, int64_t to, uint32_t per_hour)
{
	int64_t last = property_least(to, sim->seconds - 1);
	int64_t rises, turns, seconds = last - from;

	if (seconds <= 0)
		return;
	rises = sim->second[last].rises - sim->second[from].rises;
	turns = sim->second[last].turns - sim->second[from].turns;
	if (rises > 1 + per_hour * seconds / 3600)
		sim_fail(sim,
			"rose from rest to work %lld times from %lld s to %lld s without news",
			(long long)rises, (long long)from, (long long)last);
	/* Steady and parked take turns with every pass, and passes are rare. */
	if (turns > 8 + 4 * rises + 720 * seconds / 3600)
		sim_fail(sim, "%lld changes of phase from %lld s to %lld s without news",
			(long long)turns, (long long)from, (long long)last);
}

/* How long merging so many pages may take: some time to see them, then three passes' worth. */
int64_t sim_reasonable_s(const struct sim *sim, int64_t pages)
{
	const struct model_cost *cost = &sim->params.cost;
	int64_t share = property_least(sim->config.boost_cpu_ppm, sim->model->share_ppm);
	int64_t ns = (int64_t)cost->merge + cost->unstable * 16 + cost->checksum;

	return 5 + pages * ns * 2 / (share * 1000);
}
