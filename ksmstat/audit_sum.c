/* Who shares merged pages with whom: from page frames to pairs of groups and the boundaries they cross. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/audit_sum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	COUNTS = 512,	     /* frames whose mappings are asked for at once */
	GAP = 32,	     /* frames between two that are wanted: cheaper than another read */
	SIDE_MAX = 1024,     /* groups of which every pair has a place: 32 MiB, where used */
	PAIRS_MAX = 1 << 20, /* 64 MiB with the room that a table needs */
};

/*
 * Pages are gathered by the set of cells that maps them, since most are mapped by few sets, and a
 * set of n makes n * n / 2 pairs. In a set a cell is its number, doubled, and 1 more if two or more
 * of its processes map the page. When the table of sets is full its pairs are made and it is empty again.
 */
struct summing {
	struct audit_sums *sums;
	const struct audit_input *input;
	struct together sets;
	uint32_t *ids; /* room for the set of one page */
	uint64_t set;  /* a number for each set */
	/* counts of frames from first_counted on */
	uint64_t counts[COUNTS], first_counted;
	size_t counted;
};

static uint64_t frame_of(uint64_t record)
{
	return record >> AUDIT_PROCESS_BITS;
}

static uint32_t process_of(uint64_t record)
{
	return record & ((UINT32_C(1) << AUDIT_PROCESS_BITS) - 1);
}

/* Where a pair is, or belongs. Of few groups the table has a place for each, row by row; else it is hashed. */
static size_t slot(const struct audit_sums *sums, uint32_t a, uint32_t b)
{
	if (sums->pair_side)
		return a * sums->pair_side + b;
	uint64_t key = ((uint64_t)a << 32 | b) * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (size_t)(key >> 32) & (sums->pair_room - 1);
	while (sums->pairs[at].pages && (sums->pairs[at].a != a || sums->pairs[at].b != b))
		at = (at + 1) & (sums->pair_room - 1);
	return at;
}

/* Room for one more, at most half of it used. Returns 0, -ENOMEM or -E2BIG. */
static int grow(struct audit_sums *sums)
{
	struct audit_sums old = *sums;
	if (sums->pairs && (sums->pair_side || 2 * sums->pair_count < sums->pair_room))
		return 0;
	if (sums->pairs && sums->pair_count >= PAIRS_MAX)
		return -E2BIG;
	sums->pair_room = old.pair_room ? 2 * old.pair_room : 256;
	if (sums->pair_side)
		sums->pair_room = sums->pair_side * sums->pair_side;
	sums->pairs = calloc(sums->pair_room, sizeof(*sums->pairs));
	if (!sums->pairs) {
		*sums = old;
		return -ENOMEM;
	}
	for (size_t i = 0; i < old.pair_room; i++) {
		if (old.pairs[i].pages)
			sums->pairs[slot(sums, old.pairs[i].a, old.pairs[i].b)] = old.pairs[i];
	}
	free(old.pairs);
	return 0;
}

/* Two groups may meet more than once in a set, by other cells: its pages count once. */
static int add_pair(
	struct summing *summing, uint32_t a, uint32_t b, unsigned crosses, uint64_t pages)
{
	struct audit_sums *sums = summing->sums;
	if (a > b) {
		uint32_t c = a;
		a = b;
		b = c;
	}
	int err = grow(sums);
	if (err && err != -E2BIG)
		return err;
	struct audit_pair *pair = &sums->pairs[slot(sums, a, b)];
	if (!pair->pages && err) {
		sums->left_out_pages += pages;
		return 0;
	}
	if (!pair->pages) {
		*pair = (struct audit_pair){ .a = a, .b = b };
		sums->pair_count++;
	}
	if (pair->set != summing->set)
		pair->pages += pages;
	pair->set = summing->set;
	pair->crosses |= crosses;
	return 0;
}

