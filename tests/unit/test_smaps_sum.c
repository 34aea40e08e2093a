/* sysfs/smaps: the sums, against sums made by other means and against what was put into memory. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/smaps.h"

#include <sys/stat.h>

#include "tests/unit/fixture.h"
#include "tests/unit/smaps_naive.h"

static void sum_text(const char *text, struct smaps_sum *sum)
{
	struct smaps_parser parser = { 0 };

	memset(sum, 0, sizeof(*sum));
	ck_assert_int_eq(smaps_parse(&parser, text, strlen(text), smaps_add, sum), 0);
	ck_assert_int_eq(smaps_finish(&parser, smaps_add, sum), 0);
}

#define CODE "1000-9000 r-xp 00000000 fe:01 7 /bin/x\n"
#define DATA "9000-f000 rw-p 00000000 00:00 0 \n"

/* The definitions: code is what is executable, and total is the sum of the four. */
START_TEST(definitions)
{
	struct smaps_sum sum;

	sum_text(CODE "Rss: 1000 kB\nPss: 900 kB\nShared_Clean: 1 kB\nShared_Dirty: 2 "
		      "kB\nPrivate_Clean: 30 kB\n"
		      "Private_Dirty: 400 kB\n" DATA
		      "Rss: 5 kB\nPss: 6 kB\nShared_Clean: 5000 kB\nShared_Dirty: 60000 "
		      "kB\nPrivate_Clean: 700000 kB\nPrivate_Dirty: 8000000 kB\nAnonymous: 3 "
		      "kB\nSwap: 9 kB\n"
		      "VmFlags: rd wr mg \n",
		&sum);
	ck_assert_uint_eq(sum.areas, 2);
	ck_assert_uint_eq(sum.mergeable_areas, 1);
	ck_assert_uint_eq(sum.code_private_kib, 430);
	ck_assert_uint_eq(sum.code_shared_kib, 3);
	ck_assert_uint_eq(sum.data_private_kib, 8700000);
	ck_assert_uint_eq(sum.data_shared_kib, 65000);
	ck_assert_uint_eq(sum.rss_kib, 1005);
	ck_assert_uint_eq(sum.pss_kib, 906);
	ck_assert_uint_eq(sum.uss_kib, 8700430);
	ck_assert_uint_eq(sum.dirty_kib, 8060402);
	ck_assert_uint_eq(sum.anonymous_kib, 3);
	ck_assert_uint_eq(sum.swap_kib, 9);
	ck_assert_uint_eq(sum.huge_kib, 0);
	ck_assert_uint_eq(sum.ksm_kib, 0);
	ck_assert_uint_eq(sum.saved_kib, 0);
}
END_TEST

/* Private_Hugetlb is not in Rss, and larger; two page sizes in one process. */
START_TEST(huge)
{
	struct smaps_sum sum;

	sum_text("40000000-80000000 rw-p 00000000 00:0f 5 /anon_hugepage (deleted)\nSize: 1048576 "
		 "kB\n"
		 "KernelPageSize: 1048576 kB\nRss: 0 kB\nPss: 0 kB\nPrivate_Dirty: 0 "
		 "kB\nAnonHugePages: 0 kB\n"
		 "Private_Hugetlb: 1048576 kB\nKSM: 0 kB\n"
		 "90000000-90400000 rw-p 00000000 00:10 6 /anon_hugepage "
		 "(deleted)\nKernelPageSize: 2048 kB\n"
		 "Rss: 0 kB\nPss: 0 kB\nPrivate_Dirty: 0 kB\nShared_Hugetlb: 2048 "
		 "kB\nPrivate_Hugetlb: 2048 kB\n"
		 "a0000000-a0400000 rw-p 00000000 00:00 0 \nRss: 4096 kB\nPss: 4096 "
		 "kB\nPrivate_Dirty: 4096 kB\n"
		 "AnonHugePages: 4096 kB\nShmemPmdMapped: 10 kB\nFilePmdMapped: 5 kB\n",
		&sum);
	ck_assert_uint_eq(sum.huge_kib, 1048576 + 4096 + 4096 + 15);
	ck_assert_uint_eq(sum.rss_kib, 4096);
	ck_assert_uint_eq(sum.data_private_kib, 4096);
	ck_assert_uint_eq(sum.saved_kib, 0);
}
END_TEST

