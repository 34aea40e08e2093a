/* Live: opting in from outside programs that change meanwhile, or are in the middle of something delicate. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#include "tests/live/enable.h"

START_TEST(caller_killed)
{
	pid_t pid = start_target(_i ? live_naps : live_spin);
	srandom(1);
	for (int i = 0; i < 100; i++) {
		fflush(NULL);
		pid_t child = fork();
		if (child == 0) {
			for (int k = 0;; k++)
				result_for(pid), inject(pid, false, TIMEOUT_MS,
							 &(struct inject_report){ 0 });
		}
		sleep_us(500 + random() % 3000);
		kill_target(child);
	}
	UNTIL(result_for(pid) != INJECT_TRACED); /* the last one's child may be about to begin */
	sleep_us(20000);
	long before = atomic_load(&board->rounds);
	UNTIL(atomic_load(&board->rounds) > before);
	switched(pid, true);
	switched(pid, false);
	ck_assert_int_eq(end_target(pid), 0);
	check_board("caller killed");
}
END_TEST

/* --- programs that change while they are looked at */

static void live_exec(void)
{
	ready();
	execl("/proc/self/exe", "enable_delicate", "exec", "400", NULL);
}

static int role_exec(const char *left)
{
	char text[16];
	int n = atoi(left);
	usleep(500);
	if (n == 0)
		return 0;
	snprintf(text, sizeof(text), "%d", n - 1);
	execl("/proc/self/exe", "enable_delicate", "exec", text, NULL);
	return 1;
}

START_TEST(executing)
{
	struct inject_report report;
	pid_t pid = start_target(live_exec);
	int status, n[2] = { 0, 0 };
	while (waitpid(pid, &status, WNOHANG) == 0) {
		enum inject_result result = inject(pid, true, TIMEOUT_MS, &report);
		ck_assert_msg(
			result == INJECT_DONE || result == INJECT_GONE || result == INJECT_ZOMBIE,
			"result %d, %s", (int)result, strerror(-report.err));
		n[result != INJECT_DONE]++;
	}
	printf("# execve over and over: %d times done, %d times too late\n", n[0], n[1]);
	ck_assert_int_eq(status, 0);
	ck_assert_int_gt(n[0], 20);
}
END_TEST

static void *thread_nothing(void *arg)
{
	atomic_fetch_add(&board->rounds, 1);
	return arg;
}

static void *thread_churn(void *arg)
{
	(void)arg;
	ready();
	while (go_on()) {
		pthread_t thread;
		void *result;
		if (pthread_create(&thread, NULL, thread_nothing, board) ||
			pthread_join(thread, &result) || result != board)
			WRONG("a thread failed");
	}
	exit(0);
}

/* The main thread has exited, the others come and go. */
static void live_churn(void)
{
	pthread_t thread;
	for (int i = 0; i < 4; i++)
		pthread_create(&thread, NULL, thread_churn, NULL);
	pthread_exit(NULL);
}

START_TEST(threads_come_and_go)
{
	struct inject_report report;
	pid_t pid = start_target(live_churn);
	int gone = 0;
	for (int i = 0; i < 200; i++) {
		enum inject_result result = inject(pid, i % 2 == 0, TIMEOUT_MS, &report);
		ck_assert_msg(result == INJECT_DONE || result == INJECT_GONE, "result %d, %s",
			(int)result, strerror(-report.err));
		gone += result == INJECT_GONE;
	}
	printf("# threads that come and go: 200 times, %d of them too late\n", gone);
	ck_assert_int_le(gone, 10);
	ck_assert_int_eq(end_target(pid), 0);
	check_board("threads");
}
END_TEST

/* --- a call that takes long */

static _Atomic int told;

static void tell(void *data)
{
	(void)data;
	atomic_store(&told, 1);
}

/* As much as takes a second or so to unmerge. */
static void live_big(void)
{
	const size_t step = (size_t)2 << 20, len = 8192 * step;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED || madvise(p, len, MADV_NOHUGEPAGE))
		_exit(1);
	/* so that there are page tables to go through, and no more memory than that */
	for (size_t at = 0; at < len; at += step)
		((volatile char *)p)[at] = 1;
	live_spin();
}

START_TEST(unmerging_long)
{
	struct inject_options options = { .timeout_ms = 20, .waiting = tell };
	struct inject_report report;
	pid_t pid = start_target(live_big);
	switched(pid, true);

	/* Cancelled on the way: as it was. */
	int status;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		inject(pid, false, TIMEOUT_MS, &report);
		_exit((int)report.result);
	}
	UNTIL(status_number(pid, "TracerPid:") != 0);
	sleep_us(60000);
	kill(child, SIGTERM);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	if (WEXITSTATUS(status) == INJECT_DONE) {
		tap_skip("unmerging is too fast here to be cancelled");
	} else {
		ck_assert_int_eq(WEXITSTATUS(status), INJECT_CANCELLED);
		ck_assert_int_ne(flag_of(pid), 0);
	}

	/* Not cancelled: waited for, and said so. */
	struct proc proc = open_target(pid);
	ck_assert_int_eq(inject_memory_merge(&proc, false, &options, &report), INJECT_DONE);
	proc_close(&proc);
	printf("# unmerging 16 GiB of addresses: %ld ms\n", (long)(report.stops_us / 1000));
	ck_assert_int_le(flag_of(pid), 0);
	if (report.stops_us > 150000)
		ck_assert_int_eq(atomic_load(&told), 1);
	ck_assert_int_eq(end_target(pid), 0);
	check_board("big");
}
END_TEST

