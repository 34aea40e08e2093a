/* libksmreg: the bound on areas, and every odd moment to be called in. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "tests/unit/test_reg.h"

static long map_limit(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	long limit = 0;

	ck_assert(f && fscanf(f, "%ld", &limit) == 1);
	fclose(f);
	return limit;
}

#define TINY 100000

struct share {
	char *base;
	int first, step;
};

/* Register every other page: the pattern that makes two areas with each call. */
static void *fragment(void *data)
{
	struct share *s = data;

	for (int i = s->first; i < TINY; i += s->step)
		ksmreg_register(s->base + 2 * i * page, page);
	return NULL;
}

START_TEST(bounds_the_areas)
{
	int n = _i; /* threads */
	char *base = map_pages(2 * TINY), *blocks[200], *p;
	struct share shares[4];
	pthread_t threads[4];
	long areas, limit = map_limit() / 2;

	setenv("KSMREG_MIN", "4096", 1);
	for (int i = 0; i < n; i++) {
		shares[i] = (struct share){ base, i, n };
		ck_assert_int_eq(pthread_create(&threads[i], NULL, fragment, &shares[i]), 0);
	}
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	areas = areas_now();
	printf("# %d threads: %ld areas of at most %ld, %lu registered, %lu refused\n", n, areas,
		limit, stats().registered, stats().refused);
	fflush(stdout);
	ck_assert_int_le(areas, limit);
	ck_assert_int_gt(areas, limit / 2);
	ck_assert_uint_gt(stats().refused, 0);
	ck_assert_uint_eq(stats().calls, TINY);
	ck_assert_uint_eq(stats().failed, 0);

	/* the program's own calls still work, large enough for an area each */
	for (int i = 0; i < 200; i++) {
		blocks[i] = malloc(256 << 10);
		ck_assert_ptr_nonnull(blocks[i]);
		memset(blocks[i], 1, 256 << 10);
		ck_assert_int_eq(munmap(map_pages(3) + page, page), 0);
	}
	for (int i = 0; i < 200; i++)
		free(blocks[i]);
	ck_assert_int_eq(ksmreg_register(map_pages(64), 64 * page), -ENOSPC);

	/* room again: noticed after a while */
	munmap(base, 2 * TINY * page);
	p = map_pages(64);
	for (int i = 0; i < 20000 && ksmreg_register(p, 64 * page) == -ENOSPC; i++)
		;
	ck_assert(marked(p));
}
END_TEST

static volatile sig_atomic_t handled, wrong;
static char *handler_region;

static void on_signal(int sig)
{
	(void)sig;
	handled++;
	if (ksmreg_register(handler_region, 64 * page))
		wrong++;
}

START_TEST(in_signal_handlers)
{
	size_t small = sysconf(_SC_MINSIGSTKSZ) + 4096;
	stack_t stack = { .ss_sp = malloc(small), .ss_size = small };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART };
	struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { 0 };
	char *p = map_pages(64);
	unsigned calls = 0;

	handler_region = map_pages(64);
	sigaltstack(&stack, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	/* past the first allowance, so that signals also meet a count */
	for (; handled < 1000 || calls < 20000; calls++)
		ck_assert_int_eq(ksmreg_register(p, 64 * page), 0);
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN);
	sigaltstack(&(stack_t){ .ss_flags = SS_DISABLE }, NULL);
	free(stack.ss_sp);
	ck_assert_int_eq(wrong, 0);
	ck_assert_uint_eq(stats().registered, calls + handled);
}
END_TEST

static void *register_many(void *data)
{
	char *p = map_pages(64);

	(void)data;
	for (int i = 0; i < 10000; i++) {
		ksmreg_register(p, 64 * page);
		ksmreg_register(p, page);
		ksmreg_register(p, (size_t)-1);
	}
	return NULL;
}