static void expect_saved(unsigned rss, unsigned pss, unsigned ksm, unsigned want)
{
	struct smaps_sum sum;
	char text[256];

	snprintf(text, sizeof(text), DATA "Rss: %u kB\nPss: %u kB\nKSM: %u kB\n", rss, pss, ksm);
	sum_text(text, &sum);
	ck_assert_msg(sum.saved_kib == want, "rss %u pss %u ksm %u: %u", rss, pss, ksm,
		(unsigned)sum.saved_kib);
}

START_TEST(saved)
{
	struct smaps_sum sum;

	expect_saved(100, 60, 80, 40); /* 80 KiB merged, each mapped twice */
	expect_saved(100, 100, 0, 0);
	expect_saved(100, 20, 0, 0);   /* shared, but not by merging */
	expect_saved(100, 20, 30, 30); /* never more than what is merged */
	expect_saved(100, 110, 30, 0); /* never negative */
	expect_saved(0, 0, 30, 0);
	/* per area: what is shared in one does not count as saved in another */
	sum_text(DATA "Rss: 100 kB\nPss: 0 kB\nKSM: 0 kB\n" DATA
		      "Rss: 100 kB\nPss: 100 kB\nKSM: 50 kB\n",
		&sum);
	ck_assert_uint_eq(sum.saved_kib, 0);
	/* the kernel does not tell KSM pages */
	sum_text(DATA "Rss: 100 kB\nPss: 50 kB\n", &sum);
	ck_assert_uint_eq(sum.saved_kib, 0);
	ck_assert(!(sum.seen & 1u << SMAPS_KSM));
}
END_TEST

START_TEST(seen)
{
	struct smaps_sum sum;

	sum_text(DATA "Rss: 100 kB\n" DATA "Pss: 50 kB\n" DATA, &sum);
	ck_assert_uint_eq(sum.areas, 3);
	ck_assert_uint_eq(sum.seen, 1u << SMAPS_RSS | 1u << SMAPS_PSS);
}
END_TEST

/* No kernel says so, a captured tree may: a sum that is too big must not pass for a small one. */
START_TEST(overflow)
{
	struct smaps_sum sum;

	sum_text(DATA "Rss: 18446744073709551615 kB\nPrivate_Dirty: 18446744073709551615 kB\n" DATA
		      "Rss: 18446744073709551615 kB\nPrivate_Dirty: 10 kB\nPrivate_Clean: "
		      "18446744073709551610 kB\n",
		&sum);
	if (sum.seen & 1u << SMAPS_RSS)
		ck_assert_uint_gt(sum.rss_kib, UINT64_C(1) << 50);
	if (sum.seen & 1u << SMAPS_PRIVATE_CLEAN && sum.seen & 1u << SMAPS_PRIVATE_DIRTY)
		ck_assert_uint_gt(sum.data_private_kib, UINT64_C(1) << 50);
}
END_TEST

/* --- captured --- */

static void open_role(const char *tree, const char *role, struct proc *proc)
{
	struct root root;

	fixture_root(tree, &root);
	ck_assert_int_eq(proc_open(proc, &root, (pid_t)fixture_number(tree, role, "pid")), 0);
	root_close(&root);
}

static const char *const roles[] = { "twin_a", "twin_b", "inner", "optin", "leaderless", "mapper",
	"plain", "hostile" };

static void sum_role(const char *tree, const char *role, struct smaps_sum *sum)
{
	struct proc proc;

	open_role(tree, role, &proc);
	memset(sum, 0, sizeof(*sum));
	ck_assert_int_eq(smaps_read(&proc, smaps_add, sum), 0);
	proc_close(&proc);
}

/* smaps of a role; of a leaderless one that of its other thread. */
static void role_path(const char *tree, const char *role, char *path, size_t size)
{
	long long pid = fixture_number(tree, role, "pid");
	glob_t found;
	struct stat st;

	snprintf(path, size, "%s/proc/%lld/smaps", tree, pid);
	ck_assert_int_eq(stat(path, &st), 0);
	if (st.st_size)
		return;
	snprintf(path, size, "%s/proc/%lld/task/*/smaps", tree, pid);
	ck_assert_int_eq(glob(path, 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		ck_assert_int_eq(stat(found.gl_pathv[i], &st), 0);
		if (st.st_size)
			snprintf(path, size, "%s", found.gl_pathv[i]);
	}
	globfree(&found);
}

static void check_sums(const char *tree)
{
	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++) {
		struct smaps_sum got, want;
		char path[PATH_MAX];

		sum_role(tree, roles[i], &got);
		role_path(tree, roles[i], path, sizeof(path));
		naive_file(path, &want);
		ck_assert_uint_gt(want.areas, 5);
		ck_assert_uint_gt(want.rss_kib, 0);
		naive_expect(path, &got, &want);
	}
}

