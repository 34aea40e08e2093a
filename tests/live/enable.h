/* What the tests of `ksmctl enable` share: targets that report to a board in shared memory, and injecting. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_LIVE_ENABLE_H
#define TESTS_LIVE_ENABLE_H

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ksmctl/inject.h"
#include "libksmreg/ksmreg.h"
#include "tests/live/guard.h"
#include "tests/tap.h"

enum { TIMEOUT_MS = 2000 };

/* Written by the target, read by the test. Zeroed before each. */
struct board {
	_Atomic int ready;
	_Atomic int stop;	  /* set by the test: come to an end */
	_Atomic long rounds;	  /* of work, each checked */
	_Atomic long wrong;	  /* rounds that went wrong */
	_Atomic long interrupted; /* calls that ended with EINTR though no handler ran */
	_Atomic long sent;	  /* signals, by a sender that ends when `enough` is set */
	_Atomic int enough;
	_Atomic long signals, sum; /* taken by a handler, or waited for; of their values */
	char what[200];		   /* the first that went wrong */
};

static struct board *board;

/* In the target: this was wrong. */
#define WRONG(...) \
	do { \
		if (atomic_fetch_add(&board->wrong, 1) == 0) \
			snprintf(board->what, sizeof(board->what), __VA_ARGS__); \
	} while (0)

static inline int64_t now_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000;
}

static inline void sleep_us(long us)
{
	nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}

/* In the target: is it to go on? */
static inline bool go_on(void)
{
	return !atomic_load(&board->stop);
}

static inline void ready(void)
{
	atomic_store(&board->ready, 1);
}

static inline void live_spin(void)
{
	ready();
	while (go_on())
		atomic_fetch_add(&board->rounds, 1);
}

static inline void live_naps(void)
{
	ready();
	while (go_on()) {
		if (usleep(300))
			WRONG("usleep: %s", strerror(errno));
		atomic_fetch_add(&board->rounds, 1);
	}
}

/* Wait until it is true, or for 10 s. */
#define UNTIL(condition) \
	for (int64_t until_ = now_us() + 10000000; !(condition);) { \
		ck_assert_msg(now_us() < until_, "it never came to: %s", #condition); \
		sleep_us(500); \
	}

/* Start a process that lives as told, and wait until it says that it is ready. */
static inline pid_t start_target(void (*live)(void))
{
	memset(board, 0, sizeof(*board));
	fflush(NULL);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		live();
		_exit(0);
	}
	UNTIL(atomic_load(&board->ready));
	return pid;
}

/* It is to end by itself, after a last whole round. Returns its wait status. */
static inline int end_target(pid_t pid)
{
	int status = -1;
	atomic_store(&board->stop, 1);
	UNTIL(waitpid(pid, &status, WNOHANG) == pid);
	return status;
}

static inline void kill_target(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static inline struct proc open_target(pid_t pid)
{
	struct root root;
	struct proc proc;
	ck_assert_int_eq(root_open(&root, NULL), 0);
	ck_assert_int_eq(proc_open(&proc, &root, pid), 0);
	root_close(&root);
	return proc;
}

static inline enum inject_result inject(
	pid_t pid, bool on, int timeout_ms, struct inject_report *report)
{
	struct inject_options options = { .timeout_ms = timeout_ms };
	struct proc proc = open_target(pid);
	enum inject_result result = inject_memory_merge(&proc, on, &options, report);
	proc_close(&proc);
	return result;
}

/* 1 on, 0 off, -1 not told by this kernel. */
static inline int flag_of(pid_t pid)
{
	struct proc proc = open_target(pid);
	struct proc_ksm ksm = { 0 };
	int err = proc_read_ksm_stat(&proc, &ksm);
	proc_close(&proc);
	return err || !(ksm.present & PROC_KSM_MERGE_ANY) ? -1 : ksm.merge_any;
}

static inline char state_of(pid_t pid)
{
	struct proc proc = open_target(pid);
	struct proc_stat stat = { .state = '?' };
	proc_read_stat(&proc, &stat);
	proc_close(&proc);
	return stat.state;
}

static inline enum inject_result result_for(pid_t pid)
{
	struct inject_report report;
	return inject(pid, true, TIMEOUT_MS, &report);
}

static inline uint64_t status_number(pid_t pid, const char *key)
{
	char path[64], line[256];
	unsigned long value = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, key, strlen(key)))
			value = strtoul(line + strlen(key), NULL, 10);
	}
	fclose(f);
	return value;
}

/* On or off once, and seen to be. Returns for how long a thread stood still at most. */
static inline int64_t switched(pid_t pid, bool on)
{
	struct inject_report report;
	enum inject_result result = inject(pid, on, TIMEOUT_MS, &report);
	ck_assert_msg(result == INJECT_DONE, "result %d, %s, thread %d in call %ld", (int)result,
		strerror(-report.err), (int)report.tid, report.call);
	int flag = flag_of(pid);
	ck_assert_msg(flag == on || flag < 0, "the flag is %d, not %d", flag, on);
	return report.stops_us;
}

static inline int compare_us(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* On, off, on... n times. Says how long that took the target. */
static inline void switch_many(const char *name, pid_t pid, int n)
{
	static int64_t us[10000];
	for (int i = 0; i < n; i++)
		us[i] = switched(pid, i % 2 == 0);
	qsort(us, (size_t)n, sizeof(*us), compare_us);
	printf("# %s: %d times on or off, held up for at most %ld us in the middle, %ld us at "
	       "worst\n",
		name, n, (long)us[n / 2], (long)us[n - 1]);
	fflush(stdout);
}

/* Nothing went wrong in the target, and something went on at all. */
static inline void check_board(const char *name)
{
	ck_assert_msg(!atomic_load(&board->wrong), "%s: %ld of %ld rounds went wrong: %s", name,
		atomic_load(&board->wrong), atomic_load(&board->rounds), board->what);
	ck_assert_msg(atomic_load(&board->rounds) > 0, "%s: it did nothing", name);
}

/* Says, once, why nothing can be tried here. */
static inline const char *cannot_try(void)
{
	struct ksmreg_caps caps = { .size = sizeof(caps) };
#ifdef __SANITIZE_ADDRESS__
	return "a sanitizer reserves terabytes, which take minutes to unmerge";
#endif
	if (ksmreg_probe(&caps) || caps.prctl)
		return "this kernel has no PR_SET_MEMORY_MERGE";
	struct inject_report report;
	struct root root;
	struct proc proc = { .fd = -1 };
	if (root_open(&root, NULL) == 0 && proc_open(&proc, &root, getppid()) == 0)
		inject_look(&proc, &report);
	else
		report.result = INJECT_GONE;
	proc_close(&proc);
	root_close(&root);
	return report.result == INJECT_ARCH ? "not known on this kind of machine" : NULL;
}

static void enable_setup(void)
{
	board = mmap(
		NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(board, MAP_FAILED);
}

/* Run it all, unless nothing can be tried here. Returns the exit code. */
static inline int enable_main(Suite *suite)
{
	const char *why = cannot_try();
	if (why) {
		printf("# SKIP %s\n", why);
		srunner_free(srunner_create(suite)); /* there is no other way to free one */
		return 77;
	}
	/* Other tests count the processes that opted in: not while these do. Without KSM there are none. */
	guard_take();
	int code = tap_run(suite);
	guard_release();
	return code;
}

#endif
