/* ksmstat/rates and its columns: two samples by hand, with clocks and counters that do as they like. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/rates.h"

#include <errno.h>
#include <string.h>

#include "ksmstat/interval_column.h"
#include "tests/tap.h"

#define PAGE 4096
#define SECOND 1000000000u

static struct sample before, now;
static struct rates rates;

static void set(struct sample *sample, enum ksm_key key, int64_t value)
{
	sample->ksm.error[key] = 0;
	sample->ksm.value[key] = value;
}

static void lack(struct sample *sample, enum ksm_key key)
{
	sample->ksm.error[key] = -ENOENT;
	sample->ksm.value[key] = 77; /* not to be looked at */
}

/* Two seconds apart, and nothing happened. */
static void setup(void)
{
	memset(&before, 0, sizeof(before));
	before.monotonic_ns = 100ull * SECOND;
	before.epoch_ms = 1000;
	before.page_bytes = PAGE;
	set(&before, KSM_RUN, 1);
	set(&before, KSM_PAGES_SHARED, 100);
	set(&before, KSM_PAGES_SHARING, 400);
	set(&before, KSM_ZERO_PAGES, 10);
	set(&before, KSM_PAGES_SCANNED, 5000);
	set(&before, KSM_PAGES_SKIPPED, 50);
	set(&before, KSM_FULL_SCANS, 7);
	set(&before, KSM_GENERAL_PROFIT, -4711);
	before.has_ksmd = true;
	before.ksmd_ns = 3ull * SECOND;
	before.cow_ksm = 1000;
	before.swpin_copy = 20;
	now = before;
	now.monotonic_ns += 2ull * SECOND;
	now.epoch_ms += 2000;
}

static void expect(enum rates_key key, int64_t value)
{
	ck_assert_msg(rates.known[key], "%s is not known", interval_columns[key].name);
	ck_assert_msg(rates.value[key] == value, "%s is %lld, not %lld", interval_columns[key].name,
		(long long)rates.value[key], (long long)value);
}

static void expect_unknown(enum rates_key key)
{
	ck_assert_msg(!rates.known[key], "%s is %lld, not unknown", interval_columns[key].name,
		(long long)rates.value[key]);
}

static void compare(void)
{
	rates_between(&before, &now, &rates);
}

START_TEST(idle)
{
	compare();
	expect(RATES_TIME, 3000);
	expect(RATES_SECONDS, 2000);
	expect(RATES_RUN, 1);
	expect(RATES_KSM, 500 * PAGE);
	expect(RATES_SHARED, 100 * PAGE);
	expect(RATES_SHARING, 400 * PAGE);
	expect(RATES_ZERO, 10 * PAGE);
	expect(RATES_SAVING, 410 * PAGE);
	expect(RATES_PROFIT, -4711);
	expect(RATES_FULL_SCANS, 7);
	enum rates_key none[] = { RATES_DELTA, RATES_MERGED, RATES_BROKEN, RATES_SCANNED,
		RATES_SKIPPED, RATES_PASSES, RATES_KSMD };
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		expect(none[i], 0);
	expect_unknown(RATES_PROCS);
	expect_unknown(RATES_UNREADABLE);
}
END_TEST

START_TEST(busy)
{
	set(&now, KSM_PAGES_SHARED, 150);
	set(&now, KSM_PAGES_SHARING, 600);
	set(&now, KSM_ZERO_PAGES, 11);
	set(&now, KSM_PAGES_SCANNED, 5001);
	set(&now, KSM_PAGES_SKIPPED, 53);
	set(&now, KSM_FULL_SCANS, 9);
	now.ksmd_ns += SECOND / 2;
	now.cow_ksm += 30;
	now.swpin_copy += 2;
	compare();
	expect(RATES_SAVING, 611 * PAGE);
	expect(RATES_DELTA, 201 * PAGE);
	expect(RATES_MERGED, 251 * 1000 / 2);
	expect(RATES_BROKEN, 32 * 1000 / 2);
	expect(RATES_SCANNED, 500);
	expect(RATES_SKIPPED, 1500);
	expect(RATES_PASSES, 2);
	expect(RATES_FULL_SCANS, 9);
	expect(RATES_KSMD, 25 * 1000);
}
END_TEST

