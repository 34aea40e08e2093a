/* ksmstat/column: the table, values, and what is not known. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/column.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/entry_whole.h"

#define BIT(field) (1u << (field))

static bool number(const char *name, const struct entry *entry, int64_t *value)
{
	return find(name)->number(entry, value);
}

static void expect_number(const char *name, const struct entry *entry, int64_t want)
{
	int64_t value = -99;

	ck_assert_msg(number(name, entry, &value), "%s is not known", name);
	ck_assert_msg(value == want, "%s: %" PRId64 ", not %" PRId64, name, value, want);
}

static void expect_unknown(const char *name, const struct entry *entry)
{
	const struct column *column = find(name);
	int64_t value;

	if (column->number)
		ck_assert_msg(!column->number(entry, &value), "%s is taken for known", name);
	else
		ck_assert_msg(!column->text(entry), "%s: %s", name, column->text(entry));
}

START_TEST(table)
{
	for (size_t i = 0; i < columns_count; i++) {
		const struct column *column = &columns[i];

		ck_assert_uint_gt(strlen(column->name), 0);
		ck_assert_uint_gt(strlen(column->help), 0);
		ck_assert(!column->number != !column->text);
		ck_assert_int_eq(column->kind == COLUMN_TEXT || column->kind == COLUMN_PLACE,
			column->text != NULL);
		ck_assert(!column->adds_up || !column_is_of_machine(column));
		ck_assert(!column->adds_up || column->number);
		for (const char *p = column->name; *p; p++)
			ck_assert(isupper((unsigned char)*p) || *p == '_');
		/* also proves that no name is there twice */
		ck_assert_ptr_eq(column_find(column->name, strlen(column->name)), column);
	}
	ck_assert_uint_le(columns_count, COLUMN_CHOICE_MAX);
}
END_TEST

