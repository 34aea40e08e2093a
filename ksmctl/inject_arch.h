/* What differs between machines in making a stopped thread call: registers, and how calls restart. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_INJECT_ARCH_H
#define KSMCTL_INJECT_ARCH_H

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>

/*
 * DOC: restarting
 *
 * A call that a stop interrupts leaves a code (-ERESTARTSYS and its like) for the kernel's own
 * signal code, which either makes the thread call again or, where a handler runs, end with EINTR.
 * That decision is to be the kernel's, made on the thread's own registers, as without us.
 *
 * x86-64: the code is in ax and the call's number in orig_ax while the thread stands in the first
 * stop; the kernel decides after the stop. While orig_ax is -1 it decides nothing. So the injected
 * call is made with -1 there, and what was found is put back whole; after the detach, which makes
 * the kernel look for signals in any case, it decides then.
 *
 * arm64: the kernel rewinds before the first stop: the thread stands in front of `svc` with the
 * code out of sight. Put back like this the call would restart also where a handler runs in between.
 * So a thread that stands there is let into its call, and that call is turned into ours at its
 * entry: then the kernel has kept the right x0 for a restart, and gets for a result the code that
 * these calls leave. In front of other calls, which may not end with EINTR, plain rewinding is right.
 */

#if defined(__x86_64__) && !defined(__ILP32__)

#define ARCH_KNOWN 1
#define ARCH_MACHINE EM_X86_64
#define ARCH_CALL_ALIGN 1
static const unsigned char arch_call[] = { 0x0f, 0x05 };

struct arch_regs {
	struct user_regs_struct user;
	size_t len;
};

static inline uint64_t arch_ip(const struct arch_regs *regs)
{
	return regs->user.rip;
}

static inline void arch_set_ip(struct arch_regs *regs, uint64_t ip)
{
	regs->user.rip = ip;
}

/* Of a 32-bit thread the kernel gives other, fewer registers. */
static inline bool arch_native(const struct arch_regs *regs)
{
	return regs->len == sizeof(regs->user);
}

static inline bool arch_before_call(const struct arch_regs *regs, const unsigned char *code)
{
	(void)regs;
	(void)code;
	return false;
}

/* Make ready for the call at an address. */
static inline void arch_jump(struct arch_regs *regs, uint64_t at)
{
	regs->user.rip = at;
	regs->user.orig_rax = (unsigned long)-1;
	regs->user.eflags &= ~0x100UL; /* no single step: SIGTRAP is blocked, and would kill */
}

static inline void arch_arguments(struct arch_regs *regs, long call, const unsigned long *args)
{
	regs->user.rax = (unsigned long)call;
	regs->user.rdi = args[0];
	regs->user.rsi = args[1];
	regs->user.rdx = args[2];
	regs->user.r10 = args[3];
	regs->user.r8 = args[4];
}

/* At the entry of the thread's own call: turn it into another. Never asked for here. */
static inline int arch_replace_call(pid_t tid, long call)
{
	(void)tid;
	(void)call;
	return -ENOSYS;
}

/* At the end of the call: what the registers found have to become before they are put back. */
static inline int arch_before_restore(pid_t tid, struct arch_regs *found, bool before_call)
{
	(void)tid;
	(void)found;
	(void)before_call;
	return 0;
}

/*
 * A wait for events without a time-out ends with EINTR after any stop, unless the kernel is told
 * that it may restart. With a time-out it stays so: the time that is left is not known.
 */
static inline void arch_hide_interruption(struct arch_regs *found)
{
	enum {
		RESTARTNOHAND = 514
	}; /* include/linux/errno.h: EINTR if a handler runs, else again */
	struct user_regs_struct *user = &found->user;
	bool endless;
	switch (user->orig_rax) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		endless = (int)user->r10 < 0;
		break;
	case SYS_epoll_pwait2:
		endless = user->r10 == 0;
		break;
	case SYS_rt_sigtimedwait:
		endless = user->rdx == 0;
		break;
	default:
		endless = false;
	}
	if (endless && user->rax == (unsigned long)-EINTR)
		user->rax = (unsigned long)-RESTARTNOHAND;
}

/* Back in front of a call that was entered. Never asked for here. */
static inline void arch_rewind(struct arch_regs *regs)
{
	(void)regs;
}

/* Is it in a state that a call would spoil and that cannot be put back? Then later. */
static inline bool arch_busy(pid_t tid)
{
	(void)tid;
	return false;
}

