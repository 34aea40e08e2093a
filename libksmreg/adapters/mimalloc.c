/* libksmreg in mimalloc 2: address space that is registered once, then handed to mimalloc. */
/* SPDX-License-Identifier: MIT */
#include "adapters.h"
#include "ksmreg.h"

#include <errno.h>
#include <mimalloc.h>
#include <stdint.h>
#include <sys/mman.h>

/* mimalloc wants its arenas aligned to a segment. */
#define ALIGNMENT ((size_t)32 << 20)

int ksmreg_mimalloc_install(size_t bytes)
{
	static int installed;
	char *start;
	size_t off;

	if (installed)
		return 0;
	bytes = (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
	/* not committed: mimalloc makes it writable piece by piece, and the mark survives that */
	start = mmap(NULL, bytes + ALIGNMENT, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (start == MAP_FAILED)
		return -ENOMEM;
	off = -(uintptr_t)start & (ALIGNMENT - 1);
	if (off)
		munmap(start, off);
	munmap(start + off + bytes, ALIGNMENT - off);
	ksmreg_register(start + off, bytes);
	if (!mi_manage_os_memory(start + off, bytes, false, false, true, -1)) {
		munmap(start + off, bytes);
		return -ENOMEM;
	}
	installed = 1;
	return 0;
}
