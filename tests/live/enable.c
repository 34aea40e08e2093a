/* Live: whatever a program does, being opted in and out from outside does not show in it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <sched.h>
#include <sys/epoll.h>

#include "tests/live/enable.h"
#include "tests/live/enable_roles.h"

static void live_compute(void)
{
	ready();
	compute_on(NULL);
}

static int chosen_wait;

static void live_wait(void)
{
	timed(waits[chosen_wait].name, waits[chosen_wait].wait, waits[chosen_wait].expected);
}

START_TEST(waits_as_long_as_told)
{
	chosen_wait = _i;
	pid_t pid = start_target(live_wait);
	int64_t end = now_us() + 1000 * (WAIT_MS + WAIT_MS / 2);
	int n = 0;
	/* bounded: a call that is begun anew each time never ends */
	while (now_us() < end || (atomic_load(&board->rounds) == 0 && now_us() < end + 3000000)) {
		/* what is left of some waits is counted while they wait alone: let them, on slow machines too */
		sleep_us(5000 + 3 * switched(pid, n++ % 2 == 0));
	}
	ck_assert_int_ge(n, 2);
	ck_assert_int_eq(end_target(pid), 0);
	check_board(waits[_i].name);
}
END_TEST

/* --- signals: each must be taken once, and end what it would have ended */

static int fds[2];
static pid_t child;

/* A handler without SA_RESTART: every signal ends the call, or it waits for ever. */
static void live_read(void)
{
	char byte;
	handle(0);
	ready();
	for (;;) {
		ssize_t n = read(fds[0], &byte, 1);
		if (n == 1)
			return; /* the test's last word */
		if (n >= 0 || errno != EINTR)
			WRONG("read gave %zd, %s", n, strerror(errno));
		atomic_fetch_add(&board->rounds, 1);
	}
}

/* With SA_RESTART no signal ends it. */
static void live_read_restarting(void)
{
	char byte;
	handle(SA_RESTART);
	ready();
	ssize_t n = read(fds[0], &byte, 1);
	if (n != 1)
		WRONG("read gave %zd, %s", n, strerror(errno));
}

static void live_pause(void)
{
	handle(SA_RESTART);
	ready();
	while (go_on()) {
		if (pause() != -1 || errno != EINTR)
			WRONG("pause: %s", strerror(errno));
		atomic_fetch_add(&board->rounds, 1);
	}
}

static void live_sigsuspend(void)
{
	sigset_t set, none;
	handle(SA_RESTART);
	sigemptyset(&set);
	sigemptyset(&none);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ready();
	while (go_on()) {
		long before = atomic_load(&board->signals);
		if (sigsuspend(&none) != -1 || errno != EINTR)
			WRONG("sigsuspend: %s", strerror(errno));
		if (atomic_load(&board->signals) == before)
			WRONG("sigsuspend ended without a signal");
		sigset_t now;
		sigprocmask(SIG_SETMASK, NULL, &now);
		if (sigismember(&now, SIGRTMIN) != 1 || sigismember(&now, SIGUSR1) != 0)
			WRONG("the signal mask is not what it was");
		atomic_fetch_add(&board->rounds, 1);
	}
}

static void live_sigwaitinfo(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ready();
	while (go_on()) {
		siginfo_t info;
		if (sigwaitinfo(&set, &info) == SIGRTMIN)
			count(SIGRTMIN, &info, NULL);
		else
			atomic_fetch_add(&board->interrupted, 1);
		atomic_fetch_add(&board->rounds, 1);
	}
}

/* A handler runs over the computing, again and again. */
static void live_compute_signals(void)
{
	handle(SA_RESTART);
	live_compute();
}

static const struct {
	const char *name;
	void (*live)(void);
	bool each_ends; /* a round per signal */
} takers[] = {
	{ "read, ended by signals", live_read, true },
	{ "read, restarting", live_read_restarting, false },
	{ "pause", live_pause, true },
	{ "sigsuspend", live_sigsuspend, true },
	{ "sigwaitinfo", live_sigwaitinfo, true },
	{ "computing", live_compute_signals, false },
};

/*
 * Wait until it waits inside a call: a signal just before a call is no business of that call's. Our
 * own call is not the one meant.
 */
static void until_in_call(pid_t pid)
{
	char path[32], text[64];
	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
	for (int64_t until = now_us() + 5000000; now_us() < until;) {
		FILE *f = fopen(path, "r");
		bool in_call = f && fgets(text, sizeof(text), f) && *text >= '0' && *text <= '9' &&
			       strtol(text, NULL, 10) != SYS_prctl;
		if (f)
			fclose(f);
		if (in_call)
			return;
		sched_yield();
	}
	_exit(3);
}

