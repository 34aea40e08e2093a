/* Living processes to look at: they end with the test, whatever becomes of it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_UNIT_LIVE_H
#define TESTS_UNIT_LIVE_H

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sysfs/proc.h"
#include "tests/tap.h"

static inline void *live_wait(void *ready_fd)
{
	if (ready_fd && write(*(int *)ready_fd, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
	return NULL;
}

/* What a child does before it waits for its end. */
typedef void (*live_prepare)(void);

static inline void live_child(int ready_fd, live_prepare prepare, bool main_thread_exits)
{
	static int fd; /* outlives the main thread */
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = ready_fd;
	if (prepare)
		prepare();
	if (!main_thread_exits)
		live_wait(&fd);
	if (pthread_create(&thread, NULL, live_wait, &fd))
		_exit(1);
	pthread_exit(NULL);
}

/* Start a child and wait until it is as it shall be. */
static inline pid_t live_start(live_prepare prepare, bool main_thread_exits)
{
	int fds[2];
	char byte;

	ck_assert_int_eq(pipe(fds), 0);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid)
		live_child(fds[1], prepare, main_thread_exits);
	close(fds[1]);
	ck_assert_int_eq(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	return pid;
}

static inline void live_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Wait until stat shows this state. */
static inline void live_until(const struct proc *proc, char state)
{
	struct proc_stat stat = { 0 };

	for (int i = 0; i < 1000 && stat.state != state; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
		ck_assert_int_eq(proc_read_stat(proc, &stat), 0);
	}
	ck_assert_int_eq(stat.state, state);
}

#endif
