/* The stories that the simulator can tell, by where they live. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_SIM_SCENARIOS_H
#define TESTS_SIM_SCENARIOS_H

#include "tests/sim/sim.h"

enum { SCENARIO_MIB = 256 }; /* pages */

/* A farm of jobs with random shares of equal, zero, unique and volatile pages, started at once. */
void scenario_farm(struct sim *sim);
/* Converges soon after the last event, then rests below the steady budget until the end. */
void scenario_settles(struct sim *sim);
/* The same, where "soon" means so many seconds more. */
void scenario_settles_later(struct sim *sim, int64_t grace_s);

/* scenarios_memory.c */
extern const struct sim_scenario scenario_idle, scenario_farm_start, scenario_plain,
	scenario_arrivals, scenario_fork_storm, scenario_churn, scenario_unmergeable,
	scenario_volatile, scenario_growth, scenario_late_twins, scenario_short_jobs,
	scenario_rewritten, scenario_drift, scenario_terabyte;
/* scenarios_world.c */
extern const struct sim_scenario scenario_pressure, scenario_reset, scenario_stale,
	scenario_foreign, scenario_fight, scenario_advisor, scenario_busy, scenario_no_scanned,
	scenario_no_cpu, scenario_no_psi, scenario_old_kernel, scenario_asked;

#endif