/* In a process of its own: each signal is sent when the one before has been seen to. */
static void send_signals(pid_t pid, bool each_ends)
{
	for (int i = 1; !atomic_load(&board->enough); i++) {
		if (each_ends) {
			until_in_call(pid);
			/* now and then in the middle of our own call instead of the target's */
			for (int64_t until = now_us() + random() % 500; now_us() < until;)
				;
		}
		atomic_store(&board->sent, i);
		if (sigqueue(pid, SIGRTMIN, (union sigval){ .sival_int = i }))
			_exit(1);
		int64_t until = now_us() + 5000000;
		while (atomic_load(&board->signals) < i ||
			(each_ends && atomic_load(&board->rounds) < i)) {
			if (now_us() > until)
				_exit(2);
			sched_yield();
		}
	}
	_exit(0);
}

START_TEST(signals_are_taken_once)
{
	enum { SIGNALS = 500, SWITCHES = 150 };
	int status, n = 0;
	ck_assert_int_eq(pipe(fds), 0);
	pid_t pid = start_target(takers[_i].live);
	fflush(NULL);
	child = fork();
	if (child == 0)
		send_signals(pid, takers[_i].each_ends);
	while (waitpid(child, &status, WNOHANG) == 0) {
		switched(pid, n++ % 2 == 0);
		if (n >= SWITCHES && atomic_load(&board->signals) >= SIGNALS)
			atomic_store(&board->enough, 1);
	}
	ck_assert_msg(WEXITSTATUS(status) == 0, "%s: signal %ld was not seen to, after %d switches",
		takers[_i].name, atomic_load(&board->signals), n);
	long sent = atomic_load(&board->sent);
	printf("# %s: %ld signals over %d switches\n", takers[_i].name, sent, n);
	fflush(stdout);
	ck_assert_int_eq(atomic_load(&board->signals), sent);
	ck_assert_int_eq(atomic_load(&board->sum), sent * (sent + 1) / 2);
#ifdef __x86_64__
	ck_assert_int_eq(atomic_load(&board->interrupted), 0);
#endif
	/* What waits for ever needs a last push. */
	ck_assert_int_eq(write(fds[1], "", 1), 1);
	atomic_store(&board->stop, 1);
	sigqueue(pid, SIGRTMIN, (union sigval){ 0 });
	ck_assert_int_eq(end_target(pid), 0);
	atomic_fetch_add(&board->rounds, 1); /* of read, restarting: it had none */
	check_board(takers[_i].name);
}
END_TEST

/* --- waits for events */

static int epoll_ms;

static void live_epoll(void)
{
	int epoll = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };
	epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event);
	ready();
	while (go_on()) {
		char byte;
		int n = epoll_wait(epoll, &event, 1, epoll_ms);
		if (n == 1 && read(fds[0], &byte, 1) != 1)
			WRONG("no byte after an event");
		else if (n < 0 && errno == EINTR)
			atomic_fetch_add(&board->interrupted, 1);
		else if (n != 1)
			WRONG("epoll_wait gave %d, %s", n, strerror(errno));
		atomic_fetch_add(&board->rounds, 1);
	}
}

static const int epoll_times[] = { -1, 60000 };

/* EINTR is seen where there is a time-out, as after SIGSTOP; where there is none nothing is. */
START_TEST(epoll)
{
	enum { EVENTS = 200 };
	epoll_ms = epoll_times[_i];
	ck_assert_int_eq(pipe(fds), 0);
	pid_t pid = start_target(live_epoll);
	for (int i = 0; i < EVENTS; i++) {
		switched(pid, i % 2 == 0);
		ck_assert_int_eq(write(fds[1], "", 1), 1);
		switched(pid, i % 2 == 0);
	}
	atomic_store(&board->stop, 1);
	ck_assert_int_eq(write(fds[1], "", 1), 1);
	ck_assert_int_eq(end_target(pid), 0);
	check_board("epoll");
	long interrupted = atomic_load(&board->interrupted);
	printf("# epoll_wait(%d): %ld of %d switches were seen as EINTR\n", epoll_ms, interrupted,
		2 * EVENTS);
	ck_assert_int_le(interrupted, 2 * EVENTS);
#ifdef __x86_64__
	if (epoll_ms < 0)
		ck_assert_int_eq(interrupted, 0);
#endif
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("enable");
	TCase *t = tcase_create("enable");

	tcase_set_timeout(t, 600);
	tcase_add_checked_fixture(t, enable_setup, NULL);
	tcase_add_loop_test(t, waits_as_long_as_told, 0, WAITS);
	tcase_add_loop_test(t, signals_are_taken_once, 0, sizeof(takers) / sizeof(*takers));
	tcase_add_loop_test(t, epoll, 0, 2);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return enable_main(suite());
}
