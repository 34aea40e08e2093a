/* What the files of libksmreg share: system calls that leave errno alone, and each other's insides. Not installed. */
/* SPDX-License-Identifier: MIT */
#ifndef KSMREG_KERNEL_H
#define KSMREG_KERNEL_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_NOHUGEPAGE
#define MADV_NOHUGEPAGE 15
#endif
#ifndef MADV_MERGEABLE
#define MADV_MERGEABLE 12
#define MADV_UNMERGEABLE 13
#endif
#define SET_MEMORY_MERGE 67 /* PR_SET_MEMORY_MERGE, newer than the headers of many systems */
#define GET_MEMORY_MERGE 68
#define SET_THP_DISABLE 41 /* PR_SET_THP_DISABLE */

/*
 * A system call that leaves errno alone and returns -errno. Not through libc's own functions: those
 * may be interposed, perhaps by the allocator that called us, and open and read are cancellation
 * points.
 */
static inline long call(long number, long a, long b, long c, long d, long e, long f)
{
	int saved = errno;
	long result = syscall(number, a, b, c, d, e, f);

	if (result == -1) {
		result = -errno;
		errno = saved;
	}
	return result;
}

static inline int advise(uintptr_t start, size_t size, int advice)
{
	return call(SYS_madvise, start, size, advice, 0, 0, 0);
}

static inline long map(uintptr_t addr, size_t size, int prot, int flags)
{
	flags |= MAP_PRIVATE | MAP_ANONYMOUS;
#if defined(__s390__)
	/* takes its arguments in memory */
	long args[6] = { addr, size, prot, flags, -1, 0 };
	return call(SYS_mmap, (long)args, 0, 0, 0, 0, 0);
#elif defined(SYS_mmap2)
	return call(SYS_mmap2, addr, size, prot, flags, -1, 0);
#else
	return call(SYS_mmap, addr, size, prot, flags, -1, 0);
#endif
}

static inline void unmap(uintptr_t addr, size_t size)
{
	call(SYS_munmap, addr, size, 0, 0, 0, 0);
}

#pragma GCC visibility push(hidden)

/* Does a page that can only be good take the mark? 0 or -errno. */
int ksmreg_try_page(size_t page);

/* A decimal number and nothing else; 0 leaves *value untouched. */
int ksmreg_parse(const char *text, size_t *value);

struct ksmreg_environment {
	int off;	  /* KSMREG=off */
	int nohugepage;	  /* KSMREG_NOHUGEPAGE=1 */
	size_t min_bytes; /* KSMREG_MIN; left alone where it is not set to a number */
};

/* Returns 0 where libc has not set environ up yet, with *env untouched. */
int ksmreg_read_environment(struct ksmreg_environment *env);

/* Is the library off, by whatever cause? */
int ksmreg_is_off(void);

#pragma GCC visibility pop

#endif
