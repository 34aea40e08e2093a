/* Starts a program under one fault, with all that it says, and looks at how it ended. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_FAULT_RUN_H
#define TESTS_FAULT_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* As tests/fault/fault.c reads it from its environment. */
struct fault {
	const char *calls; /* "io", "memory" or names; NULL: none fails */
	const char *since; /* NULL: from the start */
	long at, times;
	int err;
	int signal; /* comes at that call, instead of a failure; 0: none */
};

struct run {
	const char *const *argv;
	struct fault fault;
	int files;	   /* how many descriptors it may have; 0: as many as we */
	const char *clock; /* $FAULT_CLOCK, or NULL */
	int terminal_fd;   /* its input and output; 0: nothing and a file */

	pid_t pid;
	int pidfd, out_fd, err_fd, log_fd;
	int status; /* of waitpid */
	int64_t cpu_us;
	bool hung; /* it had to be killed */
};

enum { RUN_TEXT_MAX = 1 << 20 };

/* Where fault.so and kernel.so are. Call it first. */
void run_setup(const char *build);

void run_start(struct run *run);
/* Whether it ends in so many milliseconds. It has been waited for then. */
bool run_ends(struct run *run, int ms);
/* Wait for its end, at most ten seconds; then it is killed. */
void run_wait(struct run *run);
void run_close(struct run *run);

bool run_was_hit(const struct run *run);
/* What it wrote so far to one of its descriptors here, as a string that lives for three calls more. */
const char *run_text(int fd);
/* How many lines it said, and whether each of them begins with the program's name. */
int run_said(const struct run *run, const char *name, bool *odd);

#endif
