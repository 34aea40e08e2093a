/* Process events get lost: by injected failures, and by a storm of forks that is more than the socket holds. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/netlink.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/fault/memory.h"
#include "tests/fault/serve.h"
#include "tests/fault/tell.h"

/*
 * The processes are real here, and so is the connector; of /sys/kernel/mm it sees a copy, in a mount namespace.
 * Whatever gets lost, the service finds who opted in and who is gone, soon, at little cost, and says nothing.
 */

enum { OPTED = 5, FOUND_MS = 6000, STORM_FORKS = 15000, STORM_MS = 3000, BYTES = 1 << 20 };

static pid_t opted[OPTED];
static long run_count;

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool make_opted(void)
{
	for (int i = 0; i < OPTED; i++) {
		opted[i] = memory_opted_child(BYTES);
		if (opted[i] < 0)
			return false;
	}
	return true;
}

static void end_opted(void)
{
	for (int i = 0; i < OPTED; i++) {
		if (opted[i] <= 0)
			continue;
		kill(opted[i], SIGKILL);
		waitpid(opted[i], NULL, 0);
		opted[i] = 0;
	}
}

/* Wait until it knows of as many as these. Others may come and go meanwhile: then all are counted. */
static bool knows(const struct run *run, bool more, int64_t count)
{
	for (int ms = 0; ms < FOUND_MS; ms += 20) {
		int64_t now = serve_status("registered_processes");
		if (now >= 0 &&
			((more ? now >= count : now <= count) || now == memory_count_opted()))
			return true;
		usleep(20 * 1000);
	}
	return tell_problem_of(run, "%" PRId64 " registered, not %s %" PRId64,
		serve_status("registered_processes"), more ? "at least" : "at most", count);
}

static int64_t begin(struct run *run)
{
	serve_reset();
	serve_begin(run, NULL);
	if (!serve_becomes_ready(run))
		tell_problem_of(run, "it does not become ready");
	run_count++;
	return serve_status("registered_processes");
}

static void end(struct run *run, int said, int64_t begin_ms)
{
	bool odd;
	int code = serve_end(run), lines = run_said(run, "ksmctl: ", &odd);
	if (code != 0)
		tell_problem_of(run, "it ends with status %x, or hangs", run->status);
	else if (!serve_as_found())
		tell_problem_of(run, "not as found");
	else if (odd || lines != said)
		tell_problem_of(run, "%d lines said, not %d", lines, said);
	if (run->cpu_us / 1000 > (now_ms() - begin_ms) / 2)
		tell_problem_of(run, "it took %" PRId64 " ms of CPU", run->cpu_us / 1000);
	run_close(run);
}

/* Events cannot be read, from the moment on when it is ready. */
static void unread(const char *name, int err, long at, long times, int said)
{
	struct run run = { .fault = { "recvmsg", "READY=1", at, times, err, 0 } };
	int64_t begin_ms = now_ms(), base = begin(&run);
	if (!make_opted())
		tell_problem("no process can opt in");
	for (int ms = 0; said && ms < FOUND_MS && !*run_text(run.err_fd); ms += 20)
		usleep(20 * 1000);
	knows(&run, true, base + OPTED);
	end_opted();
	knows(&run, false, base);
	if (serve_status("connector") != !said)
		tell_problem_of(&run, "connector=%" PRId64, serve_status("connector"));
	if (!run_was_hit(&run))
		tell_problem("no call was ever reached");
	end(&run, said, begin_ms);
	tell_verdict("%s", name);
}

static void forks(int count, int64_t until_ms)
{
	for (int i = 0; i < count || now_ms() < until_ms; i++) {
		pid_t child = fork();
		if (child == 0)
			_exit(0);
		if (child < 0) /* the storm may be too much for the machine */
			usleep(1000);
		else
			waitpid(child, NULL, 0);
	}
}

