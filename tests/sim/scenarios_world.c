/* Stories about the machine around: pressure, other controllers, kernels that show less. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/scenarios.h"

static int64_t world_farm(struct sim *sim)
{
	scenario_farm(sim);
	return INT64_MAX;
}

static void world_setup(struct sim *sim)
{
	sim_begin(sim);
	sim->event_ms = sim_between(sim, 500, 5000);
}

/* --- memory gets short --- */

static void pressure_setup(struct sim *sim)
{
	world_setup(sim);
	sim->end_ms = 600000;
	if (sim_chance(sim, 30))
		sim->no_psi = true;
}

static int64_t pressure_event(struct sim *sim)
{
	switch (sim->step++) {
	case 0:
		scenario_farm(sim);
		return 90000;
	case 1: /* by PSI and by MemAvailable */
		sim->memory_psi_centi = sim_between(sim, 2000, 9000);
		sim->mem_other_kib = sim->mem_total_kib * 97 / 100;
		sim->quiet_ms = sim_now_ms(sim);
		return 150000;
	default:
		sim->memory_psi_centi = 0;
		sim->mem_other_kib = 4 << 20;
		sim->quiet_ms = sim_now_ms(sim);
		return INT64_MAX;
	}
}

static void pressure_check(struct sim *sim)
{
	/* Nothing new to merge: pressure alone is no reason to burn its budget all the time. */
	sim_check_average(sim, 120, 150, sim->config.pressure_cpu_ppm / 2);
	scenario_settles(sim);
}

const struct sim_scenario scenario_pressure = { "pressure",
	"memory is short for a minute, with nothing left to merge", 200, pressure_setup,
	pressure_event, pressure_check };

/* --- unmerged by somebody --- */

static int64_t reset_event(struct sim *sim)
{
	int64_t pages = sim->model->pages_to_scan, sleep_ms = sim->model->sleep_ms;
	int64_t run = sim->model->run;

	if (++sim->step == 1) {
		scenario_farm(sim);
		return sim_between(sim, 40000, 90000);
	}
	if (sim->step == 2)
		sim_foreign(sim, 2, pages, sleep_ms);
	/* Put back at once by a careful person, or left like that for a while. */
	if (sim->step == 2 && sim_chance(sim, 50))
		return sim_now_ms(sim) + sim_between(sim, 1000, 20000);
	sim_foreign(sim, sim->step == 2 ? run : 1, pages, sleep_ms);
	return INT64_MAX;
}

static void reset_check(struct sim *sim)
{
	scenario_settles_later(sim, sim->config.foreign_retry_s + 5);
}

static void reset_setup(struct sim *sim)
{
	world_setup(sim);
	sim->config.foreign_retry_s = (uint32_t)sim_between(sim, 10, 60);
	sim->end_ms = 900000;
}

const struct sim_scenario scenario_reset = { "reset", "somebody writes run=2", 200, reset_setup,
	reset_event, reset_check };

/* --- looks that fail --- */

static int64_t stale_event(struct sim *sim)
{
	int64_t now = sim_now_ms(sim);

	if (!sim->step++)
		scenario_farm(sim);
	sim->stale = !sim->stale && now < 100000;
	sim->quiet_ms = now;
	return now < 100000 ? now + sim_between(sim, 100, 20000) : INT64_MAX;
}

const struct sim_scenario scenario_stale = { "stale", "looks fail for a while, again and again",
	200, world_setup, stale_event, scenario_settles };

/* --- another controller --- */

static void foreign_check(struct sim *sim)
{
	if (sim->model->run == 0 && sim->second[sim->seconds - 1].phase == POLICY_HOLD)
		return; /* somebody stopped ksmd, and it is right to leave it so */
	if (sim->step == 2)
		scenario_settles_later(sim, sim->config.foreign_retry_s + 5);
}

/* Seen from the next look on, and respected until the retry is due. */
static int64_t foreign_once(struct sim *sim)
{
	switch (sim->step++) {
	case 0:
		scenario_farm(sim);
		return sim_between(sim, 5000, 60000);
	case 1:
		sim_foreign(sim, sim_between(sim, 0, 1), sim_between(sim, 101, 5000) * 3 + 1,
			sim_between(sim, 11, 50));
		return sim_now_ms(sim) + (int64_t)sim->config.foreign_retry_s * 1000 - 1000;
	default:
		sim->step = 2;
		if (sim->writes_after_foreign)
			sim_fail(sim, "wrote %u times while another controller was at work",
				sim->writes_after_foreign);
		return INT64_MAX;
	}
}

static void foreign_setup(struct sim *sim)
{
	world_setup(sim);
	sim->config.foreign_retry_s = (uint32_t)sim_between(sim, 10, 60);
	sim->end_ms = 900000;
}

