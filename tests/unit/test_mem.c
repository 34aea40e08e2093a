/* sysfs/mem: meminfo, pressure and vmstat, of captured kernels and hostile ones. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/mem.h"

#include <errno.h>

#include "tests/unit/fixture.h"
#include "tests/unit/temp.h"

/* What scanf makes of the first line that starts so; -1 without one. */
static long long naive(const char *tree, const char *file, const char *format)
{
	char path[PATH_MAX], line[256];
	long long value = -1;

	snprintf(path, sizeof(path), "%s/proc/%s", tree, file);
	FILE *stream = fopen(path, "re");
	ck_assert_msg(stream != NULL, "%s", path);
	while (value < 0 && fgets(line, sizeof(line), stream)) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		if (sscanf(line, format, &value) != 1)
			value = -1;
#pragma GCC diagnostic pop
	}
	fclose(stream);
	return value;
}

static void check_info(const char *tree)
{
	struct root root;
	struct mem_info info;

	fixture_root(tree, &root);
	ck_assert_int_eq(mem_read_info(&root, &info), 0);
	ck_assert_int_eq(info.total_kib, naive(tree, "meminfo", "MemTotal: %lld kB"));
	ck_assert_int_eq(info.free_kib, naive(tree, "meminfo", "MemFree: %lld kB"));
	ck_assert_int_eq(info.available_kib, naive(tree, "meminfo", "MemAvailable: %lld kB"));
	ck_assert_int_eq(info.swap_total_kib, naive(tree, "meminfo", "SwapTotal: %lld kB"));
	ck_assert_int_eq(info.swap_free_kib, naive(tree, "meminfo", "SwapFree: %lld kB"));
	ck_assert_uint_gt(info.total_kib, info.free_kib);
	ck_assert_uint_gt(info.free_kib, 0);
	root_close(&root);
}

START_TEST(info_captured)
{
	fixture_each(check_info);
}
END_TEST

static int parse_info(const char *text, struct mem_info *info)
{
	memset(info, 0xa5, sizeof(*info));
	struct mem_info before = *info;
	int err = mem_parse_info(text, strlen(text), info);
	if (err)
		ck_assert_mem_eq(info, &before, sizeof(before));
	return err;
}

START_TEST(info_old_kernels)
{
	struct mem_info info;

	/* before 3.14; and without swap */
	ck_assert_int_eq(parse_info("MemTotal: 1000 kB\nMemFree: 100 kB\nBuffers: 10 kB\n"
				    "Cached: 400 kB\nSwapCached: 999 kB\n",
				 &info),
		0);
	ck_assert_uint_eq(info.total_kib, 1000);
	ck_assert_uint_eq(info.free_kib, 100);
	/* more than what is free, and not more than could be */
	ck_assert_uint_ge(info.available_kib, 100);
	ck_assert_uint_le(info.available_kib, 510);
	ck_assert_uint_eq(info.swap_total_kib, 0);
	ck_assert_uint_eq(info.swap_free_kib, 0);
}
END_TEST

START_TEST(info_hostile)
{
	struct mem_info info;

	ck_assert_int_eq(parse_info("", &info), -EINVAL);
	ck_assert_int_eq(parse_info("MemTotal: 5 kB\n", &info), -EINVAL);
	ck_assert_int_eq(parse_info("MemFree: 5 kB\n", &info), -EINVAL);
	ck_assert_int_eq(parse_info("MemTotal: kB\nMemFree: 5 kB\n", &info), -EINVAL);
	ck_assert_int_eq(parse_info("MemTotal: -5 kB\nMemFree: 5 kB\n", &info), -EINVAL);
	ck_assert_int_eq(
		parse_info("MemTotal: 99999999999999999999 kB\nMemFree: 5 kB\n", &info), -EINVAL);
	ck_assert_int_eq(parse_info(" MemTotal: 5 kB\n MemFree: 5 kB\n", &info), -EINVAL);
	/* 1 EiB is no overflow; unknown lines and lines cut short do no harm */
	ck_assert_int_eq(
		parse_info("\n\nFoo\nMemTotal: 1125899906842624 kB\nMemFree: 3 kB\nMemAvailable: "
			   "2147483648 kB\nSwapTotal: 7",
			&info),
		0);
	ck_assert_uint_eq(info.total_kib, UINT64_C(1) << 50);
	ck_assert_uint_eq(info.available_kib, UINT64_C(1) << 31);
	ck_assert_uint_eq(info.swap_total_kib, 7);
}
END_TEST

/* The resource of the tree, against scanf. */
static void check_pressure_of(const char *tree, const struct root *root, const char *resource)
{
	struct mem_pressure pressure;
	char file[64];

	snprintf(file, sizeof(file), "pressure/%s", resource);
	char path[96];
	snprintf(path, sizeof(path), "proc/%s", file);
	int err = mem_read_pressure(root, resource, &pressure);
	if (!fixture_has(tree, path)) {
		ck_assert_int_eq(err, -ENOENT);
		return;
	}
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(pressure.some_total_us,
		naive(tree, file, "some avg10=%*f avg60=%*f avg300=%*f total=%lld"));
	long long whole = naive(tree, file, "some avg10=%lld.%*d");
	ck_assert_int_eq(pressure.some_avg10_centi / 100, whole);
	ck_assert_int_eq(
		pressure.some_avg10_centi % 100, naive(tree, file, "some avg10=%*d.%2lld"));
	long long full = naive(tree, file, "full avg10=%*f avg60=%*f avg300=%*f total=%lld");
	ck_assert_int_eq(pressure.has_full, full >= 0);
	if (full >= 0)
		ck_assert_int_eq(pressure.full_total_us, full);
}

