/* sysfs/proc and sysfs/smaps on living, dying, dead and closed processes. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/proc.h"

#include <errno.h>
#include <sys/mman.h>

#include "sysfs/ksmd.h"
#include "sysfs/smaps.h"
#include "tests/unit/live.h"

static struct root root;

static void open_root(void)
{
	ck_assert_int_eq(root_open(&root, NULL), 0);
}

static void close_root(void)
{
	root_close(&root);
}

START_TEST(self)
{
	struct proc proc;
	struct proc_stat stat;
	uid_t uid;

	prctl(PR_SET_NAME, "a) R (b\x1b\n");
	ck_assert_int_eq(proc_open(&proc, &root, getpid()), 0);
	ck_assert_int_eq(proc_read_stat(&proc, &stat), 0);
	ck_assert_str_eq(stat.comm, "a) R (b\x1b\n");
	ck_assert_int_eq(stat.ppid, getppid());
	ck_assert_int_eq(stat.threads, 1);
	ck_assert_int_eq(stat.state, 'R');
	ck_assert_uint_gt(stat.rss_pages, 0);
	ck_assert_uint_gt(stat.minflt, 0);
	ck_assert_int_eq(proc_read_uid(&proc, &uid), 0);
	ck_assert_uint_eq(uid, geteuid());
	proc_close(&proc);
}
END_TEST

START_TEST(zombie_then_gone)
{
	struct proc proc;
	struct proc_stat stat;
	struct proc_ksm ksm;
	struct smaps_sum sum = { 0 };
	uid_t uid;
	pid_t pid = live_start(NULL, false);

	ck_assert_int_eq(proc_open(&proc, &root, pid), 0);
	kill(pid, SIGKILL);
	live_until(&proc, 'Z');
	ck_assert_int_eq(proc_read_uid(&proc, &uid), 0);
	ck_assert_int_eq(smaps_read(&proc, smaps_add, &sum), 0);
	ck_assert_uint_eq(sum.areas, 0);
	int err = proc_read_ksm_stat(&proc, &ksm);
	/* Without memory its files are root's; before 5.19 there is none. */
	if (!(err == -EACCES && geteuid()) && err != -ENOENT) {
		ck_assert_int_eq(err, 0);
		ck_assert_uint_eq(ksm.present, 0);
	}
	/* The handle stays that process's: nothing is read of whoever gets the number next. */
	waitpid(pid, NULL, 0);
	ck_assert_int_lt(proc_read_stat(&proc, &stat), 0);
	ck_assert_int_lt(proc_read_uid(&proc, &uid), 0);
	ck_assert_int_lt(proc_read_ksm_stat(&proc, &ksm), 0);
	ck_assert_int_eq(smaps_read(&proc, smaps_add, &sum), -ESRCH);
	ck_assert_uint_eq(sum.areas, 0);
	proc_close(&proc);
	ck_assert_int_eq(proc_open(&proc, &root, pid), -ESRCH);
}
END_TEST

#define MARKED_KIB 3000

/* Memory that must be found again. */
static void map_memory(void)
{
	char *p = mmap(NULL, MARKED_KIB * 1024, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);

	if (p == MAP_FAILED)
		_exit(1);
	memset(p, 1, MARKED_KIB * 1024);
}

START_TEST(main_thread_exited)
{
	struct proc proc;
	struct proc_stat stat;
	struct proc_ksm ksm;
	struct smaps_sum sum = { 0 };
	pid_t pid = live_start(map_memory, true);

	ck_assert_int_eq(proc_open(&proc, &root, pid), 0);
	live_until(&proc, 'Z');
	ck_assert_int_eq(proc_read_stat(&proc, &stat), 0);
	ck_assert_int_eq(stat.threads, 2);
	ck_assert_int_eq(smaps_read(&proc, smaps_add, &sum), 0);
	ck_assert_uint_gt(sum.areas, 5);
	ck_assert_uint_ge(sum.rss_kib, MARKED_KIB);
	ck_assert_uint_ge(sum.data_private_kib, MARKED_KIB);
	int err = proc_read_ksm_stat(&proc, &ksm);
	if (err == -ENOENT) {
		tap_skip("this kernel has no ksm_stat");
	} else if (err == -EACCES && geteuid()) {
		tap_skip("ksm_stat of an exited main thread is root's");
	} else {
		ck_assert_int_eq(err, 0);
		ck_assert_msg(ksm.present & PROC_KSM_RMAP_ITEMS,
			"its other thread's ksm_stat is not read");
	}
	proc_close(&proc);
	live_end(pid);
}
END_TEST

START_TEST(kernel_threads)
{
	struct ksmd ksmd;
	struct smaps_sum sum = { 0 };
	uint64_t cpu_ns;
	int err = ksmd_open(&ksmd, &root);

	if (err == -ESRCH) {
		tap_skip("no ksmd to be seen");
		return;
	}
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(ksmd_cpu_ns(&ksmd, &cpu_ns), 0);
	struct proc proc = { .pid = ksmd.pid, .fd = ksmd.fd };
	err = smaps_read(&proc, smaps_add, &sum);
	if (geteuid())
		ck_assert(err == 0 || err == -EACCES);
	else
		ck_assert_int_eq(err, 0);
	ck_assert_uint_eq(sum.areas, 0);
	ksmd_close(&ksmd);
}
END_TEST

/* What is closed to us is an error, never nothing. */
START_TEST(not_ours)
{
	struct proc proc;
	struct proc_ksm ksm;
	struct smaps_sum sum = { 0 };

	if (geteuid()) {
		tap_skip("needs root, to become somebody else");
		return;
	}
	pid_t pid = live_start(NULL, false);
	ck_assert_int_eq(proc_open(&proc, &root, pid), 0);
	ck_assert_int_eq(seteuid(65534), 0);
	int smaps_err = smaps_read(&proc, smaps_add, &sum);
	int ksm_err = proc_read_ksm_stat(&proc, &ksm);
	ck_assert_int_eq(seteuid(0), 0);
	live_end(pid);
	ck_assert_int_eq(smaps_err, -EACCES);
	ck_assert_uint_eq(sum.areas, 0);
	ck_assert(ksm_err == -EACCES || ksm_err == -ENOENT); /* the latter before 5.19 */
	proc_close(&proc);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("proc_live");
	TCase *tcase = tcase_create("proc_live");

	tcase_add_checked_fixture(tcase, open_root, close_root);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, self);
	tcase_add_test(tcase, zombie_then_gone);
	tcase_add_test(tcase, main_thread_exited);
	tcase_add_test(tcase, kernel_threads);
	tcase_add_test(tcase, not_ours);
	suite_add_tcase(suite, tcase);
	return tap_run(suite);
}