static unsigned crossed(const struct audit_cell *a, const struct audit_cell *b)
{
	unsigned crosses = 0;
	for (unsigned i = 0; i < AUDIT_BOUNDARIES; i++)
		crosses |= (unsigned)(a->side[i] != b->side[i]) << i;
	return crosses;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Which sides of a boundary a set is on. */
static void add_sides(struct summing *summing, const uint32_t *set, size_t count, unsigned boundary,
	uint64_t pages)
{
	uint32_t *sides = summing->ids;
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		sides[i] = summing->input->cells[set[i] >> 1].side[boundary];
	qsort(sides, count, sizeof(*sides), by_number);
	for (size_t i = 0; i < count; i++) {
		if (!kept || sides[kept - 1] != sides[i])
			sides[kept++] = sides[i];
	}
	if (kept < 2)
		return;
	summing->sums->crossing_pages[boundary] += pages;
	together_add(&summing->sums->sides[boundary], sides, kept, (int64_t)pages);
}

static int add_set(struct summing *summing, const uint32_t *set, size_t count, uint64_t pages)
{
	const struct audit_cell *cells = summing->input->cells;
	int err = 0;
	summing->set++;
	for (unsigned i = 0; i < AUDIT_BOUNDARIES; i++)
		add_sides(summing, set, count, i, pages);
	for (size_t i = 0; i < count && !err; i++) {
		const struct audit_cell *a = &cells[set[i] >> 1];
		for (size_t j = i + !(set[i] & 1); j < count && !err; j++) {
			const struct audit_cell *b = &cells[set[j] >> 1];
			if (a->selected || b->selected)
				err = add_pair(summing, a->group, b->group, crossed(a, b), pages);
		}
	}
	return err;
}

static int empty(struct summing *summing)
{
	int err = 0;
	for (size_t i = 0; i < summing->sets.count && !err; i++) {
		const struct together_set *set = &summing->sets.sets[i];
		err = add_set(summing, summing->sets.ids + set->first, set->count,
			(uint64_t)set->saved_pages);
	}
	together_free(&summing->sets);
	return err;
}

/* One more page that is mapped by the cells of this set. */
static int add_page(struct summing *summing, size_t count)
{
	together_add(&summing->sets, summing->ids, count, 1);
	if (!summing->sets.rest_pages)
		return 0;
	/* ids are used meanwhile: the set has to be put aside. */
	uint32_t *set = malloc(count * sizeof(*set));
	if (!set)
		return -ENOMEM;
	memcpy(set, summing->ids, count * sizeof(*set));
	int err = empty(summing);
	if (!err)
		together_add(&summing->sets, set, count, 1);
	free(set);
	return err ? err : summing->sets.rest_pages ? -ENOMEM : 0;
}

/* How often the frame of a record is mapped by whomever; those behind it are asked for in the same breath. */
static int mappings(struct summing *summing, size_t at, uint64_t *count)
{
	const struct audit_input *input = summing->input;
	uint64_t frame = frame_of(input->records[at]), last = frame;
	if (!summing->counted || frame < summing->first_counted ||
		frame >= summing->first_counted + summing->counted) {
		for (; at < input->count; at++) {
			uint64_t next = frame_of(input->records[at]);
			if (next - last > GAP || next - frame >= COUNTS)
				break;
			last = next;
		}
		int err = frames_counts(
			input->frames, frame, (size_t)(last - frame) + 1, summing->counts);
		if (err)
			return err;
		summing->first_counted = frame;
		summing->counted = (size_t)(last - frame) + 1;
	}
	*count = summing->counts[frame - summing->first_counted];
	return 0;
}

/* The page that records from `at` on are of. Returns how many records, or -errno. */
static ssize_t sum_page(struct summing *summing, size_t at)
{
	const struct audit_input *input = summing->input;
	struct audit_sums *sums = summing->sums;
	const uint64_t *records = input->records + at;
	size_t run = 0, cells = 0, processes = 0;
	uint64_t known = 0;
	bool selected = false;
	int err = 0;

	while (at + run < input->count && frame_of(records[run]) == frame_of(records[0])) {
		bool again = run && records[run] == records[run - 1];
		uint32_t cell = input->cell_of[process_of(records[run++])];
		if (again)
			continue;
		processes++;
		selected |= input->cells[cell].selected;
		if (cells && summing->ids[cells - 1] >> 1 == cell)
			summing->ids[cells - 1] |= 1;
		else
			summing->ids[cells++] = cell << 1;
	}
	if (!selected)
		return (ssize_t)run;
	sums->pages++;
	sums->mappings += run;
	if (input->frames)
		err = mappings(summing, at, &known);
	sums->unseen_pages += known > run;
	if (processes == 1)
		sums->alone_pages++;
	else
		sums->shared_pages++;
	if (!err && processes > 1)
		err = add_page(summing, cells);
	return err ? err : (ssize_t)run;
}

static int by_record(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static int by_weight(const void *a, const void *b)
{
	const struct audit_pair *x = a, *y = b;
	if (!x->crosses != !y->crosses)
		return !x->crosses - !y->crosses;
	if (x->pages != y->pages)
		return x->pages < y->pages ? 1 : -1;
	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	return (x->b > y->b) - (x->b < y->b);
}

/* From a table with holes to a list in order. */
static void finish_pairs(struct audit_sums *sums)
{
	size_t kept = 0;
	for (size_t i = 0; i < sums->pair_room; i++) {
		if (sums->pairs[i].pages)
			sums->pairs[kept++] = sums->pairs[i];
	}
	if (kept)
		qsort(sums->pairs, kept, sizeof(*sums->pairs), by_weight);
	sums->pair_room = kept;
}

/* As many ids as one page has mappings at most. */
static int make_room(struct summing *summing)
{
	const struct audit_input *input = summing->input;
	size_t run = 0, most = 1;
	for (size_t i = 0; i < input->count; i++) {
		bool same = i && frame_of(input->records[i]) == frame_of(input->records[i - 1]);
		run = same ? run + 1 : 1;
		most = run > most ? run : most;
	}
	summing->ids = calloc(most, sizeof(*summing->ids));
	return summing->ids ? 0 : -ENOMEM;
}

int audit_sum(struct audit_sums *sums, const struct audit_input *input)
{
	struct summing summing = { .sums = sums, .input = input };
	*sums = (struct audit_sums){ .pair_side = input->groups <= SIDE_MAX ? input->groups : 0 };
	if (input->count)
		qsort(input->records, input->count, sizeof(*input->records), by_record);
	int err = make_room(&summing);
	for (size_t at = 0; at < input->count && !err;) {
		ssize_t run = sum_page(&summing, at);
		if (run < 0)
			err = (int)run;
		else
			at += (size_t)run;
	}
	if (!err)
		err = empty(&summing);
	together_free(&summing.sets);
	free(summing.ids);
	finish_pairs(sums);
	for (unsigned i = 0; i < AUDIT_BOUNDARIES; i++)
		together_sort(&sums->sides[i]);
	return err;
}

void audit_sums_free(struct audit_sums *sums)
{
	for (unsigned i = 0; i < AUDIT_BOUNDARIES; i++)
		together_free(&sums->sides[i]);
	free(sums->pairs);
	memset(sums, 0, sizeof(*sums));
}
