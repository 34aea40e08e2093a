/* ksmstat/audit_sum: pairs and boundaries, against a count of every two processes; and groups of entries. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/audit.h"

#include <string.h>
#include <unistd.h>

#include "tests/tap.h"

enum { PROCESSES = 64, GROUPS = 8, MAX_RECORDS = 1 << 21 };

static uint64_t *records;
static size_t count;
static uint32_t cell_of[PROCESSES];
static struct audit_cell cells[PROCESSES];
static size_t cell_count;
static uint64_t state = 1;
static size_t groups_meant; /* GROUPS, or more than have a place each */

static uint32_t any(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 20) % below;
}

static void start(void)
{
	free(records);
	records = calloc(MAX_RECORDS, sizeof(*records));
	ck_assert_ptr_nonnull(records);
	count = cell_count = 0;
	groups_meant = GROUPS;
	memset(cells, 0, sizeof(cells));
}

/* One process more, in a cell of its own. Returns its number. */
static uint32_t process(uint32_t user, uint32_t cgroup, uint32_t container, uint32_t group)
{
	cells[cell_count] =
		(struct audit_cell){ { user, cgroup, container }, group, .selected = true };
	cell_of[cell_count] = (uint32_t)cell_count;
	return (uint32_t)cell_count++;
}

static void map(uint64_t frame, uint32_t of)
{
	ck_assert_uint_lt(count, MAX_RECORDS);
	records[count++] = audit_record(frame, of);
}

static struct audit_sums sum(void)
{
	const struct audit_input input = { .records = records,
		.count = count,
		.cell_of = cell_of,
		.cells = cells,
		.groups = groups_meant };
	struct audit_sums sums;
	ck_assert_int_eq(audit_sum(&sums, &input), 0);
	return sums;
}

static const struct audit_pair *pair(const struct audit_sums *sums, uint32_t a, uint32_t b)
{
	for (size_t i = 0; i < sums->pair_count; i++) {
		if (sums->pairs[i].a == a && sums->pairs[i].b == b)
			return &sums->pairs[i];
	}
	return NULL;
}

START_TEST(nothing)
{
	start();
	struct audit_sums sums = sum();
	ck_assert_uint_eq(sums.pages, 0);
	ck_assert_uint_eq(sums.pair_count, 0);
	audit_sums_free(&sums);
}
END_TEST

START_TEST(by_hand)
{
	start();
	uint32_t one = process(0, 0, 0, 0), two = process(0, 1, 0, 1), three = process(1, 1, 1, 1);
	map(7, one);
	map(7, two);
	map(8, two);
	map(8, three);
	map(9, one);
	map(9, one);
	map(9, one);
	map(10, three);
	map(11, one);
	map(11, one);
	map(11, two);
	map(11, three);
	struct audit_sums sums = sum();
	ck_assert_uint_eq(sums.pages, 5);
	ck_assert_uint_eq(sums.mappings, 12);
	ck_assert_uint_eq(sums.alone_pages, 2);
	ck_assert_uint_eq(sums.shared_pages, 3);
	ck_assert_uint_eq(sums.crossing_pages[AUDIT_USER], 2);
	ck_assert_uint_eq(sums.crossing_pages[AUDIT_CGROUP], 2);
	ck_assert_uint_eq(sums.crossing_pages[AUDIT_CONTAINER], 2);
	ck_assert_uint_eq(sums.pair_count, 2);
	/* one and two share 7; one and the group of the others 11, which counts once */
	ck_assert_uint_eq(pair(&sums, 0, 1)->pages, 2);
	ck_assert_uint_eq(pair(&sums, 0, 1)->crosses,
		1 << AUDIT_USER | 1 << AUDIT_CGROUP | 1 << AUDIT_CONTAINER);
	ck_assert_uint_eq(pair(&sums, 1, 1)->pages, 2);
	ck_assert_uint_eq(pair(&sums, 1, 1)->crosses, 1 << AUDIT_USER | 1 << AUDIT_CONTAINER);
	ck_assert_uint_eq(sums.sides[AUDIT_USER].count, 1);
	ck_assert_int_eq(sums.sides[AUDIT_USER].sets[0].saved_pages, 2);
	audit_sums_free(&sums);
}
END_TEST

