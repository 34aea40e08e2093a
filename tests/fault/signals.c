/* A signal at every call that reaches the kernel: of the service as it starts, works and stops, and of what writes knobs. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/fault/serve.h"
#include "tests/fault/tell.h"

/*
 * Whenever it comes: the program ends as documented, or by that signal; the knobs are those before or those
 * asked for, nothing in between; and the next start is not kept from anything.
 */

enum { WORDS_MAX = 8, CALLS_MAX = 5000, READY_STEP = 60 };

static const int ending[] = { SIGTERM, SIGINT, SIGQUIT };
static const int asking[] = { SIGHUP, SIGUSR1 };
static const int all[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGPIPE };

struct part {
	const char *name, *since;
	const int *signals;
	size_t signal_count;
	void (*judge)(struct run *run, int signal);
	int most;
};

static bool past; /* the signal comes later than the part that is looked at */

static bool ended_by(const struct run *run, int signal)
{
	return WIFSIGNALED(run->status) && WTERMSIG(run->status) == signal;
}

/* It ends by itself, the kernel as it was found. */
static void judge_ending(struct run *run, int signal)
{
	bool ready = serve_becomes_ready(run);
	past = ready && !run->fault.since && !run_was_hit(run);
	if (past || (run->fault.since && !strcmp(run->fault.since, "STOPPING=1"))) {
		serve_end(run);
	} else {
		run_wait(run);
	}
	if (run->hung)
		tell_problem_of(run, "it goes on");
	else if (run->status && !(ended_by(run, signal) && !ready))
		tell_problem_of(run, "it ends with status %x", run->status);
	else if (!serve_as_found())
		tell_problem_of(run, "not as found");
	else if (serve_failures(run) != 0)
		tell_problem_of(run, "it says something");
}

/* It goes on until it is asked to end; before it listens, a signal ends it, and nothing was touched. */
static void judge_asking(struct run *run, int signal)
{
	bool ready = serve_becomes_ready(run);
	past = ready && !run->fault.since && !run_was_hit(run);
	bool early = !ready && ended_by(run, signal);
	int code = serve_end(run);
	if (run->hung || (!early && (!ready || code)))
		tell_problem_of(run, "it ends with status %x, or hangs", run->status);
	else if (!serve_as_found())
		tell_problem_of(run, "not as found");
}

/* Values are left by a service that was killed; whatever happens now, they are put back in the end. */
static void judge_restore(struct run *run, int signal)
{
	run_wait(run);
	if (run->hung || (run->status && !ended_by(run, signal)))
		tell_problem_of(run, "it ends with status %x, or hangs", run->status);
	else if (serve_again("--restore") != 0 || !serve_as_found())
		tell_problem_of(run, "not as found after a second --restore");
}

/* The knobs and the folder as a killed service leaves them. */
static void leave(void)
{
	struct run run = { 0 };
	serve_begin(&run, NULL);
	serve_becomes_ready(&run);
	if (run.pid)
		kill(run.pid, SIGKILL);
	run_wait(&run);
	run_close(&run);
	if (serve_as_found())
		tell_problem("a killed service left nothing: it proves nothing");
}

static void sweep(const struct part *part)
{
	long sent = 0;
	past = false;
	for (int at = 1; at < part->most && !tell_has_problem();
		at += serve.exhaustive || at < READY_STEP ? 1 : 7) {
		bool hit = false;
		for (size_t i = 0; i < (serve.exhaustive ? part->signal_count : 1); i++) {
			int signal = part->signals[((size_t)at + i) % part->signal_count];
			struct run run = { .fault = { "io", part->since, at, 1, 0, signal } };
			serve_reset();
			if (part->judge == judge_restore)
				leave();
			serve_begin(&run, part->judge == judge_restore ? "--restore" : NULL);
			part->judge(&run, signal);
			serve_end(&run);
			hit |= run_was_hit(&run) && !past;
			sent += run_was_hit(&run) && !past;
			run_close(&run);
		}
		if (!hit)
			break;
	}
	if (!sent)
		tell_problem("no call was ever reached");
	if (serve_again(NULL) != 0)
		tell_problem("the next start fails");
	tell_verdict("%s: %ld signals", part->name, sent);
}

