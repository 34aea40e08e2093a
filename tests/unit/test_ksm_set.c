/* sysfs/ksm: writing and restoring, against a kernel that is played. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/played_ksm.h"

static void expect_writes(int count)
{
	ck_assert_int_eq(played.writes, count);
	ck_assert_int_eq(played.open_files, 0);
}

START_TEST(set_keeps)
{
	for (int key = 0; key < KSM_TUNABLES; key++) {
		const int64_t values[] = { ksm_keys[key].min, ksm_keys[key].max };
		for (int i = 0; i < 2; i++) {
			int64_t value = 77;
			played_boot();
			ck_assert_msg(!ksm_set(&played_ksm, key, values[i]), "%s=%" PRId64,
				ksm_keys[key].name, values[i]);
			ck_assert_int_eq(played.value[key], values[i]);
			ck_assert_int_eq(ksm_get(&played_ksm, key, &value), 0);
			ck_assert_int_eq(value, values[i]);
			expect_writes(1);
		}
	}
}
END_TEST

START_TEST(set_texts)
{
	played_boot();
	ck_assert_int_eq(ksm_set(&played_ksm, KSM_ADVISOR_MODE, KSM_ADVISOR_SCAN_TIME), 0);
	ck_assert_str_eq(played.text[0], "scan-time");
	ck_assert_int_eq(ksm_set(&played_ksm, KSM_ADVISOR_MODE, KSM_ADVISOR_NONE), 0);
	ck_assert_str_eq(played.text[1], "none");
	ck_assert_int_eq(ksm_set(&played_ksm, KSM_SLEEP_MILLISECS, 3000000000), 0);
	ck_assert_str_eq(played.text[2], "3000000000");
	expect_writes(3);
}
END_TEST

START_TEST(set_refused)
{
	played_boot();
	ck_assert_int_eq(ksm_set(&played_ksm, KSM_RUN, 3), -EINVAL);
	ck_assert_int_eq(ksm_set(&played_ksm, KSM_ADVISOR_TARGET_SCAN_TIME, 0), -EINVAL);
	ck_assert_int_eq(ksm_set(&played_ksm, KSM_ADVISOR_MODE, KSM_ADVISOR_OTHER), -EINVAL);
	ck_assert_int_eq(ksm_set(&played_ksm, KSM_PAGES_SHARED, 1), -EACCES);
	played.value[KSM_ADVISOR_MODE] = KSM_ADVISOR_SCAN_TIME;
	ck_assert_int_eq(ksm_set(&played_ksm, KSM_PAGES_TO_SCAN, 100), -EINVAL);
	played.value[KSM_PAGES_SHARED] = 1;
	ck_assert_int_eq(ksm_set(&played_ksm, KSM_MERGE_ACROSS_NODES, 0), -EBUSY);
	ck_assert_int_eq(ksm_set(&played_ksm, KSM_MAX_PAGE_SHARING, 1000), -EBUSY);
	ck_assert_int_eq(ksm_set(&played_ksm, KSM_MAX_PAGE_SHARING, 256), 0);
	played.absent[KSM_SMART_SCAN] = true;
	ck_assert_int_eq(ksm_set(&played_ksm, KSM_SMART_SCAN, 0), -ENOENT);
	expect_writes(8);
}
END_TEST

/* The kernel adds 4 to run while memory goes offline: that is what was asked for, no one else's value. */
START_TEST(set_run_while_offline)
{
	played_boot();
	played.fault[KSM_RUN].answer = "5\n";
	ck_assert_int_eq(ksm_set(&played_ksm, KSM_RUN, KSM_RUN_MERGE), 0);
	ck_assert_int_eq(ksm_set(&played_ksm, KSM_RUN, KSM_RUN_STOP), -EBADE);
	played.fault[KSM_RUN].answer = "4\n";
	ck_assert_int_eq(ksm_set(&played_ksm, KSM_RUN, KSM_RUN_STOP), 0);
	ck_assert_int_eq(ksm_set(&played_ksm, KSM_RUN, KSM_RUN_MERGE), -EBADE);
}
END_TEST

static void save(struct ksm_state *saved)
{
	ksm_read(&played_ksm, saved);
	played.writes = 0;
}