START_TEST(captured_sums)
{
	fixture_each(check_sums);
}
END_TEST

/* The roles know what they wrote, and the kernel merged all of it that is equal. */
static void check_contents(const char *tree)
{
	uint64_t page_kib = (uint64_t)fixture_number(tree, "", "page_size") / 1024;
	uint64_t all_saved = 0;
	unsigned all_areas = 0;
	bool counts = fixture_since(tree, 6, 7);

	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++) {
		struct smaps_sum sum;
		uint64_t equal = (uint64_t)fixture_number(tree, roles[i], "equal_pages");
		uint64_t same = (uint64_t)fixture_number(tree, roles[i], "same_pages");
		uint64_t unique = (uint64_t)fixture_number(tree, roles[i], "unique_pages");
		bool registered = fixture_number(tree, roles[i], "registered");

		sum_role(tree, roles[i], &sum);
		ck_assert_msg((sum.mergeable_areas > 0) == registered, "%s: %s", tree, roles[i]);
		ck_assert_uint_ge(sum.anonymous_kib, (equal + same + unique) * page_kib);
		if (!counts)
			continue;
		ck_assert(sum.seen & 1u << SMAPS_KSM);
		ck_assert_uint_eq(sum.ksm_kib, registered ? (equal + same) * page_kib : 0);
		ck_assert_uint_le(sum.saved_kib, sum.ksm_kib);
		all_saved += sum.saved_kib;
		all_areas += sum.mergeable_areas;
	}
	if (!counts)
		return;
	/* The saving adds up to the kernel's; Pss is rounded down in each area. */
	uint64_t sharing_kib = (uint64_t)fixture_number(tree, "", "pages_sharing") * page_kib;
	ck_assert_msg(all_saved >= sharing_kib && all_saved <= sharing_kib + all_areas,
		"%s: %llu for %llu", tree, (unsigned long long)all_saved,
		(unsigned long long)sharing_kib);
}

START_TEST(captured_contents)
{
	fixture_each(check_contents);
}
END_TEST

static int find_odd(const struct smaps_area *area, void *data)
{
	unsigned *found = data;

	if (strstr(area->name, "\\012") && strstr(area->name, "12 kB"))
		*found |= 1;
	if (strstr(area->name, "ksm capture gone (deleted)"))
		*found |= 2;
	if (area->bits & SMAPS_MAYSHARE && !(area->bits & SMAPS_MERGEABLE))
		*found |= 4;
	if (!strcmp(area->name, "[stack]") && area->bits & SMAPS_WRITE)
		*found |= 8;
	if (area->bits & SMAPS_MAYSHARE && area->bits & SMAPS_MERGEABLE)
		*found |= 16;
	return 0;
}

static void check_mapper(const char *tree)
{
	struct proc proc;
	unsigned found = 0;

	open_role(tree, "mapper", &proc);
	ck_assert_int_eq(smaps_read(&proc, find_odd, &found), 0);
	ck_assert_msg(found == 15, "%s: %u", tree, found);
	proc_close(&proc);
}

START_TEST(captured_odd_areas)
{
	fixture_each(check_mapper);
}
END_TEST

/* Their map is empty, which is no error: so smaps.h has it. */
static void check_kernel_threads(const char *tree)
{
	static const char *const names[] = { "ksmd", "kthreadd" };
	struct proc proc;
	struct smaps_sum sum = { 0 };

	for (int i = 0; i < 2; i++) {
		open_role(tree, names[i], &proc);
		ck_assert_int_eq(smaps_read(&proc, smaps_add, &sum), 0);
		ck_assert_uint_eq(sum.areas, 0);
		proc_close(&proc);
	}
}

START_TEST(captured_kernel_threads)
{
	fixture_each(check_kernel_threads);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("smaps_sum");
	TCase *tcase = tcase_create("smaps_sum");

	tcase_add_test(tcase, definitions);
	tcase_add_test(tcase, huge);
	tcase_add_test(tcase, saved);
	tcase_add_test(tcase, seen);
	tcase_add_test(tcase, overflow);
	tcase_add_test(tcase, captured_sums);
	tcase_add_test(tcase, captured_contents);
	tcase_add_test(tcase, captured_odd_areas);
	tcase_add_test(tcase, captured_kernel_threads);
	suite_add_tcase(suite, tcase);
	return tap_run(suite);
}
