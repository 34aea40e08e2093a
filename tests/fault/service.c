/* Every call of the service that reaches the kernel, or for memory, fails once: as it starts, works, and stops. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fault/run.h"
#include "tests/fault/tree.h"

/*
 * A start that fails says so in one line and leaves all as found. A service that works survives the fault,
 * and puts all back at its end. A fault at the end is survived too, or --restore makes up for it.
 */

enum { READY_MS = 5000, HIT_MS = 400, AFTER_MS = 40, CALLS_MAX = 5000 };

static struct tree tree;
static char build[PATH_MAX], program[PATH_MAX + 16], config_path[160], first_path[200];
static int notify_fd, failed, count;
static bool exhaustive, past_start; /* the fault comes later than the part that is looked at */

static bool notified(const char *text, int ms)
{
	char message[256];
	struct pollfd in = { .fd = notify_fd, .events = POLLIN };
	while (poll(&in, 1, ms) == 1) {
		ssize_t len = recv(notify_fd, message, sizeof(message) - 1, 0);
		message[len > 0 ? len : 0] = '\0';
		if (!strcmp(message, text))
			return true;
	}
	return false;
}

static void begin(struct run *run, const struct fault *fault, const char *mode)
{
	static const char *argv[8];
	const char *const words[] = { program, "--root", tree.root, "daemon", "-c", config_path,
		mode };
	memcpy(argv, words, sizeof(words));
	*run = (struct run){ .argv = argv, .fault = *fault };
	while (notified("", 0))
		;
	run_start(run);
}

/* It is there and ready, or it has ended. */
static bool becomes_ready(struct run *run)
{
	for (int ms = 0; ms < READY_MS; ms += 20) {
		if (notified("READY=1", 20))
			return true;
		if (run_ends(run, 0))
			return false;
	}
	return false;
}

static bool as_found(void)
{
	struct ksm_state now;
	enum ksm_key key;
	tree_read(&tree, &now);
	return tree_same(&now, &tree.found, &key) && access(first_path, F_OK) < 0;
}

/* Ends it. Returns its exit code, or -1. */
static int end(struct run *run)
{
	if (run->pid)
		kill(run->pid, SIGTERM);
	run_wait(run);
	return !run->hung && WIFEXITED(run->status) ? WEXITSTATUS(run->status) : -1;
}

/* What else it may say: that below --root there are no events of processes. */
static int failures_said(const struct run *run)
{
	bool odd;
	int lines = run_said(run, "ksmctl: ", &odd);
	return odd ? -1 : lines - !!strstr(run_text(run->err_fd), "no process connector here");
}

static const char *judge_start(struct run *run)
{
	bool ready = becomes_ready(run);
	bool ended = run->pid == 0;
	past_start = ready && !run_was_hit(run);
	int code = end(run);
	if (past_start)
		return NULL;
	/* The message itself may be what was lost. */
	const char *call = run_text(run->log_fd);
	if (!ready && !ended && strncmp(call, "socket", 6) != 0 && strncmp(call, "sendto", 6) != 0)
		return "it neither becomes ready nor ends";
	if (!ended ? code != 0 : code != 1 && code != 2 && code != 4)
		return "a wrong exit code";
	if (ended && failures_said(run) != 1)
		return "not one line said";
	return as_found() ? NULL : "not as found";
}

static const char *judge_work(struct run *run)
{
	if (!becomes_ready(run))
		return "it does not become ready";
	for (int ms = 0; ms < HIT_MS && !run_was_hit(run); ms++) {
		if (run_ends(run, 1))
			return "it ended";
	}
	if (run_ends(run, run_was_hit(run) ? AFTER_MS : 0))
		return "it ended";
	if (end(run) != 0)
		return "a wrong exit code, or it hangs";
	return as_found() ? NULL : "not as found";
}

