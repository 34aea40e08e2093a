/* Which groups hold the same pages: what each set of them saves together, and each pair. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/estimate_together.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* 4 MiB of ids at most, however many programs share what with which. */
#define IDS_MAX (1u << 20)
/* Pairs are summed in a table of all of them: 8 MiB at most. */
#define PAIR_GROUPS_MAX 1024

static bool grow(struct together *together, size_t more_ids)
{
	if (together->id_count + more_ids > together->id_room) {
		size_t room = together->id_room ? 2 * together->id_room : 1024;
		while (room < together->id_count + more_ids)
			room *= 2;
		uint32_t *ids = reallocarray(together->ids, room, sizeof(*ids));
		if (!ids)
			return false;
		together->ids = ids;
		together->id_room = room;
	}
	if (together->count < together->room)
		return true;
	size_t room = together->room ? 2 * together->room : 256;
	struct together_set *sets = reallocarray(together->sets, room, sizeof(*sets));
	if (!sets)
		return false;
	together->sets = sets;
	together->room = room;
	uint32_t *slots = calloc(2 * room, sizeof(*slots));
	if (!slots) {
		/* The table of slots is full then, and the next call comes here again. */
		together->room = together->count;
		return false;
	}
	for (size_t i = 0; i < together->count; i++) {
		size_t at = sets[i].hash & (2 * room - 1);
		while (slots[at])
			at = (at + 1) & (2 * room - 1);
		slots[at] = (uint32_t)i + 1;
	}
	free(together->slots);
	together->slots = slots;
	together->slot_count = 2 * room;
	return true;
}

static bool is_set(const struct together *together, const struct together_set *set, uint64_t hash,
	const uint32_t *ids, size_t count)
{
	return set->hash == hash && set->count == count &&
	       !memcmp(together->ids + set->first, ids, count * sizeof(*ids));
}

void together_add(struct together *together, const uint32_t *ids, size_t count, int64_t saved_pages)
{
	uint64_t hash = XXH3_64bits(ids, count * sizeof(*ids));
	size_t at = together->slot_count ? hash & (together->slot_count - 1) : 0;

	while (together->slot_count && together->slots[at]) {
		struct together_set *set = &together->sets[together->slots[at] - 1];
		if (is_set(together, set, hash, ids, count)) {
			set->saved_pages += saved_pages;
			return;
		}
		at = (at + 1) & (together->slot_count - 1);
	}
	if (together->id_count + count > IDS_MAX || !grow(together, count)) {
		together->rest_pages += saved_pages;
		return;
	}
	at = hash & (together->slot_count - 1);
	while (together->slots[at])
		at = (at + 1) & (together->slot_count - 1);
	together->sets[together->count] =
		(struct together_set){ together->id_count, count, hash, saved_pages };
	memcpy(together->ids + together->id_count, ids, count * sizeof(*ids));
	together->id_count += count;
	together->slots[at] = (uint32_t)++together->count;
}

void together_merge(struct together *into, const struct together *from)
{
	for (size_t i = 0; i < from->count; i++)
		together_add(into, from->ids + from->sets[i].first, from->sets[i].count,
			from->sets[i].saved_pages);
	into->rest_pages += from->rest_pages;
}

static int compare_sets(const void *a, const void *b)
{
	const struct together_set *x = a, *y = b;
	if (x->saved_pages != y->saved_pages)
		return x->saved_pages < y->saved_pages ? 1 : -1;
	/* Any fixed order will do. */
	return (x->hash > y->hash) - (x->hash < y->hash);
}

void together_sort(struct together *together)
{
	if (together->count)
		qsort(together->sets, together->count, sizeof(*together->sets), compare_sets);
	/* The slots point to other sets now. */
	free(together->slots);
	together->slots = NULL;
	together->slot_count = 0;
}

void together_free(struct together *together)
{
	free(together->sets);
	free(together->slots);
	free(together->ids);
	memset(together, 0, sizeof(*together));
}

/* Keep the best ones in order. */
static size_t keep_pair(
	struct together_pair *pairs, size_t count, size_t max, struct together_pair pair)
{
	size_t at = count;
	if (pair.saved_pages <= 0)
		return count;
	while (at && pairs[at - 1].saved_pages < pair.saved_pages)
		at--;
	if (at == max)
		return count;
	if (count < max)
		count++;
	memmove(pairs + at + 1, pairs + at, (count - at - 1) * sizeof(*pairs));
	pairs[at] = pair;
	return count;
}

size_t together_pairs(
	const struct together *together, size_t groups, struct together_pair *pairs, size_t max)
{
	size_t count = 0;
	if (groups > PAIR_GROUPS_MAX || max == 0)
		return 0;
	int64_t *table = calloc(groups * groups, sizeof(*table));
	if (!table)
		return 0;
	for (size_t i = 0; i < together->count; i++) {
		const struct together_set *set = &together->sets[i];
		const uint32_t *ids = together->ids + set->first;
		/* n groups with a page each save n - 1; any two of them save one. */
		int64_t each = set->saved_pages / (int64_t)(set->count - 1);
		for (size_t a = 0; a < set->count; a++) {
			for (size_t b = a + 1; b < set->count; b++)
				table[ids[a] * groups + ids[b]] += each;
		}
	}
	for (uint32_t a = 0; a < groups; a++) {
		for (uint32_t b = a + 1; b < groups; b++)
			count = keep_pair(pairs, count, max,
				(struct together_pair){ a, b, table[a * groups + b] });
	}
	free(table);
	return count;
}