/* Messages that the socket of this process had no room for. */
static long dropped(pid_t pid)
{
	char line[256];
	long drops = 0;
	FILE *file = fopen("/proc/net/netlink", "re");
	while (file && fgets(line, sizeof(line), file)) {
		int protocol, port;
		long lost;
		if (sscanf(line, "%*s %d %d %*s %*s %*s %*s %*s %ld", &protocol, &port, &lost) ==
				3 &&
			protocol == NETLINK_CONNECTOR && port == pid)
			drops += lost;
	}
	if (file)
		fclose(file);
	return drops;
}

/* It does not get to read, while more processes come and go than the socket can tell. */
static void storm_behind_its_back(void)
{
	struct run run = { 0 };
	int64_t begin_ms = now_ms(), base = begin(&run);
	kill(run.pid, SIGSTOP);
	forks(STORM_FORKS, 0);
	make_opted(); /* of these no event is left */
	kill(run.pid, SIGCONT);
	knows(&run, true, base + OPTED);
	long lost = dropped(run.pid);
	kill(run.pid, SIGSTOP);
	forks(STORM_FORKS, 0);
	end_opted();
	kill(run.pid, SIGCONT);
	knows(&run, false, base);
	if (!lost || dropped(run.pid) == lost)
		tell_problem_of(&run, "%ld events were lost: it proves nothing", lost);
	lost = dropped(run.pid);
	end(&run, 0, begin_ms);
	tell_verdict("%d forks while it does not read: %ld events lost, nobody missed",
		2 * STORM_FORKS, lost);
}

/* It reads while the storm goes on. */
static void in_the_storm(void)
{
	struct run run = { 0 };
	int64_t begin_ms = now_ms(), base = begin(&run);
	fflush(stdout);
	pid_t storm = fork();
	if (storm == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		forks(0, now_ms() + 4 * STORM_MS);
		_exit(0);
	}
	usleep(STORM_MS / 6 * 1000);
	make_opted();
	knows(&run, true, base + OPTED);
	end_opted();
	knows(&run, false, base);
	if (waitpid(storm, NULL, WNOHANG) != 0)
		tell_problem_of(&run, "the storm was over first");
	kill(storm, SIGKILL);
	waitpid(storm, NULL, 0);
	end(&run, 0, begin_ms);
	tell_verdict("in a storm of forks that goes on");
}

/* Put the copy over /sys/kernel/mm. Returns NULL, or why not. */
static const char *cover_kernel(void)
{
	char path[200];
	struct statfs st;
	snprintf(path, sizeof(path), "%s/sys/kernel/mm", serve.tree.root);
	if (!serve_own_mounts() || mount(path, "/sys/kernel/mm", NULL, MS_BIND, NULL) < 0)
		return "no right to mount";
	if (statfs("/sys/kernel/mm/ksm", &st) < 0 || st.f_type == SYSFS_MAGIC)
		return "the kernel's own knobs are still there";
	return NULL;
}

int main(void)
{
	const char *missing = NULL;
	serve_setup();
	serve.live = true;
	missing = cover_kernel();
	if (!missing && !make_opted())
		missing = "this kernel has no prctl to opt in";
	end_opted();
	if (!missing) {
		struct run run = { 0 };
		begin(&run);
		if (strstr(run_text(run.err_fd), "no process connector here"))
			missing = "no process connector here";
		else if (serve_status("connector") != 1)
			tell_problem_of(&run, "connector=%" PRId64, serve_status("connector"));
		serve_end(&run);
		run_close(&run);
	}
	if (missing) {
		tell_skip("process events get lost", missing);
	} else {
		unread("ENOBUFS for ever", ENOBUFS, 1, 0, 0);
		unread("ENOBUFS now", ENOBUFS, 1, 1, 0);
		unread("ENOBUFS some times", ENOBUFS, 3, 30, 0);
		unread("EIO some times: it goes on with events", EIO, 1, 12, 0);
		unread("EIO for ever: said once, and it goes without", EIO, 1, 0, 1);
		storm_behind_its_back();
		in_the_storm();
	}
	printf("# %ld runs\n", run_count);
	tree_remove(&serve.tree);
	return tell_end();
}
