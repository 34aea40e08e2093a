/* ksmctl/inject_target: which thread serves best, and where code is, from the kernel's text. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/inject_target.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/tap.h"

static enum inject_rank rank(char state, const char *text)
{
	long call;
	return inject_rank_call(state, text, &call);
}

static enum inject_rank rank_in(char state, long number)
{
	char text[64];
	long call;
	snprintf(text, sizeof(text), "%ld 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffd0 0x7f00\n", number);
	enum inject_rank got = inject_rank_call(state, text, &call);
	if (got != RANK_USELESS)
		ck_assert_int_eq(call, number);
	return got;
}

START_TEST(ranks)
{
	ck_assert_int_eq(rank_in('S', SYS_futex), RANK_RESTARTS);
	ck_assert_int_eq(rank_in('T', SYS_nanosleep), RANK_RESTARTS);
	ck_assert_int_eq(rank_in('S', SYS_restart_syscall), RANK_RESTARTS);
	ck_assert_int_eq(rank_in('S', SYS_read), RANK_OTHER);
	ck_assert_int_eq(rank_in('S', -1), RANK_OTHER);
	ck_assert_int_eq(rank_in('R', -1), RANK_RUNNING);
	ck_assert_int_eq(rank_in('S', SYS_epoll_pwait), RANK_INTERRUPTED);
	ck_assert_int_eq(rank_in('S', SYS_rt_sigtimedwait), RANK_INTERRUPTED);
	ck_assert_int_eq(rank_in('D', SYS_futex), RANK_STUCK);
	ck_assert_int_eq(rank_in('S', SYS_clone), RANK_STUCK);
	ck_assert_int_eq(rank_in('Z', SYS_futex), RANK_USELESS);
	ck_assert_int_eq(rank_in('X', SYS_futex), RANK_USELESS);
	ck_assert_int_eq(rank('R', "running\n"), RANK_RUNNING);
	/* better first: the choice is by number */
	ck_assert_int_lt(RANK_RESTARTS, RANK_RUNNING);
	ck_assert_int_lt(RANK_OTHER, RANK_INTERRUPTED);
	ck_assert_int_lt(RANK_INTERRUPTED, RANK_STUCK);
}
END_TEST

START_TEST(odd_text)
{
	static const char *const texts[] = { "", "\n", "x", "-", "-7 0x1 0x2\n",
		"99999999999999999999999999 0x1\n", " " };
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		long call = 4711;
		enum inject_rank got = inject_rank_call('S', texts[i], &call);
		ck_assert_int_eq(got, RANK_OTHER);
		ck_assert(call == INJECT_UNKNOWN || call > 1000);
	}
	ck_assert_int_eq(rank('D', ""), RANK_STUCK);
}
END_TEST

static const struct {
	const char *line;
	bool code, vdso;
	uint64_t start, end;
} lines[] = {
	{ "7ffd5a1f2000-7ffd5a1f4000 r-xp 00000000 00:00 0                          [vdso]\n", true,
		true, 0x7ffd5a1f2000, 0x7ffd5a1f4000 },
	{ "7f1000-7f2000 r-xp 00001000 fe:00 1234     /usr/lib/libc.so.6\n", true, false, 0x7f1000,
		0x7f2000 },
	{ "7f1000-7f2000 r-xp 00001000 fe:00 1234     /a b/[vdso]\n", true, false, 0x7f1000,
		0x7f2000 },
	{ "7f1000-7f2000 r-xs 00001000 fe:00 1234     /dev/shm/code (deleted)\n", true, false,
		0x7f1000, 0x7f2000 },
	{ "7f1000-7f2000 r--p 00001000 fe:00 1234     /usr/lib/libc.so.6\n", false, false, 0, 0 },
	{ "7f1000-7f2000 --xp 00001000 fe:00 1234     /usr/lib/libc.so.6\n", false, false, 0, 0 },
	{ "7f1000-7f2000 rwxp 00000000 00:00 0 \n", false, false, 0, 0 },
	{ "7fffffffe000-7ffffffff000 r-xp 00000000 00:00 0    [uprobes]\n", false, false, 0, 0 },
	{ "ffffffffff600000-ffffffffff601000 r-xp 00000000 00:00 0 [vsyscall]\n", false, false, 0,
		0 },
	{ "7f1000-7f2000 r-xp 00000000 00:00 0 [anon:[vdso]]\n", false, false, 0, 0 },
	{ "", false, false, 0, 0 },
	{ "7f1000", false, false, 0, 0 },
	{ "7f1000-7f2000 r-xp 00001000 fe:00 1234", false, false, 0, 0 },
};

START_TEST(code_areas)
{
	uint64_t start = 0, end = 0;
	bool vdso = false;
	ck_assert_int_eq(inject_code_area(lines[_i].line, &start, &end, &vdso), lines[_i].code);
	if (lines[_i].code) {
		ck_assert_int_eq(vdso, lines[_i].vdso);
		ck_assert_uint_eq(start, lines[_i].start);
		ck_assert_uint_eq(end, lines[_i].end);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("inject");
	TCase *t = tcase_create("inject");

	tcase_add_test(t, ranks);
	tcase_add_test(t, odd_text);
	tcase_add_loop_test(t, code_areas, 0, sizeof(lines) / sizeof(*lines));
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(suite());
}
