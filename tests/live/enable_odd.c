/* Live: opting in from outside what is stopped, traced, filtered, stuck, gone, or none of the caller's. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/capability.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "tests/live/enable.h"

static void live_pause(void)
{
	ready();
	for (;;)
		pause();
}

START_TEST(refused)
{
	struct inject_report report;
	int status;

	ck_assert_int_eq(result_for(getpid()), INJECT_SELF);
	struct proc proc = open_target(getpid());
	if (access("/proc/2/stat", F_OK) == 0 && state_of(2) == 'S' && getpid() != 2) {
		struct proc_stat stat;
		struct proc two = open_target(2);
		if (!proc_read_stat(&two, &stat) && stat.kernel_thread)
			ck_assert_int_eq(result_for(2), INJECT_KERNEL_THREAD);
		proc_close(&two);
	}
	proc_close(&proc);

	pid_t pid = start_target(live_pause);
	proc = open_target(pid);
	kill(pid, SIGKILL);
	UNTIL(state_of(pid) == 'Z');
	ck_assert_int_eq(result_for(pid), INJECT_ZOMBIE);
	waitpid(pid, &status, 0);
	struct inject_options options = { .timeout_ms = TIMEOUT_MS };
	ck_assert_int_eq(inject_memory_merge(&proc, true, &options, &report), INJECT_GONE);
	proc_close(&proc);
}
END_TEST

/* A number that now belongs to another process: the handle is of the one before. */
START_TEST(reused_number)
{
	struct inject_report report;
	struct inject_options options = { .timeout_ms = TIMEOUT_MS };
	pid_t pid = start_target(live_pause);
	struct proc proc = open_target(pid);
	kill_target(pid);

	pid_t wanted = pid;
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&wanted, .set_tid_size = 1
	};
	pid_t second = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (second == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	if (second < 0) {
		tap_skip("a number cannot be chosen here: %s", strerror(errno));
		proc_close(&proc);
		return;
	}
	ck_assert_int_eq(second, pid);
	ck_assert_int_eq(inject_memory_merge(&proc, true, &options, &report), INJECT_GONE);
	ck_assert_int_ne(flag_of(second), 1);
	proc_close(&proc);
	kill_target(second);
}
END_TEST

