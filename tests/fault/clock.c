/* Clocks jump in the middle of a run: the realtime clock is set, the monotonic one leaps as over a suspend. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/fault/memory.h"
#include "tests/fault/serve.h"
#include "tests/fault/tell.h"

/*
 * At each question for the time in turn. Whatever jumps: nobody hangs, spins or says anything, the knobs stay
 * within limits, the service does what it is asked for and puts all back, and reports tell no nonsense.
 */

#define HOUR 3600LL
#define YEAR (365 * 24 * HOUR)

enum {
	PASSES = 8,
	PASS_US = 12 * 1000,
	SHOWN_MS = 2000,
	REPORT_LINES = 6,
	REPORT_MS = 600, /* as its words ask for */
	SLACK_S = 10,
	/* docs/ksmctl.conf.5: boost-cpu, and a batch may be stretched to meet its budget. */
	BUDGET_MOST_PPM = 850000,
	BATCH_MOST_NS = 8000 * 1000 * 5 / 2,
};

static const struct {
	const char *name;
	long long realtime_s, monotonic_s;
} jumps[] = {
	{ "set forward by 3 hours", 3 * HOUR, 0 },
	{ "set back by 3 hours", -3 * HOUR, 0 },
	{ "set back by 40 years", -40 * YEAR, 0 },
	{ "set forward by 40 years", 40 * YEAR, 0 },
	{ "asleep for 50 minutes", HOUR * 5 / 6, HOUR * 5 / 6 },
	{ "asleep for a year", YEAR, YEAR },
	{ "a leap of the monotonic clock, and set back", -5 * HOUR, 3 * HOUR },
};
#define JUMPS (sizeof(jumps) / sizeof(*jumps))

static long run_count;

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void judge_knobs(const struct run *run)
{
	struct ksm_state now;
	tree_read(&serve.tree, &now);
	int64_t ns = serve_status("ns_per_page"), budget = serve_status("budget_ppm");
	int64_t pages = now.value[KSM_PAGES_TO_SCAN], sleep = now.value[KSM_SLEEP_MILLISECS];
	if (now.value[KSM_RUN] < 0 || now.value[KSM_RUN] > 1 || pages < 1 || sleep < 1 ||
		sleep > 60 * 1000)
		tell_problem_of(run,
			"run %" PRId64 ", pages_to_scan %" PRId64 ", sleep_millisecs %" PRId64,
			now.value[KSM_RUN], pages, sleep);
	if (budget > BUDGET_MOST_PPM)
		tell_problem_of(run, "a budget of %" PRId64 " ppm", budget);
	/* The cost of a page is of the other kind of scan, perhaps: it differs less than that here. */
	if (ns > 0 && pages * ns > 2 * (int64_t)BATCH_MOST_NS)
		tell_problem_of(run, "a batch of %" PRId64 " pages of %" PRId64 " ns", pages, ns);
}

/* What it is asked by somebody whose clocks jumped too. */
static void ask(const char *verb, const char *clock, long long most_s)
{
	const char *argv[] = { serve.program, verb, "-c", serve.config_path, NULL };
	struct run run = { .argv = argv, .clock = clock };
	long long since_s;
	run_start(&run);
	run_wait(&run);
	const char *out = run_text(run.out_fd), *since = strstr(out, " for ");
	if (run.hung || !WIFEXITED(run.status) || WEXITSTATUS(run.status))
		tell_problem_of(&run, "%s fails", verb);
	else if (!strcmp(verb, "status") &&
		 (!since || sscanf(since, " for %lld s", &since_s) != 1 || since_s < 0 ||
			 since_s > most_s))
		tell_problem_of(&run, "status: %.60s", out);
	else if (!strcmp(verb, "why") && !strstr(out, "a boost was asked for"))
		tell_problem_of(&run, "why: %.200s", out);
	run_close(&run);
}

/* The jump comes at the question `at` of the service. */
static void serve_over(size_t jump, int at)
{
	char clock[96], later[96];
	struct run run = { .clock = clock };
	long long real = jumps[jump].realtime_s, mono = jumps[jump].monotonic_s;
	snprintf(clock, sizeof(clock), "%lld %lld %d", real, mono, at);
	snprintf(later, sizeof(later), "%lld %lld 0", real, mono);
	serve_reset();
	int64_t begin_ms = now_ms();
	serve_begin(&run, NULL);
	if (!serve_becomes_ready(&run)) {
		tell_problem_of(&run, "it does not become ready");
	} else {
		for (int i = 0; i < PASSES; i++) {
			tree_scan(&serve.tree, 20000);
			usleep(PASS_US);
			judge_knobs(&run);
		}
		kill(run.pid, SIGUSR1);
		if (!serve_shows("reason=a boost was asked for", SHOWN_MS))
			tell_problem_of(&run, "it does not do what it is asked for");
		judge_knobs(&run);
		ask("status", later, mono + SLACK_S);
		ask("why", later, 0);
	}
	if (serve_end(&run) != 0)
		tell_problem_of(&run, "it ends with %d, or hangs", run.status);
	else if (!serve_as_found())
		tell_problem_of(&run, "not as found");
	else if (serve_failures(&run) != 0)
		tell_problem_of(&run, "it says something");
	else if (run.cpu_us / 1000 > (now_ms() - begin_ms) * 3 / 4)
		tell_problem_of(&run, "it spins: %" PRId64 " ms of CPU", run.cpu_us / 1000);
	run_close(&run);
	run_count++;
}

