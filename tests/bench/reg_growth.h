/* How an allocator grows, and at which moment it offers the memory. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_BENCH_REG_GROWTH_H
#define TESTS_BENCH_REG_GROWTH_H

#include <stddef.h>
#include <stdint.h>

#define PIECE ((size_t)256 << 10)

enum pattern {
	PATTERN_PIECES,	  /* each growth is an mmap of its own, offered at once */
	PATTERN_MPROTECT, /* one reservation, offered once; mprotect opens it by pieces */
	PATTERN_TOUCH,	  /* one reservation, offered once; touching is all */
	PATTERNS
};
extern const char *const growth_pattern_name[PATTERNS];

enum offer {
	OFFER_NONE,
	OFFER_BARE, /* madvise */
	OFFER_HOOK, /* ksmreg_register */
	OFFER_LATE, /* madvise after the touch, for comparison */
	OFFERS
};
extern const char *const growth_offer_name[OFFERS];

/* The memory of one thread: `growths` pieces to come. */
struct growth {
	enum pattern pattern;
	enum offer offer;
	int growths, touched; /* pages of a piece */
	char *reserved;
	char **pieces;
	uint64_t call_ns; /* in the offering call alone */
};

uint64_t growth_now_ns(void);

/* What is done once; not for the clock. Failure ends the program. */
void growth_begin(struct growth *growth);
/* All growths, one after the other. */
void growth_run(struct growth *growth);
/* Unmaps. */
void growth_end(struct growth *growth);

#endif
