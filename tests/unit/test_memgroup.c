/* sysfs/memgroup: which group counts memory, and its files of both versions, as kernels write them and not. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/memgroup.h"

#include <errno.h>

#include "tests/unit/temp.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

START_TEST(paths)
{
	static const struct {
		const char *text, *path;
		bool v1;
	} good[] = {
		{ "0::/a/b\n", "/a/b", false },
		{ "0::/", "/", false },
		{ "9:memory:/m\n1:name=systemd:/s\n0::/u\n", "/m", true },
		{ "0::/u\n9:memory:/m\n", "/m", true },
		{ "4:cpu,memory:/m:x\n", "/m:x", true },
		{ "4:cpu:/c\n0::/u\n", "/u", false },
		{ "4:memoryless:/no\n0::/u\n", "/u", false },
		{ "rubbish\n:::\n0::/u\n", "/u", false },
	};
	static const char *const bad[] = { "", "\n", "4:cpu:/c\n", "0::\n", "0::a\n",
		"4:memory:\n" };
	char path[16];
	bool v1;

	for (size_t i = 0; i < COUNT(good); i++) {
		ssize_t len = memgroup_parse_path(
			good[i].text, strlen(good[i].text), path, sizeof(path), &v1);
		ck_assert_msg(len == (ssize_t)strlen(good[i].path), "%zd: %s", len, good[i].text);
		ck_assert_str_eq(path, good[i].path);
		ck_assert_int_eq(v1, good[i].v1);
	}
	strcpy(path, "as before");
	for (size_t i = 0; i < COUNT(bad); i++)
		ck_assert_int_eq(
			memgroup_parse_path(bad[i], strlen(bad[i]), path, sizeof(path), &v1),
			-EINVAL);
	ck_assert_int_eq(memgroup_parse_path("0::/123456789012345\n", 20, path, sizeof(path), &v1),
		-ENAMETOOLONG);
	ck_assert_str_eq(path, "as before");
}
END_TEST

START_TEST(limits)
{
	static const struct {
		const char *text;
		int64_t bytes;
	} good[] = { { "max\n", INT64_MAX }, { "max", INT64_MAX }, { "0\n", 0 },
		{ "1073741824\n", 1073741824 }, { "9223372036854771712\n", INT64_MAX },
		{ "9223372036854710272\n", INT64_MAX } };
	static const char *const bad[] = { "", "\n", "maximum\n", "12 kB\n",
		"99999999999999999999\n" };

	for (size_t i = 0; i < COUNT(good); i++) {
		int64_t bytes = -7;
		ck_assert_int_eq(
			memgroup_parse_limit(good[i].text, strlen(good[i].text), &bytes), 0);
		ck_assert_int_eq(bytes, good[i].bytes);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		int64_t bytes = -7;
		ck_assert_int_lt(memgroup_parse_limit(bad[i], strlen(bad[i]), &bytes), 0);
		ck_assert_int_eq(bytes, -7);
	}
}
END_TEST

static void put(const char *path, const char *text)
{
	temp_write(path, text, strlen(text));
}

START_TEST(groups)
{
	struct memgroup group;
	struct root root;

	ck_assert_int_eq(root_open(&root, temp_path), 0);
	put("sys/fs/cgroup/a/memory.stat", "anon 10485760\nfile 4096\n");
	put("sys/fs/cgroup/a/memory.max", "33554432\n");
	put("sys/fs/cgroup/a/memory.high", "max\n");
	put("sys/fs/cgroup/a/memory.swap.current", "4096\n");
	ck_assert_int_eq(memgroup_read(&root, "/a", false, &group), 0);
	ck_assert_int_eq(group.anon_kib, 10240);
	ck_assert_int_eq(group.limit_kib, 32768);
	ck_assert_int_eq(group.swap_kib, 4);
	put("sys/fs/cgroup/a/memory.high", "16777216\n");
	ck_assert_int_eq(memgroup_read(&root, "/a", false, &group), 0);
	ck_assert_int_eq(group.limit_kib, 16384);

	/* no limit, no swap */
	put("sys/fs/cgroup/b/memory.stat", "anon 4096\n");
	ck_assert_int_eq(memgroup_read(&root, "/b", false, &group), 0);
	ck_assert_int_eq(group.limit_kib, -1);
	ck_assert_int_eq(group.swap_kib, -1);

	put("sys/fs/cgroup/memory/c/memory.stat",
		"rss 1\nswap 1\ntotal_rss 8192\ntotal_swap 2048\n");
	put("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "1048576\n");
	ck_assert_int_eq(memgroup_read(&root, "/c", true, &group), 0);
	ck_assert_int_eq(group.anon_kib, 8);
	ck_assert_int_eq(group.swap_kib, 2);
	ck_assert_int_eq(group.limit_kib, 1024);

	group.anon_kib = -77;
	ck_assert_int_eq(memgroup_read(&root, "/none", false, &group), -ENOENT);
	put("sys/fs/cgroup/d/cgroup.procs", ""); /* the controller is not on here */
	ck_assert_int_eq(memgroup_read(&root, "/d", false, &group), -ENOENT);
	ck_assert_int_eq(group.anon_kib, -77);
	root_close(&root);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memgroup");
	TCase *tcase = temp_case(suite, "memgroup");

	tcase_add_test(tcase, paths);
	tcase_add_test(tcase, limits);
	tcase_add_test(tcase, groups);
	return tap_run(suite);
}