START_TEST(restore_nothing)
{
	struct ksm_state saved;
	enum ksm_key failed = KSM_KEYS;

	played_boot();
	save(&saved);
	ck_assert_int_eq(ksm_restore(&played_ksm, &saved, &failed), 0);
	ck_assert_int_eq(failed, KSM_KEYS);
	expect_writes(0);
	/* counters that moved are not tunables */
	for (int key = KSM_TUNABLES; key < KSM_KEYS; key++)
		played.value[key] += 5;
	ck_assert_int_eq(ksm_restore(&played_ksm, &saved, NULL), 0);
	expect_writes(0);
}
END_TEST

START_TEST(restore_only_what_differs)
{
	struct ksm_state saved;

	for (int key = 0; key < KSM_TUNABLES; key++) {
		if (key == KSM_ADVISOR_MODE)
			continue;
		played_boot();
		save(&saved);
		played.value[key] = key == KSM_MAX_PAGE_SHARING ? 300 : !played.value[key];
		ck_assert_int_eq(ksm_restore(&played_ksm, &saved, NULL), 0);
		ck_assert_int_eq(played.value[key], saved.value[key]);
		ck_assert_int_eq(played.written[0], key);
		expect_writes(1);
	}
}
END_TEST

static int place(enum ksm_key key)
{
	for (int i = 0; i < played.writes; i++) {
		if (played.written[i] == key)
			return i;
	}
	return -1;
}

START_TEST(restore_all_in_order)
{
	struct ksm_state saved;

	played_boot();
	played.value[KSM_PAGES_TO_SCAN] = 1234; /* not what a change of advisor gives */
	save(&saved);
	for (int key = 0; key < KSM_TUNABLES; key++)
		played.value[key] = key == KSM_MAX_PAGE_SHARING ? 300 : !played.value[key];
	ck_assert_int_eq(ksm_restore(&played_ksm, &saved, NULL), 0);
	for (int key = 0; key < KSM_TUNABLES; key++)
		ck_assert_msg(played.value[key] == saved.value[key], "%s", ksm_keys[key].name);
	/* pages_to_scan is refused under an advisor, whose change resets it; run is the last of all */
	ck_assert_int_ge(place(KSM_ADVISOR_MODE), 0);
	ck_assert_int_lt(place(KSM_ADVISOR_MODE), place(KSM_PAGES_TO_SCAN));
	ck_assert_int_eq(place(KSM_RUN), played.writes - 1);
	expect_writes(KSM_TUNABLES);
}
END_TEST

START_TEST(restore_advisor)
{
	struct ksm_state saved;

	/* it was on, and pages_to_scan was its own affair */
	played_boot();
	played.value[KSM_ADVISOR_MODE] = KSM_ADVISOR_SCAN_TIME;
	played.value[KSM_PAGES_TO_SCAN] = 1234;
	save(&saved);
	played.value[KSM_ADVISOR_MODE] = KSM_ADVISOR_NONE;
	played.value[KSM_PAGES_TO_SCAN] = 9999;
	ck_assert_int_eq(ksm_restore(&played_ksm, &saved, NULL), 0);
	ck_assert_int_eq(played.value[KSM_ADVISOR_MODE], KSM_ADVISOR_SCAN_TIME);
	expect_writes(1);

	/* it was off, and someone turned it on */
	played_boot();
	played.value[KSM_PAGES_TO_SCAN] = 1234;
	save(&saved);
	played.value[KSM_ADVISOR_MODE] = KSM_ADVISOR_SCAN_TIME;
	ck_assert_int_eq(ksm_restore(&played_ksm, &saved, NULL), 0);
	ck_assert_int_eq(played.value[KSM_ADVISOR_MODE], KSM_ADVISOR_NONE);
	ck_assert_int_eq(played.value[KSM_PAGES_TO_SCAN], 1234);
	expect_writes(2);

	/* a mode of a later kernel: left alone while it stays, and said when it cannot be had back */
	enum ksm_key failed = KSM_KEYS;
	played_boot();
	played.value[KSM_ADVISOR_MODE] = KSM_ADVISOR_OTHER;
	save(&saved);
	ck_assert_int_eq(ksm_restore(&played_ksm, &saved, &failed), 0);
	expect_writes(0);
	played.value[KSM_ADVISOR_MODE] = KSM_ADVISOR_NONE;
	ck_assert_int_ne(ksm_restore(&played_ksm, &saved, &failed), 0);
	ck_assert_int_eq(failed, KSM_ADVISOR_MODE);
}
END_TEST