static bool filter(const char *text, const char *words)
{
	char command[512];
	snprintf(command, sizeof(command), "jq -es '%s' >/dev/null 2>&1", words);
	FILE *jq = popen(command, "w"); /* NOLINT(cert-env33-c): words of our own */
	if (!jq)
		return false;
	fputs(text, jq);
	return pclose(jq) == 0;
}

/* Runs ksmstat. How long it took is for the caller to judge. */
static int64_t report(struct run *run, const char *const *words, size_t count)
{
	static char program[PATH_MAX + 16];
	static const char *argv[12];
	snprintf(program, sizeof(program), "%s/ksmstat", serve.build);
	argv[0] = program;
	memcpy(argv + 1, words, count * sizeof(*words));
	argv[count + 1] = NULL;
	run->argv = argv;
	int64_t begin_ms = now_ms();
	run_start(run);
	run_wait(run);
	run_count++;
	if (run->hung || !WIFEXITED(run->status) || WEXITSTATUS(run->status))
		tell_problem_of(
			run, "%s %s ends with %d, or hangs", words[0], words[2], run->status);
	if (*run_text(run->err_fd))
		tell_problem_of(run, "it says something");
	return now_ms() - begin_ms;
}

static void lines_over(size_t jump, int at)
{
	const char *const words[] = { "--root", serve.tree.root, "-J", "0.1", "6" };
	char clock[96], wanted[300];
	struct run run = { .clock = clock };
	long long mono = jumps[jump].monotonic_s;
	snprintf(clock, sizeof(clock), "%lld %lld %d", jumps[jump].realtime_s, mono, at);
	int64_t took_ms = report(&run, words, sizeof(words) / sizeof(*words));
	/* A line may come at once, since its moment is over; and a line may span the jump. */
	if (took_ms < REPORT_MS - 200 || took_ms > REPORT_MS * 4)
		tell_problem_of(&run, "%d lines take %" PRId64 " ms", REPORT_LINES, took_ms);
	snprintf(wanted, sizeof(wanted),
		"length == %d and all(.[]; .seconds >= 0 and .scanned_per_s >= 0 and "
		".merged_per_s >= 0 and .ksmd_percent >= 0 and (.time | length == 24)) and "
		"(map(.seconds) | add | . < %lld)",
		REPORT_LINES, mono + 3);
	if (!filter(run_text(run.out_fd), wanted))
		tell_problem_of(&run, "not true: %s\n%.600s", wanted, run_text(run.out_fd));
	run_close(&run);
}

static void estimate_over(size_t jump, int at, pid_t child)
{
	char clock[96], pid[16];
	const char *const words[] = { "-J", "--estimate", "--settle", "0.2", "-p", pid };
	struct run run = { .clock = clock };
	snprintf(pid, sizeof(pid), "%d", (int)child);
	snprintf(clock, sizeof(clock), "%lld %lld %d", jumps[jump].realtime_s,
		jumps[jump].monotonic_s, at);
	int64_t took_ms = report(&run, words, sizeof(words) / sizeof(*words));
	if (took_ms > 3000)
		tell_problem_of(&run, "it takes %" PRId64 " ms", took_ms);
	if (!filter(run_text(run.out_fd), "length == 1"))
		tell_problem_of(&run, "no JSON: %.300s", run_text(run.out_fd));
	run_close(&run);
}

/* The questions at which it jumps: at the start one by one, then more and more thinly. */
static int next_at(int at)
{
	if (serve.exhaustive)
		return at < 40 ? at + 1 : at + 5;
	return at < 2 ? at + 1 : at * 3;
}

int main(void)
{
	serve_setup();
	int most = serve.exhaustive ? 120 : 54;
	for (size_t i = 0; i < JUMPS; i++) {
		run_count = 0;
		for (int at = 1; at <= most && !tell_has_problem(); at = next_at(at))
			serve_over(i, at);
		tell_verdict("the service, %s: %ld moments", jumps[i].name, run_count);
	}
	pid_t child = memory_child(4 << 20);
	for (size_t i = 0; i < JUMPS; i++) {
		run_count = 0;
		for (int at = 1; at <= (serve.exhaustive ? 16 : 4) && !tell_has_problem(); at += 2)
			lines_over(i, at);
		for (int at = 1; at <= (serve.exhaustive ? 16 : 4) && !tell_has_problem(); at += 3)
			estimate_over(i, at, child);
		tell_verdict("ksmstat, %s: %ld moments", jumps[i].name, run_count);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	tree_remove(&serve.tree);
	return tell_end();
}
