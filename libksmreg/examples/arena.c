/* The smallest allocator with libksmreg in it: one reservation, registered once, handed out piece by piece. */
/* SPDX-License-Identifier: MIT */
#include "arena.h"
#include "ksmreg.h"

#include <errno.h>
#include <sys/mman.h>

int arena_open(struct arena *arena, size_t size)
{
	void *start = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (start == MAP_FAILED)
		return -ENOMEM;
	/*
	 * This is all. Before the first touch, so that the mark costs no area; on the whole
	 * reservation, so that growing costs no call. Its result may be ignored: without KSM the
	 * arena works the same.
	 */
	ksmreg_register(start, size);
	*arena = (struct arena){ .start = start, .size = size };
	return 0;
}

void *arena_get(struct arena *arena, size_t size)
{
	char *block = arena->start + arena->used;

	if (size > arena->size - arena->used)
		return NULL;
	size = (size + 15) & ~(size_t)15;
	/* the last block need not be a whole one */
	arena->used = size < arena->size - arena->used ? arena->used + size : arena->size;
	return block;
}

void arena_close(struct arena *arena)
{
	munmap(arena->start, arena->size);
	*arena = (struct arena){ 0 };
}
