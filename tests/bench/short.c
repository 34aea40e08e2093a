/* Whether a controller slows short-lived processes: the same series of them with it and without. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/short.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/machine.h"
#include "tests/bench/place.h"

#define PROCESSES 200
#define SERIES_OF_EACH_MAX 32

const char short_what[] =
	"200 processes in a row with 16 MiB of equal memory each, without and with the controller";

struct tally {
	double times_s[PROCESSES * SERIES_OF_EACH_MAX];
	int count, series;
	double total_s, cpu_s, ksmd_s, others_s;
	double shortest_s, longest_s;
};

/* One process from fork to its end. Returns its wall time or -1. */
static double one_process(struct tally *tally)
{
	struct rusage usage;
	int status;
	double start = machine_now_s();
	pid_t parent = getpid(), pid = fork();
	if (pid == 0) {
		if (getppid() != parent)
			_exit(1);
		execl(place_load, "load", "--mib", "16", "--equal", "100", "--zero", "0",
			"--unique", "0", "--volatile", "0", "--short-rounds", "20", (char *)NULL);
		_exit(127);
	}
	if (pid < 0)
		return -1;
	while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR)
		;
	tally->cpu_s += machine_rusage_s(&usage);
	return status ? -1 : machine_now_s() - start;
}

static const char *one_series(const struct ksmd *ksmd, struct controller_run *run, void *data)
{
	struct tally *tally = data;
	uint64_t ksmd_before = 0, ksmd_after = 0;
	double machine = machine_cpu_s(), cpu = tally->cpu_s, total = tally->total_s;
	ksmd_cpu_ns(ksmd, &ksmd_before);
	for (int i = 0; i < PROCESSES; i++) {
		double took = one_process(tally);
		if (took < 0)
			return "a short process failed";
		if (run_stop_signal)
			return "interrupted";
		if (!controller_lives(run))
			return "the controller died";
		tally->times_s[tally->count++] = took;
		tally->total_s += took;
	}
	ksmd_cpu_ns(ksmd, &ksmd_after);
	double ksmd_s = (double)(ksmd_after - ksmd_before) / 1e9;
	tally->ksmd_s += ksmd_s;
	tally->others_s += machine_cpu_s() - machine - ksmd_s - (tally->cpu_s - cpu);
	total = tally->total_s - total;
	if (!tally->series || total < tally->shortest_s)
		tally->shortest_s = total;
	if (total > tally->longest_s)
		tally->longest_s = total;
	tally->series++;
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

struct outcome short_compare(const struct controller *controller, const char *config, int repeat,
	struct short_figures *figures)
{
	static struct tally tally[2];
	const struct controller *sides[2] = { controller_find("none"), controller };
	struct controller_run run;
	memset(tally, 0, sizeof(tally));
	for (int i = 0; i < 4 * repeat; i++) {
		int side = i % 4 == 1 || i % 4 == 2;
		struct outcome outcome =
			run_guarded(sides[side], config, &run, one_series, &tally[side]);
		if (outcome.wrong)
			return outcome;
		place_remove_scratch();
	}
	for (int side = 0; side < 2; side++) {
		struct tally *t = &tally[side];
		qsort(t->times_s, (size_t)t->count, sizeof(*t->times_s), compare);
		figures->total_s[side] = t->total_s / t->series;
		figures->median_ms[side] = t->times_s[t->count / 2] * 1e3;
		figures->cpu_ms[side] = t->cpu_s / t->count * 1e3;
	}
	figures->noise = tally[0].longest_s / tally[0].shortest_s;
	figures->ksmd_s = tally[1].ksmd_s / tally[1].series;
	figures->others = 100 * (tally[0].others_s + tally[1].others_s) /
			  (tally[0].total_s + tally[1].total_s);
	return (struct outcome){ NULL, false };
}
