/* libksmreg in front of glibc's malloc: registers what malloc got from the system, by looking at what it hands out. */
/* SPDX-License-Identifier: MIT */
/*
 * For kernels where PR_SET_MEMORY_MERGE does not exist (before 6.4) or keeps areas from joining (6.4
 * to 6.16). On later ones ksmreg_process(1) is simpler and covers more: stacks and .bss, too. glibc
 * calls mmap and brk inside itself, where nothing can stand in front of them, and has no hook; but a
 * block tells where it comes from.
 *
 * Link it into a program, with libksmreg and not statically, or preload it:
 * LD_PRELOAD=libksmreg-glibc.so. A program that brings another malloc is passed through untouched.
 *
 * glibc writes the header of a block before we see it, so that each growth is an area of its own, and
 * each block that it maps by itself. It is told to grow by 16 MiB at a time (M_TOP_PAD) and to map
 * only blocks that it would always map, from 32 MiB on (M_MMAP_THRESHOLD); and, so that such a block
 * does not move the break each time, to keep up to 48 MiB that are free at the end of a heap
 * (M_TRIM_THRESHOLD). What the environment says of one of these stands; what the program says by
 * mallopt, too.
 *
 * Not seen: a heap of a thread that glibc gives back and takes again, at the same place and of the
 * same size, before anything is allocated in another; heaps of huge pages (glibc.malloc.hugetlb=2),
 * which do not merge.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "ksmreg.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __GLIBC__
#error "for glibc alone"
#endif

#define API __attribute__((visibility("default")))
#define GROWTH (16 << 20)
#define GET_MEMORY_MERGE 68 /* PR_GET_MEMORY_MERGE, newer than the headers of many systems */

/* malloc/malloc.c: the low bits of the size in front of a block, and the size of a thread's heap. */
#define IS_MMAPPED 2
#define NON_MAIN_ARENA 4
#define BITS ((size_t)7)
#define HEAP_SIZE ((uintptr_t)(sizeof(long) > 4 ? 64 << 20 : 1 << 20))

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);
extern void *__curbrk;

/*
 * The malloc behind this one, each function for itself: not every allocator has all of them. Until they
 * are looked up glibc's own; that nothing calls meanwhile.
 */
static struct {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
	int (*posix_memalign)(void **, size_t, size_t);
	int (*malloc_trim)(size_t);
} next = { .malloc = __libc_malloc,
	.calloc = __libc_calloc,
	.realloc = __libc_realloc,
	.memalign = __libc_memalign };

enum { UNDECIDED, DECIDING, WATCH, PASS };
static atomic_int mode;

/* Where the break was when it was last registered. */
static _Atomic(uintptr_t) seen_break;

/*
 * Heaps of threads that are registered, and how large each was then. One of another size is registered
 * again: it has grown, which its mark covered, or it is another heap at the same place. Two heaps in
 * one slot take turns, which costs system calls and is right.
 */
#define SLOTS 256
static struct {
	_Atomic(uintptr_t) heap;
	atomic_size_t size;
} heaps[SLOTS];
static atomic_bool no_heaps; /* what was taken for one is none */

/* glibc's heap_info: what stands at the beginning of the heap of a thread. */
struct heap_info {
	void *arena;
	struct heap_info *previous;
	size_t size;
};

/* The kernel reads the signal mask before it finds that the operation is none. */
static bool is_readable(uintptr_t page)
{
	int saved = errno;
	bool readable = syscall(SYS_rt_sigprocmask, -1, page, NULL, 8) && errno == EINVAL;

	errno = saved;
	return readable;
}

static bool is_heap(uintptr_t heap, uintptr_t block)
{
	const struct heap_info *info = (const struct heap_info *)heap;

	return is_readable(heap) && info->arena && info->size > block - heap &&
	       info->size <= HEAP_SIZE;
}

static void saw_heap(uintptr_t block)
{
	uintptr_t heap = block & -HEAP_SIZE;
	size_t slot = heap / HEAP_SIZE % SLOTS, size;
	bool known = atomic_load_explicit(&heaps[slot].heap, memory_order_relaxed) == heap;

	if (!known &&
		(atomic_load_explicit(&no_heaps, memory_order_relaxed) || !is_heap(heap, block))) {
		atomic_store_explicit(&no_heaps, true, memory_order_relaxed);
		return;
	}
	size = ((const struct heap_info *)heap)->size;
	if (known && atomic_load_explicit(&heaps[slot].size, memory_order_relaxed) == size)
		return;
	atomic_store_explicit(&heaps[slot].size, size, memory_order_relaxed);
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

	if (!block || atomic_load_explicit(&mode, memory_order_relaxed) != WATCH)
		return block;
	header = (const size_t *)block - 2;
	if (header[1] & IS_MMAPPED)
		/* the first word: how far the block was moved for its alignment */
		ksmreg_register((char *)header - header[0], (header[1] & ~BITS) + header[0]);
	else if (header[1] & NON_MAIN_ARENA)
		saw_heap((uintptr_t)block);
	else
		saw_break();
	return block;
}

