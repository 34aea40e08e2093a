/* Pagemap gives the numbers of smaps: for every process here, and for memory of every kind. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdarg.h>

#include "sysfs/file.h"
#include "sysfs/pagemap.h"
#include "tests/live/guard.h"
#include "tests/unit/live.h"

#include "tests/live/memory_roles.h"

static struct root root;
static struct frames frames; /* root's only: else huge pages that were forked are not exact */

static void open_root(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	ck_assert_int_eq(root_open(&root, NULL), 0);
	frames_open(&frames, &root);
}

static void close_root(void)
{
	root_close(&root);
	frames_close(&frames);
}

static bool can(void)
{
	int err = pagemap_probe(&root);

	if (err == -ENOTTY)
		tap_skip("this kernel cannot: before Linux 6.11");
	else
		ck_assert_int_eq(err, 0);
	return !err;
}

/* Where two sums of one process differ, or "". Swap only where pagemap is sure of it. */
static const char *difference(const struct smaps_sum *a, const struct smaps_sum *b)
{
	static char text[512];
	size_t at = 0;
	const struct {
		const char *name;
		uint64_t a, b;
	} fields[] = {
#define FIELD(name) { #name, a->name, b->name }
		FIELD(areas),
		FIELD(code_private_kib),
		FIELD(code_shared_kib),
		FIELD(data_private_kib),
		FIELD(data_shared_kib),
		FIELD(rss_kib),
		FIELD(uss_kib),
		FIELD(anonymous_kib),
		{ "swap_kib", b->seen & 1U << SMAPS_SWAP ? a->swap_kib : b->swap_kib, b->swap_kib },
#undef FIELD
	};
	text[0] = '\0';
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		if (fields[i].a != fields[i].b)
			at += (size_t)snprintf(text + at, sizeof(text) - at,
				" %s %" PRIu64 " by smaps, %" PRIu64, fields[i].name, fields[i].a,
				fields[i].b);
	}
	return text;
}

enum outcome { SAME, DIFFERENT, RESTLESS, GONE };

/*
 * Read by smaps, pagemap, and smaps again. Where the two of smaps are the same nothing changed, and
 * pagemap must say the same; but a page may have come and gone, so it may do so at the third time.
 */
static enum outcome compare(const struct proc *proc, bool gentle)
{
	static char last[512];
	int quiet = 0;

	for (int i = 0; i < 50 && quiet < 3; i++) {
		struct smaps_sum before = { 0 }, after = { 0 }, got;
		struct pagemap_shared shared;
		struct pagemap_how how = { .gentle = gentle,
			.counts = frames.count_fd < 0 ? NULL : &frames };
		int err = smaps_read(proc, smaps_add, &before);
		int got_err = pagemap_read(proc, &how, &got, &shared);
		int after_err = smaps_read(proc, smaps_add, &after);
		if (err == -ESRCH || got_err == -ESRCH || after_err == -ESRCH)
			return GONE;
		ck_assert_msg(err == got_err || err != after_err, "%d: %d by smaps, %d by pagemap",
			(int)proc->pid, err, got_err);
		if (err || after_err || !before.areas)
			return GONE;
		if (*difference(&before, &after))
			continue;
		ck_assert_uint_eq(shared.file_kib + shared.anon_kib,
			got.code_shared_kib + got.data_shared_kib);
		snprintf(last, sizeof(last), "%s", difference(&after, &got));
		if (!*last)
			return SAME;
		quiet++;
	}
	if (!quiet)
		return RESTLESS;
	printf("# process %d:%s\n", (int)proc->pid, last);
	fflush(stdout);
	return DIFFERENT;
}

static void compare_role(const char *name, live_prepare prepare, bool main_thread_exits)
{
	struct proc proc;
	pid_t pid = live_start(prepare, main_thread_exits);

	ck_assert_int_eq(proc_open(&proc, &root, pid), 0);
	enum outcome outcome = compare(&proc, false), gently = compare(&proc, true);
	proc_close(&proc);
	live_end(pid);
	ck_assert_msg(outcome == SAME && gently == SAME, "%s: %s", name,
		outcome == DIFFERENT || gently == DIFFERENT ? "the numbers differ"
							    : "it could not be compared");
}

static const struct {
	const char *name;
	live_prepare prepare;
	bool main_thread_exits;
} roles[] = {
	{ "nothing of its own", NULL, false },
	{ "main thread exited", role_fork, true },
	{ "huge pages", role_thp, false },
	{ "zeros", role_zeros, false },
	{ "forked", role_fork, false },
	{ "shared memory and files", role_shared, false },
	{ "devices", role_devices, false },
	{ "moved", role_moved, false },
	{ "sparse", role_sparse, false },
	{ "guard regions", role_guards, false },
	{ "no access, and code", role_none, false },
	{ "60 000 areas", role_areas, false },
};

START_TEST(role)
{
	if (can())
		compare_role(roles[_i].name, roles[_i].prepare, roles[_i].main_thread_exits);
}
END_TEST

START_TEST(every_process)
{
	struct proc_walk walk;
	struct proc proc;
	struct proc_stat stat;
	unsigned count[4] = { 0 };

	if (!can())
		return;
	ck_assert_int_eq(proc_walk_open(&walk, &root), 0);
	while (proc_walk_next(&walk, &proc) > 0) {
		if (!proc_read_stat(&proc, &stat) && !stat.kernel_thread)
			count[compare(&proc, false)]++;
		proc_close(&proc);
	}
	proc_walk_close(&walk);
	printf("# %u processes the same, %u changed all the time, %u went or are closed to us\n",
		count[SAME], count[RESTLESS], count[GONE]);
	ck_assert_uint_eq(count[DIFFERENT], 0);
	ck_assert_uint_gt(count[SAME], 1);
	ck_assert_uint_ge(count[SAME], count[RESTLESS]);
}
END_TEST

