/* sysfs/proc and sysfs/ksmd: texts of every syntax and hostile ones, and small trees made of them. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/proc.h"

#include <errno.h>

#include "sysfs/ksmd.h"
#include "tests/unit/temp.h"

/* Fields 3 to 24 of stat and some behind. */
#define STAT_REST \
	"S 1 2 3 0 -1 4194304 101 102 103 104 105 106 107 108 20 0 9 0 110 111 112 113 0\n"

static int parse_stat(const char *text, size_t len, struct proc_stat *stat)
{
	char *copy = malloc(len ? len : 1); /* without a NUL */
	memset(stat, 0xa5, sizeof(*stat));
	struct proc_stat before = *stat;
	memcpy(copy, text, len);
	int err = proc_parse_stat(copy, len, stat);
	free(copy);
	if (err)
		ck_assert_mem_eq(stat, &before, sizeof(before));
	return err;
}

static void expect_comm(const char *comm, const char *want)
{
	struct proc_stat stat;
	char text[512];

	int len = snprintf(text, sizeof(text), "42 (%s) " STAT_REST, comm);
	ck_assert_msg(!parse_stat(text, (size_t)len, &stat), "%s", text);
	ck_assert_str_eq(stat.comm, want);
	ck_assert_int_eq(stat.state, 'S');
	ck_assert_int_eq(stat.ppid, 1);
	ck_assert_int_eq(stat.threads, 9);
	ck_assert(!stat.kernel_thread);
	ck_assert_uint_eq(stat.minflt, 101);
	ck_assert_uint_eq(stat.majflt, 103);
	ck_assert_uint_eq(stat.utime_ticks, 105);
	ck_assert_uint_eq(stat.stime_ticks, 106);
	ck_assert_uint_eq(stat.start_ticks, 110);
	ck_assert_uint_eq(stat.rss_pages, 112);
}

