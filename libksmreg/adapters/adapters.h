/* Adapters: how libksmreg is put into the allocators that programs use. Each is one file to take along. */
/* SPDX-License-Identifier: MIT */
#ifndef KSMREG_ADAPTERS_H
#define KSMREG_ADAPTERS_H

/*
 * Compile the file of your allocator into the program, link libksmreg, and call its function once,
 * as the first thing in main and before other threads start: memory that the allocator took before
 * is covered only as said below. Where the library is off (KSMREG=off, a kernel without KSM)
 * everything works as without the adapter. A second call does nothing.
 *
 * Where the kernel lets the areas of a process join under PR_SET_MEMORY_MERGE (ksmreg_probe tells),
 * ksmreg_process(1) in main covers all of these with one line. The adapters are for the others, and
 * for programs that offer the heap and nothing else.
 */

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * gperftools tcmalloc (tcmalloc.cc, C++). Stands between tcmalloc and its source of memory. Covers
 * every span, of all threads; what was taken before, usually 1 MiB, as areas of its own.
 * Returns 0, or -ENOTSUP when the program runs without tcmalloc.
 */
int ksmreg_tcmalloc_install(void);

/*
 * jemalloc 5 (jemalloc.c). Replaces the alloc hook of every arena, and registers what they have.
 * Large allocations (above 8 MiB) would go to an arena that does not exist yet: the first call makes
 * it. Arenas made later by arenas.create are the maker's to hook: ksmreg_jemalloc_hook.
 * Returns 0, or -errno of mallctl.
 */
int ksmreg_jemalloc_install(void);
int ksmreg_jemalloc_hook(unsigned arena);

/*
 * mimalloc 2 (mimalloc.c). Reserves `bytes` of address space, registers it once and hands it to
 * mimalloc: no cost per growth, and one area. What mimalloc takes beyond it is not covered, so
 * reserve generously; address space costs nothing. Nor is what it took before.
 * Returns 0, or -ENOMEM where the address space cannot be had or mimalloc refuses it.
 */
int ksmreg_mimalloc_install(size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
