/* The preload: offers the memory of an unmodified program, by one prctl or by standing in front of mmap and sbrk. */
/* SPDX-License-Identifier: MIT */
/*
 * LD_PRELOAD=libksmreg-preload.so program...
 *
 * KSMREG=auto     (default) PR_SET_MEMORY_MERGE where this kernel has it and lets areas join under
 *                 it, else as madvise
 * KSMREG=prctl    PR_SET_MEMORY_MERGE even where areas do not join; nothing where the kernel has none
 * KSMREG=madvise  register what mmap and sbrk return, see below
 * KSMREG=off      nothing
 * KSMREG_CHILDREN=0  not for programs that this one executes in other processes
 * KSMREG_MIN and all else as in ksmreg.h. Programs that run with privileges of their own
 * (AT_SECURE) are left alone.
 *
 * By prctl all private anonymous memory is covered, whoever allocates it.
 *
 * By madvise what is covered is memory that a dynamically linked program gets through the symbols
 * mmap, mmap64, sbrk and brk, before the program sees it: gperftools, jemalloc, mimalloc, TBB, the
 * JVM, Node. Not covered: the malloc of glibc and of musl, which call mmap and brk inside libc where
 * no symbol is looked up; thread stacks (they hold addresses and secrets, and do not merge);
 * .data, .bss and what was mapped before this object was initialised.
 *
 * Not covered by either: static programs and programs that make system calls themselves without
 * libc (Go), which LD_PRELOAD does not reach. A launcher that makes the prctl and then execs does.
 *
 * The results and errno are always those of the real call. There is no dlsym here, so nothing that
 * could allocate and come back.
 */
#undef _FILE_OFFSET_BITS /* or mmap would be mmap64 on 32-bit machines */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "ksmreg.h"
#include "kernel.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#undef mmap64 /* musl: a macro for mmap */

#ifndef MAP_TYPE
#define MAP_TYPE 0x0f
#endif
#ifndef MAP_HUGETLB
#define MAP_HUGETLB 0
#endif

KSMREG_API void *mmap64(void *addr, size_t len, int prot, int flags, int fd, int64_t offset);

/* glibc's own; it keeps the break that glibc's malloc goes by. Other libcs have none. */
extern void *__sbrk(intptr_t increment) __attribute__((weak));

enum { UNDECIDED, DECIDING, PASS, WRAP };
static atomic_int mode;

/*
 * Returns 1 when the whole process is offered. Areas are tried before that and in a child, not by
 * setting the flag and taking it back: that walks all address space, minutes in a program that
 * reserves terabytes.
 */
static int by_prctl(int even_if_apart)
{
	struct ksmreg_caps caps = { .size = sizeof(caps) };

	if (call(SYS_prctl, GET_MEMORY_MERGE, 0, 0, 0, 0, 0) == 1)
		return 1; /* a launcher's or a parent's decision */
	if (!even_if_apart && (ksmreg_probe(&caps) || caps.areas_merge != 1))
		return 0;
	return ksmreg_process(1) == 0;
}

/*
 * With KSMREG_CHILDREN=0 the first program notes its PID there, and one that finds the PID of another
 * takes back what it inherited, which is quick while it has next to nothing. A program that the
 * first becomes by exec keeps its PID and stays. The entry exists, so putenv allocates nothing.
 */
static int is_child(void)
{
	static char entry[] = "KSMREG_CHILDREN=0:-2147483648";
	const char *children = getenv("KSMREG_CHILDREN");
	char *digit = entry + sizeof(entry) - 1;
	unsigned pid = getpid();
	size_t first;

	if (!children || children[0] != '0')
		return 0;
	do
		*--digit = '0' + pid % 10;
	while (pid /= 10);
	*--digit = ':';
	if (children[1])
		return strcmp(children + 1, digit) != 0;
	first = strlen("KSMREG_CHILDREN=0");
	memmove(entry + first, digit, strlen(digit) + 1);
	putenv(entry);
	return 0;
}