/* A kernel without some of the files: what was not saved is not written. */
START_TEST(restore_old_kernel)
{
	struct ksm_state saved;

	played_boot();
	for (int key = 0; key < KSM_TUNABLES; key++)
		played.absent[key] = key >= KSM_ADVISOR_MODE || key == KSM_SMART_SCAN;
	save(&saved);
	played.value[KSM_PAGES_TO_SCAN] = 5;
	played.value[KSM_RUN] = 1;
	ck_assert_int_eq(ksm_restore(&played_ksm, &saved, NULL), 0);
	ck_assert_int_eq(played.value[KSM_PAGES_TO_SCAN], 100);
	ck_assert_int_eq(played.value[KSM_RUN], 0);
	expect_writes(2);

	/* even where the file has come up since */
	memset(played.absent, 0, sizeof(played.absent));
	played.value[KSM_SMART_SCAN] = 0;
	ck_assert_int_eq(ksm_restore(&played_ksm, &saved, NULL), 0);
	expect_writes(2);
}
END_TEST

START_TEST(restore_busy_goes_on)
{
	struct ksm_state saved;
	enum ksm_key failed = KSM_KEYS;

	played_boot();
	save(&saved);
	played.value[KSM_MERGE_ACROSS_NODES] = 0;
	played.value[KSM_MAX_PAGE_SHARING] = 1000;
	played.value[KSM_PAGES_TO_SCAN] = 5000;
	played.value[KSM_RUN] = 1;
	played.value[KSM_PAGES_SHARED] = 1;
	ck_assert_int_eq(ksm_restore(&played_ksm, &saved, &failed), -EBUSY);
	ck_assert(failed == KSM_MERGE_ACROSS_NODES || failed == KSM_MAX_PAGE_SHARING);
	ck_assert_int_eq(played.value[KSM_PAGES_TO_SCAN], 100);
	ck_assert_int_eq(played.value[KSM_RUN], 0);
	expect_writes(4);
}
END_TEST

/* run was read while memory went offline: the kernel takes no 4 or 5, the meaning is 0 or 1. */
START_TEST(restore_run_saved_while_offline)
{
	struct ksm_state saved;

	for (int run = 0; run < 3; run++) {
		played_boot();
		played.value[KSM_RUN] = 4 + run;
		save(&saved);
		played.value[KSM_RUN] = !run;
		ck_assert_int_eq(ksm_restore(&played_ksm, &saved, NULL), 0);
		ck_assert_int_eq(played.value[KSM_RUN], run);
		expect_writes(1);
	}
}
END_TEST

/* From any state to any other: the saved one is reached, and no key is written without need. */
START_TEST(restore_any)
{
	struct ksm_state saved;
	const int64_t spread[] = { 0, 1, 2, 100, 5000, UINT32_MAX };

	srandom(1);
	for (int round = 0; round < 2000; round++) {
		struct played before;

		for (int half = 0; half < 2; half++) {
			if (!half)
				played_boot();
			for (int key = 0; key < KSM_TUNABLES; key++) {
				int64_t value = spread[random() % 6];
				value = value < ksm_keys[key].min ? ksm_keys[key].min : value;
				value = value > ksm_keys[key].max ? ksm_keys[key].max : value;
				if (random() % 2)
					played.value[key] = value;
			}
			if (!half)
				save(&saved);
		}
		before = played;
		ck_assert_int_eq(ksm_restore(&played_ksm, &saved, NULL), 0);
		for (int key = 0; key < KSM_TUNABLES; key++) {
			bool same = before.value[key] == saved.value[key];

			if (key == KSM_PAGES_TO_SCAN && saved.value[KSM_ADVISOR_MODE])
				continue; /* the advisor's own affair */
			ck_assert_int_eq(played.value[key], saved.value[key]);
			if (key != KSM_PAGES_TO_SCAN) /* a change of advisor changes it */
				ck_assert_int_eq(place(key) < 0, same);
		}
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ksm_set");
	TCase *tcase = tcase_create("ksm_set");

	tcase_add_test(tcase, set_keeps);
	tcase_add_test(tcase, set_texts);
	tcase_add_test(tcase, set_refused);
	tcase_add_test(tcase, set_run_while_offline);
	tcase_add_test(tcase, restore_nothing);
	tcase_add_test(tcase, restore_only_what_differs);
	tcase_add_test(tcase, restore_all_in_order);
	tcase_add_test(tcase, restore_advisor);
	tcase_add_test(tcase, restore_old_kernel);
	tcase_add_test(tcase, restore_busy_goes_on);
	tcase_add_test(tcase, restore_run_saved_while_offline);
	tcase_add_test(tcase, restore_any);
	suite_add_tcase(suite, tcase);
	return tap_run(suite);
}
