/* ksmstat/column: lists of columns, and the order that a column makes. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/column.h"

#include <errno.h>

#include "tests/unit/entry_whole.h"

static void expect_list(const char *list, const char *want)
{
	struct column_choice choice = { .count = 0 };
	const char *bad = NULL;
	size_t bad_len = 0;
	char names[1024] = "";

	ck_assert_msg(
		!column_parse(&choice, list, &bad, &bad_len), "%s: %.*s", list, (int)bad_len, bad);
	for (size_t i = 0; i < choice.count; i++) {
		strcat(names, i ? "," : "");
		strcat(names, choice.column[i]->name);
	}
	ck_assert_str_eq(names, want);
}

#define DEFAULTS "PID,USER,CODE_P,CODE_S,DATA_P,DATA_S,TOTAL,KSM,SAVED,PROFIT,COMMAND"

START_TEST(lists)
{
	struct column_choice choice, defaults;
	const char *bad;
	size_t bad_len;

	expect_list("PID", "PID");
	expect_list("pid,Rss,COMMAND", "PID,RSS,COMMAND");
	expect_list("RSS,RSS", "RSS,RSS");
	expect_list("+RSS", DEFAULTS ",RSS");
	expect_list("+pss,USS", DEFAULTS ",PSS,USS");
	column_default(&defaults);
	expect_list(DEFAULTS, DEFAULTS);
	ck_assert_int_eq(column_parse(&choice, DEFAULTS, &bad, &bad_len), 0);
	ck_assert_uint_eq(choice.count, defaults.count);
	for (size_t i = 0; i < choice.count; i++)
		ck_assert_ptr_eq(choice.column[i], defaults.column[i]);
	ck_assert_int_eq(column_parse(&choice, "All", &bad, &bad_len), 0);
	size_t at = 0;
	for (size_t i = 0; i < columns_count; i++) {
		if (!column_is_of_machine(&columns[i]))
			ck_assert_ptr_eq(choice.column[at++], &columns[i]);
	}
	ck_assert_uint_eq(choice.count, at);
	ck_assert_uint_lt(at, columns_count);
}
END_TEST

static void expect_bad(const char *list, const char *word)
{
	struct column_choice choice, before;
	const char *bad = NULL;
	size_t bad_len = 0;

	column_default(&choice);
	before = choice;
	ck_assert_msg(
		column_parse(&choice, list, &bad, &bad_len) == -EINVAL, "'%s' was taken", list);
	ck_assert(bad >= list && bad <= list + strlen(list));
	ck_assert_uint_eq(bad_len, strlen(word));
	ck_assert_mem_eq(bad, word, bad_len);
	ck_assert_mem_eq(&choice, &before, sizeof(choice));
}

START_TEST(lists_bad)
{
	char many[COLUMN_CHOICE_MAX * 4 + 16] = "";
	struct column_choice choice = { .count = 5 };
	const char *bad;
	size_t bad_len;

	expect_bad("", "");
	expect_bad("+", "");
	expect_bad("FOO", "FOO");
	expect_bad("PID,FOO,RSS", "FOO");
	expect_bad("PID,", "");
	expect_bad(",PID", "");
	expect_bad("PID,,RSS", "");
	expect_bad("PID RSS", "PID RSS");
	expect_bad(" PID", " PID");
	expect_bad("+PID,+RSS", "+RSS");
	expect_bad("all,PID", "all");
	expect_bad("PIDX", "PIDX");

	for (int i = 0; i < COLUMN_CHOICE_MAX; i++)
		strcat(many, i ? ",PID" : "PID");
	ck_assert_int_eq(column_parse(&choice, many, &bad, &bad_len), 0);
	ck_assert_uint_eq(choice.count, COLUMN_CHOICE_MAX);
	strcat(many, ",RSS");
	ck_assert_int_eq(column_parse(&choice, many, &bad, &bad_len), -E2BIG);
	ck_assert_uint_eq(choice.count, COLUMN_CHOICE_MAX);
}
END_TEST

START_TEST(order)
{
	struct entry small = whole(), large = whole(), unknown = whole();

	small.sum.rss_kib = 5;
	large.sum.rss_kib = 6;
	unknown.smaps_error = -EACCES;
	unknown.user = NULL;
	small.user = "ann";
	large.user = "bob";
	for (int reverse = 0; reverse < 2; reverse++) {
		const struct column *rss = find("RSS"), *user = find("USER");
		int sign = reverse ? -1 : 1;
		/* numbers large first, texts in order */
		ck_assert_int_gt(sign * column_compare(rss, reverse, &small, &large), 0);
		ck_assert_int_lt(sign * column_compare(rss, reverse, &large, &small), 0);
		ck_assert_int_lt(sign * column_compare(user, reverse, &small, &large), 0);
		ck_assert_int_gt(sign * column_compare(user, reverse, &large, &small), 0);
		ck_assert_int_eq(column_compare(rss, reverse, &small, &small), 0);
		ck_assert_int_eq(column_compare(user, reverse, &small, &small), 0);
		/* unknown ones last, either way */
		ck_assert_int_gt(column_compare(rss, reverse, &unknown, &small), 0);
		ck_assert_int_lt(column_compare(rss, reverse, &small, &unknown), 0);
		ck_assert_int_eq(column_compare(rss, reverse, &unknown, &unknown), 0);
		ck_assert_int_gt(column_compare(user, reverse, &unknown, &small), 0);
		ck_assert_int_lt(column_compare(user, reverse, &small, &unknown), 0);
		ck_assert_int_eq(column_compare(user, reverse, &unknown, &unknown), 0);
	}
	/* far apart, and on both sides of 0 */
	small.ksm.profit_bytes = INT64_MIN;
	large.ksm.profit_bytes = INT64_MAX;
	ck_assert_int_gt(column_compare(find("PROFIT"), false, &small, &large), 0);
	ck_assert_int_lt(column_compare(find("PROFIT"), true, &small, &large), 0);
}
END_TEST

static int by_saved(const void *a, const void *b)
{
	return column_compare(find("SAVED"), false, a, b);
}

START_TEST(order_sorted)
{
	struct entry entries[200];

	srandom(3);
	for (int i = 0; i < 200; i++) {
		entries[i] = whole();
		entries[i].sum.saved_kib = (uint64_t)random() % 50;
		entries[i].smaps_error = random() % 3 ? 0 : -EACCES;
	}
	qsort(entries, 200, sizeof(*entries), by_saved);
	for (int i = 1; i < 200; i++) {
		const struct entry *a = &entries[i - 1], *b = &entries[i];
		if (a->smaps_error)
			ck_assert_int_ne(b->smaps_error, 0);
		else if (!b->smaps_error)
			ck_assert_uint_ge(a->sum.saved_kib, b->sum.saved_kib);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("column_list");
	TCase *tcase = tcase_create("column_list");

	tcase_add_test(tcase, lists);
	tcase_add_test(tcase, lists_bad);
	tcase_add_test(tcase, order);
	tcase_add_test(tcase, order_sorted);
	suite_add_tcase(suite, tcase);
	return tap_run(suite);
}