START_TEST(many_of_one_cell)
{
	start();
	process(0, 0, 0, 0);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		cell_of[i] = 0;
		map(1, i);
	}
	struct audit_sums sums = sum();
	ck_assert_uint_eq(sums.shared_pages, 1);
	ck_assert_uint_eq(sums.pair_count, 1);
	ck_assert_uint_eq(pair(&sums, 0, 0)->pages, 1);
	ck_assert_uint_eq(pair(&sums, 0, 0)->crosses, 0);
	audit_sums_free(&sums);
}
END_TEST

START_TEST(of_those_selected)
{
	start();
	uint32_t one = process(0, 0, 0, 0), two = process(1, 0, 0, 1), three = process(2, 0, 0, 2);
	cells[two].selected = cells[three].selected = false;
	map(1, one);
	map(1, two);
	map(2, two);
	map(2, three);
	struct audit_sums sums = sum();
	ck_assert_uint_eq(sums.pages, 1);
	ck_assert_uint_eq(sums.crossing_pages[AUDIT_USER], 1);
	ck_assert_uint_eq(sums.pair_count, 1);
	ck_assert_ptr_nonnull(pair(&sums, 0, 1));
	audit_sums_free(&sums);
}
END_TEST

/* Who else maps a page is told by the kernel's count. */
START_TEST(unseen)
{
	uint64_t counts[4096] = { [5] = 1, [600] = 2, [601] = 3, [4000] = 1 };
	struct frames frames = { .flags_fd = -1 };
	FILE *f = tmpfile();
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(counts, 8, 4096, f), 4096);
	fflush(f);
	frames.count_fd = fileno(f);
	start();
	uint32_t one = process(0, 0, 0, 0), two = process(0, 0, 0, 0);
	map(600, one);
	map(600, two);
	map(601, one); /* mapped by two others */
	map(5, one);
	map(4000, one); /* it changed while we looked */
	map(4000, two);
	map(1 << 20, one); /* no such frame any more */
	const struct audit_input input = { records, count, cell_of, cells, GROUPS, &frames };
	struct audit_sums sums;
	ck_assert_int_eq(audit_sum(&sums, &input), 0);
	ck_assert_uint_eq(sums.unseen_pages, 1);
	ck_assert_uint_eq(sums.pages, 5);
	audit_sums_free(&sums);
	fclose(f);
}
END_TEST

/* The same by looking at every two processes of every page. */
static void compare_with_naive(const struct audit_sums *sums, size_t frames, const uint64_t *who)
{
	static uint64_t pages[GROUPS][GROUPS];
	static unsigned crosses[GROUPS][GROUPS];
	uint64_t crossing[AUDIT_BOUNDARIES] = { 0 };
	size_t pairs = 0;
	memset(pages, 0, sizeof(pages));
	memset(crosses, 0, sizeof(crosses));
	for (size_t f = 0; f < frames; f++) {
		bool met[GROUPS][GROUPS] = { 0 };
		unsigned all = 0;
		for (uint32_t i = 0; i < PROCESSES; i++) {
			for (uint32_t j = i + 1; j < PROCESSES; j++) {
				const struct audit_cell *a = &cells[cell_of[i]];
				const struct audit_cell *b = &cells[cell_of[j]];
				if (!(who[f] >> i & 1) || !(who[f] >> j & 1))
					continue;
				uint32_t x = a->group < b->group ? a->group : b->group;
				uint32_t y = a->group < b->group ? b->group : a->group;
				unsigned bits = 0;
				for (unsigned k = 0; k < AUDIT_BOUNDARIES; k++)
					bits |= (unsigned)(a->side[k] != b->side[k]) << k;
				pages[x][y] += !met[x][y];
				met[x][y] = true;
				crosses[x][y] |= bits;
				all |= bits;
			}
		}
		for (unsigned k = 0; k < AUDIT_BOUNDARIES; k++)
			crossing[k] += all >> k & 1;
	}
	for (uint32_t x = 0; x < GROUPS; x++) {
		for (uint32_t y = x; y < GROUPS; y++) {
			const struct audit_pair *got = pair(sums, x, y);
			pairs += pages[x][y] > 0;
			ck_assert_uint_eq(got ? got->pages : 0, pages[x][y]);
			ck_assert_uint_eq(got ? got->crosses : 0, crosses[x][y]);
		}
	}
	ck_assert_uint_eq(sums->pair_count, pairs);
	for (unsigned k = 0; k < AUDIT_BOUNDARIES; k++) {
		int64_t in_sets = sums->sides[k].rest_pages;
		for (size_t i = 0; i < sums->sides[k].count; i++)
			in_sets += sums->sides[k].sets[i].saved_pages;
		ck_assert_uint_eq(sums->crossing_pages[k], crossing[k]);
		ck_assert_int_eq(in_sets, (int64_t)crossing[k]);
	}
	ck_assert_uint_eq(sums->left_out_pages, 0);
}

