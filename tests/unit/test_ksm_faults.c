/* sysfs/ksm and sysfs/file against faults: of open, read, write and close, for every file. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/file.h"
#include "tests/unit/played_ksm.h"

/* What a write of the kernel's files was seen to give, or may. */
static const int write_errnos[] = { EIO, EINVAL, EBUSY, EINTR, ENOMEM, EPERM, EACCES, ENOSPC };
static const int open_errnos[] = { EROFS, EACCES, EPERM, ENOENT, EMFILE, EIO, EINTR };
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* A legal value that is not the present one. */
static int64_t other_value(enum ksm_key key)
{
	return ksm_keys[key].max == 1 || key == KSM_RUN ? !played.value[key]
							: played.value[key] + 1;
}

/* Set every tunable under this fault: the error is passed on and nothing stays open. */
static void expect_set(const struct fault *fault, int want, int writes)
{
	for (int key = 0; key < KSM_TUNABLES; key++) {
		played_boot();
		played.fault[key] = *fault;
		int err = ksm_set(&played_ksm, key, other_value(key));
		ck_assert_msg(err == want, "%s: %d, not %d", ksm_keys[key].name, err, want);
		ck_assert_int_eq(played.writes, writes);
		ck_assert_int_eq(played.open_files, 0);
	}
}

START_TEST(set_open_fails)
{
	for (size_t i = 0; i < COUNT(open_errnos); i++)
		expect_set(
			&(struct fault){ .open_write_errno = open_errnos[i] }, -open_errnos[i], 0);
}
END_TEST

/* One write each, also after EINTR: to try again would unmerge on after the user stopped it. */
START_TEST(set_write_fails)
{
	for (size_t i = 0; i < COUNT(write_errnos); i++)
		expect_set(&(struct fault){ .write_errno = write_errnos[i] }, -write_errnos[i], 1);
}
END_TEST

START_TEST(set_write_is_short)
{
	expect_set(&(struct fault){ .is_short = true }, -EIO, 1);
}
END_TEST

START_TEST(set_close_fails)
{
	expect_set(&(struct fault){ .close_errno = EIO }, -EIO, 1);
	/* the first error is the one to tell */
	expect_set(&(struct fault){ .write_errno = EINVAL, .close_errno = EIO }, -EINVAL, 1);
	expect_set(&(struct fault){ .is_short = true, .close_errno = ENOSPC }, -EIO, 1);
}
END_TEST

START_TEST(set_not_kept)
{
	expect_set(&(struct fault){ .is_deaf = true }, -EBADE, 1);
	/* deaf, but it was so already */
	for (int key = 0; key < KSM_TUNABLES; key++) {
		played_boot();
		played.fault[key].is_deaf = true;
		ck_assert_int_eq(ksm_set(&played_ksm, key, played.value[key]), 0);
	}
}
END_TEST

START_TEST(set_cannot_read_back)
{
	expect_set(&(struct fault){ .read_errno = EIO }, -EIO, 1);
	expect_set(&(struct fault){ .answer = "" }, -EINVAL, 1);
	expect_set(&(struct fault){ .answer = "garbage\n" }, -EINVAL, 1);
	expect_set(&(struct fault){ .read_errno = EINTR, .times = 3 }, 0,
		1); /* a signal is no fault */
}
END_TEST

/* Read all with one file under this fault: that one is not known, every other one is. */
static void expect_read(const struct fault *fault, int want)
{
	for (int key = 0; key < KSM_KEYS; key++) {
		struct ksm_state state;
		int64_t value = 77;

		played_boot();
		for (int k = KSM_TUNABLES; k < KSM_KEYS; k++)
			played.value[k] = 1000 + k;
		played.fault[key] = *fault;
		memset(&state, 0xa5, sizeof(state));
		ksm_read(&played_ksm, &state);
		for (int k = 0; k < KSM_KEYS; k++) {
			ck_assert_msg(state.error[k] == (k == key ? want : 0), "%s under %s: %d",
				ksm_keys[k].name, ksm_keys[key].name, state.error[k]);
			if (!state.error[k])
				ck_assert_int_eq(state.value[k], played.value[k]);
		}
		ck_assert_int_eq(ksm_get(&played_ksm, key, &value), want);
		ck_assert_int_eq(value, want ? 77 : played.value[key]);
		ck_assert_int_eq(played.open_files, 0);
		ck_assert_int_eq(played.writes, 0);
	}
}