START_TEST(traced)
{
	struct inject_report report;
	pid_t pid = start_target(live_spin);
	int fds[2], status;
	char byte;
	ck_assert_int_eq(pipe(fds), 0);
	pid_t tracer = fork();
	if (tracer == 0) {
		if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0)
			_exit(1);
		if (write(fds[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	ck_assert_int_eq(read(fds[0], &byte, 1), 1);
	ck_assert_int_eq(inject(pid, true, TIMEOUT_MS, &report), INJECT_TRACED);
	ck_assert_int_eq(report.tracer, tracer);
	kill(tracer, SIGKILL);
	waitpid(tracer, &status, 0);
	switched(pid, true);
	ck_assert_int_eq(end_target(pid), 0);
	check_board("traced");
}
END_TEST

/* In a process that gave up what root can do. */
static int without_rights(pid_t pid, cap_value_t dropped, uid_t uid)
{
	int status;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		cap_t caps = cap_get_proc();
		cap_set_flag(caps, CAP_EFFECTIVE, 1, &dropped, CAP_CLEAR);
		cap_set_flag(caps, CAP_PERMITTED, 1, &dropped, CAP_CLEAR);
		if (cap_set_proc(caps) < 0 || (uid && setresuid(uid, uid, uid) < 0))
			_exit(99);
		_exit((int)result_for(pid));
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

START_TEST(of_another_user)
{
	if (geteuid() != 0) {
		tap_skip("only root can be another user");
		return;
	}
	pid_t pid = start_target(live_pause);
	ck_assert_int_eq(without_rights(pid, CAP_SYS_ADMIN, 65534), INJECT_DENIED);
	ck_assert_int_ne(flag_of(pid), 1);
	kill_target(pid);
}
END_TEST

/* --- a filter that kills whoever calls prctl */

static void live_filtered(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(1);
	live_spin();
	prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
}

START_TEST(filtered)
{
	pid_t pid = start_target(live_filtered);
	ck_assert_int_eq(status_number(pid, "Seccomp:"), 2);
	ck_assert_int_eq(geteuid() ? (int)result_for(pid) : without_rights(pid, CAP_SYS_ADMIN, 0),
		INJECT_SECCOMP);
	ck_assert_int_eq(state_of(pid), 'R');
	if (geteuid() == 0)
		switch_many("filtered", pid, 20);
	else
		tap_skip("only root can suspend a filter");
	ck_assert_int_eq(status_number(pid, "Seccomp:"), 2);
	long before = atomic_load(&board->rounds);
	UNTIL(atomic_load(&board->rounds) > before);
	/* The filter is at work again. */
	int status = end_target(pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}
END_TEST

/* --- stopped, as by Ctrl-Z */

static int stop_events(pid_t pid)
{
	siginfo_t info = { 0 };
	waitid(P_PID, (id_t)pid, &info, WSTOPPED | WCONTINUED | WNOHANG);
	return info.si_pid ? info.si_code : 0;
}

START_TEST(stopped)
{
	int status;
	pid_t pid = start_target(live_spin);
	kill(pid, SIGSTOP);
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	ck_assert(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	long before = atomic_load(&board->rounds);
	for (int i = 0; i < 20; i++) {
		switched(pid, i % 2 == 0);
		UNTIL(state_of(pid) == 'T');
		ck_assert_int_eq(stop_events(pid), 0);
	}
	sleep_us(10000);
	ck_assert_int_eq(atomic_load(&board->rounds), before);
	kill(pid, SIGCONT);
	UNTIL(atomic_load(&board->rounds) > before);
	ck_assert_int_eq(stop_events(pid), CLD_CONTINUED);
	kill(pid, SIGTSTP); /* and can be stopped again */
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	ck_assert(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTSTP);
	kill(pid, SIGCONT);
	ck_assert_int_eq(end_target(pid), 0);
	check_board("stopped");
}
END_TEST

/* Stopped and continued by somebody else all the while, with calls to restart. */
START_TEST(stopped_meanwhile)
{
	pid_t pid = start_target(_i ? live_naps : live_spin);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0;; i++) {
			kill(pid, i % 2 ? SIGCONT : i % 4 ? SIGTSTP : SIGSTOP);
			sleep_us(37 * (1 + i % 29));
		}
	}
	for (int i = 0; i < 300; i++)
		switched(pid, i % 2 == 0);
	kill_target(child);
	kill(pid, SIGCONT);
	ck_assert_int_eq(end_target(pid), 0);
	check_board("stopped meanwhile");
}
END_TEST

/* --- a parent in vfork(2) does not stop before its child lets it */

static void live_vfork(void)
{
	pid_t child = vfork();
	if (child == 0) {
		ready();
		while (go_on())
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		_exit(7);
	}
	int status;
	if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7)
		WRONG("the child's status is %x", status);
	atomic_fetch_add(&board->rounds, 1);
}

START_TEST(in_vfork)
{
	struct inject_report report;
	pid_t pid = start_target(live_vfork);
	int64_t from = now_us();
	ck_assert_int_eq(inject(pid, true, 200, &report), INJECT_TIMEOUT);
	ck_assert_int_ge(now_us() - from, 190000);
	ck_assert_int_le(now_us() - from, 1000000);
	ck_assert_int_eq(status_number(pid, "TracerPid:"), 0);
	ck_assert_int_eq(end_target(pid), 0);
	check_board("vfork");
}
END_TEST

static void *thread_vfork(void *arg)
{
	(void)arg;
	live_vfork();
	return NULL;
}

static void live_vfork_thread(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, thread_vfork, NULL);
	pthread_join(thread, NULL);
}

START_TEST(in_vfork_one_thread)
{
	pid_t pid = start_target(live_vfork_thread);
	switch_many("one thread in vfork, one in futex", pid, 20);
	ck_assert_int_eq(end_target(pid), 0);
	check_board("vfork in a thread");
}
END_TEST

/* --- the end of the wait, and of the one who waits */

START_TEST(cancelled)
{
	pid_t pid = start_target(live_vfork);
	int status;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		struct inject_report report;
		inject(pid, true, 60000, &report);
		_exit(report.result == INJECT_CANCELLED && report.signal == SIGINT ? 0 : 1);
	}
	UNTIL(status_number(pid, "TracerPid:") != 0);
	int64_t from = now_us();
	kill(child, SIGINT);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_int_le(now_us() - from, 500000);
	ck_assert_int_eq(status_number(pid, "TracerPid:"), 0);
	ck_assert_int_eq(end_target(pid), 0);
	check_board("cancelled");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("enable_odd");
	TCase *t = tcase_create("enable_odd");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, enable_setup, NULL);
	tcase_add_test(t, refused);
	tcase_add_test(t, reused_number);
	tcase_add_test(t, traced);
	tcase_add_test(t, of_another_user);
	tcase_add_test(t, filtered);
	tcase_add_test(t, stopped);
	tcase_add_loop_test(t, stopped_meanwhile, 0, 2);
	tcase_add_test(t, in_vfork);
	tcase_add_test(t, in_vfork_one_thread);
	tcase_add_test(t, cancelled);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return enable_main(suite());
}