/* Rates are of the time that passed, not of the time that was asked for. */
START_TEST(measured_time)
{
	now.monotonic_ns = before.monotonic_ns + 1234567890;
	set(&now, KSM_PAGES_SCANNED, 5000 + 1234567);
	now.ksmd_ns = before.ksmd_ns + 1234567890;
	compare();
	expect(RATES_SECONDS, 1235);
	expect(RATES_SCANNED, 999999279); /* 1234567 / 1.23456789 s */
	expect(RATES_KSMD, 100000);
}
END_TEST

START_TEST(no_time)
{
	for (int back = 0; back < 2; back++) {
		now.monotonic_ns = before.monotonic_ns - (uint64_t)back;
		now.epoch_ms = -5; /* somebody set the clock of the wall */
		set(&now, KSM_PAGES_SHARING, 401);
		compare();
		expect(RATES_SECONDS, 0);
		expect(RATES_DELTA, PAGE);
		expect(RATES_PASSES, 0);
		expect_unknown(RATES_MERGED);
		expect_unknown(RATES_BROKEN);
		expect_unknown(RATES_SCANNED);
		expect_unknown(RATES_KSMD);
	}
}
END_TEST

/* Somebody wrote 2 to run: all is unmerged, and full_scans begins anew. */
START_TEST(unmerged)
{
	set(&now, KSM_RUN, 2);
	set(&now, KSM_PAGES_SHARED, 0);
	set(&now, KSM_PAGES_SHARING, 0);
	set(&now, KSM_ZERO_PAGES, 0);
	set(&now, KSM_FULL_SCANS, 0);
	now.cow_ksm += 500;
	compare();
	expect(RATES_RUN, 2);
	expect(RATES_SAVING, 0);
	expect(RATES_DELTA, -410 * PAGE);
	expect(RATES_MERGED, 0);
	expect(RATES_BROKEN, 250 * 1000);
	expect_unknown(RATES_PASSES);
	expect(RATES_FULL_SCANS, 0);

	/* The next line has a number again. */
	before = now;
	now.monotonic_ns += SECOND;
	set(&now, KSM_FULL_SCANS, 3);
	compare();
	expect(RATES_PASSES, 3);
}
END_TEST

/* Each counter by itself: backwards, as where it wraps, gives nothing and no other suffers. */
START_TEST(backwards)
{
	set(&now, KSM_PAGES_SCANNED, 4999);
	compare();
	expect_unknown(RATES_SCANNED);
	expect(RATES_SKIPPED, 0);
	expect(RATES_PASSES, 0);

	setup();
	set(&before, KSM_PAGES_SKIPPED, UINT32_MAX);
	set(&now, KSM_PAGES_SKIPPED, 4);
	compare();
	expect_unknown(RATES_SKIPPED);
	expect(RATES_SCANNED, 0);

	setup();
	now.ksmd_ns--;
	compare();
	expect_unknown(RATES_KSMD);

	setup();
	now.cow_ksm = 999;
	compare();
	expect_unknown(RATES_BROKEN);

	setup();
	now.cow_ksm += 10;
	now.swpin_copy = 19;
	compare();
	expect_unknown(RATES_BROKEN);
}
END_TEST

START_TEST(vanishing)
{
	static const struct {
		enum ksm_key key;
		enum rates_key rate;
	} pairs[] = {
		{ KSM_PAGES_SCANNED, RATES_SCANNED },
		{ KSM_PAGES_SKIPPED, RATES_SKIPPED },
		{ KSM_FULL_SCANS, RATES_PASSES },
		{ KSM_PAGES_SHARED, RATES_MERGED },
		{ KSM_PAGES_SHARING, RATES_MERGED },
		{ KSM_PAGES_SHARING, RATES_DELTA },
		{ KSM_ZERO_PAGES, RATES_MERGED },
		{ KSM_ZERO_PAGES, RATES_DELTA },
	};
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		setup();
		lack(&now, pairs[i].key);
		compare();
		expect_unknown(pairs[i].rate);
		setup();
		lack(&before, pairs[i].key);
		compare();
		expect_unknown(pairs[i].rate);
	}
	setup();
	now.has_ksmd = false;
	compare();
	expect_unknown(RATES_KSMD);
	now.has_ksmd = true;
	before.has_ksmd = false;
	compare();
	expect_unknown(RATES_KSMD);
	before.cow_ksm = -1; /* and then it is there */
	compare();
	expect_unknown(RATES_BROKEN);
}
END_TEST