/* The object that the program's calls of a function go to. Allocates nothing. */
static void *owner(const char *function)
{
	void *found = dlsym(RTLD_DEFAULT, function);
	const ElfW(Sym) * symbol;
	Dl_info info;

	if (!found || !dladdr1(found, &info, (void **)&symbol, RTLD_DL_SYMENT))
		return NULL;
	/* In a program that is not position-independent it can be a stub that leads to the function. */
	if (symbol && symbol->st_shndx == SHN_UNDEF) {
		found = dlsym(RTLD_NEXT, function);
		if (!found || !dladdr(found, &info))
			return NULL;
	}
	return info.dli_fbase;
}

/* Are headers what we take them for? Not under tools that stand in for malloc at run time (valgrind). */
static bool is_as_known(void)
{
	const size_t *block = __libc_malloc(sizeof(size_t));
	bool known =
		block && (block[-1] & ~BITS) == 4 * sizeof(size_t) && !(block[-1] & IS_MMAPPED);

	__libc_free((void *)block);
	return known;
}

/*
 * Whose is free? Where it is not glibc's, another allocator is behind us, and blocks must be its own;
 * it may also have taken the names __libc_malloc and so on.
 */
static void decide(void)
{
	static const struct {
		void *function;
		const char *name;
	} table[] = {
		{ &next.malloc, "malloc" },
		{ &next.calloc, "calloc" },
		{ &next.realloc, "realloc" },
		{ &next.memalign, "memalign" },
		{ &next.aligned_alloc, "aligned_alloc" },
		{ &next.valloc, "valloc" },
		{ &next.pvalloc, "pvalloc" },
		{ &next.posix_memalign, "posix_memalign" },
		{ &next.malloc_trim, "malloc_trim" },
	};
	int expected = UNDECIDED, decision = PASS;

	if (!atomic_compare_exchange_strong(&mode, &expected, DECIDING))
		return;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		void *found = dlsym(RTLD_NEXT, table[i].name);

		/* C has no cast from an object to a function */
		if (found)
			memcpy(table[i].function, &found, sizeof(found));
	}
	atomic_store(&seen_break, (uintptr_t)sbrk(0));
	if (owner("free") && owner("free") == owner("gnu_get_libc_version") && is_as_known())
		decision = WATCH;
	atomic_store(&mode, decision);
}

static inline void ready(void)
{
	if (atomic_load_explicit(&mode, memory_order_relaxed) == UNDECIDED)
		decide();
}

static bool is_set(const char *variable, const char *tunable)
{
	const char *tunables = secure_getenv("GLIBC_TUNABLES");

	return secure_getenv(variable) || (tunables && strstr(tunables, tunable));
}

/* Runs when the environment is there; what was allocated before that was looked at all the same. */
__attribute__((constructor)) static void set_up(void)
{
	const int largest = HEAP_SIZE / 2; /* glibc takes no more */
	struct ksmreg_stats stats = { .size = sizeof(stats) };

	ready();
	if (atomic_load(&mode) != WATCH || ksmreg_get_stats(&stats))
		return;
	if (stats.state == KSMREG_OFF_ENVIRONMENT || stats.state == KSMREG_OFF_KERNEL) {
		atomic_store(&mode, PASS);
		return;
	}
	if (prctl(GET_MEMORY_MERGE, 0, 0, 0, 0) == 1)
		atomic_store(&mode, PASS); /* all is offered; but large growths keep areas few */
	if (!is_set("MALLOC_TOP_PAD_", "glibc.malloc.top_pad="))
		mallopt(M_TOP_PAD, GROWTH);
	if (!is_set("MALLOC_MMAP_THRESHOLD_", "glibc.malloc.mmap_threshold="))
		mallopt(M_MMAP_THRESHOLD, largest);
	if (!is_set("MALLOC_TRIM_THRESHOLD_", "glibc.malloc.trim_threshold="))
		mallopt(M_TRIM_THRESHOLD, GROWTH + largest);
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
	ready();
	return saw(next.aligned_alloc(alignment, size));
}

API void *valloc(size_t size)
{
	ready();
	return saw(next.valloc(size));
}

API void *pvalloc(size_t size)
{
	ready();
	return saw(next.pvalloc(size));
}

API int posix_memalign(void **block, size_t alignment, size_t size)
{
	int err;

	ready();
	err = next.posix_memalign(block, alignment, size);
	if (!err)
		saw(*block);
	return err;
}
/* Or the break could be up again, where it was, before we look at it. */
API int malloc_trim(size_t keep)
{
	uintptr_t before, now;
	int trimmed;

	ready();
	trimmed = next.malloc_trim(keep);
	before = atomic_load(&seen_break);
	now = (uintptr_t)__curbrk;
	if (now < before)
		atomic_compare_exchange_strong(&seen_break, &before, now);
	return trimmed;
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