START_TEST(in_many_threads)
{
	pthread_t threads[8];
	struct ksmreg_stats s;

	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, register_many, NULL), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	s = stats();
	ck_assert_msg(s.registered == 80000 && s.skipped == 80000 && s.failed == 80000,
		"of 80000 each: %lu registered, %lu skipped, %lu failed, %lu refused, last error "
		"%d",
		s.registered, s.skipped, s.failed, s.refused, s.last_error);
	ck_assert_uint_eq(s.registered_bytes, 80000 * 64 * page);
	ck_assert_uint_eq(s.refused, 0);
}
END_TEST

START_TEST(between_fork_and_exec)
{
	char *p = map_pages(64);
	int status;
	pid_t pid = vfork();

	if (pid == 0)
		_exit(ksmreg_register(p, 64 * page) == 0 ? 7 : 8);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(WEXITSTATUS(status), 7);
	ck_assert(marked(p));
}
END_TEST

static volatile sig_atomic_t children_seen;

static void on_child(int sig)
{
	(void)sig;
	children_seen++;
}

START_TEST(probe_leaves_no_trace)
{
	struct ksmreg_caps caps = { .size = sizeof(caps) };
	char *kept = map_pages(64), *plain = map_pages(64);
	long before;

	signal(SIGCHLD, on_child);
	mprotect(plain, 64 * page, PROT_READ);
	ck_assert_int_eq(ksmreg_register(kept, 64 * page), 0);
	before = areas_now();
	ck_assert_int_eq(ksmreg_probe(&caps), 0);
	ck_assert_int_eq(areas_now(), before);
	ck_assert_uint_eq(caps.page_size, page);
	ck_assert_int_eq(caps.madvise, 0);
	ck_assert_int_eq(caps.prctl_on, 0);
	ck_assert(marked(kept) && !marked(plain));
	ck_assert_int_eq(children_seen, 0);
	ck_assert_int_eq(waitpid(-1, NULL, 0), -1);
	ck_assert_int_eq(errno, ECHILD);
	if (caps.prctl) {
		tap_skip("no PR_SET_MEMORY_MERGE in this kernel");
		ck_assert_int_eq(caps.areas_merge, -1);
		return;
	}
	ck_assert_int_ge(caps.areas_merge, 0);

	if (SANITIZED) {
		tap_skip("taking back terabytes of shadow memory lasts minutes");
		return;
	}
	ck_assert_int_eq(ksmreg_process(1), 0);
	ck_assert(marked(plain));
	int in_child = caps.areas_merge;
	ck_assert_int_eq(ksmreg_probe(&caps), 0);
	ck_assert_int_eq(caps.prctl_on, 1);
	ck_assert_int_eq(caps.areas_merge, in_child);
	ck_assert_int_eq(ksmreg_process(0), 0);
	ck_assert(!marked(plain) && !marked(kept));
}
END_TEST

/* Where not a page is left to try it on, that is what is told, and nothing is claimed. */
START_TEST(probe_without_room)
{
	struct ksmreg_caps caps = { .size = sizeof(caps) };
	struct rlimit all, none;

	if (SANITIZED) {
		tap_skip("a sanitizer has terabytes, of which none are counted");
		return;
	}
	ck_assert_int_eq(getrlimit(RLIMIT_AS, &all), 0);
	none = (struct rlimit){ 1 << 20, all.rlim_max };
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &none), 0);
	int err = ksmreg_probe(&caps);
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &all), 0);
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(caps.madvise, -ENOMEM);
	ck_assert_int_eq(caps.areas_merge, -1);
	ck_assert_int_eq(ksmreg_probe(&caps), 0);
	ck_assert_int_eq(caps.madvise, 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("reg_moments");
	TCase *t = tcase_create("reg_moments");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, bounds_the_areas, 1, 5);
	tcase_add_test(t, in_signal_handlers);
	tcase_add_test(t, in_many_threads);
	tcase_add_test(t, between_fork_and_exec);
	tcase_add_test(t, probe_leaves_no_trace);
	tcase_add_test(t, probe_without_room);
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
