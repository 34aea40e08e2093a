/* Which groups hold the same pages: what each set of them saves together, and each pair. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_ESTIMATE_TOGETHER_H
#define KSMSTAT_ESTIMATE_TOGETHER_H

#include <stddef.h>
#include <stdint.h>

/* Groups that all hold some contents that no other group holds. */
struct together_set {
	size_t first, count; /* of ids in the table, ascending */
	uint64_t hash;
	int64_t saved_pages; /* between these groups; what each saves alone is not in it */
};

struct together {
	struct together_set *sets;
	size_t count, room;
	uint32_t *slots; /* open addressing: index of a set, plus one */
	size_t slot_count;
	uint32_t *ids;
	size_t id_count, id_room;
	int64_t rest_pages; /* of sets for which there was no room */
};

/* Two groups, when they alone would merge with each other. */
struct together_pair {
	uint32_t a, b;
	int64_t saved_pages;
};

/* Add to a set of `count` >= 2 ascending ids. Never fails: without memory it adds to the rest. */
void together_add(
	struct together *together, const uint32_t *ids, size_t count, int64_t saved_pages);
/* Add all of another table. */
void together_merge(struct together *into, const struct together *from);
/* Sort the sets: what saves most comes first. Nothing can be added afterwards. */
void together_sort(struct together *together);
void together_free(struct together *together);

/*
 * The pairs of `groups` groups that save most, at most `max`, best first. Where three or more hold
 * the same, each pair of them saves it. Returns how many; 0 also where there are too many groups.
 */
size_t together_pairs(
	const struct together *together, size_t groups, struct together_pair *pairs, size_t max);

#endif
