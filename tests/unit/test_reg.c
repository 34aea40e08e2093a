/* libksmreg: arguments, rounding, settings, counters and the latch. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/unit/test_reg.h"

/* From now on madvise does this: a SECCOMP_RET_* value. */
static void filter_madvise(unsigned verdict)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, verdict),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

START_TEST(arguments)
{
	char *p = map_pages(64);
	const size_t bad[] = { (size_t)-1, (size_t)-4096, (size_t)1 << 62, ((size_t)1 << 47) + 1 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_eq(ksmreg_register(p, bad[i]), -EINVAL);
		ck_assert_int_eq(ksmreg_unregister(p, bad[i]), -EINVAL);
	}
	ck_assert_int_eq(ksmreg_register(NULL, 1 << 20), -EINVAL);
	ck_assert_int_eq(ksmreg_register(MAP_FAILED, 1 << 20), -EINVAL);
	ck_assert_int_eq(ksmreg_register((void *)-page, page - 1), 0);
	ck_assert_int_eq(ksmreg_register(p, 0), 0);
	ck_assert(!marked(p));
	ck_assert_int_eq(stats().failed, 6);
	ck_assert_int_eq(stats().last_error, -EINVAL);
	ck_assert_int_eq(stats().skipped, 2);

	/* a hole: said so, and the mapped parts marked */
	munmap(p + 16 * page, page);
	ck_assert_int_eq(ksmreg_register(p, 64 * page), -ENOMEM);
	ck_assert(marked(p) && marked(p + 63 * page));
}
END_TEST

START_TEST(rounds_inwards)
{
	char *p = map_pages(8);

	setenv("KSMREG_MIN", "1", 1);
	ck_assert_int_eq(ksmreg_register(p + 1, 4 * page - 2), 0);
	ck_assert(!marked(p) && marked(p + page) && marked(p + 2 * page) && !marked(p + 3 * page));
	ck_assert_uint_eq(stats().registered_bytes, 2 * page);
	ck_assert_int_eq(ksmreg_register(p + 5 * page + 1, 2 * page - 2), 0);
	ck_assert(!marked(p + 5 * page) && !marked(p + 6 * page));
	ck_assert_uint_eq(stats().skipped, 1);
	ksm_register_memory(p, 8 * page);
	ck_assert(marked(p) && marked(p + 7 * page));
}
END_TEST

START_TEST(unregister_rounds_outwards)
{
	char *p = map_pages(64);

	ck_assert_int_eq(ksmreg_register(p, 64 * page), 0);
	ksmreg_set_enabled(0);
	ck_assert_int_eq(ksmreg_unregister(p + 20 * page - 1, 2), 0);
	ck_assert(marked(p + 18 * page) && !marked(p + 19 * page));
	ck_assert(!marked(p + 20 * page) && marked(p + 21 * page));
	ck_assert_int_eq(ksmreg_unregister(p, 0), 0);
	ck_assert(marked(p));
}
END_TEST

static const struct {
	const char *text;
	size_t min;
} mins[] = {
	{ NULL, 32768 },
	{ "65536", 65536 },
	{ "0", 0 },
	{ "", 32768 },
	{ "12x", 32768 },
	{ "-1", 32768 },
	{ " 7", 32768 },
	{ "99999999999999999999999", 32768 },
	{ "4611686018427387904", (size_t)1 << 62 },
};

START_TEST(minimum)
{
	size_t min = mins[_i].min;
	char *p = map_pages(64);

	if (mins[_i].text)
		setenv("KSMREG_MIN", mins[_i].text, 1);
	/* one byte short at either end costs a page, one page short costs the range */
	ck_assert_int_eq(ksmreg_register(p, page - 1), 0);
	ck_assert_int_eq(ksmreg_register(p + 1, min < 64 * page && min ? min : page - 1), 0);
	ck_assert(!marked(p) && !marked(p + page));
	ck_assert_int_eq(ksmreg_register(p, min < 64 * page && min ? min : page), 0);
	ck_assert_int_eq(marked(p), min < 64 * page);
	ck_assert_int_eq(stats().skipped, min < 64 * page ? 2 : 3);
}
END_TEST

START_TEST(off_by_environment)
{
	char *p = map_pages(64);

	setenv("KSMREG", "off", 1);
	ck_assert_int_eq(ksmreg_register(p, 64 * page), -EOPNOTSUPP);
	ksmreg_set_enabled(1);
	unsetenv("KSMREG");
	ck_assert_int_eq(ksmreg_register(p, 64 * page), -EOPNOTSUPP);
	ck_assert_int_eq(ksmreg_process(1), -EOPNOTSUPP);
	ck_assert(!marked(p));
	ck_assert_int_eq(stats().state, KSMREG_OFF_ENVIRONMENT);
	ck_assert_uint_eq(stats().calls, 0);
}
END_TEST

START_TEST(other_words_are_not_off)
{
	setenv("KSMREG", "offside", 1);
	ck_assert_int_eq(ksmreg_register(map_pages(64), 64 * page), 0);
	/* read once */
	setenv("KSMREG", "off", 1);
	ck_assert_int_eq(ksmreg_register(map_pages(64), 64 * page), 0);
	ck_assert_int_eq(stats().state, KSMREG_ON);
}
END_TEST

START_TEST(before_the_environment)
{
	char *p = map_pages(64), *q = map_pages(64);
	char **saved = environ;

	setenv("KSMREG", "off", 1);
	saved = environ;
	environ = NULL;
	ck_assert_int_eq(ksmreg_register(p, 64 * page), 0);
	ck_assert(marked(p));
	environ = saved;
	ck_assert_int_eq(ksmreg_register(q, 64 * page), -EOPNOTSUPP);
}
END_TEST

