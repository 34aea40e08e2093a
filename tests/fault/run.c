/* Starts a program under one fault, with all that it says, and looks at how it ended. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/fault/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Above whatever the program opens. */
enum { LOG_FD = 200, HANG_MS = 8 * 1000 };

static char preload[PATH_MAX * 2 + 32];

void run_setup(const char *build)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	puts("1..0 # SKIP a sanitizer's runtime cannot do without the calls that fail");
	exit(77);
#endif
	snprintf(preload, sizeof(preload), "%s/tests/fault/fault.so:%s/tests/fault/kernel.so",
		build, build);
}

static void set_number(const char *name, long value)
{
	char text[32];
	snprintf(text, sizeof(text), "%ld", value);
	setenv(name, text, 1);
}

static void set_fault(const struct run *run)
{
	const struct fault *fault = &run->fault;
	if (run->clock)
		setenv("FAULT_CLOCK", run->clock, 1);
	if (run->files)
		set_number("FAULT_FILES", run->files);
	if (!fault->calls)
		return;
	setenv("FAULT_CALLS", fault->calls, 1);
	if (fault->since)
		setenv("FAULT_SINCE", fault->since, 1);
	set_number("FAULT_AT", fault->at);
	set_number("FAULT_TIMES", fault->times);
	set_number("FAULT_ERRNO", fault->err);
	set_number("FAULT_SIGNAL", fault->signal);
	set_number("FAULT_LOG_FD", LOG_FD);
}

static void become(const struct run *run)
{
	int null = open("/dev/null", O_RDONLY);
	int in = run->terminal_fd ? run->terminal_fd : null;
	int out = run->terminal_fd ? run->terminal_fd : run->out_fd;
	struct rlimit none = { 0, 0 };
	setrlimit(RLIMIT_CORE, &none);
	if (null < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(run->err_fd, 2) < 0 ||
		dup2(run->log_fd, LOG_FD) < 0)
		_exit(99);
	close(null);
	setenv("LD_PRELOAD", preload, 1);
	/* A sanitizer wants to be loaded first; these are no harm to it. */
	setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
	set_fault(run);
	execv(run->argv[0], (char *const *)run->argv);
	_exit(98);
}

static int memory_file(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0) {
		perror("memfd_create");
		exit(EXIT_FAILURE);
	}
	return fd;
}

void run_start(struct run *run)
{
	run->out_fd = memory_file("out");
	run->err_fd = memory_file("err");
	run->log_fd = memory_file("log");
	run->hung = false;
	fflush(stdout);
	run->pid = fork();
	if (run->pid == 0)
		become(run);
	run->pidfd = (int)syscall(SYS_pidfd_open, run->pid, 0);
	if (run->pid < 0 || run->pidfd < 0) {
		perror("run_start");
		exit(EXIT_FAILURE);
	}
}

bool run_ends(struct run *run, int ms)
{
	struct pollfd end = { .fd = run->pidfd, .events = POLLIN };
	if (run->pid == 0)
		return true;
	if (poll(&end, 1, ms) != 1)
		return false;
	struct rusage usage = { 0 };
	wait4(run->pid, &run->status, 0, &usage);
	run->cpu_us = (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
		      usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
	run->pid = 0;
	return true;
}

void run_wait(struct run *run)
{
	if (run_ends(run, HANG_MS))
		return;
	run->hung = true;
	kill(run->pid, SIGKILL);
	run_ends(run, -1);
}

void run_close(struct run *run)
{
	close(run->pidfd);
	close(run->out_fd);
	close(run->err_fd);
	close(run->log_fd);
}

bool run_was_hit(const struct run *run)
{
	return lseek(run->log_fd, 0, SEEK_END) > 0;
}

const char *run_text(int fd)
{
	static char texts[4][RUN_TEXT_MAX];
	static int turn;
	char *text = texts[turn = (turn + 1) % 4];
	ssize_t len = pread(fd, text, RUN_TEXT_MAX - 1, 0);
	text[len > 0 ? len : 0] = '\0';
	return text;
}

int run_said(const struct run *run, const char *name, bool *odd)
{
	int lines = 0;
	const char *line = run_text(run->err_fd);
	*odd = false;
	while (*line) {
		const char *end = strchrnul(line, '\n');
		*odd |= strncmp(line, name, strlen(name)) != 0 || !*end;
		lines++;
		line = *end ? end + 1 : end;
	}
	return lines;
}
