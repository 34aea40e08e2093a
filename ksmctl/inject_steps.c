/* The steps of tracing one thread into a call and out again. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/inject_steps.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ksmctl/inject_arch.h"

#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#endif
/* include/uapi/linux/ptrace.h; newer than what C libraries bring along */
#define SET_USER_DISPATCH 0x4210
#define GET_USER_DISPATCH 0x4211
#define EVENT_STOP 128

int64_t steps_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

#if ARCH_KNOWN

enum {
	AGAIN_MAX = 100, /* calls that were interrupted, or stops at a bad moment */
	AGAIN_US = 50,
	VECTOR_BYTES = 1 << 16, /* SVE registers take at most 9 KB so far */
};

/* What the thread was like when it stopped. */
struct found {
	struct arch_regs regs;
	bool before_call; /* see inject_arch.h */
	uint64_t mask;	  /* blocked signals */
	struct user_dispatch {
		uint64_t mode, selector, offset, len;
	} dispatch;
	size_t vector_len; /* of the first of arch_vectors */
	unsigned char vector[VECTOR_BYTES];
};

/* How far it went: decides what has to be put back, and whether the wait can end. */
enum phase { STOPPING, ENTERING, CALLING };

struct run {
	struct steps *steps;
	pid_t tid;
	enum phase phase;
	struct found *found;
};

static long request(const struct run *run, int what, unsigned long addr, void *data)
{
	return ptrace((enum __ptrace_request)what, run->tid, (void *)addr, data) < 0 ? -errno : 0;
}

static int get_regs(const struct run *run, struct arch_regs *regs)
{
	struct iovec iov = { &regs->user, sizeof(regs->user) };
	int err = (int)request(run, PTRACE_GETREGSET, NT_PRSTATUS, &iov);
	regs->len = iov.iov_len;
	return err;
}

static int set_regs(const struct run *run, struct arch_regs *regs)
{
	struct iovec iov = { &regs->user, sizeof(regs->user) };
	return (int)request(run, PTRACE_SETREGSET, NT_PRSTATUS, &iov);
}

/* Time is over, or somebody asks for the end: what can still be done about it depends on the phase. */
static void give_up(struct run *run, bool cancelled)
{
	struct steps *steps = run->steps;
	steps->late |= !cancelled;
	steps->cancelled |= cancelled;
	/*
	 * Before the call the next stop is the moment to go back. The call itself can be long only
	 * when it unmerges: then it ends early when interrupted, and the flag stays on.
	 */
	if (run->phase == ENTERING || (run->phase == CALLING && cancelled && !steps->on))
		request(run, PTRACE_INTERRUPT, 0, NULL);
}

/* Returns 0 with a status, -ESRCH when it is gone, -ETIMEDOUT or -ECANCELED when nothing is changed yet. */
static int next_stop(struct run *run, int *status)
{
	struct steps *steps = run->steps;
	for (;;) {
		pid_t got = waitpid(run->tid, status, __WALL | WNOHANG);
		if (got == run->tid)
			return WIFSTOPPED(*status) ? 0 : -ESRCH;
		if (got < 0)
			return -ESRCH; /* another thread called execve */
		int64_t left = steps->deadline_ns - steps_now_ns();
		if (left <= 0 && !steps->late)
			give_up(run, false);
		if (run->phase == STOPPING && (steps->late || steps->cancelled))
			return steps->cancelled ? -ECANCELED : -ETIMEDOUT;
		if (left <= 0)
			left = INT64_C(1000000000);
		struct timespec ts = { left / 1000000000, left % 1000000000 };
		int signal_no = sigtimedwait(&steps->awaited, NULL, &ts);
		if (signal_no > 0 && signal_no != SIGCHLD)
			give_up(run, true);
	}
}

enum stop { STOP_TRAP, STOP_ENTRY, STOP_EXIT, STOP_SIGNAL, STOP_OTHER };