/* Linux 6.1: no zero pages, no profit, no pages_scanned; older ones count no copies. */
START_TEST(older_kernel)
{
	static const enum ksm_key absent[] = { KSM_ZERO_PAGES, KSM_GENERAL_PROFIT,
		KSM_PAGES_SCANNED, KSM_PAGES_SKIPPED };
	for (size_t i = 0; i < sizeof(absent) / sizeof(*absent); i++) {
		lack(&before, absent[i]);
		lack(&now, absent[i]);
	}
	set(&now, KSM_PAGES_SHARING, 410);
	now.swpin_copy = before.swpin_copy = -1;
	now.cow_ksm += 4;
	compare();
	expect(RATES_SAVING, 410 * PAGE);
	expect(RATES_DELTA, 10 * PAGE);
	expect(RATES_MERGED, 5000);
	expect(RATES_BROKEN, 2000);
	expect_unknown(RATES_ZERO);
	expect_unknown(RATES_PROFIT);
	expect_unknown(RATES_SCANNED);
	expect_unknown(RATES_SKIPPED);

	now.cow_ksm = before.cow_ksm = -1;
	compare();
	expect_unknown(RATES_BROKEN);
}
END_TEST

/* Values of the ends of their types: nothing overflows (under UBSan it would be told). */
START_TEST(extremes)
{
	static const int64_t values[] = { INT64_MIN, -1, 0, 1, INT64_MAX };
	for (int a = 0; a < 5; a++) {
		for (int b = 0; b < 5; b++) {
			for (int key = 0; key < KSM_KEYS; key++) {
				set(&before, (enum ksm_key)key, values[a]);
				set(&now, (enum ksm_key)key, values[b]);
			}
			before.cow_ksm = before.swpin_copy = values[a] < 0 ? -1 : values[a];
			now.cow_ksm = now.swpin_copy = values[b] < 0 ? -1 : values[b];
			before.ksmd_ns = (uint64_t)values[a];
			now.ksmd_ns = (uint64_t)values[b];
			now.monotonic_ns = before.monotonic_ns + 1;
			compare();
			if (rates.known[RATES_MERGED])
				ck_assert_int_ge(rates.value[RATES_MERGED], 0);
		}
	}
}
END_TEST

START_TEST(some_processes)
{
	before.of_processes = now.of_processes = true;
	before.processes = (struct sample_processes){ .count = 3,
		.unreadable = 1,
		.has_ksm = true,
		.has_zero = true,
		.has_saved = true,
		.ksm_bytes = 100 * PAGE,
		.zero_bytes = 5 * PAGE,
		.saved_bytes = 50 * PAGE };
	now.processes = before.processes;
	now.processes.count = 4;
	now.processes.ksm_bytes = 160 * PAGE;
	now.processes.saved_bytes = 80 * PAGE;
	set(&now, KSM_PAGES_SHARING, 99999);
	set(&now, KSM_PAGES_SCANNED, 5010);
	compare();
	expect(RATES_PROCS, 4);
	expect(RATES_UNREADABLE, 1);
	expect(RATES_KSM, 160 * PAGE);
	expect(RATES_ZERO, 5 * PAGE);
	expect(RATES_SAVING, 85 * PAGE);
	expect(RATES_DELTA, 30 * PAGE);
	expect(RATES_MERGED, 30 * 1000);
	expect(RATES_SCANNED, 5000);
	expect_unknown(RATES_SHARED);
	expect_unknown(RATES_SHARING);
	expect_unknown(RATES_PROFIT);
	expect_unknown(RATES_BROKEN);

	/* All of them ended: that is 0, and no unknown. */
	now.processes =
		(struct sample_processes){ .has_ksm = true, .has_zero = true, .has_saved = true };
	compare();
	expect(RATES_SAVING, 0);
	expect(RATES_DELTA, -55 * PAGE);
	expect(RATES_MERGED, 0);

	/* None could be read: that is unknown, and no 0. */
	now.processes = (struct sample_processes){ .count = 2, .unreadable = 2 };
	compare();
	expect_unknown(RATES_KSM);
	expect_unknown(RATES_SAVING);
	expect_unknown(RATES_DELTA);
	expect_unknown(RATES_MERGED);
}
END_TEST

