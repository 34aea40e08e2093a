/* Who shares merged pages with whom: from page frames to pairs of groups and the boundaries they cross. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_AUDIT_SUM_H
#define KSMSTAT_AUDIT_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ksmstat/estimate_together.h"
#include "sysfs/frames.h"

enum { AUDIT_USER, AUDIT_CGROUP, AUDIT_CONTAINER, AUDIT_BOUNDARIES };

/* Processes that nothing tells apart here: on the same side of every boundary, and of one group. */
struct audit_cell {
	uint32_t side[AUDIT_BOUNDARIES]; /* equal numbers: the same user, ... */
	uint32_t group;			 /* what they are shown as */
	bool selected;
};

/* A mapping of a merged page by a process, as one number that sorts by frame. */
#define AUDIT_PROCESS_BITS 24
#define AUDIT_FRAME_MAX (UINT64_MAX >> AUDIT_PROCESS_BITS)
static inline uint64_t audit_record(uint64_t frame, uint32_t process)
{
	return frame << AUDIT_PROCESS_BITS | process;
}

struct audit_input {
	uint64_t *records; /* one for each mapping, in any order: they are sorted here */
	size_t count;
	const uint32_t *cell_of; /* of each process; must not fall from one process to the next */
	const struct audit_cell *cells;
	size_t groups;		     /* that cells are of */
	const struct frames *frames; /* to see whether others map a page too; NULL: nobody does */
};

/* Two groups, or one whose processes share among themselves (a == b). */
struct audit_pair {
	uint32_t a, b;	  /* a <= b */
	unsigned crosses; /* bits of boundaries */
	uint64_t pages;	  /* that processes of both have */
	uint64_t set;	  /* of use here alone */
};

/* Of pages that somebody selected maps. A page is counted once, however many map it. */
struct audit_sums {
	uint64_t pages, mappings;
	uint64_t alone_pages;  /* one process maps it, twice or more, or the others have gone */
	uint64_t shared_pages; /* different processes do */
	uint64_t unseen_pages; /* of either: somebody maps it who is not among the processes */
	uint64_t crossing_pages[AUDIT_BOUNDARIES];
	struct together sides[AUDIT_BOUNDARIES]; /* which users, ... share how many pages */
	struct audit_pair *pairs;		 /* what crosses first, then what is most */
	size_t pair_count, pair_room, pair_side; /* the latter are of the table */
	uint64_t left_out_pages;		 /* of pairs: there were too many */
};

/* Returns 0 or -errno. Free with audit_sums_free in any case. */
int audit_sum(struct audit_sums *sums, const struct audit_input *input);
void audit_sums_free(struct audit_sums *sums);

#endif