START_TEST(switched_by_the_caller)
{
	char *p = map_pages(64);

	ksmreg_set_enabled(0); /* as the first call of all */
	ck_assert_int_eq(ksmreg_register(p, 64 * page), -EOPNOTSUPP);
	ck_assert_int_eq(stats().state, KSMREG_OFF_CALLER);
	ksmreg_set_enabled(1);
	ck_assert_int_eq(ksmreg_register(p, 64 * page), 0);
	ck_assert_int_eq(stats().state, KSMREG_ON);
}
END_TEST

START_TEST(errno_untouched)
{
	char *p = map_pages(64), *gone = map_pages(64);
	struct ksmreg_caps caps = { .size = sizeof(caps) };

	munmap(gone, 64 * page);
	errno = 4711;
	ck_assert_int_eq(ksmreg_register(p, 64 * page), 0);
	ck_assert_int_eq(ksmreg_register(gone, 64 * page), -ENOMEM);
	ck_assert_int_eq(ksmreg_unregister(gone, 64 * page), -ENOMEM);
	ck_assert_int_eq(ksmreg_register(NULL, page), -EINVAL);
	ck_assert_int_eq(ksmreg_probe(&caps), 0);
	ck_assert_int_eq(ksmreg_process(0), caps.prctl);
	ck_assert_int_eq(errno, 4711);
}
END_TEST

START_TEST(stats_grow)
{
	struct {
		struct ksmreg_stats known;
		uint64_t later;
	} s = { .known.size = sizeof(s), .later = 42 };

	ck_assert_int_eq(ksmreg_get_stats(&s.known), 0);
	ck_assert_uint_eq(s.known.size, sizeof(s.known));
	ck_assert_uint_eq(s.later, 42);
	s.known.size = sizeof(s.known) - 1;
	ck_assert_int_eq(ksmreg_get_stats(&s.known), -EINVAL);
	ck_assert_int_eq(ksmreg_get_stats(NULL), -EINVAL);
	ck_assert_int_eq(ksmreg_probe(NULL), -EINVAL);
}
END_TEST

/* A set-uid copy of this program calls with KSMREG=off in its environment: whose word is that? */
static int role_secure(void)
{
	char *p = mmap(NULL, 64 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!getauxval(AT_SECURE))
		return 77;
	return ksmreg_register(p, 64 * page) == 0 && marked(p) ? 0 : 1;
}

START_TEST(environment_of_a_privileged_program)
{
	char command[256], dir[] = "/tmp/test_reg.XXXXXX";
	int status;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(chmod(dir, 0755), 0);
	snprintf(command, sizeof(command),
		"cp /proc/%d/exe %s/copy && chown 65534 %s/copy && chmod 4755 %s/copy && "
		"KSMREG=off %s/copy secure",
		(int)getpid(), dir, dir, dir, dir);
	status = system(command);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	ck_assert_int_eq(system(command), 0);
	if (geteuid() != 0 || WEXITSTATUS(status) == 77)
		tap_skip("set-uid needs root and a /tmp that allows it");
	else
		ck_assert_int_eq(status, 0);
}
END_TEST

static const int latching[] = { EPERM, ENOSYS, EINVAL };

START_TEST(latches_off)
{
	char *p = map_pages(64);

	filter_madvise(SECCOMP_RET_ERRNO | latching[_i]);
	ck_assert_int_eq(ksmreg_register(p, 64 * page), -latching[_i]);
	ck_assert_int_eq(stats().state, KSMREG_OFF_KERNEL);
	/* stricter filters win: one more madvise would be the end of us */
	filter_madvise(SECCOMP_RET_KILL_PROCESS);
	ksmreg_set_enabled(1);
	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(ksmreg_register(p, 64 * page), -EOPNOTSUPP);
	ck_assert_uint_eq(stats().calls, 1);
}
END_TEST

START_TEST(does_not_latch)
{
	char *p = map_pages(64);

	ck_assert_int_eq(ksmreg_register(p, 64 * page), 0);
	filter_madvise(SECCOMP_RET_ERRNO | EINVAL);
	ck_assert_int_eq(ksmreg_register(p, 64 * page), -EINVAL);
	ck_assert_int_eq(stats().state, KSMREG_ON);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("reg");
	TCase *t = tcase_create("reg");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, arguments);
	tcase_add_test(t, rounds_inwards);
	tcase_add_test(t, unregister_rounds_outwards);
	tcase_add_loop_test(t, minimum, 0, sizeof(mins) / sizeof(mins[0]));
	tcase_add_test(t, off_by_environment);
	tcase_add_test(t, other_words_are_not_off);
	tcase_add_test(t, before_the_environment);
	tcase_add_test(t, switched_by_the_caller);
	tcase_add_test(t, errno_untouched);
	tcase_add_test(t, environment_of_a_privileged_program);
	tcase_add_test(t, stats_grow);
	tcase_add_loop_test(t, latches_off, 0, 3);
	tcase_add_test(t, does_not_latch);
	suite_add_tcase(s, t);
	return s;
}

int main(int argc, char **argv)
{
	page = sysconf(_SC_PAGESIZE);
	if (argc > 1 && !strcmp(argv[1], "secure"))
		_exit(role_secure()); /* no checks at exit: a privileged program may not be looked into */
	unsetenv("KSMREG");
	unsetenv("KSMREG_MIN");
	return tap_run(suite());
}
