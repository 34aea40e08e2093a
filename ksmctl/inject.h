/* Makes a running process call prctl(PR_SET_MEMORY_MERGE), through ptrace. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_INJECT_H
#define KSMCTL_INJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "sysfs/proc.h"

/* How it went, and where it did not, why. */
enum inject_result {
	INJECT_DONE,
	INJECT_GONE,	      /* it ended, or executed another program meanwhile */
	INJECT_SELF,	      /* the caller itself */
	INJECT_KERNEL_THREAD, /* has no memory of its own */
	INJECT_ZOMBIE,
	INJECT_TRACED,	  /* by process `tracer`, and there can be but one */
	INJECT_DENIED,	  /* no right to trace it */
	INJECT_SECCOMP,	  /* its filter could kill it, and there is no right to suspend that */
	INJECT_FOREIGN,	  /* made for another kind of machine: 32-bit, x32 */
	INJECT_ARCH,	  /* not known how to do it on this machine */
	INJECT_NO_CALL,	  /* no system call instruction in its memory */
	INJECT_TIMEOUT,	  /* its thread did not stop in time; it goes on as if nothing had been */
	INJECT_CANCELLED, /* by `signal`; the flag is as it was */
	INJECT_CALL,	  /* it called, and the kernel said `err` */
	INJECT_FAILED,	  /* tracing failed with `err` */
};

struct inject_report {
	enum inject_result result;
	int err;      /* -errno */
	pid_t tid;    /* the thread chosen, or 0 */
	char state;   /* of that thread before, as in /proc/PID/stat */
	long call;    /* the system call it was in; INJECT_IN_NONE, INJECT_RUNNING or -_UNKNOWN */
	pid_t tracer; /* who traces it */
	int signal;   /* that ended the wait: the caller's to raise again */
	int64_t stops_us; /* for how long that thread was kept from its work, at most */
};

enum { INJECT_IN_NONE = -1, INJECT_RUNNING = -2, INJECT_UNKNOWN = -3 };

struct inject_options {
	int timeout_ms; /* for stopping the thread; a call that has begun is waited for */
	/* Called once, in the calling process, when the call itself takes longer than that. */
	void (*waiting)(void *data);
	void *data;
};

/*
 * Look, without stopping anything, whether it could be done and with which thread.
 * Fills *report and returns its result.
 */
enum inject_result inject_look(const struct proc *proc, struct inject_report *report);

/*
 * Make the process set the flag (on) or take it back and unmerge (off). One thread of it stands
 * still meanwhile; nothing is written to its memory, its registers and signals are as before
 * afterwards, and a stopped process stays stopped. A child process does it, so that the target is
 * let go in every case, also when the caller is killed. SIGINT, SIGTERM, SIGHUP and SIGQUIT end the
 * wait. Only for callers with a single thread.
 * Fills *report and returns its result.
 */
enum inject_result inject_memory_merge(const struct proc *proc, bool on,
	const struct inject_options *options, struct inject_report *report);

#endif