const struct sim_scenario scenario_foreign = { "foreign", "somebody else writes the knobs once",
	200, foreign_setup, foreign_once, foreign_check };

static int64_t fight_event(struct sim *sim)
{
	if (!sim->step++) {
		scenario_farm(sim);
		return 10000;
	}
	sim_foreign(sim, 1, sim_between(sim, 64, 1250), sim_between(sim, 10, 50));
	return sim_now_ms(sim) + sim_between(sim, 5000, 60000);
}

static void fight_check(struct sim *sim)
{
	/* A look a retry may write all of its settings once before it sees the other's. */
	uint32_t tries = (uint32_t)(sim->end_ms / 1000 / sim->config.foreign_retry_s) + 2;
	uint32_t since = sim->writes - sim->second[10].writes;

	if (since > 10 * tries)
		sim_fail(
			sim, "wrote %u times against another controller in %u tries", since, tries);
}

const struct sim_scenario scenario_fight = { "fight", "another controller goes on writing", 200,
	foreign_setup, fight_event, fight_check };

static void advisor_setup(struct sim *sim)
{
	world_setup(sim);
	sim->advisor = 1;
}

const struct sim_scenario scenario_advisor = { "advisor", "the kernel's own advisor is on", 200,
	advisor_setup, world_farm, scenario_settles };

/* --- no CPU to spare --- */

static void busy_setup(struct sim *sim)
{
	world_setup(sim);
	sim->model->share_ppm = (uint32_t)sim_between(sim, 200000, 700000);
	sim->cpu_psi_centi = sim_between(sim, 4000, 9000);
	sim->end_ms = 300000;
}

static void busy_check(struct sim *sim)
{
	for (int64_t s = 5; s < sim->seconds; s++)
		if (sim_average_ppm(sim, s - 5, s) > sim->config.boost_cpu_ppm * 6 / 10 + 20000)
			sim_fail(sim, "%lld ppm before %lld s although the CPUs are busy",
				(long long)sim_average_ppm(sim, s - 5, s), (long long)s);
	/* Half the budget: twice the time. */
	scenario_settles_later(sim, sim_reasonable_s(sim, sim->pages));
}

const struct sim_scenario scenario_busy = { "busy", "the CPUs are taken", 200, busy_setup,
	world_farm, busy_check };

/* --- kernels that show less --- */

static void no_scanned_setup(struct sim *sim)
{
	world_setup(sim);
	sim->no_scanned = true;
}

static void no_cpu_setup(struct sim *sim)
{
	world_setup(sim);
	sim->no_cpu = true;
	/* Nobody can keep a budget of CPU time that cannot be seen; it must be near. */
	sim->rest_percent = 450;
}

static void no_psi_setup(struct sim *sim)
{
	world_setup(sim);
	sim->no_psi = true;
	sim->no_connector = true;
}

static void old_setup(struct sim *sim)
{
	world_setup(sim);
	sim->no_psi = sim->no_connector = sim->no_scanned = sim->no_profit = true;
	sim->no_smart_scan = true;
	sim->advisor = -1;
	sim->model->smart_scan = false;
}

static void late_check(struct sim *sim)
{
	scenario_settles_later(sim, 5 + sim->walk_ms / 1000);
}

const struct sim_scenario scenario_no_scanned = { "no-scanned", "no pages_scanned, no zero pages",
	200, no_scanned_setup, world_farm, scenario_settles };
const struct sim_scenario scenario_no_cpu = { "no-cpu", "ksmd's CPU time cannot be seen", 200,
	no_cpu_setup, world_farm, late_check };
const struct sim_scenario scenario_no_psi = { "no-psi", "no PSI, no process connector", 200,
	no_psi_setup, world_farm, late_check };
const struct sim_scenario scenario_old_kernel = { "old-kernel", "as Linux 6.1 shows it", 200,
	old_setup, world_farm, late_check };

/* --- somebody asks --- */

static int64_t asked_event(struct sim *sim)
{
	if (!sim->step++) {
		scenario_farm(sim);
		return 90000;
	}
	sim->look_now = true;
	sim->look_ms = sim_now_ms(sim);
	sim->quiet_ms = sim_now_ms(sim);
	return INT64_MAX;
}

static void asked_check(struct sim *sim)
{
	if (sim->second[92].phase != POLICY_BOOST && sim->second[91].phase != POLICY_BOOST &&
		sim->second[92].rises == sim->second[89].rises)
		sim_fail(sim, "asked for a boost, did not boost");
	scenario_settles(sim);
}

const struct sim_scenario scenario_asked = { "asked", "somebody asks for a boost", 200, world_setup,
	asked_event, asked_check };
