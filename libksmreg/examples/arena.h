/* The smallest allocator with libksmreg in it: one reservation, registered once, handed out piece by piece. */
/* SPDX-License-Identifier: MIT */
#ifndef KSMREG_EXAMPLE_ARENA_H
#define KSMREG_EXAMPLE_ARENA_H

#include <stddef.h>

/*
 * For one thread. Give each its own, for the sake of merging too: the blocks of several threads mix in
 * another order in each process, and then hardly any page has an equal in another one.
 */
struct arena {
	char *start;
	size_t used, size; /* bytes */
};

/* Reserve `size` bytes. Returns 0 or -ENOMEM. */
int arena_open(struct arena *arena, size_t size);

/* `size` bytes, aligned to 16, filled with zeros; NULL when the arena is full. */
void *arena_get(struct arena *arena, size_t size);

/* Give all of it back at once. */
void arena_close(struct arena *arena);

#endif