/* `frames` pages, each mapped by `each` processes, so that the table of sets is filled more than once. */
static void try_random(size_t frames, unsigned each, unsigned sides)
{
	uint64_t *who = calloc(frames, sizeof(*who));
	start();
	for (uint32_t i = 0; i < PROCESSES; i++) {
		if (!i || any(2))
			process(any(sides), any(sides), any(sides), (uint32_t)cell_count % GROUPS);
		cell_of[i] = (uint32_t)cell_count - 1;
	}
	for (size_t f = 0; f < frames; f++) {
		for (unsigned k = 0; k < each; k++) {
			uint32_t p = any(PROCESSES);
			who[f] |= UINT64_C(1) << p;
			map(f * 3 + 1, p);
		}
	}
	groups_meant = any(2) ? GROUPS : 1 << 20;
	struct audit_sums sums = sum();
	compare_with_naive(&sums, frames, who);
	for (size_t i = 1; i < sums.pair_count; i++)
		ck_assert(sums.pairs[i - 1].crosses || !sums.pairs[i].crosses);
	audit_sums_free(&sums);
	free(who);
}

START_TEST(at_random)
{
	for (unsigned i = 0; i < 30; i++)
		try_random(1 + any(500), 1 + any(6), 1 + any(4));
	try_random(60000, 30, 3); /* more than a million ids */
}
END_TEST

static struct entry made(const char *comm, const char *user, bool selected)
{
	struct entry entry = { .user = user, .selected = selected };
	snprintf(entry.stat.comm, sizeof(entry.stat.comm), "%s", comm);
	return entry;
}

START_TEST(groups)
{
	struct place a = { .path = "/a", .cgroup = "/a" };
	struct place b = { .path = "/b", .cgroup = "/b", .container = "docker:1" };
	struct entry entries[] = { made("x", "root", true), made("x", "www", true),
		made("y", "root", true), made("x", "root", true), made("x", "root", false) };
	struct audit audit = { .list = { .entries = entries, .count = 5 } };
	entries[0].place = entries[4].place = &a;
	entries[3].place = &b;

	ck_assert_int_eq(audit_group(&audit), 0);
	ck_assert_uint_eq(audit.group_count, 3); /* x of root, x of www, y of root */
	ck_assert_uint_eq(audit.groups[0].count, 3);
	ck_assert_str_eq(audit.groups[0].user, "root");
	ck_assert_uint_eq(audit.cell_count, 5);
	ck_assert_uint_eq(audit.side_count[AUDIT_USER], 2);
	ck_assert_uint_eq(audit.side_count[AUDIT_CGROUP], 3); /* and that which is not known */
	ck_assert_uint_eq(audit.side_count[AUDIT_CONTAINER], 2);
	for (size_t i = 1; i < 5; i++)
		ck_assert_uint_ge(audit.cell_of[i], audit.cell_of[i - 1]);
	for (size_t i = 0; i < 5; i++)
		ck_assert_int_eq(audit.cells[audit.cell_of[i]].selected, audit.order[i]->selected);
	free(audit.order);
	free(audit.cells);
	free(audit.cell_of);
	free(audit.groups);
	for (unsigned i = 0; i < AUDIT_BOUNDARIES; i++)
		free(audit.sides[i]);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("audit");
	TCase *t = tcase_create("audit");

	tcase_set_timeout(t, 120);
	tcase_add_test(t, nothing);
	tcase_add_test(t, by_hand);
	tcase_add_test(t, many_of_one_cell);
	tcase_add_test(t, of_those_selected);
	tcase_add_test(t, unseen);
	tcase_add_test(t, at_random);
	tcase_add_test(t, groups);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(suite());
}
