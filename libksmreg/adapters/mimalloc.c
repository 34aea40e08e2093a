/* libksmreg in mimalloc 2 and 3: address space that is registered once, then handed to mimalloc. */
/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "adapters.h"

#include <errno.h>
#include <mimalloc.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* mimalloc wants whole segments, of 32 or 64 MiB by version, aligned to their size. */
#define SEGMENT ((size_t)64 << 20)

static char *reserve(size_t bytes)
{
	char *start;
	size_t off;

	if (bytes > SIZE_MAX - SEGMENT)
		return NULL;
	/* PROT_NONE: nothing is committed, also where the kernel is strict about that */
	start = mmap(NULL, bytes + SEGMENT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);
	if (start == MAP_FAILED)
		return NULL;
	off = -(uintptr_t)start & (SEGMENT - 1);
	if (off)
		munmap(start, off);
	munmap(start + off + bytes, SEGMENT - off);
	return start + off;
}

/*
 * As much as the machine has memory: there is no hook to reserve more when it is used up. It costs
 * address space only; the scanner jumps over what is not mapped.
 */
static size_t default_bytes(void)
{
	return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

int ksmreg_mimalloc_reserve(size_t bytes)
{
	char *start;
	int err;

	if (ksmreg_off_for_good())
		return 0;
	if (!bytes)
		bytes = default_bytes();
	if (bytes > SIZE_MAX - SEGMENT)
		return -ENOMEM;
	bytes = (bytes + SEGMENT - 1) & ~(SEGMENT - 1);
	start = reserve(bytes);
	if (!start)
		return -ENOMEM;
	/* mimalloc makes it writable piece by piece, and the mark survives that */
	err = ksmreg_register(start, bytes);
	if (!err && !mi_manage_os_memory(start, bytes, false, false, true, -1))
		err = -ENOMEM;
	if (err)
		munmap(start, bytes);
	/* only now does libksmreg know of a kernel that cannot */
	return err && ksmreg_off_for_good() ? 0 : err;
}

int ksmreg_mimalloc_install(size_t bytes)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static int installed;
	int err = 0;

	pthread_mutex_lock(&lock);
	if (!installed && !ksmreg_off_for_good()) {
		err = ksmreg_mimalloc_reserve(bytes);
		installed = !err;
		if (installed && !ksmreg_off_for_good())
			err = ksmreg_register_existing(KSMREG_ANON);
	}
	pthread_mutex_unlock(&lock);
	return err;
}
