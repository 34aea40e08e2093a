/* Every call of the service that reaches the kernel, or for memory, fails once: as it starts, works, and stops. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "tests/fault/serve.h"
#include "tests/fault/tell.h"

/*
 * A start that fails says so in one line and leaves all as found. A service that works survives the fault, does
 * afterwards what it is asked for, and puts all back at its end. A fault at the end is survived too, or
 * --restore makes up for it.
 */

enum { HIT_MS = 400, SHOWN_MS = 3000, CALLS_MAX = 5000 };

static bool past_start; /* the fault comes later than the part that is looked at */

static const char *judge_start(struct run *run)
{
	bool ready = serve_becomes_ready(run);
	bool ended = run->pid == 0;
	past_start = ready && !run_was_hit(run);
	int code = serve_end(run);
	if (past_start)
		return NULL;
	/* The message itself may be what was lost. */
	const char *call = run_text(run->log_fd);
	if (!ready && !ended && strncmp(call, "socket", 6) != 0 && strncmp(call, "sendto", 6) != 0)
		return "it neither becomes ready nor ends";
	if (!ended ? code != 0 : code != 1 && code != 2 && code != 4)
		return "a wrong exit code";
	if (ended && serve_failures(run) != 1)
		return "not one line said";
	return serve_as_found() ? NULL : "not as found";
}

static const char *judge_work(struct run *run)
{
	if (!serve_becomes_ready(run))
		return "it does not become ready";
	/* Something happens: a pass ends, and the configuration is read again, which takes memory. */
	tree_scan(&serve.tree, 5000);
	kill(run->pid, SIGHUP);
	for (int ms = 0; ms < HIT_MS && !run_was_hit(run); ms++) {
		if (run_ends(run, 1))
			return "it ended";
	}
	kill(run->pid, SIGUSR1);
	if (!serve_shows("reason=a boost was asked for", SHOWN_MS))
		return run_ends(run, 0) ? "it ended" : "it does not do what it is asked for";
	if (serve_end(run) != 0)
		return "a wrong exit code, or it hangs";
	return serve_as_found() ? NULL : "not as found";
}

static const char *judge_stop(struct run *run)
{
	if (!serve_becomes_ready(run))
		return "it does not become ready";
	int code = serve_end(run);
	if (code == 0)
		return serve_as_found() ? NULL : "not as found";
	if (code < 0)
		return "it hangs, or a signal ended it";
	if (serve_failures(run) != 1)
		return "not one line said";
	if (serve_again("--restore") != 0)
		return "--restore fails";
	return serve_as_found() ? NULL : "not as found after --restore";
}

/* One run. Returns whether the fault came in the part that is looked at. */
static bool run_one(const struct fault *fault, const char *(*judge)(struct run *))
{
	struct run run = { .fault = *fault };
	serve_reset();
	serve_begin(&run, NULL);
	const char *problem = judge(&run);
	serve_end(&run);
	bool hit = run_was_hit(&run) && !past_start;
	if (problem)
		tell_problem_of(&run, "%s", problem);
	run_close(&run);
	return hit;
}

static void sweep(const char *name, const struct fault *base, const int *errs, size_t err_count,
	const char *(*judge)(struct run *), long most)
{
	long calls = 0, faults = 0;
	past_start = false;
	for (long at = 1; at < most && !tell_has_problem();
		at += serve.exhaustive || at < 60 ? 1 : 7) {
		long before = faults;
		for (size_t i = 0; i < (serve.exhaustive ? err_count : 1); i++) {
			struct fault fault = *base;
			fault.at = at;
			fault.times = 1;
			fault.err = errs[serve.exhaustive ? i : (size_t)at % err_count];
			if (!tell_has_problem())
				faults += run_one(&fault, judge);
		}
		if (faults == before)
			break;
		calls++;
	}
	if (!calls)
		tell_problem("no call was ever reached");
	tell_verdict("%s: %s, %ld calls, %ld faults", name, base->calls, calls, faults);
}

int main(void)
{
	/* A file of the kernel that is there does not vanish: no ENOENT. */
	static const int io_errs[] = { EIO, EACCES, EROFS, EBUSY, EINTR, ENOMEM, 0, EMFILE,
		ENOSPC };
	static const int memory_errs[] = { ENOMEM };
	static const struct {
		const char *name, *calls, *since;
		const char *(*judge)(struct run *);
		long most;
	} parts[] = {
		{ "a fault at the start", "io", NULL, judge_start, CALLS_MAX },
		{ "a fault at work", "io", "READY=1", judge_work, 400 },
		{ "a fault at the end", "io", "STOPPING=1", judge_stop, CALLS_MAX },
		{ "a fault at the start", "memory", NULL, judge_start, 240 },
		{ "a fault at work", "memory", "READY=1", judge_work, 240 },
		/* At the end it asks for none. */
	};
	serve_setup();
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		struct fault fault = { .calls = parts[i].calls, .since = parts[i].since };
		bool memory = !strcmp(parts[i].calls, "memory");
		long most = serve.exhaustive || parts[i].most < 240 ? parts[i].most : 240;
		sweep(parts[i].name, &fault, memory ? memory_errs : io_errs,
			memory ? 1 : sizeof(io_errs) / sizeof(*io_errs), parts[i].judge, most);
	}
	tree_remove(&serve.tree);
	return tell_end();
}
