/* libksmreg in jemalloc 5: an alloc hook for every arena, which registers extents before they are used. */
/* SPDX-License-Identifier: MIT */
#include "adapters.h"
#include "ksmreg.h"

#include <errno.h>
#include <jemalloc/jemalloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

/* jemalloc's own hooks, the same in every arena, and ours: a copy with another alloc. */
static extent_hooks_t *original;
static extent_hooks_t hooks;

/* Above this size an allocation goes to the arena for huge ones, which exists from the first of them. */
#define HUGE_SIZE ((size_t)9 << 20)

static void *alloc(extent_hooks_t *self, void *addr, size_t size, size_t alignment, bool *zero,
	bool *commit, unsigned arena)
{
	void *got = original->alloc(original, addr, size, alignment, zero, commit, arena);

	(void)self;
	if (got)
		ksmreg_register(got, size);
	return got;
}

int ksmreg_jemalloc_hook(unsigned arena)
{
	extent_hooks_t *ours = &hooks;
	char name[48];

	snprintf(name, sizeof(name), "arena.%u.extent_hooks", arena);
	return -mallctl(name, NULL, NULL, &ours, sizeof(ours));
}

/*
 * An arena's hooks can be set once it exists. arena.I.initialized says that; those of threads to come
 * are made here, by being asked for their hooks.
 */
static int hook_all(void)
{
	unsigned arenas;
	size_t size = sizeof(arenas);
	int err = -mallctl("arenas.narenas", &arenas, &size, NULL, 0);

	for (unsigned i = 0; i < arenas && !err; i++)
		err = ksmreg_jemalloc_hook(i);
	return err;
}

int ksmreg_jemalloc_install(void)
{
	size_t size = sizeof(original);
	int err;

	if (original)
		return 0;
	err = -mallctl("arena.0.extent_hooks", &original, &size, NULL, 0);
	if (err) {
		original = NULL;
		return err;
	}
	/* every hook is handed the table it came from, so the others may be jemalloc's own */
	hooks = *original;
	hooks.alloc = alloc;
	dallocx(mallocx(HUGE_SIZE, 0), 0);
	err = hook_all();
	/* what arena 0 took before, a few MiB; it lies between other anonymous memory */
	ksmreg_register_existing(KSMREG_ANON);
	return err;
}