START_TEST(stat_comm)
{
	static const char *const names[] = { "cat", "", "a) R (b", ")", "(", "))))", ") (", "a b c",
		"\x1b[31mred\x1b[0m", "two\nlines", "\n", "\xff\xfe", "tab\tbed", "1 (x) S 2 3",
		"kworker/u8:1-events_unbound",
		"123456789012345678901234567890123456789012345678901234567890123" };
	char name[301], cut[PROC_COMM_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		expect_comm(names[i], names[i]);
	/* longer than any kernel makes it: cut, with its NUL */
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	memset(cut, 'x', sizeof(cut) - 1);
	cut[sizeof(cut) - 1] = '\0';
	expect_comm(name, cut);
	name[PROC_COMM_MAX] = '\0';
	expect_comm(name, cut);
}
END_TEST

START_TEST(stat_hostile)
{
	static const char *const texts[] = { "", "\n", "42", "42 (", "42 )",
		"42 ) cat ( " STAT_REST, "42 cat " STAT_REST, "42 (cat)", "42 (cat) ", "42 (cat) S",
		"42 (cat) S x 2 3 0 -1 5 1",
		"42 (cat) S 1 2 3 0 -1 4194304 101 102 103 104 105 106 107 108 20 0 9 0 110 111" };
	struct proc_stat stat;
	char text[2048];

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		ck_assert_msg(
			parse_stat(texts[i], strlen(texts[i]), &stat) == -EINVAL, "%s", texts[i]);
	/* cut anywhere before the last field that is needed */
	int len = snprintf(text, sizeof(text), "42 (a) R (b) " STAT_REST);
	size_t needed = (size_t)(strstr(text, " 112 ") + 1 - text);
	for (size_t cut = 0; cut <= needed; cut++)
		ck_assert_int_eq(parse_stat(text, cut, &stat), -EINVAL);
	ck_assert_int_eq(parse_stat(text, (size_t)len, &stat), 0);
	/* endless */
	memset(text + len, '1', sizeof(text) - (size_t)len);
	ck_assert_int_eq(parse_stat(text, sizeof(text), &stat), -EINVAL);
}
END_TEST

START_TEST(stat_big_numbers)
{
	struct proc_stat stat;
	const char *text =
		"4194304 (x) Z 4194303 2 3 0 -1 2129984 18446744073709551615 0 9999999999 0 "
		"18446744073709551615 3000000000 0 0 20 0 2000000000 0 18446744073709551614 0 "
		"4503599627370496 0\n";

	ck_assert_int_eq(parse_stat(text, strlen(text), &stat), 0);
	ck_assert_int_eq(stat.state, 'Z');
	ck_assert(stat.kernel_thread);
	ck_assert_int_eq(stat.ppid, 4194303);
	ck_assert_uint_eq(stat.minflt, UINT64_MAX);
	ck_assert_uint_eq(stat.majflt, UINT64_C(9999999999));
	ck_assert_uint_eq(stat.utime_ticks, UINT64_MAX);
	ck_assert_uint_eq(stat.stime_ticks, UINT64_C(3000000000));
	ck_assert_int_eq(stat.threads, 2000000000);
	ck_assert_uint_eq(stat.start_ticks, UINT64_MAX - 1);
	ck_assert_uint_eq(stat.rss_pages, UINT64_C(1) << 52);
}
END_TEST

static void expect_uid(const char *text, int want_err, uid_t want)
{
	size_t len = strlen(text);
	char *copy = malloc(len ? len : 1);
	uid_t uid = 77;
	memcpy(copy, text, len);
	int err = proc_parse_uid(copy, len, &uid);
	free(copy);
	ck_assert_msg(err == want_err, "%d: %s", err, text);
	ck_assert_uint_eq(uid, err ? 77 : want);
}

START_TEST(status_uid)
{
	expect_uid("Name:\tcat\nUid:\t1000\t1001\t1002\t1003\nGid:\t5\t5\t5\t5\n", 0, 1001);
	expect_uid("Name:\tcat\nUid:\t0\t4294967294\t0\t0", 0, 4294967294u);
	expect_uid("Name:\tcat\nUid:\t0\t0\t0\t0\n", 0, 0);
	/* a name that plays the line: the kernel writes its newline as \n */
	expect_uid("Name:\tx\\nUid:\t0\t0\t0\t0\nUmask:\t0022\nUid:\t5\t6\t7\t8\n", 0, 6);
	expect_uid("", -EINVAL, 0);
	expect_uid("Name:\tUid:\t1\t2\n", -EINVAL, 0);
	expect_uid("Name:\tcat\nUid:", -EINVAL, 0);
	expect_uid("Name:\tcat\nUid:\t5", -EINVAL, 0);
	expect_uid("Name:\tcat\nUid:\tx\ty\n", -EINVAL, 0);
	expect_uid("Name:\tcat\nUid:\t5\nGid:\t6\t7\n", -EINVAL, 0);
	expect_uid("Name:\tcat\nuid:\t5\t6\n", -EINVAL, 0);
}
END_TEST

START_TEST(status_locked)
{
	static const char good[] =
		"Name:\tx\nVmLck:\t      64 kB\nVmPin:\t    4096 kB\nVmHWM:\t 1 kB\n";
	static const char *const bad[] = { "", "VmLck:\t 1 kB\n", "VmPin:\t 1 kB\n",
		"VmLck:\t x kB\nVmPin:\t 1 kB\n" };
	struct proc_locked locked = { 7, 8 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		ck_assert_int_lt(proc_parse_locked(bad[i], strlen(bad[i]), &locked), 0);
		ck_assert(locked.locked_kib == 7 && locked.pinned_kib == 8);
	}
	ck_assert_int_eq(proc_parse_locked(good, strlen(good), &locked), 0);
	ck_assert_int_eq(locked.locked_kib, 64);
	ck_assert_int_eq(locked.pinned_kib, 4096);
}
END_TEST

static int parse_ksm(const char *text, struct proc_ksm *ksm)
{
	size_t len = strlen(text);
	char *copy = malloc(len ? len : 1);
	memset(ksm, 0xa5, sizeof(*ksm));
	struct proc_ksm before = *ksm;
	memcpy(copy, text, len);
	int err = proc_parse_ksm_stat(copy, len, ksm);
	free(copy);
	if (err)
		ck_assert_mem_eq(ksm, &before, sizeof(before));
	return err;
}

START_TEST(ksm_stat_syntaxes)
{
	struct proc_ksm ksm;

	ck_assert_int_eq(parse_ksm("ksm_rmap_items 1280\n", &ksm), 0); /* 6.1 */
	ck_assert_uint_eq(ksm.present, PROC_KSM_RMAP_ITEMS);
	ck_assert_int_eq(ksm.rmap_items, 1280);

	ck_assert_int_eq(
		parse_ksm(
			"ksm_rmap_items 3000000000\nksm_zero_pages 7\nksm_merging_pages 5\n"
			"ksm_process_profit -123456789012\nksm_merge_any: yes\nksm_mergeable: no\n",
			&ksm),
		0);
	ck_assert_uint_eq(ksm.present, 0x3f);
	ck_assert_int_eq(ksm.rmap_items, INT64_C(3000000000));
	ck_assert_int_eq(ksm.zero_pages, 7);
	ck_assert_int_eq(ksm.merging_pages, 5);
	ck_assert_int_eq(ksm.profit_bytes, INT64_C(-123456789012));
	ck_assert(ksm.merge_any);
	ck_assert(!ksm.mergeable);
	/* the other way round, and no newline at the end */
	ck_assert_int_eq(
		parse_ksm("ksm_rmap_items: 1\nksm_merge_any no\nksm_mergeable yes", &ksm), 0);
	ck_assert_uint_eq(
		ksm.present, PROC_KSM_RMAP_ITEMS | PROC_KSM_MERGE_ANY | PROC_KSM_MERGEABLE);
	ck_assert(!ksm.merge_any);
	ck_assert(ksm.mergeable);
}
END_TEST

START_TEST(ksm_stat_odd)
{
	struct proc_ksm ksm;

	/* a passing negative is no negative count */
	ck_assert_int_eq(parse_ksm("ksm_zero_pages -3\n", &ksm), 0);
	ck_assert_uint_eq(ksm.present, PROC_KSM_ZERO);
	ck_assert_int_eq(ksm.zero_pages, 0);
	/* lines of later kernels, names that only start alike, and values that are none: not present */
	ck_assert_int_eq(parse_ksm("\nksm_new_thing 5\nksm_zero_pages_of_late 6\nksm_rmap_items x\n"
				   "ksm_merging_pages\nksm_process_profit 99999999999999999999\n"
				   "ksm_merge_any: maybe\nksm_mergeable: yes\n",
				 &ksm),
		0);
	ck_assert_uint_eq(ksm.present, PROC_KSM_MERGEABLE);
	ck_assert(ksm.mergeable);
	ck_assert_int_eq(parse_ksm("", &ksm), -EINVAL);
	ck_assert_int_eq(parse_ksm("\n", &ksm), -EINVAL);
	ck_assert_int_eq(parse_ksm("ksm_rmap_items", &ksm), -EINVAL);
	ck_assert_int_eq(parse_ksm("ksm_rmap_items \n", &ksm), -EINVAL);
	ck_assert_int_eq(parse_ksm("ksm_merge_any: yess\n", &ksm), -EINVAL);
	ck_assert_int_eq(parse_ksm("entirely unknown 5\n", &ksm), -EINVAL);
}
END_TEST

static void open_temp(struct proc *proc, const char *tree, pid_t pid)
{
	struct root root;

	temp_root(&root, tree);
	ck_assert_int_eq(proc_open(proc, &root, pid), 0);
	root_close(&root);
}

START_TEST(ksm_stat_files)
{
	struct proc proc;
	struct proc_ksm ksm;

	/* 6.1: the pages stand in a file of their own */
	temp_put("k/proc/61/ksm_stat", "ksm_rmap_items 9\n");
	temp_put("k/proc/61/ksm_merging_pages", "5\n");
	open_temp(&proc, "k", 61);
	ck_assert_int_eq(proc_read_ksm_stat(&proc, &ksm), 0);
	ck_assert_uint_eq(ksm.present, PROC_KSM_RMAP_ITEMS | PROC_KSM_MERGING);
	ck_assert_int_eq(ksm.merging_pages, 5);
	proc_close(&proc);
	/* 5.19: nothing else */
	temp_put("k/proc/519/ksm_merging_pages", "6\n");
	open_temp(&proc, "k", 519);
	ck_assert_int_eq(proc_read_ksm_stat(&proc, &ksm), 0);
	ck_assert_uint_eq(ksm.present, PROC_KSM_MERGING);
	ck_assert_int_eq(ksm.merging_pages, 6);
	proc_close(&proc);
	/* before: not known, which is not 0 */
	temp_put("k/proc/5/comm", "old\n");
	open_temp(&proc, "k", 5);
	ck_assert_int_eq(proc_read_ksm_stat(&proc, &ksm), -ENOENT);
	proc_close(&proc);
	/* a kernel thread or a zombie */
	temp_put("k/proc/7/ksm_stat", "");
	temp_put("k/proc/7/ksm_merging_pages", "");
	open_temp(&proc, "k", 7);
	ck_assert_int_eq(proc_read_ksm_stat(&proc, &ksm), 0);
	ck_assert_uint_eq(ksm.present, 0);
	proc_close(&proc);
	/* unreadable */
	temp_put("k/proc/8/ksm_stat/x", "");
	open_temp(&proc, "k", 8);
	ck_assert_int_eq(proc_read_ksm_stat(&proc, &ksm), -EISDIR);
	proc_close(&proc);
	ck_assert_int_eq(proc.fd, -1);
	proc_close(&proc);
}
END_TEST

START_TEST(walk_names)
{
	struct root root;
	struct proc_walk walk;
	struct proc proc;
	unsigned seen = 0;

	temp_put("w/proc/1/comm", "");
	temp_put("w/proc/12/comm", "");
	temp_put("w/proc/4194304/comm", "");
	temp_put("w/proc/0/comm", "");
	temp_put("w/proc/-5/comm", "");
	temp_put("w/proc/12x/comm", "");
	temp_put("w/proc/self/comm", "");
	temp_put("w/proc/99999999999999999999/comm", "");
	temp_put("w/proc/4294967297/comm", ""); /* 1, if it were cut to an int */
	temp_put("w/proc/meminfo", "");
	temp_root(&root, "w");
	ck_assert_int_eq(proc_walk_open(&walk, &root), 0);
	int more;
	while ((more = proc_walk_next(&walk, &proc)) == 1) {
		unsigned bit = proc.pid == 1 ? 1 : proc.pid == 12 ? 2 : proc.pid == 4194304 ? 4 : 8;
		ck_assert_uint_eq(seen & bit, 0);
		seen |= bit;
		ck_assert_int_eq(faccessat(proc.fd, "comm", F_OK, 0), 0);
		proc_close(&proc);
	}
	ck_assert_int_eq(more, 0);
	ck_assert_uint_eq(seen, 7);
	proc_walk_close(&walk);
	proc_walk_close(&walk);
	ck_assert_int_eq(proc_open(&proc, &root, 13), -ESRCH);
	root_close(&root);
	mkdirat(temp_fd, "bare", 0755);
	temp_root(&root, "bare");
	ck_assert_int_eq(proc_walk_open(&walk, &root), -ENOENT);
	root_close(&root);
}
END_TEST

#define KSMD_STAT(name, flags) \
	"77 (" name ") S 2 0 0 0 -1 " flags " 0 0 0 0 30 70 0 0 25 5 1 0 5 0 0 0\n"

static void expect_ksmd_cpu(const char *tree, uint64_t want)
{
	struct root root;
	struct ksmd ksmd;
	uint64_t cpu_ns;

	temp_root(&root, tree);
	ck_assert_int_eq(ksmd_open(&ksmd, &root), 0);
	ck_assert_int_eq(ksmd.pid, 77);
	ck_assert_int_eq(ksmd_cpu_ns(&ksmd, &cpu_ns), 0);
	ck_assert_uint_eq(cpu_ns, want);
	ksmd_close(&ksmd);
	root_close(&root);
}

START_TEST(ksmd_other_kernels)
{
	struct root root;
	struct ksmd ksmd;
	uint64_t tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);

	/* a program that calls itself so is none */
	temp_put("d/proc/50/stat", KSMD_STAT("ksmd", "4194304"));
	temp_put("d/proc/51/stat", KSMD_STAT("ksmd_x", "2129984"));
	temp_put("d/proc/52/stat", "garbage");
	temp_put("d/proc/53/comm", "no stat\n");
	temp_root(&root, "d");
	ck_assert_int_eq(ksmd_open(&ksmd, &root), -ESRCH);
	ck_assert_int_eq(ksmd.fd, -1);
	root_close(&root);

	temp_put("d/proc/77/stat", KSMD_STAT("ksmd", "2129984"));
	expect_ksmd_cpu("d", 100 * tick_ns);
	temp_put("d/proc/77/schedstat", "31333776589 9502590298 15026\n");
	expect_ksmd_cpu("d", UINT64_C(31333776589));
	/* what a kernel says that does not account for it, and ksmd has run for 100 ticks */
	temp_put("d/proc/77/schedstat", "0 0 0\n");
	expect_ksmd_cpu("d", 100 * tick_ns);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("proc");
	TCase *tcase = temp_case(suite, "proc");

	tcase_add_test(tcase, stat_comm);
	tcase_add_test(tcase, stat_hostile);
	tcase_add_test(tcase, stat_big_numbers);
	tcase_add_test(tcase, status_uid);
	tcase_add_test(tcase, status_locked);
	tcase_add_test(tcase, ksm_stat_syntaxes);
	tcase_add_test(tcase, ksm_stat_odd);
	tcase_add_test(tcase, ksm_stat_files);
	tcase_add_test(tcase, walk_names);
	tcase_add_test(tcase, ksmd_other_kernels);
	return tap_run(suite);
}
