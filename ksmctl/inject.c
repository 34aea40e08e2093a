/* Makes a running process call prctl(PR_SET_MEMORY_MERGE), through ptrace. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/inject.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ksmctl/inject_steps.h"
#include "ksmctl/inject_target.h"

/* What the child tells the parent. */
struct shared {
	struct inject_report report;
	_Atomic int calling; /* too late to go back */
	bool ended;	     /* it came to its end and wrote a report */
};

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
enum { ENDINGS = sizeof(ending) / sizeof(*ending), ATTEMPTS = 4, PAUSE_US = 500 };

static sigset_t signals_awaited(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (int i = 0; i < ENDINGS; i++)
		sigaddset(&set, ending[i]);
	return set;
}

/* As root: ahead of everybody, so that on a busy machine the target does not wait for us. */
static void go_ahead(void)
{
	struct sched_param first = { .sched_priority = 1 };
	sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
}

/*
 * The child. Its end lets the target go, whatever happened; where registers were changed it has put
 * them back before. All signals are blocked, so that only SIGKILL ends it on the way.
 */
static void trace(
	const struct inject_target *target, bool on, int timeout_ms, struct shared *shared)
{
	struct steps steps = { .target = target,
		.on = on,
		.tid = target->tid,
		.report = &shared->report,
		.calling = &shared->calling,
		.awaited = signals_awaited() };
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	go_ahead();
	steps.deadline_ns = steps_now_ns() + timeout_ms * INT64_C(1000000);
	shared->report.result = steps_take(&steps);
	shared->ended = true;
}

/* Wait for the child. What asks us to end asks it too. */
static void await(
	pid_t child, const struct inject_options *options, struct shared *shared, int *signal_no)
{
	sigset_t awaited = signals_awaited();
	/* a little later than the child's own end of the wait */
	int64_t told_ns = steps_now_ns() + (options->timeout_ms + 50) * INT64_C(1000000);
	bool told = false;

	while (waitpid(child, NULL, WNOHANG) == 0) {
		int64_t left = told_ns - steps_now_ns();
		if (left < 0 || told)
			left = INT64_C(1000000000);
		struct timespec ts = { left / 1000000000, left % 1000000000 };
		int got = sigtimedwait(&awaited, NULL, &ts);
		if (got > 0 && got != SIGCHLD) {
			*signal_no = got;
			kill(child, SIGTERM);
		}
		if (!told && shared->calling && steps_now_ns() >= told_ns) {
			told = true;
			if (options->waiting)
				options->waiting(options->data);
		}
	}
}

/* One attempt: choose a thread, and have a child trace it. */
static void attempt(const struct proc *proc, bool on, const struct inject_options *options,
	struct shared *shared, struct inject_report *report)
{
	struct inject_target target;
	int signal_no = 0;

	report->result = inject_choose(proc, &target, report);
	if (report->result == INJECT_DONE)
		report->result = inject_find_call(&target, report);
	if (report->result != INJECT_DONE)
		return;
	*shared = (struct shared){ .report = *report };
	pid_t child = fork();
	if (child == 0) {
		trace(&target, on, options->timeout_ms, shared);
		_exit(0);
	}
	if (child < 0) {
		report->result = INJECT_FAILED;
		report->err = -errno;
		return;
	}
	await(child, options, shared, &signal_no);
	*report = shared->report;
	report->signal = signal_no;
	if (!shared->ended) {
		report->result = INJECT_FAILED; /* somebody killed it */
		report->err = -EINTR;
	}
}

/* What can come of a thread that just ends (EPERM too), or of a program in the middle of execve. */
static bool may_pass(enum inject_result result)
{
	return result == INJECT_GONE || result == INJECT_NO_CALL || result == INJECT_DENIED;
}

enum inject_result inject_memory_merge(const struct proc *proc, bool on,
	const struct inject_options *options, struct inject_report *report)
{
	struct sigaction plain = { .sa_handler = SIG_DFL }, old_action;
	sigset_t awaited = signals_awaited(), old_mask;
	struct shared *shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	*report = (struct inject_report){ .result = INJECT_FAILED, .call = INJECT_UNKNOWN };
	if (shared == MAP_FAILED) {
		report->err = -errno;
		return report->result;
	}
	/* Where SIGCHLD is ignored it would not wake us. */
	sigaction(SIGCHLD, &plain, &old_action);
	sigprocmask(SIG_BLOCK, &awaited, &old_mask);
	for (int i = 0; i < ATTEMPTS && !report->signal; i++) {
		attempt(proc, on, options, shared, report);
		if (!may_pass(report->result))
			break;
		usleep(PAUSE_US);
	}
	sigprocmask(SIG_SETMASK, &old_mask, NULL);
	sigaction(SIGCHLD, &old_action, NULL);
	munmap(shared, sizeof(*shared));
	return report->result;
}
