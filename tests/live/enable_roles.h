/* What targets of the tests of `ksmctl enable` do: work and waits whose outcome is known. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_LIVE_ENABLE_ROLES_H
#define TESTS_LIVE_ENABLE_ROLES_H

#include <linux/futex.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/syscall.h>

#include "tests/live/enable.h"

enum {
	WAIT_MS = 300,	/* how long the sleeps are */
	SLACK_MS = 250, /* and how much more this machine may take; less than would make it twice */
};

/* --- work whose result is known */

/* Keeps integer and vector registers full; the same seed gives the same sum, and is always worked out. */
__attribute__((noipa)) static uint64_t compute(uint64_t seed, int steps)
{
	double v[8];
	uint64_t a = seed | 1, b = seed * 3 + 1, c = ~seed, d = seed << 7 | 5;
	for (int i = 0; i < 8; i++)
		v[i] = 1.0 + (double)(seed % 97) / (i + 3);
	for (int i = 0; i < steps; i++) {
		a ^= a << 13, a ^= a >> 7, a ^= a << 17;
		b = b * 6364136223846793005ULL + c;
		c = (c << 9 | c >> 55) + a;
		d += b ^ (c >> 3);
		for (int k = 0; k < 8; k++)
			v[k] = v[k] * 0.99999 + (double)(d & 1023) * 1e-6;
	}
	for (int k = 0; k < 8; k++) {
		uint64_t bits;
		memcpy(&bits, &v[k], sizeof(bits));
		d = d * 31 + bits;
	}
	return a ^ b ^ c ^ d;
}

static inline void *compute_on(void *arg)
{
	uint64_t seed = 12345 + (uint64_t)(uintptr_t)arg * 7919;
	uint64_t expected = compute(seed, 20000);
	while (go_on()) {
		uint64_t got = compute(seed, 20000);
		if (got != expected)
			WRONG("a sum is %llx, not %llx", (unsigned long long)got,
				(unsigned long long)expected);
		atomic_fetch_add(&board->rounds, 1);
	}
	return NULL;
}

/* --- waits with a time: it must be neither cut short nor begun anew */

static inline void timed(const char *name, long (*wait)(void), long expected)
{
	ready();
	while (go_on()) {
		int64_t from = now_us();
		errno = 0;
		long got = wait();
		int64_t ms = (now_us() - from) / 1000;
		if (got != expected)
			WRONG("%s gave %ld, %s", name, got, strerror(errno));
		else if (ms < WAIT_MS - 1 || ms > WAIT_MS + SLACK_MS)
			WRONG("%s took %ld ms", name, (long)ms);
		atomic_fetch_add(&board->rounds, 1);
	}
}

static const struct timespec wait_time = { 0, WAIT_MS * 1000000 };

static inline long wait_nanosleep(void)
{
	return nanosleep(&wait_time, NULL);
}

static inline long wait_absolute(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += WAIT_MS * 1000000;
	ts.tv_sec += ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static inline long wait_futex(void)
{
	static int word;
	long err = syscall(SYS_futex, &word, FUTEX_WAIT, 0, &wait_time, NULL, 0);
	return err < 0 && errno == ETIMEDOUT ? 1 : err;
}

static inline long wait_poll(void)
{
	return poll(NULL, 0, WAIT_MS);
}

static inline long wait_ppoll(void)
{
	sigset_t all;
	sigfillset(&all);
	return ppoll(NULL, 0, &wait_time, &all);
}

static inline long wait_select(void)
{
	struct timeval tv = { 0, WAIT_MS * 1000 };
	return select(0, NULL, NULL, NULL, &tv);
}

static const struct {
	const char *name;
	long (*wait)(void);
	long expected;
} waits[] = {
	{ "nanosleep", wait_nanosleep, 0 },
	{ "clock_nanosleep, absolute", wait_absolute, 0 },
	{ "futex with a time", wait_futex, 1 },
	{ "poll", wait_poll, 0 },
	{ "ppoll", wait_ppoll, 0 },
	{ "select", wait_select, 0 },
};
enum { WAITS = sizeof(waits) / sizeof(*waits) };

/* --- a handler that counts */

static inline void count(int signal_no, siginfo_t *info, void *context)
{
	(void)signal_no;
	(void)context;
	atomic_fetch_add(&board->sum, info->si_value.sival_int);
	atomic_fetch_add(&board->signals, 1);
}

static inline void handle(int flags)
{
	struct sigaction action = { .sa_sigaction = count, .sa_flags = SA_SIGINFO | flags };
	sigaction(SIGRTMIN, &action, NULL);
}

#endif