/*
 * Runs as a constructor, or before it at the first call of another object's constructor. What is
 * called before libc knows the environment passes unregistered.
 */
__attribute__((constructor)) static void decide(void)
{
	int expected = UNDECIDED, decision = PASS;
	const char *how;

	if (!environ || !atomic_compare_exchange_strong(&mode, &expected, DECIDING))
		return;
	if (!getauxval(AT_SECURE)) {
		how = getenv("KSMREG");
		if (!how)
			how = "auto";
		if (is_child())
			ksmreg_process(0);
		else if (!strcmp(how, "prctl"))
			by_prctl(1);
		else if (!strcmp(how, "madvise") || (strcmp(how, "off") != 0 && !by_prctl(0)))
			decision = WRAP;
	}
	atomic_store(&mode, decision);
}

static int wrapping(void)
{
	int now = atomic_load_explicit(&mode, memory_order_relaxed);

	if (now == UNDECIDED) {
		decide();
		now = atomic_load_explicit(&mode, memory_order_relaxed);
	}
	return now == WRAP;
}

/* Sets errno as libc does: syscall() is libc's. */
static void *real_mmap(void *addr, size_t len, int prot, int flags, int fd, uint64_t offset)
{
#ifdef SYS_mmap2
	/* takes the offset in units of 4 KiB, whatever the page */
	if (offset & 4095 || offset >> 12 > UINT32_MAX) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap2, addr, len, prot, flags, fd, (long)(offset >> 12));
#elif defined(__s390__)
	long args[6] = { (long)addr, len, prot, flags, fd, offset };
	return (void *)syscall(SYS_mmap, args);
#else
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
#endif
}

static void *map_and_register(void *addr, size_t len, int prot, int flags, int fd, uint64_t offset)
{
	const int unfit = MAP_HUGETLB | MAP_STACK | MAP_GROWSDOWN;
	void *got = real_mmap(addr, len, prot, flags, fd, offset);

	if (got != MAP_FAILED && (flags & MAP_TYPE) == MAP_PRIVATE && flags & MAP_ANONYMOUS &&
		!(flags & unfit) && wrapping())
		ksmreg_register_with(got, len, flags & MAP_FIXED ? KSMREG_ANY_SIZE : 0);
	return got;
}

KSMREG_API void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	/* a 32-bit offset counts to 4 GiB */
	uint64_t wide = sizeof(offset) == 4 ? (uint32_t)offset : (uint64_t)offset;

	return map_and_register(addr, len, prot, flags, fd, wide);
}

void *mmap64(void *addr, size_t len, int prot, int flags, int fd, int64_t offset)
{
	return map_and_register(addr, len, prot, flags, fd, offset);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's is a reserved name */
KSMREG_API void *sbrk(intptr_t increment)
{
	const uintptr_t page = getauxval(AT_PAGESZ);
	uintptr_t start, end;
	void *old;

	if (!__sbrk) {
		/* musl, which moves no break on request */
		if (increment) {
			errno = ENOMEM;
			return (void *)-1;
		}
		return (void *)syscall(SYS_brk, 0);
	}
	old = __sbrk(increment);
	if (old == (void *)-1 || increment <= 0 || !wrapping())
		return old;
	/* the pages that came new: the kernel maps the break by whole pages */
	start = ((uintptr_t)old + page - 1) & -page;
	end = ((uintptr_t)old + increment + page - 1) & -page;
	if (end > start)
		ksmreg_register((void *)start, end - start);
	return old;
}

/* Through sbrk, so that libc's idea of the break stays right. The kernel keeps a break that is too low. */
KSMREG_API int brk(void *addr)
{
	char *now = sbrk(0);

	if (now == (void *)-1)
		return -1;
	return sbrk((intptr_t)((uintptr_t)addr - (uintptr_t)now)) == (void *)-1 ? -1 : 0;
}
