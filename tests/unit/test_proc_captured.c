/* sysfs/proc and sysfs/ksmd on trees captured from kernels. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/proc.h"

#include "sysfs/ksmd.h"
#include "tests/unit/fixture.h"

static const char *const roles[] = { "twin_a", "twin_b", "inner", "optin", "leaderless", "mapper",
	"plain", "hostile" };

static void open_role(const char *tree, const char *role, struct proc *proc)
{
	struct root root;

	fixture_root(tree, &root);
	ck_assert_int_eq(proc_open(proc, &root, (pid_t)fixture_number(tree, role, "pid")), 0);
	root_close(&root);
}

static void check_role(const char *tree, const char *role)
{
	struct proc proc;
	struct proc_stat stat;
	struct proc_ksm ksm;
	char key[64], comm[64];
	uid_t uid;
	bool has_leader = strcmp(role, "leaderless") != 0;

	snprintf(key, sizeof(key), "%s.comm", role);
	ck_assert(fixture_text(tree, key, comm, sizeof(comm)));
	open_role(tree, role, &proc);
	ck_assert_int_eq(proc_read_stat(&proc, &stat), 0);
	ck_assert_str_eq(stat.comm, comm);
	ck_assert(!stat.kernel_thread);
	ck_assert_int_gt(stat.ppid, 0);
	ck_assert_int_eq(stat.state, has_leader ? 'S' : 'Z');
	ck_assert_int_eq(stat.threads, has_leader ? 1 : 2);
	ck_assert_uint_gt(stat.start_ticks, 0);
	ck_assert_int_eq(proc_read_uid(&proc, &uid), 0);
	ck_assert_int_eq(uid, fixture_number(tree, role, "uid"));

	ck_assert_int_eq(proc_read_ksm_stat(&proc, &ksm), 0);
	ck_assert_msg(ksm.present & PROC_KSM_MERGING, "%s: %s: pages not known", tree, role);
	bool registered = fixture_number(tree, role, "registered");
	long long merged = registered ? fixture_number(tree, role, "equal_pages") +
						fixture_number(tree, role, "same_pages")
				      : 0;
	ck_assert_int_eq(ksm.merging_pages, merged);
	ck_assert(ksm.present & PROC_KSM_RMAP_ITEMS);
	ck_assert_int_ge(ksm.rmap_items, merged);
	if (ksm.present & PROC_KSM_ZERO)
		ck_assert_int_eq(ksm.zero_pages, fixture_number(tree, role, "zero_pages"));
	if (ksm.present & PROC_KSM_MERGE_ANY)
		ck_assert_int_eq(ksm.merge_any, fixture_number(tree, role, "merge_any"));
	if (ksm.present & PROC_KSM_MERGEABLE)
		ck_assert_int_eq(ksm.mergeable, registered);
	ck_assert_int_eq((ksm.present & PROC_KSM_PROFIT) != 0, fixture_since(tree, 6, 4));
	ck_assert_int_eq((ksm.present & PROC_KSM_ZERO) != 0, fixture_since(tree, 6, 6));
	proc_close(&proc);
}

static void check_roles(const char *tree)
{
	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++) {
		if (strcmp(roles[i], "leaderless") != 0)
			check_role(tree, roles[i]);
	}
}

START_TEST(captured)
{
	fixture_each(check_roles);
}
END_TEST

/* Its files are empty, those of its other threads are not. */
static void check_leaderless(const char *tree)
{
	check_role(tree, "leaderless");
}

START_TEST(captured_leaderless)
{
	fixture_each(check_leaderless);
}
END_TEST

static void check_kernel_threads(const char *tree)
{
	static const char *const names[] = { "ksmd", "kthreadd" };
	struct proc proc;
	struct proc_stat stat;
	struct proc_ksm ksm;

	for (int i = 0; i < 2; i++) {
		open_role(tree, names[i], &proc);
		ck_assert_int_eq(proc_read_stat(&proc, &stat), 0);
		ck_assert_str_eq(stat.comm, names[i]);
		ck_assert(stat.kernel_thread);
		ck_assert_int_eq(proc_read_ksm_stat(&proc, &ksm), 0);
		ck_assert_uint_eq(ksm.present, 0);
		proc_close(&proc);
	}
}

static void check_walk(const char *tree)
{
	struct root root;
	struct proc_walk walk;
	struct proc proc;
	int more, count = 0;

	fixture_root(tree, &root);
	ck_assert_int_eq(proc_walk_open(&walk, &root), 0);
	while ((more = proc_walk_next(&walk, &proc)) == 1) {
		count++;
		proc_close(&proc);
	}
	ck_assert_int_eq(more, 0);
	ck_assert_int_eq(count, 8 + 2); /* roles and kernel threads */
	proc_walk_close(&walk);
	root_close(&root);
}

START_TEST(captured_kernel_threads)
{
	fixture_each(check_kernel_threads);
	fixture_each(check_walk);
}
END_TEST

static void check_ksmd(const char *tree)
{
	struct root root;
	struct ksmd ksmd;
	char path[PATH_MAX];
	uint64_t cpu_ns;
	long long want;

	fixture_root(tree, &root);
	ck_assert_int_eq(ksmd_open(&ksmd, &root), 0);
	ck_assert_int_eq(ksmd.pid, fixture_number(tree, "ksmd", "pid"));
	ck_assert_int_eq(ksmd_cpu_ns(&ksmd, &cpu_ns), 0);
	snprintf(path, sizeof(path), "%s/proc/%d/schedstat", tree, (int)ksmd.pid);
	FILE *file = fopen(path, "re");
	ck_assert(file && fscanf(file, "%lld", &want) == 1);
	fclose(file);
	ck_assert_uint_eq(cpu_ns, (uint64_t)want);
	ck_assert_uint_gt(cpu_ns, 1000000);
	ksmd_close(&ksmd);
	ck_assert_int_eq(ksmd.fd, -1);
	ksmd_close(&ksmd);
	root_close(&root);
}

START_TEST(ksmd_captured)
{
	fixture_each(check_ksmd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("proc_captured");
	TCase *tcase = tcase_create("proc_captured");

	tcase_add_test(tcase, captured);
	tcase_add_test(tcase, captured_leaderless);
	tcase_add_test(tcase, captured_kernel_threads);
	tcase_add_test(tcase, ksmd_captured);
	suite_add_tcase(suite, tcase);
	return tap_run(suite);
}