static enum stop kind_of(const struct run *run, int status, struct __ptrace_syscall_info *info)
{
	if (status >> 16 == EVENT_STOP)
		return STOP_TRAP; /* also a group stop, as after SIGSTOP */
	if (WSTOPSIG(status) != (SIGTRAP | 0x80))
		return status >> 16 ? STOP_OTHER : STOP_SIGNAL;
	memset(info, 0, sizeof(*info));
	if (ptrace(PTRACE_GET_SYSCALL_INFO, run->tid, sizeof(*info), info) < 0)
		return STOP_OTHER;
	return info->op == PTRACE_SYSCALL_INFO_ENTRY  ? STOP_ENTRY
	       : info->op == PTRACE_SYSCALL_INFO_EXIT ? STOP_EXIT
						      : STOP_OTHER;
}

/* A fault of the instruction that we chose, and nothing that the program should ever see. */
static bool is_our_fault(const struct run *run, int signal_no)
{
	siginfo_t info;
	if (run->phase != ENTERING || run->found->before_call ||
		(signal_no != SIGSEGV && signal_no != SIGBUS && signal_no != SIGILL &&
			signal_no != SIGTRAP && signal_no != SIGSYS))
		return false;
	return request(run, PTRACE_GETSIGINFO, 0, &info) == 0 && info.si_code > 0;
}

/*
 * Wait for the stop that is wanted. Others on the way are gone through as if nobody traced: signals
 * are delivered. Returns 0, an error of next_stop, -EFAULT, or -EAGAIN: it stopped in time to go back.
 */
static int wait_for(
	struct run *run, int resume, enum stop wanted, struct __ptrace_syscall_info *info)
{
	for (;;) {
		int status, err = next_stop(run, &status);
		if (err)
			return err;
		enum stop stop = kind_of(run, status, info);
		if (stop == wanted)
			return 0;
		unsigned long signal_no = stop == STOP_SIGNAL ? (unsigned long)WSTOPSIG(status) : 0;
		if (signal_no && is_our_fault(run, (int)signal_no))
			return -EFAULT;
		if (stop == STOP_TRAP && run->phase == ENTERING &&
			(run->steps->late || run->steps->cancelled))
			return -EAGAIN;
		err = (int)request(run, resume, 0, (void *)signal_no);
		if (err)
			return err;
	}
}

static int go_to(struct run *run, enum stop wanted, struct __ptrace_syscall_info *info)
{
	int err = (int)request(run, PTRACE_SYSCALL, 0, NULL);
	return err ? err : wait_for(run, PTRACE_SYSCALL, wanted, info);
}

static bool read_memory(const struct run *run, uint64_t addr, void *buf, size_t len)
{
	struct iovec local = { buf, len }, remote = { (void *)(uintptr_t)addr, len };
	return process_vm_readv(run->tid, &local, 1, &remote, 1, 0) == (ssize_t)len;
}

/*
 * Inside a restartable sequence (rseq) the kernel would make the thread go to the place for aborts,
 * as always after it stood still. It looks when the thread runs again, for our call, elsewhere, and
 * then forgets the sequence. So the thread has to be sent there by us.
 */
static void abort_sequence(const struct run *run, struct arch_regs *regs)
{
	struct __ptrace_rseq_configuration rseq = { 0 };
	uint64_t sequence, fields[3]; /* start, length behind it, place for aborts */
	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, run->tid, sizeof(rseq), &rseq) < 0 ||
		!rseq.rseq_abi_pointer ||
		!read_memory(run, rseq.rseq_abi_pointer + 8, &sequence, sizeof(sequence)) ||
		!sequence || !read_memory(run, sequence + 8, fields, sizeof(fields)))
		return;
	if (arch_ip(regs) - fields[0] < fields[1])
		arch_set_ip(regs, fields[2]);
}

/* Remember the thread as it stands. Returns an inject_result; nothing is changed. */
static enum inject_result find_state(struct run *run)
{
	struct found *found = run->found;
	unsigned char code[sizeof(arch_call)];