static const char *const verbs[][WORDS_MAX] = {
	{ "start", "777", "33" },
	{ "stop" },
	{ "set", "pages_to_scan=777", "sleep_millisecs=33", "smart_scan=0", "run=0" },
	{ "set", "advisor_mode=scan-time", "advisor_max_cpu=50" },
	{ "set", "--unmerge-first", "--force", "max_page_sharing=512", "merge_across_nodes=0" },
	{ "unmerge", "--force" },
};

static void judge_verb(const struct run *run, int signal, const struct ksm_state *asked)
{
	struct ksm_state now;
	enum ksm_key key, other;
	bool odd;
	int lines = run_said(run, "ksmctl: ", &odd);
	tree_read(&serve.tree, &now);
	bool done = tree_same(&now, asked, &key), none = tree_same(&now, &serve.tree.found, &other);
	int code = WIFEXITED(run->status) ? WEXITSTATUS(run->status) : -1;
	if (run->hung)
		tell_problem_of(run, "it hangs");
	else if (code < 0 ? !ended_by(run, signal) : code > 1)
		tell_problem_of(run, "it ends with status %x", run->status);
	else if (code == 0 ? !done : !done && !none)
		tell_problem_of(run, "status %x, and %s is %lld", run->status, ksm_keys[key].name,
			(long long)now.value[key]);
	else if (odd || lines > 1 || (code == 1 && !lines))
		tell_problem_of(run, "exit code %d, and %d lines", code, lines);
}

static bool run_verb(const char *const *words, int at, int signal, struct ksm_state *asked)
{
	const char *argv[WORDS_MAX + 4] = { serve.program, "--root", serve.tree.root };
	struct run run = { .argv = argv, .fault = { at ? "io" : NULL, NULL, at, 1, 0, signal } };
	memcpy(argv + 3, words, WORDS_MAX * sizeof(*words));
	serve_reset();
	run_start(&run);
	run_wait(&run);
	bool hit = run_was_hit(&run);
	if (at)
		judge_verb(&run, signal, asked);
	else
		tree_read(&serve.tree, asked);
	run_close(&run);
	return hit;
}

static void sweep_verb(const char *const *words)
{
	struct ksm_state asked;
	long sent = 0;
	bool hit = true;
	size_t count = sizeof(all) / sizeof(*all);
	run_verb(words, 0, 0, &asked);
	for (int at = 1; at < CALLS_MAX && hit && !tell_has_problem(); at++) {
		hit = false;
		for (size_t i = 0; i < (serve.exhaustive ? count : 1); i++) {
			bool came = run_verb(words, at, all[((size_t)at + i) % count], &asked);
			hit |= came;
			sent += came;
		}
	}
	if (!sent)
		tell_problem("no call was ever reached");
	tell_verdict("ksmctl %s %s: %ld signals", words[0], words[1] ? words[1] : "", sent);
}

#define LIST(signals) signals, sizeof(signals) / sizeof(*(signals))

int main(void)
{
	static const struct part parts[] = {
		{ "an end is asked for at the start", NULL, LIST(ending), judge_ending, CALLS_MAX },
		{ "an end is asked for at work", "READY=1", LIST(ending), judge_ending, 100 },
		{ "and again at the end", "STOPPING=1", LIST(ending), judge_ending, CALLS_MAX },
		{ "SIGHUP and SIGUSR1 at the start", NULL, LIST(asking), judge_asking, CALLS_MAX },
		{ "and at the end", "STOPPING=1", LIST(asking), judge_asking, CALLS_MAX },
		{ "all signals while --restore works", NULL, LIST(all), judge_restore, CALLS_MAX },
	};
	serve_setup();
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		sweep(&parts[i]);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		sweep_verb(verbs[i]);
	tree_remove(&serve.tree);
	return tell_end();
}
