/* The steps of tracing one thread into a call and out again. Only for inject.c. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_INJECT_STEPS_H
#define KSMCTL_INJECT_STEPS_H

#include <signal.h>
#include <stdint.h>

#include "ksmctl/inject_target.h"

struct steps {
	const struct inject_target *target;
	bool on;
	pid_t tid;
	struct inject_report *report;
	_Atomic int *calling; /* set when it is too late to go back */
	sigset_t awaited;     /* SIGCHLD, and those that cancel; all blocked */
	int64_t deadline_ns;  /* steps_now_ns() */
	bool late, cancelled; /* what ended the wait */
};

int64_t steps_now_ns(void);

/*
 * Take all steps. When it returns the target is either let go, or nothing of it was changed and the
 * end of the calling process lets it go.
 */
enum inject_result steps_take(struct steps *steps);

#endif
