/* libksmreg: several ranges at once, huge pages refused, memory from before, proof of a mark, the report at exit. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/unit/test_reg.h"

static char data[64 << 10] = { 1 };

static struct ksmreg_range verified(const void *addr, size_t len)
{
	struct ksmreg_range range = { .size = sizeof(range) };

	ck_assert_int_eq(ksmreg_verify(addr, len, &range), 0);
	ck_assert_uint_eq(range.size, sizeof(range));
	return range;
}

START_TEST(many_ranges)
{
	char *p = map_pages(64);
	const struct iovec ranges[] = {
		{ p, 16 * page },
		{ NULL, page },
		{ p + 32 * page, 16 * page },
		{ p, (size_t)1 << 62 },
	};

	ck_assert_int_eq(ksmreg_registerv(ranges, 4), -EINVAL);
	ck_assert(marked(p) && !marked(p + 16 * page) && marked(p + 32 * page));
	ck_assert_uint_eq(stats().registered, 2);
	ck_assert_uint_eq(stats().failed, 2);
	ck_assert_int_eq(ksmreg_registerv(NULL, 0), 0);
	ck_assert_int_eq(ksmreg_registerv(ranges, 1), 0);
}
END_TEST

/* VmFlags has "nh" where MADV_NOHUGEPAGE took. */
static bool huge_refused(const void *addr)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long start, end;
	bool inside = false, refused = false;
	char line[4096];

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = (uintptr_t)addr >= start && (uintptr_t)addr < end;
		else if (inside && !strncmp(line, "VmFlags:", 8))
			refused = strstr(line, " nh") != NULL;
	}
	fclose(f);
	return refused;
}

static bool kernel_has_huge_pages(void)
{
	if (access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0)
		return true;
	tap_skip("huge pages: this kernel has none");
	return false;
}

START_TEST(refuses_huge_pages)
{
	char *p = map_pages(64), *q = map_pages(64);

	if (!kernel_has_huge_pages())
		return;
	ck_assert_int_eq(ksmreg_register_with(p, 32 * page, KSMREG_NOHUGEPAGE), 0);
	ck_assert(marked(p) && huge_refused(p) && !huge_refused(p + 32 * page));
	ck_assert_int_eq(ksmreg_register_with(q, 64 * page, 0), 0);
	ck_assert(marked(q) && !huge_refused(q));
	ck_assert_int_eq(ksmreg_register_with(q, 64 * page, 1U << 31), -EINVAL);
	ck_assert_int_eq(stats().last_error, -EINVAL);
}
END_TEST

START_TEST(refuses_huge_pages_by_environment)
{
	char *p = map_pages(64);

	if (!kernel_has_huge_pages())
		return;
	setenv("KSMREG_NOHUGEPAGE", _i ? "1" : "0", 1);
	ck_assert_int_eq(ksmreg_register(p, 64 * page), 0);
	ck_assert(marked(p));
	ck_assert_int_eq(huge_refused(p), _i);
	if (ksmreg_process(1) == 0)
		ck_assert_int_eq(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0), _i);
}
END_TEST

START_TEST(existing_memory)
{
	char *anonymous = map_pages(64), *heap = sbrk(0), *stack = (char *)&heap;

	ck_assert_int_eq(ksmreg_register_existing(0), -EINVAL);
	ck_assert_int_eq(ksmreg_register_existing(8), -EINVAL);
	if (!SANITIZED) {
		free(malloc(1000)); /* makes the heap */
		heap = (char *)sbrk(0) - 1;
		ck_assert_int_eq(ksmreg_register_existing(KSMREG_HEAP), 0);
		ck_assert(marked(heap) && !marked(anonymous));
	}
	memset(anonymous, 1, 64 * page);
	ck_assert_int_eq(ksmreg_register_existing(KSMREG_ANON), 0);
	ck_assert(marked(anonymous) && !marked(data));
	ck_assert_int_eq(ksmreg_register_existing(KSMREG_DATA), 0);
	ck_assert(marked(data + sizeof(data) / 2) && !marked(stack));
	ksmreg_set_enabled(0);
	ck_assert_int_eq(ksmreg_register_existing(KSMREG_ANON), -EOPNOTSUPP);
}
END_TEST

