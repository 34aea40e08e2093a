/* One measured run: one controller, one workload, on the kernel's defaults, all put back at the end. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/run.h"

#include <math.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/bench/machine.h"
#include "tests/bench/place.h"
#include "tests/live/guard.h"

#define SAMPLE_S 0.1
/* How often it is looked whether others have memory that may be merged: that would be merged too. */
#define OTHERS_EVERY 20

volatile sig_atomic_t run_stop_signal;

static void on_signal(int number)
{
	run_stop_signal = number;
}

static void handle_signals(void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

void run_prepare(void)
{
	signal(SIGPIPE, SIG_IGN);
	/* A controller that puts itself into the background stays ours to wait for. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static struct outcome under_guard(const struct controller *controller, const char *config,
	const struct ksmd *ksmd, struct controller_run *run, run_body *body, void *data)
{
	struct controller_setup setup = { place_programs, config, place_scratch };
	if (controller_default_knobs())
		return (struct outcome){ "the knobs cannot be set to the kernel's defaults",
			false };
	const char *wrong = controller->start(&setup, run);
	bool skipped = wrong && !run->ours;
	if (!wrong)
		wrong = body(ksmd, run, data);
	const char *stop_wrong = controller_stop(run);
	if (controller_default_knobs() && !stop_wrong)
		stop_wrong = "the knobs cannot be set back to the kernel's defaults";
	return (struct outcome){ wrong ? wrong : stop_wrong, skipped };
}

struct outcome run_guarded(const struct controller *controller, const char *config,
	struct controller_run *run, run_body *body, void *data)
{
	struct root root;
	struct ksmd ksmd = { .fd = -1 };
	struct outcome outcome = { "ksmd cannot be seen here", false };
	memset(run, 0, sizeof(*run));
	/* While waiting for others there is nothing to put back: signals just end us. */
	handle_signals(SIG_DFL);
	int err = guard_take();
	handle_signals(on_signal);
	if (err)
		return (struct outcome){ strerror(-err), false };
	if (place_make_scratch())
		outcome.wrong = "no temporary folder can be made";
	else if (!root_open(&root, NULL)) {
		if (!ksmd_open(&ksmd, &root)) {
			outcome = under_guard(controller, config, &ksmd, run, body, data);
			ksmd_close(&ksmd);
		}
		root_close(&root);
	}
	err = guard_release();
	if (err && !outcome.wrong)
		outcome = (struct outcome){ "the knobs could not be restored", false };
	return outcome;
}

struct watch {
	const struct workload *workload;
	double seconds, machine_s, load_s, took_s;
	struct series *series;
};

static void take_sample(const struct ksmd *ksmd, struct series *series, double start)
{
	struct sample *s = &series->samples[series->count];
	int64_t sharing = 0, zero = 0;
	s->scanned_pages = 0;
	s->ksmd_ns = 0;
	ksm_get(guard_ksm(), KSM_PAGES_SHARING, &sharing);
	ksm_get(guard_ksm(), KSM_ZERO_PAGES, &zero);
	ksm_get(guard_ksm(), KSM_PAGES_SCANNED, &s->scanned_pages);
	ksmd_cpu_ns(ksmd, &s->ksmd_ns);
	s->t_s = machine_now_s() - start;
	s->saved_pages = sharing + zero;
	s->possible_pages = workload_possible_pages();
	s->work = workload_work();
	if (series->count % OTHERS_EVERY == 0) {
		int others = machine_registered() - workload_processes();
		if (others > series->strangers)
			series->strangers = others;
	}
	series->count++;
}

/* Start the groups when they are due and sample until the time is over. */
static const char *sample_all(
	struct watch *watch, const struct ksmd *ksmd, const struct controller_run *run)
{
	struct series *series = watch->series;
	double start = machine_now_s(), next = 0;
	int started = 0;
	while (next <= watch->seconds && series->count < SERIES_MAX) {
		const struct workload_group *group = &watch->workload->groups[started];
		if (started < WORKLOAD_GROUPS && group->count &&
			next >= watch->seconds * group->at_percent / 100) {
			take_sample(ksmd, series, start);
			if (group->at_percent)
				series->join_s = machine_now_s() - start;
			if (workload_start(group))
				return "the workload cannot be started";
			started++;
			continue;
		}
		take_sample(ksmd, series, start);
		if (!workload_lives())
			return "a workload process ended early";
		if (!controller_lives(run))
			return "the controller died";
		if (run_stop_signal)
			return "interrupted";
		next += SAMPLE_S;
		double wait = start + next - machine_now_s();
		if (wait > 0)
			usleep((useconds_t)(wait * 1e6));
	}
	return NULL;
}

static const char *watch_workload(const struct ksmd *ksmd, struct controller_run *run, void *data)
{
	struct watch *watch = data;
	struct series *series = watch->series;
	series->count = series->strangers = 0;
	series->seconds = watch->seconds;
	series->join_s = 0;
	if (workload_open(place_load))
		return "no memory for the reports";
	double machine = machine_cpu_s(), began = machine_now_s();
	const char *wrong = sample_all(watch, ksmd, run);
	watch->machine_s = machine_cpu_s() - machine;
	watch->took_s = machine_now_s() - began;
	if (!wrong && workload_damaged())
		wrong = "the workload read back wrong data";
	watch->load_s = workload_close();
	return wrong;
}

struct outcome run_workload(const struct workload *workload, const struct controller *controller,
	const char *config, double seconds, struct series *series, struct figures *figures)
{
	struct controller_run run;
	struct watch watch = { workload, seconds, 0, 0, 0, series };
	struct outcome outcome = run_guarded(controller, config, &run, watch_workload, &watch);
	if (outcome.wrong)
		return outcome;
	series_figures(series, figures);
	figures->controller_s = run.peak_kib ? run.cpu_s : NAN;
	figures->controller_mib = run.peak_kib ? (double)run.peak_kib / 1024 : NAN;
	figures->others =
		100 * (watch.machine_s - watch.load_s - figures->ksmd_s - run.cpu_s) / watch.took_s;
	figures->strangers = series->strangers;
	return outcome;
}
