/* libksmreg and fork: children of a process whose other threads are amid registration. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "tests/unit/test_reg.h"

/* FORKS=10000 in the environment for the long form. */
#define FORKS 1000
/* More than what passes on credit. */
#define CALLS_OF_A_CHILD 1500
/* Refused so often in a row a child counts as stuck. */
#define CALLS_TO_NOTICE 30000
#define THREADS 2

static atomic_bool stop;

/* Calls without end, on a process with so many areas that counting them takes its time. */
static void *register_for_ever(void *data)
{
	while (!atomic_load(&stop))
		ksmreg_register(data, 64 * page);
	return NULL;
}

/*
 * In the child of a fork, where a count that another thread was at will never end: it must go on
 * registering for longer than such a credit lasts. Says whether it was ever refused.
 */
static _Noreturn void child(char *p)
{
	int refused = 0, again = 0;

	alarm(20);
	for (int i = 0; i < CALLS_OF_A_CHILD; i++)
		refused += ksmreg_register(p, 64 * page) != 0;
	for (; again < CALLS_TO_NOTICE && ksmreg_register(p, 64 * page); again++)
		;
	_exit(again == CALLS_TO_NOTICE ? 2 : refused > 0);
}

START_TEST(forks_amid_registration)
{
	const char *wanted = getenv("FORKS");
	int forks = wanted ? atoi(wanted) : FORKS, status, refused = 0;
	pthread_t threads[THREADS];
	char *many = map_pages(2 * 500), *p = map_pages(64);

	for (int i = 0; i < 500; i++)
		ck_assert_int_eq(mprotect(many + 2 * i * page, page, PROT_READ), 0);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, register_for_ever, p), 0);
	for (int i = 0; i < forks; i++) {
		pid_t pid = fork();

		if (pid == 0)
			child(p);
		ck_assert_int_gt(pid, 0);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) < 2,
			"child %d: status %x: killed, or refused to the end", i, status);
		refused += WEXITSTATUS(status);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("# %d forks; in %d of them the child was refused for a while\n", forks, refused);
	fflush(stdout);
	ck_assert_uint_gt(stats().registered, forks);
	ck_assert_uint_eq(stats().failed, 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("reg_forks");
	TCase *t = tcase_create("reg_forks");

	tcase_set_timeout(t, 600);
	tcase_add_test(t, forks_amid_registration);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	page = sysconf(_SC_PAGESIZE);
	unsetenv("KSMREG");
	unsetenv("KSMREG_MIN");
	return tap_run(suite());
}
