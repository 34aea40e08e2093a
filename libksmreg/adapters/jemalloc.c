/* libksmreg in jemalloc 5: an alloc hook for every arena, which registers extents before they are used. */
/* SPDX-License-Identifier: MIT */
#include "adapters.h"

#include <errno.h>
#include <jemalloc/jemalloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * jemalloc's own hooks, the same in every arena, and ours: a copy with another alloc. Both are
 * complete before jemalloc is told of ours. For a jemalloc built with a prefix, compile this with
 * -DJEMALLOC_MANGLE: then its header makes je_mallctl or the like of mallctl.
 */
static extent_hooks_t *original;
static extent_hooks_t hooks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the installing only */

/* Runs under locks of the arena, and may run in several threads at once. */
static void *alloc(extent_hooks_t *self, void *addr, size_t size, size_t alignment, bool *zero,
	bool *commit, unsigned arena)
{
	void *got = original->alloc(original, addr, size, alignment, zero, commit, arena);

	(void)self;
	/* versions after 5.3 may put flags into the lowest bits of the address */
	if (got)
		ksmreg_register((void *)((uintptr_t)got & -(uintptr_t)4096), size);
	return got;
}

/* Reads the hooks of an arena, and sets others where `new` is not NULL. 0 or -errno of mallctl. */
static int exchange(unsigned arena, extent_hooks_t **old, extent_hooks_t *new)
{
	size_t size = sizeof(void *); /* what is passed is the pointer */
	char name[48];

	snprintf(name, sizeof(name), "arena.%u.extent_hooks", arena);
	return -mallctl(name, old, &size, new ? &new : NULL, new ? size : 0);
}

/*
 * A thread may be mapping memory by the old hook still. This setting is read under the lock that it
 * holds; where there is no such setting or lock (before 5.1, retain:false) little is lost.
 */
static void wait_for_growth(unsigned arena)
{
	size_t limit, size = sizeof(limit);
	char name[48];

	snprintf(name, sizeof(name), "arena.%u.retain_grow_limit", arena);
	mallctl(name, &limit, &size, NULL, 0);
}

static int hook(unsigned arena)
{
	extent_hooks_t *now;
	int err = exchange(arena, &now, NULL);

	/* Setting them makes an arena that is not there, but not if a thread makes it meanwhile: again. */
	for (int tries = 0; !err && now == original && tries < 3; tries++) {
		err = exchange(arena, &now, &hooks);
		if (!err)
			err = exchange(arena, &now, NULL);
	}
	if (!err)
		wait_for_growth(arena);
	return err;
}

/*
 * All arenas that jemalloc uses by itself. Returns how many numbers have no arena and cannot be made
 * to by setting hooks, in *missing: those of arenas that were destroyed, and the one for large
 * allocations before the first of them.
 */
static int hook_all(unsigned *missing)
{
	unsigned arenas;
	size_t size = sizeof(arenas);
	int first = -mallctl("arenas.narenas", &arenas, &size, NULL, 0), err;

	*missing = 0;
	if (first)
		return first;
	for (unsigned i = 0; i < arenas; i++) {
		err = hook(i);
		if (err == -EFAULT)
			(*missing)++;
		else if (err && !first)
			first = err;
	}
	return first;
}

/* The first large allocation makes their arena. It is mapped, but not touched, so that it costs nothing. */
static int make_arena_for_large(void)
{
	size_t threshold, size = sizeof(threshold);
	void *p;

	/* before 5.1 there is none, and 0 means the same */
	if (mallctl("opt.oversize_threshold", &threshold, &size, NULL, 0) || !threshold)
		return 0;
	p = mallocx(threshold, MALLOCX_TCACHE_NONE);
	if (!p)
		return -ENOMEM;
	dallocx(p, MALLOCX_TCACHE_NONE);
	return 0;
}

static int install(void)
{
	extent_hooks_t *now;
	unsigned missing;
	int first = exchange(0, &now, NULL), err;

	if (first)
		return first;
	/* each hook but alloc works the same when it is handed our table: it does not look at it */
	hooks = *now;
	hooks.alloc = alloc;
	original = now;

	first = hook_all(&missing);
	if (missing) {
		err = make_arena_for_large();
		if (!err)
			err = hook_all(&missing);
		if (!first)
			first = err;
	}
	/* after the hooks: what is mapped from now on is registered by them */
	err = ksmreg_register_existing(KSMREG_ANON);
	return first ? first : err;
}

int ksmreg_jemalloc_install(void)
{
	int err = 0;

	pthread_mutex_lock(&lock);
	if (!original && !ksmreg_off_for_good())
		err = install();
	pthread_mutex_unlock(&lock);
	return err;
}

int ksmreg_jemalloc_hook(unsigned arena)
{
	int err = -EINVAL;

	pthread_mutex_lock(&lock);
	if (original)
		err = hook(arena);
	else if (ksmreg_off_for_good())
		err = 0;
	pthread_mutex_unlock(&lock);
	return err;
}