START_TEST(proof)
{
	char *p = map_pages(64), *shared;
	struct ksmreg_range range = { .size = sizeof(range) - 1 };

	ck_assert_int_eq(ksmreg_verify(p, page, &range), -EINVAL);
	ck_assert_int_eq(ksmreg_verify(NULL, page, &range), -EINVAL);
	ck_assert_int_eq(ksmreg_verify(p, page, NULL), -EINVAL);
	range.size = sizeof(range);
	ck_assert_int_eq(ksmreg_verify(p, -page, &range), -EINVAL);

	ck_assert_int_eq(ksmreg_register(p + 8 * page, 16 * page), 0);
	munmap(p + 16 * page, page);
	range = verified(p, 64 * page);
	ck_assert_uint_eq(range.mapped_bytes, 63 * page);
	ck_assert_uint_eq(range.mergeable_bytes, 15 * page);
	ck_assert_uint_eq(range.areas, 4);
	range = verified(p + 12 * page, 2 * page);
	ck_assert_uint_eq(range.mapped_bytes, 2 * page);
	ck_assert_uint_eq(range.mergeable_bytes, 2 * page);
	ck_assert_uint_eq(range.areas, 1);
	range = verified(p + 16 * page, page);
	ck_assert_uint_eq(range.mapped_bytes + range.areas, 0);

	/* what it is for: the kernel says yes to shared memory and does nothing */
	shared = mmap(NULL, 64 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
	ck_assert_int_eq(ksmreg_register(shared, 64 * page), 0);
	range = verified(shared, 64 * page);
	ck_assert_uint_eq(range.mapped_bytes, 64 * page);
	ck_assert_uint_eq(range.mergeable_bytes, 0);
}
END_TEST

/* Runs this program as `report ACTION` with KSMREG_STATS=fd, a temporary file, and reads what it wrote. */
static void run_report(const char *action, const char *fd, char *said, size_t size)
{
	FILE *f = tmpfile();
	ssize_t n;
	pid_t pid;
	int status;

	ck_assert_ptr_nonnull(f);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (dup2(fileno(f), 9) != 9)
			_exit(126);
		setenv("KSMREG_STATS", fd, 1);
		execl("/proc/self/exe", "test_reg_areas", "report", action, (char *)NULL);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	n = pread(fileno(f), said, size - 1, 0);
	ck_assert_int_ge(n, 0);
	said[n] = '\0';
	fclose(f);
}

static int role_report(const char *action)
{
	char *p = mmap(NULL, 64 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ksmreg_register(p, 64 * page);
	ksmreg_register(p, 1);
	if (!strcmp(action, "reuse"))
		return dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 9) != 9;
	if (!strcmp(action, "close"))
		return close(9);
	return 0;
}

START_TEST(report)
{
	char said[512], expected[256];

	run_report("plain", "9", said, sizeof(said));
	ck_assert_str_eq(said + strlen(said) - 1, "\n");
	snprintf(expected, sizeof(expected),
		" state=on process=off registered=1 registered_bytes=%zu skipped=1 refused=0 "
		"failed=0 last_error=0\n",
		64 * page);
	ck_assert_ptr_nonnull(strstr(said, expected));
	ck_assert_int_eq(strncmp(said, "ksmreg pid=", 11), 0);
	/* the descriptor is another file by now, or none */
	run_report("reuse", "9", said, sizeof(said));
	ck_assert_str_eq(said, "");
	run_report("close", "9", said, sizeof(said));
	ck_assert_str_eq(said, "");
	run_report("plain", "nine", said, sizeof(said));
	ck_assert_str_eq(said, "");
	run_report("plain", "4294967305", said, sizeof(said)); /* 9 if it were cut to 32 bits */
	ck_assert_str_eq(said, "");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("reg_areas");
	TCase *t = tcase_create("reg_areas");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, many_ranges);
	tcase_add_test(t, refuses_huge_pages);
	tcase_add_loop_test(t, refuses_huge_pages_by_environment, 0, 2);
	tcase_add_test(t, existing_memory);
	tcase_add_test(t, proof);
	tcase_add_test(t, report);
	suite_add_tcase(s, t);
	return s;
}

int main(int argc, char **argv)
{
	page = sysconf(_SC_PAGESIZE);
	if (argc > 2 && !strcmp(argv[1], "report"))
		return role_report(argv[2]);
	unsetenv("KSMREG");
	unsetenv("KSMREG_MIN");
	unsetenv("KSMREG_NOHUGEPAGE");
	unsetenv("KSMREG_STATS");
	return tap_run(suite());
}