/* --- restartable sequences, and emulated system calls: x86-64 */

#ifdef __x86_64__
#include <sys/rseq.h>

static struct {
	_Atomic long done;
	long value;
} counter;

/*
 * value++ that is only right when no other thread of this CPU ran in between: the kernel sees to
 * it by starting over. Long enough to be met in the middle most of the time.
 */
static bool add_one(struct rseq *rseq)
{
	__asm__ goto(".pushsection __rseq_cs, \"aw\"\n"
		     ".balign 32\n"
		     "3: .long 0, 0\n"
		     ".quad 1f, 2f - 1f, 4f\n"
		     ".popsection\n"
		     "leaq 3b(%%rip), %%rax\n"
		     "movq %%rax, %[cs]\n"
		     "1:\n"
		     "movq %[value], %%rax\n"
		     "movl $20000, %%ecx\n"
		     "5: decl %%ecx\n"
		     "jnz 5b\n"
		     "incq %%rax\n"
		     "movq %%rax, %[value]\n"
		     "2:\n"
		     ".pushsection __rseq_failure, \"ax\"\n"
		     ".byte 0x0f, 0xb9, 0x3d\n"
		     ".long 0x53053053\n"
		     "4: jmp %l[aborted]\n"
		     ".popsection\n"
		     :
		     : [cs] "m"(rseq->rseq_cs), [value] "m"(counter.value)
		     : "rax", "rcx", "memory", "cc"
		     : aborted);
	return true;
aborted:
	return false;
}

static void *thread_rseq(void *arg)
{
	struct rseq *rseq = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	(void)arg;
	while (go_on()) {
		if (add_one(rseq))
			atomic_fetch_add(&counter.done, 1);
		else
			atomic_fetch_add(&board->interrupted, 1);
		atomic_fetch_add(&board->rounds, 1);
	}
	return NULL;
}

static void live_rseq(void)
{
	pthread_t thread;
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		_exit(1);
	pthread_create(&thread, NULL, thread_rseq, NULL);
	ready();
	thread_rseq(NULL);
	pthread_join(thread, NULL);
	if (counter.value != atomic_load(&counter.done))
		WRONG("%ld of %ld sums were lost", atomic_load(&counter.done) - counter.value,
			atomic_load(&counter.done));
}

START_TEST(restartable_sequences)
{
	if (!__rseq_size) {
		tap_skip("this C library registers no rseq");
		return;
	}
	pid_t pid = start_target(live_rseq);
	for (int i = 0; i < 100; i++)
		switched(pid, i % 2 == 0);
	ck_assert_int_eq(end_target(pid), 0);
	printf("# restartable sequences: %ld, of these aborted %ld\n", atomic_load(&board->rounds),
		atomic_load(&board->interrupted));
	check_board("rseq");
}
END_TEST

static volatile char selector;

static void on_sigsys(int signal_no)
{
	(void)signal_no;
	selector = 0; /* SYSCALL_DISPATCH_FILTER_ALLOW */
	atomic_fetch_add(&board->signals, 1);
}

/* As Wine does it: every system call becomes a signal. */
static void live_dispatch(void)
{
	signal(SIGSYS, on_sigsys);
	ready();
	if (prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1UL, 0UL, 0UL, &selector))
		_exit(77);
	selector = 1;
	while (go_on())
		atomic_fetch_add(&board->rounds, 1);
	syscall(SYS_getppid); /* one signal */
	selector = 0;
}

START_TEST(dispatched_calls)
{
	pid_t pid = start_target(live_dispatch);
	sleep_us(20000);
	for (int i = 0; i < 50 && state_of(pid) != 'Z'; i++)
		switched(pid, i % 2 == 0);
	ck_assert_int_eq(atomic_load(&board->signals), 0);
	int status = end_target(pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		tap_skip("this kernel does not dispatch calls to programs");
		return;
	}
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(atomic_load(&board->signals), 1);
	check_board("dispatch");
}
END_TEST
#endif

static Suite *suite(void)
{
	Suite *s = suite_create("enable_delicate");
	TCase *t = tcase_create("enable_delicate");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, enable_setup, NULL);
	tcase_add_loop_test(t, caller_killed, 0, 2);
	tcase_add_test(t, executing);
	tcase_add_test(t, threads_come_and_go);
	tcase_add_test(t, unmerging_long);
#ifdef __x86_64__
	tcase_add_test(t, restartable_sequences);
	tcase_add_test(t, dispatched_calls);
#endif
	suite_add_tcase(s, t);
	return s;
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "exec"))
		return role_exec(argv[2]);
	return enable_main(suite());
}