/* Huge pages are lent by the kernel for as long as the test takes. */
START_TEST(hugetlb)
{
	static const char knob[] = "/proc/sys/vm/nr_hugepages";
	int64_t before, now;
	char text[32];

	if (!can())
		return;
	ck_assert_int_eq(file_read_i64(AT_FDCWD, knob, &before), 0);
	snprintf(text, sizeof(text), "%" PRId64, before + 4);
	if (file_write(AT_FDCWD, knob, text) || file_read_i64(AT_FDCWD, knob, &now) ||
		now < before + 4) {
		tap_skip("no huge pages to be had");
	} else {
		pid_t pid = live_start(role_hugetlb, false);
		struct proc proc;
		ck_assert_int_eq(proc_open(&proc, &root, pid), 0);
		enum outcome outcome = compare(&proc, false);
		struct smaps_sum sum = { 0 };
		smaps_read(&proc, smaps_add, &sum);
		proc_close(&proc);
		live_end(pid);
		snprintf(text, sizeof(text), "%" PRId64, before);
		file_write(AT_FDCWD, knob, text);
		ck_assert_uint_ge(sum.huge_kib, 2 * HUGE_BYTES / 1024);
		ck_assert_int_eq(outcome, SAME);
		return;
	}
	snprintf(text, sizeof(text), "%" PRId64, before);
	file_write(AT_FDCWD, knob, text);
}
END_TEST

START_TEST(swap)
{
	uint64_t kib = 0;
	char buf[8192];
	ssize_t len = file_read(AT_FDCWD, "/proc/meminfo", buf, sizeof(buf));

	if (len < 0 || file_find_u64(buf, (size_t)len, "SwapTotal:", &kib) || kib < 65536) {
		tap_skip("no swap here");
		return;
	}
	if (!can())
		return;
	compare_role("swapped out", role_swap, false);
	compare_role("shared memory swapped out", role_swap_shared, false);
	for (int is_shared = 0; is_shared < 2; is_shared++) {
		pid_t pid = live_start(is_shared ? role_swap_shared : role_swap, false);
		struct pagemap_how how = { 0 };
		struct pagemap_shared shared;
		struct smaps_sum sum;
		struct proc proc;
		ck_assert_int_eq(proc_open(&proc, &root, pid), 0);
		int err = pagemap_read(&proc, &how, &sum, &shared);
		proc_close(&proc);
		live_end(pid);
		ck_assert_int_eq(err, 0);
		ck_assert_int_eq(!(sum.seen & 1U << SMAPS_SWAP), is_shared);
		ck_assert_uint_ge(sum.swap_kib, 4 * 1024);
	}
}
END_TEST

/* Two that merge with each other and within, and their children: by frames what smaps counts. */
START_TEST(merged)
{
	struct proc proc;
	pid_t pids[2];

	if (!can())
		return;
	int err = guard_take();
	if (err || frames.count_fd < 0) {
		tap_skip("no KSM, or not root");
		return;
	}
	ck_assert_int_eq(guard_fast(), 0);
	for (int i = 0; i < 2; i++)
		pids[i] = live_start(role_mergeable, false);
	bool passed = guard_wait_passes(4, 60);
	ck_assert_int_eq(ksm_set(guard_ksm(), KSM_RUN, 0), 0);
	uint64_t ksm_kib = 0, by_frames = 0, saved = 0;
	enum outcome outcome = SAME;
	for (int i = 0; i < 2; i++) {
		struct frames_list list = { 0 };
		struct pagemap_how how = { .gentle = i == 1, .frames = &list };
		struct smaps_sum sum, by_smaps = { 0 };
		struct pagemap_shared shared;
		struct frames_sum frames_sum;
		ck_assert_int_eq(proc_open(&proc, &root, pids[i]), 0);
		outcome = outcome == SAME ? compare(&proc, false) : outcome;
		ck_assert_int_eq(pagemap_read(&proc, &how, &sum, &shared), 0);
		ck_assert_int_eq(frames_look_up(&frames, &list, &frames_sum), 0);
		ck_assert_int_eq(smaps_read(&proc, smaps_add, &by_smaps), 0);
		ksm_kib += by_smaps.ksm_kib;
		by_frames += frames_sum.merged_pages * page / 1024;
		saved += frames_sum.saved_bytes;
		free(list.frames);
		proc_close(&proc);
	}
	for (int i = 0; i < 2; i++)
		live_end(pids[i]);
	ck_assert_int_eq(guard_release(), 0);
	ck_assert(passed);
	ck_assert_int_eq(outcome, SAME);
	ck_assert_uint_eq(ksm_kib, by_frames);
	ck_assert_uint_gt(ksm_kib, 2 * 3 * 1024);
	ck_assert_uint_gt(saved, 4 * MIB);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memory");
	TCase *tcase = tcase_create("memory");

	tcase_add_checked_fixture(tcase, open_root, close_root);
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, role, 0, sizeof(roles) / sizeof(*roles));
	tcase_add_test(tcase, every_process);
	tcase_add_test(tcase, hugetlb);
	tcase_add_test(tcase, swap);
	tcase_add_test(tcase, merged);
	suite_add_tcase(suite, tcase);
	return tap_run(suite);
}
