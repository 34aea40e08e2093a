/* ksmstat/group: what is summed and what is refused, the tree of control groups, hostile paths. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/group.h"

#include <errno.h>
#include <inttypes.h>

#include "tests/unit/entry_whole.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const struct group_order by_key_order = { NULL, false };

/* Entries in made-up places; each has `pss` KiB, the n-th n of them, and is readable unless n is in `bad`. */
struct fixture {
	struct entry_list list;
	struct entry entries[256];
};

static void add(struct fixture *fixture, const char *path, uint64_t pss_kib, bool readable)
{
	struct entry *entry = &fixture->entries[fixture->list.count++];
	ck_assert_uint_le(fixture->list.count, COUNT(fixture->entries));
	*entry = (struct entry){ .pid = (pid_t)fixture->list.count, .user = "u" };
	entry->place = path ? place_find(&fixture->list.places, path) : NULL;
	entry->sum.pss_kib = pss_kib;
	entry->sum.seen = 1u << SMAPS_PSS;
	entry->smaps_error = readable ? 0 : -EACCES;
	entry->ksm_error = -ENOENT;
}

static struct fixture *start(void)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	places_init(&fixture->list.places);
	fixture->list.entries = fixture->entries;
	return fixture;
}

static void end(struct fixture *fixture, struct group_list *groups)
{
	group_free(groups);
	places_free(&fixture->list.places);
	free(fixture);
}

/* The value of a column in KiB where it is a size, or -1 where it is not known. */
static int64_t value(const struct group *group, const char *name)
{
	size_t i = (size_t)(find(name) - columns);
	if (!(group->known >> i & 1))
		return -1;
	return columns[i].kind == COLUMN_BYTES ? group->sum[i] / 1024 : group->sum[i];
}

static void expect(const struct group *group, const char *key, int64_t procs, int64_t unreadable,
	int64_t pss_kib)
{
	if (key)
		ck_assert_str_eq(group->key, key);
	else
		ck_assert_ptr_null(group->key);
	ck_assert_msg(value(group, "PROCS") == procs && value(group, "UNREADABLE") == unreadable &&
			      value(group, "PSS") == pss_kib,
		"%s: %" PRId64 " procs, %" PRId64 " unreadable, PSS %" PRId64, key ? key : "-",
		value(group, "PROCS"), value(group, "UNREADABLE"), value(group, "PSS"));
}

START_TEST(words)
{
	static const char *const known[] = { "program", "user", "cgroup", "unit", "container",
		"pod", "system" };
	char all[256] = "";

	for (size_t i = 0; i < COUNT(known); i++) {
		ck_assert_int_eq(group_parse(known[i]), i + 1);
		strcat(all, i ? ", " : "");
		strcat(all, known[i]);
	}
	ck_assert_str_eq(all, GROUP_WORDS);
	ck_assert_int_eq(group_parse("Unit"), GROUP_UNIT);
	ck_assert_int_eq(group_parse(""), GROUP_NONE);
	ck_assert_int_eq(group_parse("units"), GROUP_NONE);
}
END_TEST

/* What would be wrong as a sum, or is not common to a group, is refused; nothing else is. */
START_TEST(refusals)
{
	static const char *const keys[] = { NULL, "COMMAND", "USER", "CGROUP", "UNIT", "CONTAINER",
		"POD", NULL };

	for (int by = GROUP_NONE; by <= GROUP_SYSTEM; by++) {
		for (size_t i = 0; i < columns_count; i++) {
			const struct column *column = &columns[i];
			bool machine = column_is_of_machine(column);
			bool key = keys[by] && !strcmp(keys[by], column->name);
			bool fits = machine ? by == GROUP_SYSTEM
					    : by == GROUP_NONE || column->adds_up || key ||
						      !strcmp(column->name, "SAVED_BY");
			ck_assert_msg(!group_refusal((enum group_by)by, column) == fits, "%d %s",
				by, column->name);
		}
	}
}
END_TEST

