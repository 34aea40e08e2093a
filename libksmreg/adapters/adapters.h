/* Adapters: how libksmreg is put into the allocators that programs use. Each is one file to take along. */
/* SPDX-License-Identifier: MIT */
#ifndef KSMREG_ADAPTERS_H
#define KSMREG_ADAPTERS_H

/*
 * Compile the file of your allocator into the program, link libksmreg, and call its function once,
 * as the first thing in main. Later, and while other threads allocate, is safe too: each text says
 * what is then covered. A second call does nothing and returns 0. Where the library is off for good
 * (KSMREG=off, a kernel without KSM) the allocator is left as it is, and 0 returned.
 *
 * "What was there before" is found in /proc/self/maps. The kernel does not tell whose an area is, so
 * all private anonymous memory of that moment is offered, thread stacks and .bss included; and
 * memory that another thread is mapping right then can be missed.
 *
 * Where the kernel lets the areas of a process join under PR_SET_MEMORY_MERGE (ksmreg_probe tells),
 * ksmreg_process(1) in main covers all of these with one line. The adapters are for other kernels,
 * and for programs that want to offer the heap and nothing else.
 */

#include <stddef.h>

#include "ksmreg.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * gperftools tcmalloc, 2.10 and later (tcmalloc.cc, C++). Stands between tcmalloc and its source of
 * memory, and so covers all spans of all threads and tcmalloc's own tables.
 * Linked into the program itself it is there from the first allocation, before any call of this
 * function, and nothing else is offered. Where it cannot be (it sits in an object that is loaded
 * later, or the program has a tc_get_sysalloc_override of its own) this call puts it in place, and
 * offers what was there before.
 * Returns 0; -ENOTSUP when the program runs without tcmalloc; or an error of
 * ksmreg_register_existing, with the adapter in place.
 */
int ksmreg_tcmalloc_install(void);

/*
 * jemalloc 5 (jemalloc.c). Replaces the alloc hook of every arena that jemalloc may use by itself,
 * and offers what was there before. Arenas that do not exist yet are made for this, those of threads
 * to come and the one for allocations above oversize_threshold: 90 KiB each, 4 a core by default
 * (narenas).
 * Not covered: an arena with hooks of its own, which is left alone (call ksmreg_register in its
 * alloc); an arena made later by arenas.create (call ksmreg_jemalloc_hook with its number).
 * Hooks that are set on arena 0 before this call are taken for jemalloc's own.
 * Returns 0, or the first error, with all in place that could be: of mallctl(3), negative; -ENOMEM
 * (no arena for large allocations); of ksmreg_register_existing.
 */
int ksmreg_jemalloc_install(void);

/*
 * One arena more, made by arenas.create; after ksmreg_jemalloc_install. What it took before, some
 * 2 MiB, is not covered. Returns 0, -EINVAL before ksmreg_jemalloc_install, or an error of mallctl(3):
 * -EFAULT, there is no such arena.
 */
int ksmreg_jemalloc_hook(unsigned arena);

/*
 * mimalloc 2 and 3 (mimalloc.c). Reserves `bytes` of address space, at least 64 MiB and 0 for as much
 * as the machine has memory, registers it once and hands it to mimalloc: no cost per growth.
 * mimalloc takes from it first. Not covered: what it takes beyond, when that is used up or too
 * fragmented for a large block; blocks with an alignment of 32 MiB and more; the tables of threads
 * (some KiB each). What mimalloc took before this call is offered, as said above.
 * Returns 0; -ENOMEM where the address space cannot be had (RLIMIT_AS) or mimalloc refuses it, with
 * nothing changed; or an error of ksmreg_register (nothing changed) or of ksmreg_register_existing.
 */
int ksmreg_mimalloc_install(size_t bytes);

/*
 * Another reservation besides, for a program that outgrows the first: mimalloc has no hook to do so
 * by itself. Returns as above; what was there before is not looked at.
 */
int ksmreg_mimalloc_reserve(size_t bytes);

/*
 * For the adapters: is there no use in changing the allocator? ksmreg_set_enabled(0) is not for good,
 * the program may mean only what it does just now.
 */
static inline int ksmreg_off_for_good(void)
{
	struct ksmreg_stats stats;

	stats.size = sizeof(stats);
	return !ksmreg_get_stats(&stats) &&
	       (stats.state == KSMREG_OFF_ENVIRONMENT || stats.state == KSMREG_OFF_KERNEL);
}

#ifdef __cplusplus
}
#endif

#endif