/* Registers beyond the general ones that a call changes; ends with 0. */
static const int arch_vectors[] = { 0 };

#elif defined(__aarch64__) && !defined(__ILP32__) && !defined(__AARCH64EB__)

#define ARCH_KNOWN 1
#define ARCH_MACHINE EM_AARCH64
#define ARCH_CALL_ALIGN 4
static const unsigned char arch_call[] = { 0x01, 0x00, 0x00, 0xd4 };

struct arch_regs {
	struct user_regs_struct user;
	size_t len;
};

static inline uint64_t arch_ip(const struct arch_regs *regs)
{
	return regs->user.pc;
}

static inline void arch_set_ip(struct arch_regs *regs, uint64_t ip)
{
	regs->user.pc = ip;
}

static inline bool arch_native(const struct arch_regs *regs)
{
	return regs->len == sizeof(regs->user) && !(regs->user.pstate & 0x10);
}

static inline bool arch_before_call(const struct arch_regs *regs, const unsigned char *code)
{
	(void)regs;
	return !memcmp(code, arch_call, sizeof(arch_call));
}

static inline void arch_jump(struct arch_regs *regs, uint64_t at)
{
	regs->user.pc = at;
	/* Not the target of the branch (BTYPE) that the thread may have just taken. */
	regs->user.pstate &= ~0xc00ULL;
}

static inline void arch_arguments(struct arch_regs *regs, long call, const unsigned long *args)
{
	for (int i = 0; i < 5; i++)
		regs->user.regs[i] = args[i];
	regs->user.regs[8] = (unsigned long)call;
}

static inline int arch_replace_call(pid_t tid, long call)
{
	int number = (int)call;
	struct iovec iov = { &number, sizeof(number) };
	return ptrace(PTRACE_SETREGSET, tid, NT_ARM_SYSTEM_CALL, &iov) < 0 ? -errno : 0;
}

static inline void arch_rewind(struct arch_regs *regs)
{
	regs->user.pc -= sizeof(arch_call);
}

/* What a call leaves when it is interrupted; include/linux/errno.h. 0 where it should not have been. */
static inline long arch_restart_code(unsigned long call)
{
	enum { RESTARTSYS = 512, RESTARTNOHAND = 514 };
	switch (call) {
	case SYS_restart_syscall: /* of sleeps with a time: EINTR when a handler ran, as these */
	case SYS_rt_sigsuspend:
	case SYS_ppoll:
	case SYS_pselect6:
		return -RESTARTNOHAND;
	case SYS_read:
	case SYS_readv:
	case SYS_write:
	case SYS_writev:
	case SYS_accept:
	case SYS_accept4:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_futex:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_flock:
		return -RESTARTSYS;
	default:
		return 0;
	}
}

/*
 * `found` is of the first stop or, before_call, of the entry, where pc is behind `svc` already.
 * With "no call" set the kernel leaves the registers alone, whatever x0 looks like.
 */
static inline int arch_before_restore(pid_t tid, struct arch_regs *found, bool before_call)
{
	long code = before_call ? arch_restart_code(found->user.regs[8]) : 0;
	if (code) {
		found->user.regs[0] = (unsigned long)code;
		return 0;
	}
	if (before_call)
		arch_rewind(found);
	return arch_replace_call(tid, -1);
}

/* The first argument of the interrupted call, which x0 held, is not to be had. */
static inline void arch_hide_interruption(struct arch_regs *found)
{
	(void)found;
}

/* A call ends the streaming mode of SME and drops its registers. */
static inline bool arch_busy(pid_t tid)
{
	enum { STREAMING_SET = 0x40b, ACTIVE = 1 }; /* NT_ARM_SSVE, SVE_PT_REGS_SVE */
	struct {
		uint32_t size, max_size;
		uint16_t vl, max_vl, flags, reserved;
	} head = { 0 };
	struct iovec iov = { &head, sizeof(head) };
	return !ptrace(PTRACE_GETREGSET, tid, STREAMING_SET, &iov) && head.flags & ACTIVE;
}

/* A call drops what SVE registers hold beyond the first 128 bits, which a running thread needs. */
static const int arch_vectors[] = { NT_ARM_SVE, 0 };

#else

#define ARCH_KNOWN 0
#define ARCH_MACHINE EM_NONE
#define ARCH_CALL_ALIGN 1
static const unsigned char arch_call[] = { 0 };

#endif

#endif