/* What several processes share counts once for each: a total of it would mean nothing. */
START_TEST(totals)
{
	static const char *const adding[] = { "CODE_P", "DATA_P", "PSS", "USS", "SWAP", "ZERO",
		"SAVED", "SCANNED", "THREADS", "AREAS", "MERGEABLE", "MINFLT", "MAJFLT" };
	static const char *const others[] = { "PID", "PPID", "CODE_S", "DATA_S", "TOTAL", "RSS",
		"KSM", "PROFIT" };

	for (size_t i = 0; i < sizeof(adding) / sizeof(*adding); i++)
		ck_assert_msg(find(adding[i])->adds_up, "%s", adding[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		ck_assert_msg(!find(others[i])->adds_up, "%s", others[i]);
}
END_TEST

START_TEST(find_names)
{
	ck_assert_ptr_eq(column_find("pid", 3), column_find("PID", 3));
	ck_assert_ptr_eq(column_find("Pid,x", 3), column_find("PID", 3));
	ck_assert_ptr_null(column_find("PI", 2));
	ck_assert_ptr_null(column_find("PIDS", 4));
	ck_assert_ptr_null(column_find("PID", 2));
	ck_assert_ptr_null(column_find("", 0));
	ck_assert_ptr_null(column_find(" PID", 4));
	ck_assert_ptr_null(column_find("all", 3));
}
END_TEST

START_TEST(values)
{
	struct entry entry = whole();

	expect_number("PID", &entry, 42);
	expect_number("PPID", &entry, 7);
	expect_number("THREADS", &entry, 3);
	expect_number("CODE_P", &entry, 1024);
	expect_number("CODE_S", &entry, 20 * 1024);
	expect_number("DATA_P", &entry, 300 * 1024);
	expect_number("DATA_S", &entry, 4000 * 1024);
	expect_number("TOTAL", &entry, 4321 * 1024);
	expect_number("RSS", &entry, 5 * 1024);
	expect_number("PSS", &entry, 6 * 1024);
	expect_number("USS", &entry, 7 * 1024);
	expect_number("SWAP", &entry, 8 * 1024);
	expect_number("DIRTY", &entry, 9 * 1024);
	expect_number("ANON", &entry, 10 * 1024);
	expect_number("HUGE", &entry, 11 * 1024);
	expect_number("KSM", &entry, 12 * 1024);
	expect_number("SAVED", &entry, 13 * 1024);
	expect_number("ZERO", &entry, 503 * sysconf(_SC_PAGESIZE));
	expect_number("PROFIT", &entry, -504);
	expect_number("SCANNED", &entry, 501);
	expect_number("AREAS", &entry, 20);
	expect_number("MERGEABLE", &entry, 2);
	expect_number("MINFLT", &entry, 1001);
	expect_number("MAJFLT", &entry, 1002);
	ck_assert_str_eq(find("USER")->text(&entry), "someone");
	ck_assert_str_eq(find("COMMAND")->text(&entry), "prog");
	ck_assert_str_eq(find("CGROUP")->text(&entry), "/a");
	ck_assert_str_eq(find("UNIT")->text(&entry), "b.service");
	ck_assert_str_eq(find("CONTAINER")->text(&entry), "lxc:c");
	ck_assert_str_eq(find("POD")->text(&entry), "d");
	expect_number("PROCS", &entry, 1);
	ck_assert_str_eq(find("OPTED")->text(&entry), "madvise");
	entry.ksm.merge_any = true;
	ck_assert_str_eq(find("OPTED")->text(&entry), "prctl");
	entry.ksm.merge_any = false;
	entry.sum.mergeable_areas = 0;
	ck_assert_str_eq(find("OPTED")->text(&entry), "no");
}
END_TEST

/* Nothing but its number could be read of a process: then nothing else is shown as if it were 0. */
static bool always_known(const char *name)
{
	return !strcmp(name, "PID") || !strcmp(name, "COMMAND") || !strcmp(name, "PROCS") ||
	       !strcmp(name, "UNREADABLE");
}

START_TEST(unreadable)
{
	struct entry entry = { .pid = 42, .smaps_error = -EACCES, .ksm_error = -EACCES };

	for (size_t i = 0; i < columns_count; i++) {
		if (!always_known(columns[i].name))
			expect_unknown(columns[i].name, &entry);
	}
	/* not even what an attempt left behind */
	entry = whole();
	entry.smaps_error = -ESRCH;
	entry.ksm_error = -EACCES;
	entry.stat.state = 0;
	entry.user = NULL;
	entry.place = NULL;
	for (size_t i = 0; i < columns_count; i++) {
		if (!always_known(columns[i].name))
			expect_unknown(columns[i].name, &entry);
	}
}
END_TEST

START_TEST(smaps_unreadable_only)
{
	static const char *const known[] = { "PID", "PPID", "THREADS", "KSM", "ZERO", "PROFIT",
		"SCANNED", "MINFLT", "MAJFLT", "USER", "COMMAND", "CGROUP", "UNIT", "CONTAINER",
		"POD", "PROCS", "UNREADABLE" };
	struct entry entry = whole();

	expect_number("UNREADABLE", &entry, 0);

	entry.smaps_error = -EACCES;
	for (size_t i = 0; i < columns_count; i++) {
		bool is_known = false;
		for (size_t k = 0; k < sizeof(known) / sizeof(*known); k++)
			is_known |= !strcmp(known[k], columns[i].name);
		if (!is_known)
			expect_unknown(columns[i].name, &entry);
	}
	expect_number("UNREADABLE", &entry, 1);
	expect_number("ZERO", &entry, 503 * sysconf(_SC_PAGESIZE));
	expect_number("KSM", &entry, 502 * sysconf(_SC_PAGESIZE)); /* the kernel's count serves */
}
END_TEST

/* A kernel that does not have a field: the columns made of it are not known, others are. */
START_TEST(absent_fields)
{
	static const struct {
		enum smaps_field field;
		const char *columns[8];
	} cases[] = {
		{ SMAPS_RSS, { "RSS" } },
		{ SMAPS_PSS, { "PSS" } },
		{ SMAPS_PRIVATE_DIRTY, { "CODE_P", "DATA_P", "TOTAL", "USS", "DIRTY" } },
		{ SMAPS_SHARED_DIRTY, { "CODE_S", "DATA_S", "TOTAL" } },
		{ SMAPS_ANONYMOUS, { "ANON" } },
		{ SMAPS_KSM, { "SAVED" } },
		{ SMAPS_ANON_HUGE, { "HUGE" } },
		{ SMAPS_SWAP, { "SWAP" } },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct entry entry = whole();
		entry.sum.seen &= ~BIT(cases[i].field);
		for (size_t k = 0; k < 8 && cases[i].columns[k]; k++)
			expect_unknown(cases[i].columns[k], &entry);
		expect_number("AREAS", &entry, 20);
		if (cases[i].field != SMAPS_RSS)
			expect_number("RSS", &entry, 5 * 1024);
	}
}
END_TEST

START_TEST(absent_ksm_stat)
{
	static const struct {
		unsigned bit;
		const char *column;
	} cases[] = { { PROC_KSM_RMAP_ITEMS, "SCANNED" }, { PROC_KSM_ZERO, "ZERO" },
		{ PROC_KSM_PROFIT, "PROFIT" } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct entry entry = whole();
		entry.ksm.present &= ~cases[i].bit;
		expect_unknown(cases[i].column, &entry);
	}
	/* KSM: of smaps first, of ksm_stat before 6.6, else not known */
	struct entry entry = whole();
	expect_number("KSM", &entry, 12 * 1024);
	entry.sum.seen &= ~BIT(SMAPS_KSM);
	expect_number("KSM", &entry, 502 * sysconf(_SC_PAGESIZE));
	entry.ksm.present &= ~(unsigned)PROC_KSM_MERGING;
	expect_unknown("KSM", &entry);
	entry = whole();
	entry.ksm_error = -ENOENT;
	expect_number("KSM", &entry, 12 * 1024);
	expect_unknown("ZERO", &entry);
	expect_unknown("PROFIT", &entry);
	expect_unknown("SCANNED", &entry);
	ck_assert_str_eq(find("OPTED")->text(&entry), "madvise");
}
END_TEST

/* Without VmFlags, as before 3.8, nothing says which areas are open to merging: that is not "no". */
START_TEST(no_vmflags)
{
	struct entry entry = { .pid = 1, .ksm_error = -ENOENT };

	ck_assert_int_eq(
		add_text(&entry, "1000-2000 rw-p 00000000 00:00 0 \nRss: 4 kB\nPss: 4 kB\n"), 0);
	expect_number("RSS", &entry, 4096);
	expect_number("AREAS", &entry, 1);
	expect_unknown("MERGEABLE", &entry);
	expect_unknown("OPTED", &entry);
	/* an empty line of flags does say it */
	memset(&entry.sum, 0, sizeof(entry.sum));
	ck_assert_int_eq(
		add_text(&entry, "1000-2000 rw-p 00000000 00:00 0 \nRss: 4 kB\nVmFlags: \n"), 0);
	expect_number("MERGEABLE", &entry, 0);
	ck_assert_str_eq(find("OPTED")->text(&entry), "no");
}
END_TEST

/* Numbers that only a made-up tree can hold: not known rather than wrong. */
START_TEST(huge_numbers)
{
	struct entry entry = { .pid = 1, .ksm_error = -ENOENT };

	ck_assert_int_eq(
		add_text(&entry, "1000-2000 r-xp 00000000 00:00 0 \nRss: 18446744073709551615 kB\n"
				 "Pss: 9223372036854775807 kB\nPrivate_Dirty: 9007199254740993 kB\n"
				 "Shared_Dirty: 18014398509481984 kB\nKSM: 36028797018963968 kB\n"),
		0);
	for (size_t i = 0; i < columns_count; i++) {
		int64_t value = 0;
		if (columns[i].number && columns[i].number(&entry, &value))
			ck_assert_msg(value >= 0, "%s: %" PRId64, columns[i].name, value);
	}
	int64_t rss;
	if (number("RSS", &entry, &rss))
		ck_assert_int_gt(rss, INT64_C(1) << 60);
	/* sums that no int64_t of bytes holds */
	entry = whole();
	entry.sum.rss_kib = entry.sum.code_private_kib = UINT64_C(1) << 54;
	expect_unknown("RSS", &entry);
	expect_unknown("CODE_P", &entry);
	expect_unknown("TOTAL", &entry);
	entry.sum.rss_kib = (UINT64_C(1) << 53) - 1;
	expect_number("RSS", &entry, INT64_MAX - 1023);
	/* pages, of which bytes are made */
	entry = whole();
	entry.sum.seen &= ~(1u << SMAPS_KSM);
	entry.ksm.merging_pages = entry.ksm.zero_pages = INT64_MAX / 64;
	expect_unknown("KSM", &entry);
	expect_unknown("ZERO", &entry);
	entry.ksm.merging_pages = -1;
	expect_unknown("KSM", &entry);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("column");
	TCase *tcase = tcase_create("column");

	tcase_add_test(tcase, table);
	tcase_add_test(tcase, totals);
	tcase_add_test(tcase, find_names);
	tcase_add_test(tcase, values);
	tcase_add_test(tcase, unreadable);
	tcase_add_test(tcase, smaps_unreadable_only);
	tcase_add_test(tcase, absent_fields);
	tcase_add_test(tcase, absent_ksm_stat);
	tcase_add_test(tcase, no_vmflags);
	tcase_add_test(tcase, huge_numbers);
	suite_add_tcase(suite, tcase);
	return tap_run(suite);
}