static const char *judge_stop(struct run *run)
{
	if (!becomes_ready(run))
		return "it does not become ready";
	int code = end(run);
	if (code == 0)
		return as_found() ? NULL : "not as found";
	if (code < 0)
		return "it hangs, or a signal ended it";
	if (failures_said(run) != 1)
		return "not one line said";
	struct run again;
	begin(&again, &(struct fault){ 0 }, "--restore");
	run_wait(&again);
	code = end(&again);
	run_close(&again);
	return code ? "--restore fails" : as_found() ? NULL : "not as found after --restore";
}

static void sweep(const char *name, const struct fault *base, const int *errs, size_t err_count,
	const char *(*judge)(struct run *), long most)
{
	struct run run;
	const char *problem = NULL;
	char what[600] = "";
	long calls = 0;
	past_start = false;
	for (long at = 1; at < most && !problem; at += exhaustive || at < 60 ? 1 : 7) {
		bool hit = false;
		for (size_t i = 0; i < (exhaustive ? err_count : 1) && !problem; i++) {
			struct fault fault = *base;
			fault.at = at;
			fault.times = 1;
			fault.err = errs[exhaustive ? i : (size_t)at % err_count];
			tree_reset(&tree);
			unlink(first_path);
			begin(&run, &fault, NULL);
			problem = judge(&run);
			end(&run);
			hit |= run_was_hit(&run) && !past_start;
			if (problem)
				snprintf(what, sizeof(what), "# %s; fault: %.80s# said: %.400s\n",
					problem,
					run_was_hit(&run) ? run_text(run.log_fd) : "none\n",
					run_text(run.err_fd));
			run_close(&run);
		}
		if (!hit)
			break;
		calls++;
	}
	/* At work, and at the end, it need not ask for memory. */
	if (!calls && !problem && !(base->since && !strcmp(base->calls, "memory"))) {
		problem = "no call was ever reached";
		snprintf(what, sizeof(what), "# %s\n", problem);
	}
	failed += problem != NULL;
	printf("%s %d - %s: %s\n%s# %ld calls\n", problem ? "not ok" : "ok", ++count, name,
		base->calls, what, calls);
	fflush(stdout);
}

static void setup(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *b = getenv("B"), *which = getenv("FAULTS");
	exhaustive = which && !strcmp(which, "all");
	if (!realpath(b ? b : "build", build))
		exit(EXIT_FAILURE);
	snprintf(program, sizeof(program), "%s/ksmctl", build);
	run_setup(build);
	tree_make(&tree, "linux-6.18");
	snprintf(config_path, sizeof(config_path), "%s/conf", tree.work);
	snprintf(first_path, sizeof(first_path), "%s/state/first-values", tree.work);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.80s/notify", tree.work);
	FILE *config = fopen(config_path, "we");
	notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (!config || bind(notify_fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		exit(EXIT_FAILURE);
	fprintf(config, "state-dir = %s/state\ninterval = 20\nrest-interval = 100\n", tree.work);
	fclose(config);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
}

int main(void)
{
	/* A file of the kernel that is there does not vanish: no ENOENT. */
	static const int io_errs[] = { EIO, EACCES, EROFS, EBUSY, EINTR, ENOMEM, 0 };
	static const int memory_errs[] = { ENOMEM };
	static const struct {
		const char *name, *since;
		const char *(*judge)(struct run *);
	} parts[] = {
		{ "a fault at the start", NULL, judge_start },
		{ "a fault at work", "READY=1", judge_work },
		{ "a fault at the end", "STOPPING=1", judge_stop },
	};
	setup();
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		struct fault fault = { .calls = "io", .since = parts[i].since };
		long most = exhaustive ? CALLS_MAX : 240;
		sweep(parts[i].name, &fault, io_errs, sizeof(io_errs) / sizeof(*io_errs),
			parts[i].judge, parts[i].judge == judge_work && exhaustive ? 400 : most);
	}
	for (int i = 0; i < 2; i++) {
		struct fault fault = { .calls = "memory", .since = parts[i].since };
		sweep(parts[i].name, &fault, memory_errs, 1, parts[i].judge, 240);
	}
	tree_remove(&tree);
	printf("1..%d\n", count);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
