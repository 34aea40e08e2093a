/* Descriptors run out under the service, and so does the room for its files. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fault/serve.h"
#include "tests/fault/tell.h"

/*
 * It starts as a whole or says in one line why not; at work it goes on with what it has, says so once, and is
 * itself again when there is room; and in any case the kernel is as found in the end.
 */

enum { FEWEST_FILES = 3, MANY_FILES = 24, SHOWN_MS = 2000, KICK_US = 60 * 1000, KICKS = 6 };

static long run_count;

static int lines_with(const struct run *run, const char *words)
{
	int lines = 0;
	for (const char *p = run_text(run->err_fd); (p = strstr(p, words)); p += strlen(words))
		lines++;
	return lines;
}

static void judge_end(struct run *run)
{
	if (serve_end(run) != 0)
		tell_problem_of(run, "it ends with status %x, or hangs", run->status);
	else if (!serve_as_found())
		tell_problem_of(run, "not as found");
	run_close(run);
	run_count++;
}

/* A start that fails: one line, with these words, and nothing is changed or kept. */
static void fails_to_start(int wanted, const char *words)
{
	struct run run = { 0 };
	serve_begin(&run, NULL);
	bool ready = serve_becomes_ready(&run);
	int code = serve_end(&run);
	if (ready || code != wanted || serve_failures(&run) != 1 || !lines_with(&run, words))
		tell_problem_of(&run, "exit code %d, and not one line with '%s'", code, words);
	if (!serve_as_found())
		tell_problem_of(&run, "not as found");
	run_close(&run);
	run_count++;
}

/* Decisions follow each other, so that it has something to write. */
static void kick(const struct run *run)
{
	for (int i = 0; i < KICKS; i++) {
		tree_scan(&serve.tree, 5000);
		if (i % 2 == 0)
			kill(run->pid, SIGUSR1);
		usleep(KICK_US);
	}
}

static void few_descriptors(void)
{
	int started = 0;
	for (int files = FEWEST_FILES; files <= MANY_FILES; files++) {
		struct run run = { .files = files };
		serve_reset();
		serve_begin(&run, NULL);
		bool ready = serve_becomes_ready(&run), ended = run.pid == 0;
		int code = serve_end(&run);
		started += ready;
		if (code < 0 || (ended ? code == 0 : code != 0))
			tell_problem_of(&run, "%d descriptors: exit code %d", files, code);
		/* The C library's loader speaks before the program does. */
		if (ended && code != 127 && serve_failures(&run) != 1)
			tell_problem_of(&run, "%d descriptors: not one line", files);
		if (!serve_as_found())
			tell_problem_of(&run, "%d descriptors: not as found", files);
		run_close(&run);
		run_count++;
	}
	if (started == 0 || started > MANY_FILES - FEWEST_FILES)
		tell_problem("it starts with %d numbers of descriptors: it proves little", started);
	tell_verdict("the service with %d to %d descriptors", FEWEST_FILES, MANY_FILES);
}

/* None for a while: it forgets nobody, and goes on afterwards. */
static void none_for_a_while(int err, const char *name)
{
	struct run run = { .fault = { "open,open64,openat,openat64,socket", "READY=1", 1, 400, err,
				   0 } };
	serve_reset();
	serve_begin(&run, NULL);
	if (!serve_becomes_ready(&run))
		tell_problem_of(&run, "it does not become ready");
	int64_t before = serve_status("registered_processes");
	for (int i = 0; i < 200 && strstr(run_text(run.log_fd), " 400 ") == NULL; i++) {
		usleep(20 * 1000);
		kill(run.pid, SIGUSR1);
	}
	if (!strstr(run_text(run.log_fd), " 400 "))
		tell_problem_of(&run, "it asks for too few: it proves little");
	tree_scan(&serve.tree, 5000);
	kill(run.pid, SIGUSR1);
	if (!serve_shows("reason=a boost was asked for", SHOWN_MS))
		tell_problem_of(&run, "it does not do what it is asked for");
	int64_t after = serve_status("registered_processes");
	if (before < 1 || after != before)
		tell_problem_of(&run, "%lld processes before, %lld after", (long long)before,
			(long long)after);
	judge_end(&run);
	tell_verdict("at work no descriptor can be had for a while: %s", name);
}

static void need(bool fine, const char *what)
{
	if (!fine)
		tell_problem("%s: %s", what, strerror(errno));
}

static void fill(bool full)
{
	char path[200];
	static char zeros[4096];
	snprintf(path, sizeof(path), "%s/filler", serve.state_path);
	if (!full) {
		unlink(path);
		return;
	}
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	need(fd >= 0, path);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	need(errno == ENOSPC, "a full folder");
	close(fd);
}

static void mount_state(const char *options)
{
	umount2(serve.state_path, MNT_DETACH);
	mkdir(serve.state_path, 0755);
	need(mount("tmpfs", serve.state_path, "tmpfs", 0, options) == 0, "mount");
	serve_reset();
}

static void no_room_at_start(void)
{
	mount_state("size=8k,mode=755");
	fill(true);
	fails_to_start(1, "No space left");
	fill(false);
	if (serve_again(NULL) != 0 || !serve_as_found())
		tell_problem("with room again it does not start, or not as found");
	tell_verdict("no room for the first values: it does not start, and does when there is");
	/* Of files there may be one (the folder), two and so on: the lock, the first values. */
	for (int files = 1; files <= 3; files++) {
		char options[64];
		snprintf(options, sizeof(options), "size=64k,nr_inodes=%d,mode=755", files);
		mount_state(options);
		if (files < 3)
			fails_to_start(1, "No space left");
	}
	struct run run = { 0 };
	serve_begin(&run, NULL);
	need(serve_becomes_ready(&run), "ready with room for the first values");
	kick(&run);
	if (lines_with(&run, "cannot write the status") != 1)
		tell_problem_of(&run, "not said once");
	judge_end(&run);
	tell_verdict("no file more can be made: it starts where the first values are kept");
}

static void no_room_at_work(void)
{
	struct run run = { 0 };
	mount_state("size=32k,mode=755");
	serve_begin(&run, NULL);
	need(serve_becomes_ready(&run), "ready");
	fill(true);
	kick(&run);
	if (lines_with(&run, "cannot write the status") != 1)
		tell_problem_of(&run, "not said once");
	fill(false);
	kill(run.pid, SIGUSR1);
	if (!serve_shows("reason=a boost was asked for", SHOWN_MS))
		tell_problem_of(&run, "with room again it writes no status");
	fill(true);
	judge_end(&run);
	fill(false);
	tell_verdict("a folder that is full, has room again, and is full at the end");
}

static void read_only_at_start(void)
{
	mount_state("size=64k,mode=755");
	need(mount(NULL, serve.state_path, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0, "remount");
	fails_to_start(4, "Read-only file system");
	need(mount(NULL, serve.state_path, NULL, MS_REMOUNT, NULL) == 0, "remount");
	if (serve_again(NULL) != 0 || !serve_as_found())
		tell_problem("writable again, it does not start, or not as found");
	run_count++;
	tell_verdict("a read-only folder: it does not start, and does when it is writable");
}

int main(void)
{
	serve_setup();
	few_descriptors();
	none_for_a_while(EMFILE, "EMFILE");
	none_for_a_while(ENFILE, "ENFILE");
	if (serve_own_mounts()) {
		no_room_at_start();
		no_room_at_work();
		read_only_at_start();
		umount2(serve.state_path, MNT_DETACH);
	} else {
		tell_skip("a full state folder", "no right to mount");
	}
	printf("# %ld runs\n", run_count);
	tree_remove(&serve.tree);
	return tell_end();
}
