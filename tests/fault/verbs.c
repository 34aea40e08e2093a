/* Every call of ksmctl's verbs and of ksmstat's reports that reaches the kernel, or for memory, fails once, and for good. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ksmctl/state.h"
#include "tests/fault/run.h"
#include "tests/fault/tree.h"

/*
 * Under each fault: it ends, by itself and with a documented code; a failure is told in one line; what it
 * prints as JSON is JSON, or nothing; the knobs are those before or those asked for.
 */

enum { WORDS_MAX = 10, CALLS_MAX = 20000, PROBLEMS_SHOWN = 6 };

struct verb {
	const char *name; /* of the test */
	const char *words[WORDS_MAX];
	bool is_json;
	bool says_on_stdout; /* exit code 1 is a result, not a failure */
	int codes;	     /* the documented exit codes, from 0 */
};

static const struct verb verbs[] = {
	{ "info", { "ksmctl", "info" }, false, false, 6 },
	{ "info --json", { "ksmctl", "info", "--json" }, true, false, 6 },
	{ "start", { "ksmctl", "start", "777", "33" }, false, false, 6 },
	{ "stop", { "ksmctl", "stop" }, false, false, 6 },
	{ "unmerge", { "ksmctl", "unmerge", "--force" }, false, false, 6 },
	{ "set, several",
		{ "ksmctl", "set", "pages_to_scan=777", "sleep_millisecs=33", "smart_scan=0",
			"run=0" },
		false, false, 6 },
	{ "set --unmerge-first",
		{ "ksmctl", "set", "--unmerge-first", "--force", "max_page_sharing=512",
			"merge_across_nodes=0" },
		false, false, 6 },
	{ "set, the advisor", { "ksmctl", "set", "advisor_mode=scan-time", "advisor_max_cpu=50" },
		false, false, 6 },
	{ "doctor", { "ksmctl", "doctor" }, false, true, 6 },
	{ "doctor --json", { "ksmctl", "doctor", "--json" }, true, true, 6 },
	/* A service that runs is played by this process, by its lock and its files. */
	{ "status", { "ksmctl", "status", "-c", "CONF" }, false, false, 6 },
	{ "status --json", { "ksmctl", "status", "--json", "-c", "CONF" }, true, false, 6 },
	{ "why", { "ksmctl", "why", "-c", "CONF" }, false, false, 6 },
	{ "daemon --restore", { "ksmctl", "daemon", "--restore", "-c", "CONF" }, false, false, 6 },
	{ "ksmstat", { "ksmstat" }, false, false, 3 },
	{ "ksmstat -J", { "ksmstat", "-J" }, true, false, 3 },
	{ "ksmstat --by user", { "ksmstat", "--by", "user" }, false, false, 3 },
	{ "ksmstat --by cgroup -J", { "ksmstat", "--by", "cgroup", "-J" }, true, false, 3 },
};

static char build[PATH_MAX], config_path[256];
static bool exhaustive; /* else a part of the calls, and of the errors for each */
static struct tree tree;
static struct ksm_state asked; /* the knobs after a run without a fault */
static char problems[8192];
static int problem_count;
static long call_count, run_count;

static void __attribute__((format(printf, 2, 3)))
problem(const struct run *run, const char *format, ...)
{
	char text[300];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (problem_count++ >= PROBLEMS_SHOWN)
		return;
	size_t at = strlen(problems);
	snprintf(problems + at, sizeof(problems) - at, "# %s; fault: %.60s# said: %.300s\n", text,
		run_was_hit(run) ? run_text(run->log_fd) : "none\n", run_text(run->err_fd));
}

/* Whether jq takes it. What was good before is good again. */
static bool is_json(const char *text)
{
	static char *known[64];
	static size_t next;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (known[i] && !strcmp(known[i], text))
			return true;
	}
	FILE *jq = popen("jq -es 'length == 1' >/dev/null 2>&1", "w"); /* NOLINT(cert-env33-c) */
	if (!jq)
		return false;
	fputs(text, jq);
	if (pclose(jq) != 0)
		return false;
	free(known[next]);
	known[next] = strdup(text);
	next = (next + 1) % (sizeof(known) / sizeof(*known));
	return true;
}