static void check_pressure(const char *tree)
{
	struct root root;
	struct mem_pressure pressure;

	fixture_root(tree, &root);
	check_pressure_of(tree, &root, "cpu");
	check_pressure_of(tree, &root, "memory");
	check_pressure_of(tree, &root, "io");
	ck_assert_int_eq(mem_read_pressure(&root, "none", &pressure), -ENOENT);
	root_close(&root);
}

START_TEST(pressure_captured)
{
	fixture_each(check_pressure);
}
END_TEST

static int parse_pressure(const char *text, struct mem_pressure *pressure)
{
	memset(pressure, 0xa5, sizeof(*pressure));
	struct mem_pressure before = *pressure;
	size_t len = strlen(text);
	char *copy = malloc(len ? len : 1); /* without a NUL */
	memcpy(copy, text, len);
	int err = mem_parse_pressure(copy, len, pressure);
	free(copy);
	if (err)
		ck_assert_mem_eq(pressure, &before, sizeof(before));
	return err;
}

#define SOME "some avg10=1.23 avg60=4.56 avg300=7.89 total=18446744073709551615\n"
#define FULL "full avg10=100.00 avg60=0.00 avg300=0.00 total=12345678901\n"

START_TEST(pressure_texts)
{
	struct mem_pressure p;

	ck_assert_int_eq(parse_pressure(SOME FULL, &p), 0);
	ck_assert_uint_eq(p.some_avg10_centi, 123);
	ck_assert_uint_eq(p.some_total_us, UINT64_MAX);
	ck_assert(p.has_full);
	ck_assert_uint_eq(p.full_avg10_centi, 10000);
	ck_assert_uint_eq(p.full_total_us, UINT64_C(12345678901));
	/* cpu before 5.13 */
	ck_assert_int_eq(parse_pressure(SOME, &p), 0);
	ck_assert(!p.has_full);
	ck_assert_uint_eq(p.full_avg10_centi, 0);
	/* what a later kernel may add behind */
	ck_assert_int_eq(parse_pressure(SOME FULL "most avg10=9.00\n", &p), 0);
	ck_assert_uint_eq(p.some_avg10_centi, 123);
	ck_assert_int_eq(parse_pressure("some avg10=0.05 avg60=0.00 avg300=0.00 total=1", &p), 0);
	ck_assert_uint_eq(p.some_avg10_centi, 5);
}
END_TEST

START_TEST(pressure_hostile)
{
	static const char *const texts[] = { "", "\n", "some\n", "some \n", FULL,
		"some avg10= avg60=0.00 avg300=0.00 total=1\n",
		"some avg10=x avg60=0.00 avg300=0.00 total=1\n",
		"some avg10=1 avg60=0.00 avg300=0.00 total=1\n",
		"some avg10=101.00 avg60=0.00 avg300=0.00 total=1\n",
		"some avg10=-1.00 avg60=0.00 avg300=0.00 total=1\n",
		"some avg10=1.234 avg60=0.00 avg300=0.00 total=1\n",
		"some avg10=1.00 avg60=0.00 avg300=0.00\n",
		"some avg10=1.00 avg60=0.00 avg300=0.00 total=\n",
		"some avg10=1.00 avg60=0.00 avg300=0.00 total=-1\n",
		SOME "full avg10=x avg60=0.00 avg300=0.00 total=1\n", SOME "full \n" };
	struct mem_pressure p;
	char text[600];

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		ck_assert_msg(parse_pressure(texts[i], &p) == -EINVAL, "case %zu was taken", i);
	/* longer than it can be */
	memset(text, ' ', sizeof(text));
	memcpy(text, SOME, strlen(SOME));
	text[sizeof(text) - 1] = '\0';
	ck_assert_int_eq(parse_pressure(text, &p), -EINVAL);
	/* every shorter piece of a good text is refused, or lacks only digits of the last number */
	const char *last = strrchr(SOME, '=') + 1;
	for (size_t len = 0; len <= (size_t)(last - SOME); len++)
		ck_assert_int_eq(mem_parse_pressure(SOME, len, &p), -EINVAL);
}
END_TEST

