/* What can be known of a process before it is stopped: whether it can be done, with which thread, and where. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_INJECT_TARGET_H
#define KSMCTL_INJECT_TARGET_H

#include <stddef.h>
#include <stdint.h>

#include "ksmctl/inject.h"

/* How well a thread serves, best first. */
enum inject_rank {
	RANK_RESTARTS, /* sleeps in a call that restarts unseen: nobody waits for it meanwhile */
	RANK_RUNNING,
	RANK_OTHER,	  /* in a call that mostly restarts, or in none */
	RANK_INTERRUPTED, /* its call ends early, with EINTR, as it also does after SIGSTOP */
	RANK_STUCK,	  /* will not stop before what it waits for: in vfork(2), or for a device */
	RANK_USELESS,	  /* exited, or a worker that never leaves the kernel */
};

struct inject_target {
	const struct proc *proc;
	pid_t tid;
	enum inject_rank rank;
	bool seccomp;	  /* that thread has a filter */
	uint64_t call_at; /* address of a system call instruction */
};

/* Choose the thread. Fills *target and tid, state, call, tracer and err of *report. */
enum inject_result inject_choose(
	const struct proc *proc, struct inject_target *target, struct inject_report *report);

/* Find the instruction, once the thread is chosen. */
enum inject_result inject_find_call(struct inject_target *target, struct inject_report *report);

/* For tests: the two that parse. Text ends with a NUL. */
enum inject_rank inject_rank_call(char state, const char *syscall_text, long *call);
bool inject_code_area(const char *maps_line, uint64_t *start, uint64_t *end, bool *vdso);

#endif