static void expect_columns(enum group_by by, const char *list, const char *want)
{
	struct column_choice choice = { .count = 0 };
	const char *bad = "";
	size_t bad_len = 0;
	char names[1024] = "";

	ck_assert_int_eq(group_columns(by, &choice, list, &bad, &bad_len), 0);
	for (size_t i = 0; i < choice.count; i++) {
		strcat(names, i ? "," : "");
		strcat(names, choice.column[i]->name);
	}
	ck_assert_str_eq(names, want);
}

START_TEST(column_lists)
{
	struct column_choice choice = { .count = 7 }, before = choice;
	char many[1024] = "+PSS";
	const char *bad;
	size_t bad_len;

	expect_columns(GROUP_UNIT, NULL, "PROCS,UNREADABLE,CODE_P,DATA_P,PSS,ZERO,SAVED,UNIT");
	expect_columns(GROUP_PROGRAM, "+SWAP,USS",
		"PROCS,UNREADABLE,CODE_P,DATA_P,PSS,ZERO,SAVED,COMMAND,SWAP,USS");
	expect_columns(GROUP_SYSTEM, NULL,
		"PROCS,UNREADABLE,CODE_P,DATA_P,PSS,ZERO,SAVED,KERNEL_SAVED,KERNEL_ZERO,"
		"KERNEL_PROFIT,KSMD_MS");
	expect_columns(GROUP_USER, "user,pss", "USER,PSS");
	for (int by = GROUP_PROGRAM; by <= GROUP_SYSTEM; by++) {
		ck_assert_int_eq(
			group_columns((enum group_by)by, &choice, "all", &bad, &bad_len), 0);
		ck_assert_uint_gt(choice.count, 10);
		for (size_t i = 0; i < choice.count; i++)
			ck_assert_ptr_null(group_refusal((enum group_by)by, choice.column[i]));
	}
	choice = before;
	ck_assert_int_eq(group_columns(GROUP_UNIT, &choice, "PSS,NO", &bad, &bad_len), -EINVAL);
	ck_assert_uint_eq(bad_len, 2);
	ck_assert_mem_eq(bad, "NO", 2);
	for (size_t i = 0; i < COLUMN_CHOICE_MAX - 8; i++)
		strcat(many, ",PSS");
	ck_assert_int_eq(group_columns(GROUP_UNIT, &choice, many, &bad, &bad_len), -E2BIG);
	ck_assert_mem_eq(&choice, &before, sizeof(before));
}
END_TEST

START_TEST(sums)
{
	struct fixture *fixture = start();
	struct group_list groups;
	struct group_order order = { find("PSS"), false };

	add(fixture, "/system.slice/b.service", 100, true);
	add(fixture, "/lxc.payload.x", 7, true);
	add(fixture, "/system.slice/a.service", 30, true);
	add(fixture, "/system.slice/b.service/worker", 2000, true);
	add(fixture, "/system.slice/b.service", 555, false);
	add(fixture, "/system.slice/c.service", 555, false);
	add(fixture, NULL, 1, true);
	ck_assert_int_eq(group_make(&groups, GROUP_UNIT, &fixture->list, &order), 0);
	ck_assert_uint_eq(groups.count, 4);
	expect(&groups.groups[0], "b.service", 3, 1, 2100);
	expect(&groups.groups[1], "a.service", 1, 0, 30);
	expect(&groups.groups[2], NULL, 2, 0, 8);
	expect(&groups.groups[3], "c.service", 1, 1, -1); /* not known: last, and not 0 */
	expect(&groups.total, NULL, 7, 2, 2138);
	group_free(&groups);
	order.reverse = true;
	ck_assert_int_eq(group_make(&groups, GROUP_UNIT, &fixture->list, &order), 0);
	expect(&groups.groups[0], NULL, 2, 0, 8);
	expect(&groups.groups[3], "c.service", 1, 1, -1);
	group_free(&groups);
	order.column = find("UNIT");
	ck_assert_int_eq(group_make(&groups, GROUP_UNIT, &fixture->list, &order), 0);
	expect(&groups.groups[0], "c.service", 1, 1, -1);
	expect(&groups.groups[2], "a.service", 1, 0, 30);
	expect(&groups.groups[3], NULL, 2, 0, 8);
	group_free(&groups);
	ck_assert_int_eq(group_make(&groups, GROUP_SYSTEM, &fixture->list, &order), 0);
	ck_assert_uint_eq(groups.count, 1);
	expect(&groups.groups[0], NULL, 7, 2, 2138);
	group_free(&groups);
	fixture->list.count = 0;
	ck_assert_int_eq(group_make(&groups, GROUP_UNIT, &fixture->list, &order), 0);
	ck_assert_uint_eq(groups.count, 0);
	group_free(&groups);
	ck_assert_int_eq(group_make(&groups, GROUP_SYSTEM, &fixture->list, &order), 0);
	ck_assert_uint_eq(groups.count, 1);
	end(fixture, &groups);
}
END_TEST