START_TEST(read_open_fails)
{
	for (size_t i = 0; i < COUNT(open_errnos); i++)
		expect_read(&(struct fault){ .open_errno = open_errnos[i] }, -open_errnos[i]);
}
END_TEST

START_TEST(read_fails)
{
	expect_read(&(struct fault){ .read_errno = EIO }, -EIO);
	expect_read(&(struct fault){ .read_errno = ENOMEM }, -ENOMEM);
	expect_read(&(struct fault){ .read_errno = EINTR, .times = 5 }, 0);
}
END_TEST

START_TEST(read_is_garbage)
{
	static char endless[400];

	memset(endless, '1', sizeof(endless) - 1);
	expect_read(&(struct fault){ .answer = "" }, -EINVAL);
	expect_read(&(struct fault){ .answer = "\n" }, -EINVAL);
	expect_read(&(struct fault){ .answer = "?\n" }, -EINVAL);
	expect_read(&(struct fault){ .answer = endless }, -EFBIG);
}
END_TEST

/* A text may come in pieces. */
START_TEST(read_in_pieces)
{
	for (size_t piece = 1; piece < 20; piece++) {
		struct ksm_state state;

		played_boot();
		played.piece = piece;
		played.value[KSM_GENERAL_PROFIT] = INT64_MIN;
		ksm_read(&played_ksm, &state);
		for (int key = 0; key < KSM_KEYS; key++) {
			ck_assert_int_eq(state.error[key], 0);
			ck_assert_int_eq(state.value[key], played.value[key]);
		}
	}
}
END_TEST

/* Everything differs and one file has the fault: it is named, and all others are restored. */
static void expect_restore(const struct fault *fault, int want)
{
	for (int key = 0; key < KSM_TUNABLES; key++) {
		struct ksm_state saved;
		enum ksm_key failed = KSM_KEYS;

		if (key == KSM_ADVISOR_MODE)
			continue;
		played_boot();
		played.value[KSM_PAGES_TO_SCAN] = 1234; /* not what a change of advisor gives */
		ksm_read(&played_ksm, &saved);
		for (int k = 0; k < KSM_TUNABLES; k++)
			played.value[k] = other_value(k);
		played.fault[key] = *fault;
		int err = ksm_restore(&played_ksm, &saved, &failed);
		ck_assert_msg(err == want, "%s: %d, not %d", ksm_keys[key].name, err, want);
		ck_assert_int_eq(failed, key);
		for (int k = 0; k < KSM_TUNABLES; k++) {
			if (k != key)
				ck_assert_int_eq(played.value[k], saved.value[k]);
		}
		ck_assert_int_eq(played.written[played.writes - 1] == KSM_RUN,
			key != KSM_RUN || !fault->open_errno);
		ck_assert_int_eq(played.open_files, 0);
		/* where nobody asks which */
		ck_assert_int_eq(ksm_restore(&played_ksm, &saved, NULL), want);
	}
}

START_TEST(restore_goes_on)
{
	for (size_t i = 0; i < COUNT(write_errnos); i++)
		expect_restore(&(struct fault){ .write_errno = write_errnos[i] }, -write_errnos[i]);
	for (size_t i = 0; i < COUNT(open_errnos); i++)
		expect_restore(&(struct fault){ .open_errno = open_errnos[i] }, -open_errnos[i]);
	expect_restore(&(struct fault){ .is_short = true }, -EIO);
	expect_restore(&(struct fault){ .is_deaf = true }, -EBADE);
}
END_TEST

