/* Live: a process with many threads, timers and signals is opted in and out a thousand times. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <pthread.h>
#include <sched.h>
#include <sys/time.h>

#include "tests/live/enable.h"
#include "tests/live/enable_roles.h"

/* With KSM_TEST_LONG set: so many times. */
enum { ROUNDS = 60, LONG_ROUNDS = 1000 };

/* --- a busy process: many threads of every kind, timers, signals */

static void *thread_wait(void *arg)
{
	const long i = (long)(intptr_t)arg;
	timed(waits[i].name, waits[i].wait, waits[i].expected);
	return NULL;
}

static void *thread_pipe(void *arg)
{
	const int *ends = arg;
	char byte;
	while (read(ends[0], &byte, 1) == 1)
		atomic_fetch_add(&board->rounds, 1);
	return NULL;
}

static _Atomic long ticks;

static void tick(int signal_no)
{
	(void)signal_no;
	atomic_fetch_add(&ticks, 1);
}

static void live_busy(void)
{
	enum { COMPUTING = 8 };
	pthread_t threads[COMPUTING + WAITS + 1];
	int n = 0, ends[2];
	struct itimerval timer = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction action = { .sa_handler = tick, .sa_flags = SA_RESTART };
	sigset_t set;

	handle(SA_RESTART);
	sigaction(SIGALRM, &action, NULL);
	if (pipe(ends))
		_exit(1);
	for (long i = 0; i < COMPUTING; i++)
		pthread_create(&threads[n++], NULL, compute_on, (void *)i);
	/* Those that sleep see no handler: nothing is to end their calls. */
	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (long i = 0; i < WAITS; i++)
		pthread_create(&threads[n++], NULL, thread_wait, (void *)i);
	pthread_create(&threads[n++], NULL, thread_pipe, ends);
	sigemptyset(&set);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	ready();
	while (go_on()) {
		long before = atomic_load(&ticks);
		if (write(ends[1], "", 1) != 1)
			WRONG("write: %s", strerror(errno));
		for (int64_t until = now_us() + 2000000;
			atomic_load(&ticks) == before && now_us() < until;)
			sched_yield();
		if (atomic_load(&ticks) == before)
			WRONG("the timer stands still");
	}
	close(ends[1]);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

START_TEST(busy)
{
	const int rounds = getenv("KSM_TEST_LONG") ? LONG_ROUNDS : ROUNDS;
	enum { SIGNALS = 20 };
	pid_t pid = start_target(live_busy);
	long sent = 0, sum = 0;
	for (int i = 0; i < rounds; i++) {
		for (int k = 0; k < SIGNALS; k++) {
			sum += ++sent;
			ck_assert_int_eq(
				sigqueue(pid, SIGRTMIN, (union sigval){ .sival_int = (int)sent }),
				0);
		}
		if (i % 10 == 0)
			switch_many("busy, 16 threads", pid, 2 * 10 < rounds ? 20 : 2);
	}
	UNTIL(atomic_load(&board->signals) >= sent);
	ck_assert_int_eq(atomic_load(&board->signals), sent);
	ck_assert_int_eq(atomic_load(&board->sum), sum);
	ck_assert_int_eq(end_target(pid), 0);
	check_board("busy");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("enable_busy");
	TCase *t = tcase_create("enable_busy");

	tcase_set_timeout(t, 600);
	tcase_add_checked_fixture(t, enable_setup, NULL);
	tcase_add_test(t, busy);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return enable_main(suite());
}
