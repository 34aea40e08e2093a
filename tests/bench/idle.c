/* What the service itself costs: CPU and memory while 300 processes sleep, and after many events. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libksmreg/ksmreg.h"
#include "sysfs/file.h"
#include "tests/bench/machine.h"
#include "tests/bench/place.h"
#include "tests/bench/run.h"

#define SLEEPERS_MAX 2000
/* Time to come to rest after a change. */
#define SETTLE_S 20
/* One round: half of its processes are gone at once, half opt in and stay for a look. */
#define ROUND_PROCESSES 10000
#define BATCH 250
#define BATCH_STAY_US 600000

static struct {
	int seconds, sleepers, registered;
	const char *config;
} options = { .seconds = 300, .sleepers = 300, .registered = 30 };

static pid_t sleepers[SLEEPERS_MAX];
static int sleeper_count;

static bool nap(double seconds)
{
	for (double end = machine_now_s() + seconds; machine_now_s() < end;) {
		if (run_stop_signal)
			return false;
		usleep(100 * 1000);
	}
	return true;
}

/* A child that sleeps, with `mib` of registered memory. Returns its PID or -1. */
static pid_t start_sleeper(int mib)
{
	pid_t parent = getpid(), pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	if (mib) {
		size_t size = (size_t)mib << 20;
		char *p = mmap(
			NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED || ksmreg_register(p, size))
			_exit(1);
		for (size_t i = 0; i < size; i += 4096)
			*(size_t *)(void *)(p + i) = i + 1;
	}
	for (;;)
		pause();
}

static void end_all(pid_t *pids, int count)
{
	for (int i = 0; i < count; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < count; i++) {
		while (waitpid(pids[i], NULL, 0) < 0 && errno == EINTR)
			;
	}
}

/* CPU time of a process with one thread, seconds; -1 when it cannot be read. */
static double cpu_s(pid_t pid)
{
	char path[64], text[128];
	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	if (file_read(-1, path, text, sizeof(text)) < 0)
		return -1;
	return (double)strtoull(text, NULL, 10) / 1e9;
}

/* A number of /proc/PID/status, or -1. */
static double status_number(pid_t pid, const char *key)
{
	char path[64], text[4096];
	uint64_t value = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	ssize_t len = file_read(-1, path, text, sizeof(text));
	if (len < 0 || file_find_u64(text, (size_t)len, key, &value))
		return -1;
	return (double)value;
}

static double rss_mib(pid_t pid)
{
	double kib = status_number(pid, "VmRSS:");
	return kib < 0 ? kib : kib / 1024;
}

/* One round of process events. False when it failed or was interrupted. */
static bool round_of_events(void)
{
	pid_t batch[BATCH];
	for (int done = 0; done < ROUND_PROCESSES; done += 2 * BATCH) {
		for (int i = 0; i < BATCH; i++) {
			pid_t pid = fork();
			if (pid == 0)
				_exit(0);
			if (pid < 0 || waitpid(pid, NULL, 0) < 0)
				return false;
		}
		int started = 0;
		while (started < BATCH && (batch[started] = start_sleeper(1)) > 0)
			started++;
		bool stayed = !usleep(BATCH_STAY_US);
		end_all(batch, started);
		if (started < BATCH || !stayed || run_stop_signal)
			return false;
	}
	return true;
}

static const char *idle(const struct controller_run *run)
{
	if (!nap(SETTLE_S))
		return "interrupted";
	double cpu = cpu_s(run->pid), start = machine_now_s(), rss = rss_mib(run->pid);
	double wakes = status_number(run->pid, "voluntary_ctxt_switches:"), forks = machine_forks();
	if (cpu < 0)
		return "the service's CPU time cannot be read";
	if (!nap(options.seconds))
		return "interrupted";
	double used = cpu_s(run->pid) - cpu, took = machine_now_s() - start;
	printf("idle, %d processes asleep (%d with mergeable memory), %.0f s:\n", options.sleepers,
		options.registered, took);
	printf("  CPU   %.4f %% of a core (%.3f s; %.2f s in an hour)\n", 100 * used / took, used,
		3600 * used / took);
	wakes = status_number(run->pid, "voluntary_ctxt_switches:") - wakes;
	forks = machine_forks() - forks;
	printf("  %.2f wake-ups per second, while the rest of the machine started %.1f processes\n",
		wakes / took, forks / took);
	printf("  RSS   %.2f MiB before, %.2f MiB after\n", rss, rss_mib(run->pid));
	fflush(stdout);
	return NULL;
}

static const char *events(const struct controller_run *run)
{
	double rss[3], cpu = cpu_s(run->pid);
	rss[0] = rss_mib(run->pid);
	for (int round = 1; round <= 2; round++) {
		if (!round_of_events() || !nap(5))
			return "the process events could not all be made";
		rss[round] = rss_mib(run->pid);
	}
	printf("%d processes started and ended, half of them with mergeable memory, twice:\n",
		ROUND_PROCESSES);
	printf("  RSS   %.2f MiB before, %.2f MiB after the first round, %.2f MiB after the "
	       "second\n",
		rss[0], rss[1], rss[2]);
	printf("  CPU   %.1f us for each process\n",
		(cpu_s(run->pid) - cpu) * 1e6 / (2 * ROUND_PROCESSES));
	fflush(stdout);
	return NULL;
}

static const char *measure(const struct ksmd *ksmd, struct controller_run *run, void *data)
{
	(void)ksmd, (void)data;
	const char *wrong = NULL;
	while (sleeper_count < options.sleepers && !wrong) {
		pid_t pid = start_sleeper(sleeper_count < options.registered);
		if (pid < 0)
			wrong = "cannot fork";
		else
			sleepers[sleeper_count++] = pid;
	}
	if (!wrong)
		wrong = idle(run);
	if (!wrong)
		wrong = events(run);
	end_all(sleepers, sleeper_count);
	if (!wrong && !controller_lives(run))
		wrong = "the service died";
	return wrong;
}

static _Noreturn void usage(void)
{
	fputs("usage: idle [--seconds N] [--sleepers N] [--registered N] [--config "
	      "'key=value;...']\n",
		stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "sleepers", required_argument, NULL, 'n' },
		{ "registered", required_argument, NULL, 'r' },
		{ "config", required_argument, NULL, 'o' },
		{ NULL, 0, NULL, 0 },
	};
	int c;
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == '?')
			usage();
		else if (c == 'o')
			options.config = optarg;
		else
			*(c == 's'	   ? &options.seconds
				: c == 'n' ? &options.sleepers
					   : &options.registered) = (int)strtol(optarg, NULL, 10);
	}
	if (optind < argc || options.seconds < 1 || options.sleepers < 0 ||
		options.sleepers > SLEEPERS_MAX || options.registered > options.sleepers)
		usage();
	struct controller_run run;
	if (place_find()) {
		perror("idle: /proc/self/exe");
		return 1;
	}
	run_prepare();
	struct outcome outcome =
		run_guarded(controller_find("ours"), options.config, &run, measure, NULL);
	if (outcome.wrong) {
		char line[512];
		fprintf(stderr, "idle: %s (log in %s, its last line: %s)\n", outcome.wrong,
			place_scratch, place_log_end(line, sizeof(line)));
		return run_stop_signal ? 128 + run_stop_signal : 1;
	}
	printf("  peak  %.2f MiB over all\n", (double)run.peak_kib / 1024);
	place_remove_scratch();
	return 0;
}