/* An advisor that cannot be turned off: pages_to_scan is refused then, all else is restored. */
START_TEST(restore_advisor_stuck)
{
	struct ksm_state saved;
	enum ksm_key failed = KSM_KEYS;

	played_boot();
	ksm_read(&played_ksm, &saved);
	for (int k = 0; k < KSM_TUNABLES; k++)
		played.value[k] = other_value(k);
	played.fault[KSM_ADVISOR_MODE].write_errno = EIO;
	ck_assert_int_eq(ksm_restore(&played_ksm, &saved, &failed), -EIO);
	ck_assert_int_eq(failed, KSM_ADVISOR_MODE);
	for (int k = 0; k < KSM_TUNABLES; k++) {
		if (k != KSM_ADVISOR_MODE && k != KSM_PAGES_TO_SCAN)
			ck_assert_int_eq(played.value[k], saved.value[k]);
	}
}
END_TEST

/* A whole directory that is read-only, as in a privileged pod. */
START_TEST(read_only_filesystem)
{
	struct ksm_state saved;
	enum ksm_key failed = KSM_KEYS;

	played_boot();
	for (int key = 0; key < KSM_KEYS; key++)
		played.fault[key].open_write_errno = EROFS;
	ksm_read(&played_ksm, &saved);
	for (int key = 0; key < KSM_KEYS; key++)
		ck_assert(ksm_has(&saved, key));
	ck_assert_int_eq(ksm_restore(&played_ksm, &saved, &failed), 0);
	ck_assert_int_eq(failed, KSM_KEYS);
	saved.value[KSM_RUN] = 1;
	ck_assert_int_eq(ksm_restore(&played_ksm, &saved, &failed), -EROFS);
	ck_assert_int_eq(failed, KSM_RUN);
	ck_assert_int_eq(played.writes, 0);
}
END_TEST

/* sysfs/file alone, with what sysfs/ksm does not do. */
START_TEST(file_faults)
{
	char buf[8];
	int64_t value = 77;

	played_boot();
	played.fault[KSM_RUN] =
		(struct fault){ .read_errno = EINTR, .times = 2, .answer = "12345" };
	played.piece = 2;
	ck_assert_int_eq(file_read(PLAYED_DIR, "run", buf, sizeof(buf)), 5);
	ck_assert_str_eq(buf, "12345");
	played.fault[KSM_RUN] = (struct fault){ .answer = "1234567" };
	ck_assert_int_eq(file_read(PLAYED_DIR, "run", buf, sizeof(buf)), 7);
	played.fault[KSM_RUN] = (struct fault){ .answer = "12345678" };
	ck_assert_int_eq(file_read(PLAYED_DIR, "run", buf, sizeof(buf)), -EFBIG);
	/* the first piece was good, the next was not */
	played.fault[KSM_RUN] = (struct fault){ .answer = "12", .read_errno = EIO };
	ck_assert_int_eq(file_read_i64(PLAYED_DIR, "run", &value), -EIO);
	ck_assert_int_eq(value, 77);
	ck_assert_int_eq(played.open_files, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ksm_faults");
	TCase *tcase = tcase_create("ksm_faults");

	tcase_add_test(tcase, set_open_fails);
	tcase_add_test(tcase, set_write_fails);
	tcase_add_test(tcase, set_write_is_short);
	tcase_add_test(tcase, set_close_fails);
	tcase_add_test(tcase, set_not_kept);
	tcase_add_test(tcase, set_cannot_read_back);
	tcase_add_test(tcase, read_open_fails);
	tcase_add_test(tcase, read_fails);
	tcase_add_test(tcase, read_is_garbage);
	tcase_add_test(tcase, read_in_pieces);
	tcase_add_test(tcase, restore_goes_on);
	tcase_add_test(tcase, restore_advisor_stuck);
	tcase_add_test(tcase, read_only_filesystem);
	tcase_add_test(tcase, file_faults);
	suite_add_tcase(suite, tcase);
	return tap_run(suite);
}
