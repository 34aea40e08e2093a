/* Growth of an allocator: pieces of 256 KiB that are mapped or opened, offered and touched. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/reg_growth.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "libksmreg/ksmreg.h"

const char *const growth_pattern_name[PATTERNS] = {
	[PATTERN_PIECES] = "mmap of each piece",
	[PATTERN_MPROTECT] = "reserved, mprotect",
	[PATTERN_TOUCH] = "reserved, touch",
};

const char *const growth_offer_name[OFFERS] = {
	[OFFER_NONE] = "nothing",
	[OFFER_BARE] = "bare madvise",
	[OFFER_HOOK] = "hook",
	[OFFER_LATE] = "madvise after the touch",
};

uint64_t growth_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static char *map(size_t size, int prot)
{
	char *p = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		fail("mmap");
	return p;
}

static void offer(enum offer how, char *p, size_t size)
{
	if (how == OFFER_BARE && madvise(p, size, MADV_MERGEABLE))
		fail("madvise");
	if (how == OFFER_HOOK && ksmreg_register(p, size))
		fail("ksmreg_register");
}

void growth_begin(struct growth *growth)
{
	int prot = growth->pattern == PATTERN_MPROTECT ? PROT_NONE : PROT_READ | PROT_WRITE;

	growth->call_ns = 0;
	growth->pieces = calloc(growth->growths, sizeof(*growth->pieces));
	if (!growth->pieces)
		fail("calloc");
	if (growth->pattern == PATTERN_PIECES)
		return;
	growth->reserved = map(growth->growths * PIECE, prot);
	offer(growth->offer, growth->reserved, growth->growths * PIECE);
}

static char *grow(struct growth *growth, int i)
{
	uint64_t begin;
	char *p;

	if (growth->pattern == PATTERN_PIECES) {
		p = map(PIECE, PROT_READ | PROT_WRITE);
		/* the clock is read in every case, so that it costs the same in each */
		begin = growth_now_ns();
		offer(growth->offer, p, PIECE);
		growth->call_ns += growth_now_ns() - begin;
		return p;
	}
	p = growth->reserved + i * PIECE;
	if (growth->pattern == PATTERN_MPROTECT && mprotect(p, PIECE, PROT_READ | PROT_WRITE))
		fail("mprotect");
	return p;
}

void growth_run(struct growth *growth)
{
	const size_t page = 4096;

	for (int i = 0; i < growth->growths; i++) {
		char *p = growth->pieces[i] = grow(growth, i);

		for (int n = 0; n < growth->touched; n++)
			*(volatile char *)(p + n * page) = 1;
		if (growth->offer == OFFER_LATE && madvise(p, PIECE, MADV_MERGEABLE))
			fail("madvise");
	}
}

void growth_end(struct growth *growth)
{
	if (growth->pattern == PATTERN_PIECES) {
		for (int i = 0; i < growth->growths; i++)
			munmap(growth->pieces[i], PIECE);
	} else {
		munmap(growth->reserved, growth->growths * PIECE);
	}
	free(growth->pieces);
}