/* One estimate among them makes the sum one; what is not known says nothing. */
START_TEST(sums_estimated)
{
	struct fixture *fixture = start();
	struct group_list groups;

	add(fixture, "/a", 1, true);
	add(fixture, "/a", 1, true);
	add(fixture, "/a/b", 1, false);
	add(fixture, "/a/c", 1, true);
	for (size_t i = 0; i < fixture->list.count; i++) {
		fixture->entries[i].sum.seen |= 1u << SMAPS_KSM;
		fixture->entries[i].frames_known = i != 3;
	}
	ck_assert_int_eq(group_make_tree(&groups, &fixture->list, &by_key_order, true), 0);
	ck_assert_uint_eq(groups.count, 4);
	ck_assert_str_eq(groups.groups[0].saved_by, "estimated");
	ck_assert_str_eq(groups.groups[1].saved_by, "estimated");
	ck_assert_ptr_null(groups.groups[2].saved_by);
	ck_assert_str_eq(groups.groups[3].saved_by, "estimated");
	group_free(&groups);
	fixture->entries[1].frames_known = false;
	fixture->entries[3].frames_known = true;
	ck_assert_int_eq(group_make(&groups, GROUP_CGROUP, &fixture->list, &by_key_order), 0);
	ck_assert_str_eq(groups.groups[0].saved_by, "estimated");
	ck_assert_ptr_null(groups.groups[1].saved_by);
	ck_assert_str_eq(groups.groups[2].saved_by, "exact");
	end(fixture, &groups);
}
END_TEST

/* Numbers that no machine has: a sum stays where it cannot grow. */
START_TEST(sums_huge)
{
	struct fixture *fixture = start();
	struct group_list groups;

	for (int i = 0; i < 8; i++)
		add(fixture, "/a", SMAPS_KIB_MAX, true);
	ck_assert_int_eq(group_make(&groups, GROUP_CGROUP, &fixture->list, &by_key_order), 0);
	ck_assert_int_eq(groups.groups[0].sum[find("PSS") - columns], INT64_MAX);
	ck_assert_int_eq(groups.total.sum[find("PSS") - columns], INT64_MAX);
	end(fixture, &groups);
}
END_TEST

START_TEST(tree)
{
	struct fixture *fixture = start();
	struct group_list groups;
	const struct group_order order = { find("PSS"), false };

	add(fixture, "/a/b", 1, true);
	add(fixture, "/a-b", 500, true);
	add(fixture, NULL, 9000, true);
	add(fixture, "/a/b/c d\x1b", 20, true);
	add(fixture, "/x/y/z", 555, false);
	add(fixture, "/a/b", 300, true);
	add(fixture, "/", 4, true);
	ck_assert_int_eq(group_make_tree(&groups, &fixture->list, &order, false), 0);
	ck_assert_uint_eq(groups.count, 9);
	expect(&groups.groups[0], NULL, 1, 0, 9000);
	expect(&groups.groups[1], "/", 6, 1, 825);
	expect(&groups.groups[2], "a-b", 1, 0, 500);
	expect(&groups.groups[3], "a", 3, 0, 321);
	expect(&groups.groups[4], "b", 3, 0, 321);
	expect(&groups.groups[5], "c d\\x1b", 1, 0, 20);
	expect(&groups.groups[6], "x", 1, 1, -1);
	expect(&groups.groups[8], "z", 1, 1, -1);
	expect(&groups.total, NULL, 7, 1, 9825);
	static const size_t parents[] = { PRINT_TOP, PRINT_TOP, 1, 1, 3, 4, 1, 6, 7 };
	for (size_t i = 0; i < groups.count; i++)
		ck_assert_uint_eq(groups.groups[i].parent, parents[i]);
	group_free(&groups);
	ck_assert_int_eq(group_make_tree(&groups, &fixture->list, &order, true), 0);
	expect(&groups.groups[5], "/a/b/c d\\x1b", 1, 0, 20);
	expect(&groups.groups[8], "/x/y/z", 1, 1, -1);
	group_free(&groups);
	fixture->list.count = 0;
	ck_assert_int_eq(group_make_tree(&groups, &fixture->list, &order, true), 0);
	ck_assert_uint_eq(groups.count, 0);
	end(fixture, &groups);
}
END_TEST