static void expect_cell(
	enum rates_key key, int64_t value, enum interval_style style, const char *want)
{
	char buf[INTERVAL_CELL_MAX];

	memset(&rates, 0, sizeof(rates));
	ck_assert_ptr_null(interval_cell(&rates, key, style, buf));
	rates.known[key] = true;
	rates.value[key] = value;
	const char *got = interval_cell(&rates, key, style, buf);
	ck_assert_str_eq(got, want);
}

START_TEST(cells)
{
	expect_cell(RATES_TIME, 0, INTERVAL_EXACT, "1970-01-01T00:00:00.000Z");
	expect_cell(RATES_TIME, 1796102374015, INTERVAL_EXACT, "2026-12-01T05:19:34.015Z");
	expect_cell(RATES_SAVING, 3 << 20, INTERVAL_SHORT, "3M");
	expect_cell(RATES_SAVING, 3 << 20, INTERVAL_FULL, "3145728");
	expect_cell(RATES_DELTA, -(3 << 20), INTERVAL_EXACT, "-3145728");
	expect_cell(RATES_MERGED, 1499, INTERVAL_SHORT, "1");
	expect_cell(RATES_MERGED, 1500, INTERVAL_SHORT, "2");
	expect_cell(RATES_MERGED, 7, INTERVAL_EXACT, "0.007");
	expect_cell(RATES_MERGED, INT64_MAX, INTERVAL_EXACT, "9223372036854775.807");
	expect_cell(RATES_KSMD, 99949, INTERVAL_SHORT, "99.9");
	expect_cell(RATES_KSMD, 99950, INTERVAL_SHORT, "100.0");
	expect_cell(RATES_SECONDS, 1005, INTERVAL_SHORT, "1.01");
}
END_TEST

START_TEST(choices)
{
	struct interval_choice choice;
	const char *bad;
	size_t len;

	ck_assert_int_eq(interval_parse(&choice, "saving,TIME,Saving", false, &bad, &len), 0);
	ck_assert_uint_eq(choice.count, 2);
	ck_assert_int_eq(choice.key[0], RATES_SAVING);
	interval_add_time(&choice);
	ck_assert_uint_eq(choice.count, 2);
	ck_assert_int_eq(choice.key[0], RATES_TIME);
	ck_assert_int_eq(interval_parse(&choice, "all", false, &bad, &len), 0);
	ck_assert_uint_eq(choice.count, RATES_KEYS);
	ck_assert_int_eq(interval_parse(&choice, "+TIME", true, &bad, &len), 0);
	ck_assert_int_eq(choice.key[0], RATES_PROCS);
	ck_assert_int_eq(choice.key[choice.count - 1], RATES_TIME);
	static const char *const lists[] = { "", "+", ",", "SAVING,", "SAVING,,KSM", "SAVINGS" };
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		ck_assert_int_eq(interval_parse(&choice, lists[i], false, &bad, &len), -EINVAL);
}
END_TEST

/* The default fits a terminal, with and without processes. */
START_TEST(widths)
{
	for (int of_processes = 0; of_processes < 2; of_processes++) {
		struct interval_choice choice;
		int width = -1;
		interval_default(&choice, of_processes);
		for (size_t i = 0; i < choice.count; i++)
			width += 1 + interval_width(choice.key[i], false);
		ck_assert_int_le(width, 80);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rates");
	TCase *tcase = tcase_create("rates");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, idle);
	tcase_add_test(tcase, busy);
	tcase_add_test(tcase, measured_time);
	tcase_add_test(tcase, no_time);
	tcase_add_test(tcase, unmerged);
	tcase_add_test(tcase, backwards);
	tcase_add_test(tcase, vanishing);
	tcase_add_test(tcase, older_kernel);
	tcase_add_test(tcase, extremes);
	tcase_add_test(tcase, some_processes);
	tcase_add_test(tcase, cells);
	tcase_add_test(tcase, choices);
	tcase_add_test(tcase, widths);
	suite_add_tcase(suite, tcase);
	return tap_run(suite);
}