static void check_vmstat(const char *tree)
{
	struct root root;
	struct mem_vmstat vmstat;

	fixture_root(tree, &root);
	ck_assert_int_eq(mem_read_vmstat(&root, &vmstat), 0);
	ck_assert_int_eq(vmstat.cow_ksm, naive(tree, "vmstat", "cow_ksm %lld"));
	ck_assert_int_eq(vmstat.ksm_swpin_copy, naive(tree, "vmstat", "ksm_swpin_copy %lld"));
	ck_assert_int_eq(vmstat.thp_split_page, naive(tree, "vmstat", "thp_split_page %lld"));
	ck_assert_int_eq(
		vmstat.thp_collapse_alloc, naive(tree, "vmstat", "thp_collapse_alloc %lld"));
	if (fixture_since(tree, 5, 19)) {
		ck_assert_int_ge(vmstat.cow_ksm, 0);
		ck_assert_int_ge(vmstat.ksm_swpin_copy, 0);
	}
	root_close(&root);
}

START_TEST(vmstat_captured)
{
	fixture_each(check_vmstat);
}
END_TEST

static int parse_vmstat(const char *text, struct mem_vmstat *vmstat)
{
	memset(vmstat, 0xa5, sizeof(*vmstat));
	struct mem_vmstat before = *vmstat;
	int err = mem_parse_vmstat(text, strlen(text), vmstat);
	if (err)
		ck_assert_mem_eq(vmstat, &before, sizeof(before));
	return err;
}

START_TEST(vmstat_texts)
{
	struct mem_vmstat v;

	ck_assert_int_eq(parse_vmstat("nr_free_pages 5\n", &v), 0);
	ck_assert_int_eq(v.cow_ksm, -1);
	ck_assert_int_eq(v.ksm_swpin_copy, -1);
	ck_assert_int_eq(v.thp_split_page, -1);
	ck_assert_int_eq(v.thp_collapse_alloc, -1);
	/* names that only start like it, or end like it */
	ck_assert_int_eq(parse_vmstat("nr_free_pages 5\nthp_split_page_failed 8\nx_cow_ksm 9\n"
				      "cow_ksm_more 7\nthp_split_page 3000000000\ncow_ksm 0",
				 &v),
		0);
	ck_assert_int_eq(v.thp_split_page, INT64_C(3000000000));
	ck_assert_int_eq(v.cow_ksm, 0);
	/* not known is -1, not 0 */
	ck_assert_int_eq(parse_vmstat("nr_free_pages 5\ncow_ksm -3\nksm_swpin_copy x\n"
				      "thp_split_page 18446744073709551615\n"
				      "thp_collapse_alloc 99999999999999999999\n",
				 &v),
		0);
	ck_assert_int_eq(v.cow_ksm, -1);
	ck_assert_int_eq(v.ksm_swpin_copy, -1);
	ck_assert_int_eq(v.thp_split_page, -1);
	ck_assert_int_eq(v.thp_collapse_alloc, -1);
	ck_assert_int_eq(parse_vmstat("", &v), -EINVAL);
	ck_assert_int_eq(parse_vmstat("cow_ksm 5\n", &v), -EINVAL);
}
END_TEST

START_TEST(files_absent)
{
	struct root root;
	struct mem_info info;
	struct mem_pressure pressure;
	struct mem_vmstat vmstat;

	mkdirat(temp_fd, "bare", 0755);
	temp_root(&root, "bare");
	ck_assert_int_eq(mem_read_info(&root, &info), -ENOENT);
	ck_assert_int_eq(mem_read_pressure(&root, "memory", &pressure), -ENOENT);
	ck_assert_int_eq(mem_read_vmstat(&root, &vmstat), -ENOENT);
	root_close(&root);
	/* and empty ones */
	temp_put("empty/proc/meminfo", "");
	temp_put("empty/proc/vmstat", "");
	temp_put("empty/proc/pressure/memory", "");
	temp_root(&root, "empty");
	ck_assert_int_eq(mem_read_info(&root, &info), -EINVAL);
	ck_assert_int_eq(mem_read_pressure(&root, "memory", &pressure), -EINVAL);
	ck_assert_int_eq(mem_read_vmstat(&root, &vmstat), -EINVAL);
	root_close(&root);
}
END_TEST

/* The running kernel fits into the buffers. */
START_TEST(live)
{
	struct root root;
	struct mem_info info;
	struct mem_pressure pressure;
	struct mem_vmstat vmstat;

	ck_assert_int_eq(root_open(&root, NULL), 0);
	ck_assert_int_eq(mem_read_info(&root, &info), 0);
	ck_assert_uint_gt(info.available_kib, 0);
	ck_assert_int_eq(mem_read_vmstat(&root, &vmstat), 0);
	int err = mem_read_pressure(&root, "memory", &pressure);
	if (err == -ENOENT || err == -EOPNOTSUPP)
		tap_skip("this kernel has no pressure information");
	else
		ck_assert_int_eq(err, 0);
	root_close(&root);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mem");
	TCase *tcase = temp_case(suite, "mem");

	tcase_add_test(tcase, info_captured);
	tcase_add_test(tcase, info_old_kernels);
	tcase_add_test(tcase, info_hostile);
	tcase_add_test(tcase, pressure_captured);
	tcase_add_test(tcase, pressure_texts);
	tcase_add_test(tcase, pressure_hostile);
	tcase_add_test(tcase, vmstat_captured);
	tcase_add_test(tcase, vmstat_texts);
	tcase_add_test(tcase, files_absent);
	tcase_add_test(tcase, live);
	return tap_run(suite);
}