static bool restores(const struct verb *verb)
{
	return verb->words[2] && !strcmp(verb->words[2], "--restore");
}

static void judge_knobs(const struct verb *verb, const struct run *run, int code)
{
	struct ksm_state now;
	enum ksm_key key, other;
	tree_read(&tree, &now);
	if (tree_same(&now, &asked, &key) || (code && tree_same(&now, &tree.found, &other)))
		return;
	/* The first values are kept then, and it can be tried again. */
	char first[160];
	snprintf(first, sizeof(first), "%s/state/first-values", tree.work);
	if (code && restores(verb) && !access(first, F_OK))
		return;
	/* Where also putting back failed, it has to be said. */
	if (code && strstr(run_text(run->err_fd), "could not be put back"))
		return;
	problem(run, "exit code %d, and %s is %lld", code, ksm_keys[key].name,
		(long long)now.value[key]);
}

/* Things that are said in a line more, as they are another matter. */
static const char *const further[] = { "could not be put back", "cannot wait for the child",
	"/conf: " };

static void judge(const struct verb *verb, const struct run *run)
{
	bool odd;
	const char *name = verb->words[0];
	int lines = run_said(run, name, &odd);
	const char *out = run_text(run->out_fd);
	if (run->hung) {
		problem(run, "it hangs");
		return;
	}
	if (!WIFEXITED(run->status)) {
		problem(run, "ended by signal %d", WTERMSIG(run->status));
		return;
	}
	int code = WEXITSTATUS(run->status);
	if (code >= verb->codes && !(code == 71 || code == 72))
		problem(run, "exit code %d", code);
	int most = 1;
	const char *said = run_text(run->err_fd);
	for (size_t i = 0; i < sizeof(further) / sizeof(*further); i++)
		most = strstr(said, further[i]) ? 2 : most;
	int least = code && !(verb->says_on_stdout && *out);
	if (odd || lines > most || lines < least)
		problem(run, "exit code %d and %d lines said%s", code, lines,
			odd ? ", an odd one" : "");
	if (verb->is_json && *out && !is_json(out))
		problem(run, "exit code %d, and what it printed is no JSON", code);
	if (verb->is_json && !*out && !code)
		problem(run, "nothing printed, and exit code 0");
	judge_knobs(verb, run, code);
}

/* A folder as of a service: one that runs, or one that was killed. */
static void prepare_state(const struct verb *verb)
{
	static struct state_dir dir = { -1, -1 };
	struct ksm_state first = tree.found;
	pid_t holder;
	char path[160];
	bool fine = true;
	if (dir.fd < 0) {
		snprintf(path, sizeof(path), "%s/state", tree.work);
		fine = !state_open(&dir, path, true);
	}
	if (restores(verb)) {
		first.value[KSM_RUN] = 0;
		first.value[KSM_PAGES_TO_SCAN] = 4321;
		fine = fine && !state_save_first(&dir, &first, 99);
		if (dir.lock_fd >= 0)
			close(dir.lock_fd);
		dir.lock_fd = -1;
	} else if (dir.lock_fd < 0) {
		fine = fine && !state_lock(&dir, &holder);
	}
	if (!fine)
		exit(EXIT_FAILURE);
}

static bool run_one(const struct verb *verb, const struct fault *fault, int files, bool judged)
{
	char program[PATH_MAX + 16];
	const char *argv[WORDS_MAX + 3] = { program, "--root", tree.root };
	size_t count = 1;
	snprintf(program, sizeof(program), "%s/%s", build, verb->words[0]);
	count = 3;
	for (size_t i = 1; i < WORDS_MAX && verb->words[i]; i++)
		argv[count++] = strcmp(verb->words[i], "CONF") ? verb->words[i] : config_path;
	struct run run = { .argv = argv, .fault = *fault, .files = files };
	tree_reset(&tree);
	prepare_state(verb);
	run_start(&run);
	run_wait(&run);
	bool hit = run_was_hit(&run);
	if (judged)
		judge(verb, &run);
	run_close(&run);
	run_count++;
	return hit;
}

