/* What scenarios do to the simulated machine, and when the daemon comes to know of it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "tests/sim/sim.h"

/* The opted-in processes have changed: the daemon will see it, but not at once. */
static void sim_changed(struct sim *sim)
{
	struct sim_view *view;
	int64_t at = sim_now_ms(sim) + sim->news_delay_ms;

	if (sim->view_count && sim->views[sim->view_count - 1].at_ms == at)
		sim->view_count--;
	if (sim->view_count == sizeof sim->views / sizeof sim->views[0]) {
		/* More changes than looks: the oldest is seen a little early. */
		sim->seen = sim->views[0];
		sim->view_count--;
		memmove(sim->views, sim->views + 1, sim->view_count * sizeof *sim->views);
	}
	view = &sim->views[sim->view_count++];
	view->at_ms = at;
	view->processes = sim->processes;
	view->pages = sim->model->resident + sim->model->zero;
	view->news = sim->news;
	sim->quiet_ms = sim_now_ms(sim);
	sim->reached_ms = -1;
	if (sim->no_connector)
		return;
	if (at < sim->last_look_ms + 100)
		at = sim->last_look_ms + 100;
	if (at < sim->look_ms)
		sim->look_ms = at;
}

uint32_t sim_start(struct sim *sim)
{
	uint32_t process = model_process(sim->model);

	sim->processes++;
	sim->news++;
	sim_changed(sim);
	return process;
}

void sim_exit(struct sim *sim, uint32_t process)
{
	model_exit(sim->model, process);
	sim->processes--;
	sim_changed(sim);
}

uint32_t sim_fork(struct sim *sim, uint32_t parent)
{
	uint32_t process = model_fork(sim->model, parent);

	sim->processes++;
	sim->news++;
	sim_changed(sim);
	return process;
}

void sim_map(struct sim *sim, uint32_t process, enum model_class class, uint32_t group,
	int64_t offset, int64_t pages)
{
	if (pages <= 0)
		return;
	model_map(sim->model, process, class, group, offset, pages);
	sim->pages += pages;
	sim_changed(sim);
}

void sim_map_volatile(struct sim *sim, uint32_t process, int64_t pages, uint32_t period_ms)
{
	if (pages <= 0)
		return;
	model_map_volatile(sim->model, process, pages, period_ms);
	sim->pages += pages;
	sim_changed(sim);
}

uint32_t sim_job(struct sim *sim, int64_t pages, int equal, int zero, int vol, uint32_t period_ms)
{
	uint32_t process = sim_start(sim);

	sim_map(sim, process, MODEL_EQUAL, sim->group, 0, pages * equal / 1000);
	sim_map(sim, process, MODEL_ZERO, 0, 0, pages * zero / 1000);
	sim_map(sim, process, MODEL_UNIQUE, 0, 0, pages * (1000 - equal - zero - vol) / 1000);
	sim_map_volatile(sim, process, pages * vol / 1000, period_ms);
	return process;
}

void sim_foreign(struct sim *sim, int64_t run, int64_t pages, int64_t sleep_ms)
{
	model_set_pages(sim->model, pages);
	model_set_sleep(sim->model, sleep_ms);
	model_set_run(sim->model, run);
	sim->foreign_ms = sim_now_ms(sim);
	sim->writes_after_foreign = 0;
	sim->quiet_ms = sim->foreign_ms;
	if (sim->seconds < SIM_SECONDS)
		sim->second[sim->seconds].foreign = true;
}

/* Take in what has become visible by now; without the connector only a walk shows it. */
void sim_see(struct sim *sim, int64_t now_ms)
{
	uint32_t n = 0;

	if (sim->no_connector && now_ms < sim->seen_ms + sim->walk_ms)
		return;
	sim->seen_ms = now_ms;
	while (n < sim->view_count && sim->views[n].at_ms <= now_ms)
		sim->seen = sim->views[n++];
	sim->view_count -= n;
	memmove(sim->views, sim->views + n, sim->view_count * sizeof *sim->views);
}
