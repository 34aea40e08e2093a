/* Page frames: runs and gaps, mappings that add up, and files that end early. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sysfs/frames.h"
#include "tests/tap.h"

#define FRAMES 4096
#define KSM (UINT64_C(1) << 21)

/* The two files of the kernel, played by ordinary ones. */
static struct frames made;
static uint64_t flags[FRAMES], counts[FRAMES];

static int file_of(const uint64_t *entries, size_t count)
{
	FILE *f = tmpfile();

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(entries, 8, count, f), count);
	ck_assert_int_eq(fflush(f), 0);
	return dup(fileno(f));
}

static void make(size_t count)
{
	made.flags_fd = file_of(flags, count);
	made.count_fd = file_of(counts, count);
	made.page_bytes = 4096;
}

static struct frames_sum look_up(const uint64_t *frames, size_t count)
{
	struct frames_list list = { .count = count, .room = count };
	struct frames_sum sum;

	list.frames = malloc((count + 1) * 8);
	memcpy(list.frames, frames, count * 8);
	ck_assert_int_eq(frames_look_up(&made, &list, &sum), 0);
	free(list.frames);
	return sum;
}

START_TEST(adds_up)
{
	/* 100 processes and a page that each of them maps once: 99 are saved */
	const uint64_t one = 1000;
	uint64_t total = 0;

	flags[one] = KSM;
	counts[one] = 100;
	make(FRAMES);
	for (int i = 0; i < 100; i++)
		total += look_up(&one, 1).saved_bytes;
	ck_assert_uint_le(total, 99 * 4096);
	ck_assert_uint_ge(total, 99 * 4096 - 100);
}
END_TEST

START_TEST(many_small_shares)
{
	/* what is less than a byte of each page is not lost within a process */
	static uint64_t frames[3000];

	for (size_t i = 0; i < 3000; i++) {
		frames[i] = i;
		flags[i] = KSM;
		counts[i] = 3;
	}
	make(FRAMES);
	struct frames_sum sum = look_up(frames, 3000);
	ck_assert_uint_eq(sum.merged_pages, 3000);
	ck_assert_uint_ge(sum.saved_bytes, UINT64_C(2000) * 4096 - 1);
	ck_assert_uint_le(sum.saved_bytes, UINT64_C(2000) * 4096);
	ck_assert_uint_eq(sum.self_pages, 0);
}
END_TEST

START_TEST(merged_with_itself)
{
	const uint64_t frames[] = { 9, 5, 5, 9, 5, 4000, 7 };

	flags[5] = flags[9] = flags[7] = KSM; /* 4000 is an ordinary page */
	counts[5] = 3;
	counts[9] = 4;
	counts[7] = 1; /* its twins have gone: nothing is saved */
	counts[4000] = 2;
	make(FRAMES);
	struct frames_sum sum = look_up(frames, 7);
	ck_assert_uint_eq(sum.merged_pages, 6);
	ck_assert_uint_eq(sum.self_pages, 4);
	ck_assert_uint_ge(sum.saved_bytes, 2 * 4096 + 2 * 3072 - 1);
	ck_assert_uint_le(sum.saved_bytes, 2 * 4096 + 2 * 3072);
}
END_TEST

START_TEST(counts_that_changed)
{
	const uint64_t frames[] = { 1, 1, 1, 4095, 100000 };

	flags[1] = KSM;
	counts[1] = 0;
	flags[4095] = KSM;
	counts[4095] = UINT64_MAX;
	make(FRAMES); /* and frame 100000 is not there */
	struct frames_sum sum = look_up(frames, 5);
	ck_assert_uint_eq(sum.merged_pages, 4);
	ck_assert_uint_le(sum.saved_bytes, 3 * 4096);
	ck_assert_uint_ge(sum.saved_bytes, 3 * 4096 - 2);
	sum = look_up(frames, 0);
	ck_assert_uint_eq(sum.merged_pages + sum.saved_bytes, 0);
}
END_TEST

START_TEST(merged_ones_stay)
{
	uint64_t frames[] = { 900, 7, 900, 8, 3000 };
	struct frames_list list = { .frames = frames, .count = 5, .room = 5 };
	struct frames_sum sum;

	memset(flags, 0, sizeof(flags));
	flags[900] = flags[3000] = KSM;
	counts[900] = counts[3000] = 2;
	make(FRAMES);
	ck_assert_int_eq(frames_look_up(&made, &list, &sum), 0);
	ck_assert_uint_eq(list.count, 3);
	ck_assert_uint_eq(frames[0], 900);
	ck_assert_uint_eq(frames[1], 900);
	ck_assert_uint_eq(frames[2], 3000);
}
END_TEST

START_TEST(kernel_that_says_it_of_all)
{
	const uint64_t dirty = 1 << 4, anonymous = 1 << 12, exclusive = UINT64_C(1) << 34;
	const uint64_t frames[] = { 0, 1, 2, 3 };

	memset(flags, 0, sizeof(flags));
	flags[0] = KSM | anonymous | dirty;
	flags[1] = KSM | anonymous;			/* of a fork */
	flags[2] = KSM | anonymous | exclusive;		/* nobody else's */
	flags[3] = KSM | anonymous | dirty | exclusive; /* that, back from swap */
	counts[0] = counts[1] = 2;
	counts[2] = counts[3] = 1;
	make(FRAMES);
	ck_assert_uint_eq(look_up(frames, 4).merged_pages, 4);
	made.all_said_merged = true;
	struct frames_sum sum = look_up(frames, 4);
	made.all_said_merged = false;
	ck_assert_uint_eq(sum.merged_pages, 1);
	ck_assert_uint_eq(sum.saved_bytes, 2048);
}
END_TEST

START_TEST(a_pagemap)
{
	const uint64_t present = UINT64_C(1) << 63, file = UINT64_C(1) << 61;
	uint64_t entries[1500] = { 0 };
	struct frames_list list = { 0 };

	entries[0] = present | 11;
	entries[1] = present | file | 12;
	entries[2] = UINT64_C(1) << 62 | 13; /* swapped out */
	entries[1499] = present | 14;
	int fd = file_of(entries, 1500);
	ck_assert_int_eq(frames_add(&list, fd, 0, 4000 * 4096, 4096), 0);
	ck_assert_uint_eq(list.count, 2);
	ck_assert_uint_eq(list.frames[0], 11);
	ck_assert_uint_eq(list.frames[1], 14);
	entries[1] = present; /* without CAP_SYS_ADMIN the number is hidden */
	fd = file_of(entries, 1500);
	ck_assert_int_eq(frames_add(&list, fd, 0, 4096 * 2, 4096), -EACCES);
	free(list.frames);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("frames");
	TCase *t = tcase_create("frames");

	tcase_add_test(t, adds_up);
	tcase_add_test(t, many_small_shares);
	tcase_add_test(t, merged_with_itself);
	tcase_add_test(t, counts_that_changed);
	tcase_add_test(t, merged_ones_stay);
	tcase_add_test(t, kernel_that_says_it_of_all);
	tcase_add_test(t, a_pagemap);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(suite());
}