	int err = get_regs(run, &found->regs);
	if (err)
		goto failed;
	if (!arch_native(&found->regs))
		return INJECT_FOREIGN;
	/* Once more, now that it cannot be another program any more. */
	if (!read_memory(run, run->steps->target->call_at, code, sizeof(code)) ||
		memcmp(code, arch_call, sizeof(code)) != 0)
		return INJECT_GONE;
	found->before_call = read_memory(run, arch_ip(&found->regs), code, sizeof(code)) &&
			     arch_before_call(&found->regs, code);
	arch_hide_interruption(&found->regs);
	abort_sequence(run, &found->regs);
	err = (int)request(run, PTRACE_GETSIGMASK, sizeof(found->mask), &found->mask);
	if (err)
		goto failed;
	if (request(run, GET_USER_DISPATCH, sizeof(found->dispatch), &found->dispatch))
		found->dispatch.mode = 0; /* no such thing here */
	struct iovec iov = { found->vector, sizeof(found->vector) };
	if (arch_vectors[0] &&
		!request(run, PTRACE_GETREGSET, (unsigned long)arch_vectors[0], &iov))
		found->vector_len = iov.iov_len;
	return INJECT_DONE;
failed:
	run->steps->report->err = err;
	return err == -ESRCH ? INJECT_GONE : INJECT_FAILED;
}

/* Stop it at a moment that serves. */
static enum inject_result stop(struct run *run)
{
	struct __ptrace_syscall_info info;
	for (int i = 0; i < AGAIN_MAX; i++) {
		int err = (int)request(run, PTRACE_INTERRUPT, 0, NULL);
		if (!err)
			err = wait_for(run, PTRACE_CONT, STOP_TRAP, &info);
		if (err) {
			run->steps->report->err = err;
			return err == -ETIMEDOUT   ? INJECT_TIMEOUT
			       : err == -ECANCELED ? INJECT_CANCELLED
			       : err == -ESRCH	   ? INJECT_GONE
						   : INJECT_FAILED;
		}
		enum inject_result result = find_state(run);
		if (result != INJECT_DONE || !arch_busy(run->tid))
			return result;
		request(run, PTRACE_CONT, 0, NULL);
		usleep(AGAIN_US);
	}
	return INJECT_TIMEOUT;
}

/* Nothing of the program's may run in between: no handler, no emulation of calls. */
static int quieten(const struct run *run)
{
	uint64_t all = UINT64_MAX;
	struct user_dispatch off = { 0 };
	int err = (int)request(run, PTRACE_SETSIGMASK, sizeof(all), &all);
	if (!err && run->found->dispatch.mode)
		err = (int)request(run, SET_USER_DISPATCH, sizeof(off), &off);
	return err;
}

/* The registers for the call, over those found. */
static int prepare(const struct run *run, bool jump)
{
	const unsigned long args[5] = { PR_SET_MEMORY_MERGE, run->steps->on };
	struct arch_regs regs = run->found->regs;
	if (jump)
		arch_jump(&regs, run->steps->target->call_at);
	arch_arguments(&regs, SYS_prctl, args);
	return set_regs(run, &regs);
}

static int call_once(struct run *run, int64_t *result)
{
	struct __ptrace_syscall_info info;
	struct found *found = run->found;

	run->phase = ENTERING;
	int err = found->before_call ? 0 : prepare(run, true);
	if (!err)
		err = go_to(run, STOP_ENTRY, &info);
	if (!err && found->before_call) {
		err = get_regs(run, &found->regs);
		if (!err)
			err = prepare(run, false);
		if (!err)
			err = arch_replace_call(run->tid, SYS_prctl);
	}
	if (err)
		return err;
	run->phase = CALLING;
	*run->steps->calling = 1;
	err = go_to(run, STOP_EXIT, &info);
	*result = info.exit.rval;
	return err;
}

