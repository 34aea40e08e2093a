/* ksmstat/watch_view and watch_history: what keys change, and graphs by letters. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/watch_view.h"

#include <string.h>

#include "ksmstat/watch_history.h"
#include "tests/tap.h"

static struct options options;
static struct watch_view view;

static void setup(void)
{
	memset(&options, 0, sizeof(options));
	column_default(&options.print.columns);
	options.sort = column_find("SAVED", 5);
	options.delay_ns = 2000000000u;
	watch_view_init(&view, &options);
}

static unsigned key(int c)
{
	return watch_view_key(&view, c, 10, 100);
}

START_TEST(sorting)
{
	ck_assert_uint_eq(key('r'), WATCH_DRAW | WATCH_TABLE);
	ck_assert(view.reverse);
	ck_assert_uint_eq(key('>'), WATCH_DRAW | WATCH_TABLE);
	ck_assert_str_eq(view.sort->name, "PROFIT");
	ck_assert(!view.reverse);
	for (int i = 0; i < 50; i++)
		key('>');
	ck_assert_str_eq(view.sort->name, "COMMAND");
	for (int i = 0; i < 50; i++)
		key('<');
	ck_assert_str_eq(view.sort->name, "PID");
}
END_TEST

/* Groups have other columns, and cannot be sorted by all that processes can. */
START_TEST(grouping)
{
	view.sort = column_find("PROFIT", 6);
	view.top = 5;
	ck_assert_uint_eq(key('b'), WATCH_DRAW | WATCH_TABLE | WATCH_READ);
	ck_assert_int_eq(view.by, GROUP_PROGRAM);
	ck_assert_str_eq(view.columns.column[0]->name, "PROCS");
	ck_assert_str_eq(view.sort->name, "SAVED");
	ck_assert_uint_eq(view.top, 0);
	key('b');
	ck_assert_int_eq(view.by, GROUP_NONE);
	ck_assert_str_eq(view.columns.column[0]->name, "PID");

	options.by = GROUP_USER;
	options.columns = "USER,SAVED,CODE_P";
	watch_view_init(&view, &options);
	ck_assert_int_eq(view.by, GROUP_USER);
	ck_assert_uint_eq(view.columns.count, 3);
	key('b');
	ck_assert_int_eq(view.by, GROUP_NONE);
	ck_assert_uint_eq(view.columns.count, 3);
	key('b');
	ck_assert_int_eq(view.by, GROUP_USER);

	/* Columns that groups do not have give way to the default. */
	options.by = GROUP_NONE;
	options.columns = "PID,PROFIT";
	watch_view_init(&view, &options);
	key('b');
	ck_assert_str_eq(view.columns.column[0]->name, "PROCS");
	key('b');
	ck_assert_uint_eq(view.columns.count, 2);
}
END_TEST

START_TEST(scrolling)
{
	ck_assert_uint_eq(key(WATCH_KEY_UP), WATCH_DRAW);
	ck_assert_uint_eq(view.top, 0);
	key(WATCH_KEY_DOWN);
	ck_assert_uint_eq(view.top, 1);
	key(WATCH_KEY_PAGE_DOWN);
	ck_assert_uint_eq(view.top, 10);
	key(WATCH_KEY_END);
	ck_assert_uint_eq(view.top, 90);
	key(WATCH_KEY_PAGE_DOWN);
	ck_assert_uint_eq(view.top, 90);
	watch_view_fit(&view, 10, 12);
	ck_assert_uint_eq(view.top, 2);
	watch_view_fit(&view, 10, 0);
	ck_assert_uint_eq(view.top, 0);
	key(WATCH_KEY_RIGHT);
	ck_assert_uint_gt(view.shift, 0);
	key(WATCH_KEY_LEFT);
	ck_assert_uint_eq(view.shift, 0);
	/* No room at all. */
	watch_view_key(&view, WATCH_KEY_PAGE_DOWN, 0, 3);
	ck_assert_uint_eq(view.top, 1);
	watch_view_key(&view, WATCH_KEY_END, 0, 0);
	ck_assert_uint_eq(view.top, 0);
}
END_TEST

START_TEST(delays)
{
	ck_assert_uint_eq(key('+'), WATCH_DRAW | WATCH_DELAY);
	ck_assert_uint_eq(view.delay_ns, 5000000000u);
	for (int i = 0; i < 50; i++)
		key('-');
	ck_assert_uint_eq(view.delay_ns, 100000000u);
	view.delay_ns = 86400ull * 1000000000u; /* as asked for: longer than all of them */
	key('+');
	ck_assert_uint_eq(view.delay_ns, 86400ull * 1000000000u);
	key('-');
	ck_assert_uint_eq(view.delay_ns, 300ull * 1000000000u);
}
END_TEST

START_TEST(leaving)
{
	ck_assert_uint_eq(key('?'), WATCH_DRAW);
	ck_assert(view.help);
	ck_assert_uint_eq(key('\033'), WATCH_DRAW);
	ck_assert(!view.help);
	ck_assert_uint_eq(key('\033'), WATCH_QUIT);
	ck_assert_uint_eq(key('q'), WATCH_QUIT);
	ck_assert_uint_eq(key(' '), WATCH_DRAW);
	ck_assert(view.paused);
	ck_assert_uint_eq(key(0), 0);
	ck_assert_uint_eq(key('x'), 0);
}
END_TEST

static void expect_row(const struct watch_history *history, size_t width, size_t rows, size_t row,
	bool utf8, const char *want)
{
	char buf[256];

	watch_history_row(history, width, rows, row, utf8, buf, sizeof(buf));
	ck_assert_str_eq(buf, want);
}

START_TEST(graphs)
{
	struct watch_history history = { 0 };

	expect_row(&history, 4, 1, 0, true, "    ");
	ck_assert_int_eq(watch_history_max(&history, 4), 0);
	watch_history_add(&history, 0);
	watch_history_add(&history, -5); /* not known */
	watch_history_add(&history, 1);
	watch_history_add(&history, 500);
	watch_history_add(&history, 1000);
	ck_assert_int_eq(watch_history_max(&history, 6), 1000);
	ck_assert_int_eq(watch_history_max(&history, 1), 1000);
	expect_row(&history, 6, 1, 0, true, "   ▁▄█");
	expect_row(&history, 6, 2, 0, true, "     █");
	expect_row(&history, 6, 2, 1, true, "   ▁██");
	expect_row(&history, 6, 1, 0, false, "   ..#");
	expect_row(&history, 2, 1, 0, false, ".#");
	/* Only what is shown counts for the scale. */
	for (int i = 0; i < 5; i++)
		watch_history_add(&history, 2);
	expect_row(&history, 5, 1, 0, false, "#####");
	ck_assert_int_eq(watch_history_max(&history, 6), 1000);
	/* It goes round, and a buffer that is too small cuts. */
	for (int i = 0; i < 3 * WATCH_HISTORY_MAX; i++)
		watch_history_add(&history, INT64_MAX);
	char small[7];
	watch_history_row(&history, 5, 1, 0, true, small, sizeof(small));
	ck_assert_str_eq(small, "██");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("watch_view");
	TCase *tcase = tcase_create("watch_view");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, sorting);
	tcase_add_test(tcase, grouping);
	tcase_add_test(tcase, scrolling);
	tcase_add_test(tcase, delays);
	tcase_add_test(tcase, leaving);
	tcase_add_test(tcase, graphs);
	suite_add_tcase(suite, tcase);
	return tap_run(suite);
}
