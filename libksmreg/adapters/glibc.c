/* libksmreg in front of glibc's malloc: registers what malloc got from the system, by looking at what it hands out. */
/* SPDX-License-Identifier: MIT */
/*
 * For kernels where PR_SET_MEMORY_MERGE does not exist (before 6.4) or keeps areas from joining (6.4
 * to 6.16); on others that is simpler and covers more. glibc calls mmap and brk inside itself, where
 * nothing can stand in front of them, and has no hook; but a block tells where it comes from.
 *
 * Link it into a program, or preload it: LD_PRELOAD=libksmreg-glibc.so. A program that brings another
 * malloc is passed through untouched.
 *
 * glibc writes the header of a block before we see it, so that each growth of the break is an area of
 * its own: it is told to grow by 16 MiB at a time (M_TOP_PAD), unless the program says otherwise.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "ksmreg.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef __GLIBC__
#error "for glibc alone"
#endif

#define API __attribute__((visibility("default")))
#define TOP_PAD (16 << 20)

/* malloc/malloc.c: the low bits of the size in front of a block, and the size of a thread's heap. */
#define IS_MMAPPED 2
#define NON_MAIN_ARENA 4
#define HEAP_SIZE ((uintptr_t)(sizeof(long) > 4 ? 64 << 20 : 1 << 20))

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void *__curbrk;

/* The malloc behind this one. */
static struct {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void *(*memalign)(size_t, size_t);
} next = { __libc_malloc, __libc_calloc, __libc_realloc, __libc_memalign };

enum { UNDECIDED, DECIDING, GLIBC, FOREIGN };
static atomic_int whose;

/* Where the break was when it was last registered. */
static _Atomic(uintptr_t) seen_break;

/*
 * Heaps of threads that are registered, and how large each was when last looked at. One that is
 * smaller now is another heap at the same place. Two heaps in one slot take turns: each is registered
 * again, which costs a system call and is right.
 */
#define SLOTS 256
static struct {
	_Atomic(uintptr_t) heap;
	atomic_size_t size;
} heaps[SLOTS];

/* glibc's heap_info: what stands at the beginning of the heap of a thread. */
struct heap_info {
	void *arena;
	struct heap_info *previous;
	size_t size;
};

static void saw_heap(uintptr_t heap)
{
	size_t slot = heap / HEAP_SIZE % SLOTS;
	size_t size = ((struct heap_info *)heap)->size;
	uintptr_t known = atomic_load_explicit(&heaps[slot].heap, memory_order_relaxed);
	size_t before = atomic_load_explicit(&heaps[slot].size, memory_order_relaxed);

	if (known == heap && size == before)
		return;
	atomic_store_explicit(&heaps[slot].size, size, memory_order_relaxed);
	if (known == heap && size > before)
		return; /* the mark covers what the heap will grow into */
	atomic_store_explicit(&heaps[slot].heap, heap, memory_order_relaxed);
	ksmreg_register((void *)heap, HEAP_SIZE);
}

static void saw_break(void)
{
	uintptr_t now = (uintptr_t)__curbrk;
	uintptr_t before = atomic_load_explicit(&seen_break, memory_order_relaxed);

	if (now == before || !atomic_compare_exchange_strong(&seen_break, &before, now))
		return;
	if (now > before)
		ksmreg_register_with((void *)before, now - before, KSMREG_ANY_SIZE);
}

/* A block that malloc hands out. Its header is two words in front of it. */
static void *saw(void *block)
{
	const size_t *header;

	if (!block || atomic_load_explicit(&whose, memory_order_relaxed) != GLIBC)
		return block;
	header = (const size_t *)block - 2;
	if (header[1] & IS_MMAPPED)
		/* the first word: how far the block was moved for its alignment */
		ksmreg_register((char *)header - header[0], (header[1] & ~(size_t)7) + header[0]);
	else if (header[1] & NON_MAIN_ARENA)
		saw_heap((uintptr_t)block & -HEAP_SIZE);
	else
		saw_break();
	return block;
}

static void *in_object(void *function)
{
	Dl_info info;

	return dladdr(function, &info) ? info.dli_fbase : NULL;
}

/*
 * Whose is free? Where it is not glibc's, another allocator is behind us, and blocks must be its own;
 * it may also have taken the names __libc_malloc and so on.
 * Neither dladdr nor a dlsym that finds its symbol allocates.
 */
static void decide(void)
{
	int expected = UNDECIDED;
	void *found[4];
	static const char *const names[] = { "malloc", "calloc", "realloc", "memalign" };

	if (!atomic_compare_exchange_strong(&whose, &expected, DECIDING))
		return;
	if (in_object((void *)free) == in_object((void *)gnu_get_libc_version)) {
		atomic_store(&seen_break, (uintptr_t)sbrk(0));
		atomic_store(&whose, GLIBC);
		return;
	}
	for (size_t i = 0; i < 4; i++)
		found[i] = dlsym(RTLD_NEXT, names[i]);
	if (found[0] && found[1] && found[2] && found[3]) {
		/* C has no cast from an object to a function */
		memcpy(&next.malloc, &found[0], sizeof(void *));
		memcpy(&next.calloc, &found[1], sizeof(void *));
		memcpy(&next.realloc, &found[2], sizeof(void *));
		memcpy(&next.memalign, &found[3], sizeof(void *));
	}
	atomic_store(&whose, FOREIGN);
}

static inline void ready(void)
{
	if (atomic_load_explicit(&whose, memory_order_relaxed) == UNDECIDED)
		decide();
}

__attribute__((constructor)) static void pad(void)
{
	struct ksmreg_stats stats = { .size = sizeof(stats) };

	ready();
	if (atomic_load(&whose) == GLIBC && !getenv("MALLOC_TOP_PAD_") &&
		ksmreg_get_stats(&stats) == 0 && stats.state == KSMREG_ON)
		mallopt(M_TOP_PAD, TOP_PAD);
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libc's are reserved names */
API void *malloc(size_t size)
{
	ready();
	return saw(next.malloc(size));
}

API void *calloc(size_t count, size_t size)
{
	ready();
	return saw(next.calloc(count, size));
}

API void *realloc(void *block, size_t size)
{
	ready();
	return saw(next.realloc(block, size));
}

API void *memalign(size_t alignment, size_t size)
{
	ready();
	return saw(next.memalign(alignment, size));
}

API void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

API int posix_memalign(void **block, size_t alignment, size_t size)
{
	int saved = errno;
	void *got;

	if (alignment % sizeof(void *) || !alignment || alignment & (alignment - 1))
		return EINVAL;
	got = memalign(alignment, size);
	errno = saved;
	if (!got)
		return ENOMEM;
	*block = got;
	return 0;
}

API void *valloc(size_t size)
{
	return memalign(sysconf(_SC_PAGESIZE), size);
}

API void *pvalloc(size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);

	if (size > SIZE_MAX - page) {
		errno = ENOMEM;
		return NULL;
	}
	return memalign(page, (size + page - 1) & ~(page - 1));
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
