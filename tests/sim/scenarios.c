/* The table of stories. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/scenarios.h"

const struct sim_scenario *const sim_scenarios[] = {
	&scenario_idle,
	&scenario_plain,
	&scenario_farm_start,
	&scenario_arrivals,
	&scenario_fork_storm,
	&scenario_churn,
	&scenario_unmergeable,
	&scenario_volatile,
	&scenario_growth,
	&scenario_late_twins,
	&scenario_short_jobs,
	&scenario_rewritten,
	&scenario_drift,
	&scenario_pressure,
	&scenario_reset,
	&scenario_stale,
	&scenario_foreign,
	&scenario_fight,
	&scenario_advisor,
	&scenario_busy,
	&scenario_no_scanned,
	&scenario_no_cpu,
	&scenario_no_psi,
	&scenario_old_kernel,
	&scenario_asked,
	&scenario_terabyte,
	NULL,
};