/* Unmerging ends early for SIGSTOP and the like: then again. */
static int call(struct run *run, int64_t *result)
{
	for (int i = 0;; i++) {
		int err = call_once(run, result);
		bool again = *result == -EINTR || (*result <= -512 && *result >= -516);
		if (err || !again || i == AGAIN_MAX)
			return err;
		if (run->steps->cancelled)
			return -ECANCELED;
		if (run->found->before_call)
			arch_rewind(&run->found->regs);
		run->found->before_call = false;
	}
}

/* All as it was found, and let go. At the detach the kernel looks for signals, and restarts calls. */
static int put_back(struct run *run)
{
	struct found *found = run->found;
	struct iovec iov = { found->vector, found->vector_len };
	int err = 0, e;

	/* Given up before its own call was entered: the registers are its own. */
	if (run->phase == CALLING || !found->before_call) {
		e = arch_before_restore(run->tid, &found->regs, found->before_call);
		err = e ? e : err;
		e = set_regs(run, &found->regs);
		err = e ? e : err;
	}
	if (found->vector_len) {
		e = (int)request(run, PTRACE_SETREGSET, (unsigned long)arch_vectors[0], &iov);
		err = e ? e : err;
	}
	if (found->dispatch.mode) {
		e = (int)request(run, SET_USER_DISPATCH, sizeof(found->dispatch), &found->dispatch);
		err = e ? e : err;
	}
	e = (int)request(run, PTRACE_SETSIGMASK, sizeof(found->mask), &found->mask);
	err = e ? e : err;
	e = (int)request(run, PTRACE_DETACH, 0, NULL);
	return e ? e : err;
}

/* Take the thread, if it is still one of the process meant: from here on its number stays its own. */
static enum inject_result seize(struct run *run)
{
	const struct inject_target *target = run->steps->target;
	char path[32];
	bool suspended = true;
	unsigned long options = PTRACE_O_TRACESYSGOOD;
	long err = request(
		run, PTRACE_SEIZE, 0, (void *)(options | (unsigned long)PTRACE_O_SUSPEND_SECCOMP));
	if (err == -EPERM || err == -EINVAL) {
		suspended = false;
		err = request(run, PTRACE_SEIZE, 0, (void *)options);
	}
	run->steps->report->err = (int)err;
	if (err)
		return err == -ESRCH ? INJECT_GONE : err == -EPERM ? INJECT_DENIED : INJECT_FAILED;
	snprintf(path, sizeof(path), "task/%d", (int)run->tid);
	if (faccessat(target->proc->fd, path, F_OK, 0) < 0)
		return INJECT_GONE;
	return target->seccomp && !suspended ? INJECT_SECCOMP : INJECT_DONE;
}

enum inject_result steps_take(struct steps *steps)
{
	static struct found found;
	struct run run = { steps, steps->tid, STOPPING, &found };
	struct inject_report *report = steps->report;
	int64_t value = 0;

	enum inject_result result = seize(&run);
	if (result != INJECT_DONE)
		return result;
	int64_t from = steps_now_ns();
	result = stop(&run);
	if (result != INJECT_DONE)
		return result;
	int err = quieten(&run);
	if (!err)
		err = call(&run, &value);
	int undone = err == -ESRCH ? 0 : put_back(&run);
	report->stops_us = (steps_now_ns() - from) / 1000;
	if (!err && undone)
		err = undone;
	report->err = err ? err : (int)value;
	if (err == -EAGAIN || err == -ECANCELED)
		return steps->cancelled ? INJECT_CANCELLED : INJECT_TIMEOUT;
	if (err)
		return err == -ESRCH ? INJECT_GONE : INJECT_FAILED;
	return value ? INJECT_CALL : INJECT_DONE;
}

#else

enum inject_result steps_take(struct steps *steps)
{
	(void)steps;
	return INJECT_ARCH;
}

#endif