static bool report(const char *name, const char *kind)
{
	static int number;
	bool fine = problem_count == 0;
	printf("%s %d - %s: %s\n%s", fine ? "ok" : "not ok", ++number, name, kind, problems);
	if (problem_count > PROBLEMS_SHOWN)
		printf("# and %d more\n", problem_count - PROBLEMS_SHOWN);
	printf("# %ld calls, %ld runs\n", call_count, run_count);
	fflush(stdout);
	*problems = '\0';
	problem_count = 0;
	call_count = run_count = 0;
	return fine;
}

/* Each call in turn, once and from there on, until none is left. */
static bool sweep(const struct verb *verb, const char *calls, const int *errs, size_t err_count)
{
	long last = 0, step = 1;
	bool memory = !strcmp(calls, "memory");
	if (!exhaustive) {
		/* How many there are, and then a part of them: the first ones, and more and more thinly. */
		for (last = 1;
			run_one(verb, &(struct fault){ calls, NULL, last, 1, EIO, 0 }, 0, false);)
			last *= 2;
	}
	for (long at = 1; at < CALLS_MAX; at += step) {
		bool hit = false;
		for (size_t i = 0; i < err_count; i++) {
			size_t which = exhaustive ? i : (size_t)(at + i) % err_count;
			if (!exhaustive && i >= 2)
				break;
			/* No first values, no configuration: that is no fault, and there is nothing to do. */
			if (restores(verb) && errs[which] == ENOENT)
				continue;
			/* Signals come again, but not for ever; what is busy is asked again for seconds. */
			long for_good =
				errs[which] == EINTR || (errs[which] == EBUSY && !exhaustive) ? 5
											      : 0;
			struct fault fault = { calls, NULL, at, i && !exhaustive ? for_good : 1,
				errs[which], 0 };
			hit |= run_one(verb, &fault, 0, true);
			fault.times = for_good;
			if (exhaustive || memory)
				run_one(verb, &fault, 0, true);
		}
		if (!hit)
			break;
		call_count++;
		if (!exhaustive && at > 40)
			step = 1 + last / 60;
	}
	if (!call_count && !memory) {
		problem_count++;
		snprintf(problems, sizeof(problems), "# no call was ever reached\n");
	}
	return report(verb->name, calls);
}

static bool few_files(const struct verb *verb)
{
	for (int files = 3; files <= 24; files++)
		run_one(verb, &(struct fault){ 0 }, files, true);
	call_count = 22;
	return report(verb->name, "few descriptors");
}

static void make_state(void)
{
	char command[1024];
	snprintf(config_path, sizeof(config_path), "%s/conf", tree.work);
	snprintf(command, sizeof(command),
		"cd '%s' && mkdir -m 755 state && echo 'state-dir = %s/state' >conf && "
		"printf 'pid=1\nphase=boost\nreason=first look\nrun=1\n' >state/status && "
		"printf '1700000000000\tboost\t1\t2\t3\t4\tfirst look\n' >state/decisions",
		tree.work, tree.work);
	if (system(command) != 0) /* NOLINT(cert-env33-c): a path of our own */
		exit(EXIT_FAILURE);
}

int main(void)
{
	static const int io_errs[] = { EIO, ENOENT, EACCES, EROFS, EBUSY, EINTR, ENOMEM, 0 };
	static const int memory_errs[] = { ENOMEM };
	const char *b = getenv("B"), *which = getenv("FAULTS"), *only = getenv("FAULTS_OF");
	int failed = 0, count = 0;
	exhaustive = which && !strcmp(which, "all");
	if (!realpath(b ? b : "build", build))
		return EXIT_FAILURE;
	run_setup(build);
	tree_make(&tree, "linux-6.18");
	make_state();
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
		const struct verb *verb = &verbs[i];
		if (only && !strstr(verb->name, only))
			continue;
		run_one(verb, &(struct fault){ 0 }, 0, false);
		tree_read(&tree, &asked);
		failed += !sweep(verb, "io", io_errs, sizeof(io_errs) / sizeof(*io_errs));
		failed += !sweep(verb, "memory", memory_errs, 1);
		failed += !few_files(verb);
		count += 3;
	}
	tree_remove(&tree);
	printf("1..%d\n", count);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