/* As deep as the kernel lets a path be: few levels, and nothing lost. */
START_TEST(tree_deep)
{
	struct fixture *fixture = start();
	struct group_list groups;
	const struct group_order order = { NULL, false };
	char path[4096] = "";

	for (size_t i = 0; i < 2000; i++) {
		strcat(path, "/d");
		if (i % 10 == 0)
			add(fixture, path, 1, true);
	}
	ck_assert_int_eq(group_make_tree(&groups, &fixture->list, &order, false), 0);
	expect(&groups.groups[0], "/", 200, 0, 200);
	for (size_t i = 0; i < groups.count; i++) {
		size_t depth = 0;
		for (size_t up = i; up != PRINT_TOP; up = groups.groups[up].parent)
			depth++;
		ck_assert_uint_le(depth, 64);
	}
	end(fixture, &groups);
}
END_TEST

static bool is_below(const struct group *group, const char *path)
{
	size_t len = group->path_len == 1 ? 0 : group->path_len;
	return !strncmp(group->path, path, len) && (!path[len] || path[len] == '/');
}

/* Random trees: each node has just what is below it, parents come first, siblings are in order. */
START_TEST(tree_random)
{
	static const char *const parts[] = { "a", "b", "a-b", "a.b", " ", "\xff", "aa" };
	const struct group_order order = { find("PSS"), true };
	unsigned seed = 7;

	for (int round = 0; round < 300; round++) {
		struct fixture *fixture = start();
		struct group_list groups;
		size_t count = (size_t)rand_r(&seed) % 60;
		for (size_t i = 0; i < count; i++) {
			char path[64] = "";
			for (int depth = rand_r(&seed) % 6; depth > 0; depth--) {
				strcat(path, "/");
				strcat(path, parts[(size_t)rand_r(&seed) % COUNT(parts)]);
			}
			add(fixture, *path ? path : "/", (uint64_t)(rand_r(&seed) % 100),
				rand_r(&seed) % 4 != 0);
		}
		ck_assert_int_eq(group_make_tree(&groups, &fixture->list, &order, false), 0);
		for (size_t i = 0; i < groups.count; i++) {
			const struct group *group = &groups.groups[i];
			int64_t procs = 0, unreadable = 0, pss = -1;
			for (size_t k = 0; k < count; k++) {
				const struct entry *entry = &fixture->entries[k];
				if (!is_below(group, entry->place->path))
					continue;
				procs++;
				unreadable += entry->smaps_error != 0;
				if (!entry->smaps_error)
					pss = (pss < 0 ? 0 : pss) + (int64_t)entry->sum.pss_kib;
			}
			expect(group, group->key, procs, unreadable, pss);
			ck_assert_int_gt(procs, 0);
			ck_assert(group->parent == PRINT_TOP ? i == 0 : group->parent < i);
			if (i && groups.groups[i - 1].parent == group->parent)
				ck_assert_int_le(
					group_compare(&order, &groups.groups[i - 1], group), 0);
		}
		end(fixture, &groups);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group");
	TCase *tcase = tcase_create("group");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, words);
	tcase_add_test(tcase, refusals);
	tcase_add_test(tcase, column_lists);
	tcase_add_test(tcase, sums);
	tcase_add_test(tcase, sums_estimated);
	tcase_add_test(tcase, sums_huge);
	tcase_add_test(tcase, tree);
	tcase_add_test(tcase, tree_deep);
	tcase_add_test(tcase, tree_random);
	suite_add_tcase(suite, tcase);
	return tap_run(suite);
}
