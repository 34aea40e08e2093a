/* The main job, live: three hooked jobs, ksmctl to merge them, ksmstat before and after. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ksmctl/state.h"
#include "sysfs/ksmd.h"
#include "sysfs/smaps.h"
#include "tests/demo/job.h"
#include "tests/demo/service.h"
#include "tests/live/guard.h"

#define JOBS 3
#define BASELINE_S 10
#define MERGE_MAX_S 120 /* emulated machines take that long; others rest after five */
#define AFTER_S 10
#define PAGES_PER_MIB ((1 << 20) / page_bytes)

static char programs[PATH_MAX]; /* where ksmctl and ksmstat are */
static long page_bytes;
static volatile sig_atomic_t stop_signal;

static pid_t jobs[JOBS];
static struct job_report *reports;
static struct service service;

/* Events of all jobs in one span of time. */
struct speed {
	double cpu_ms, wall_ms; /* per event */
};

static void on_signal(int number)
{
	stop_signal = number;
}

static void end_jobs(void)
{
	for (int i = 0; i < JOBS; i++) {
		if (jobs[i] <= 0)
			continue;
		kill(jobs[i], SIGKILL);
		while (waitpid(jobs[i], NULL, 0) < 0 && errno == EINTR)
			;
	}
}

/* True while nobody interrupted and every job lives. */
static bool going(void)
{
	if (stop_signal)
		return false;
	for (int i = 0; i < JOBS; i++) {
		int status;
		if (jobs[i] > 0 && waitpid(jobs[i], &status, WNOHANG) == jobs[i]) {
			fprintf(stderr, "demo: job %d ended early (wait status %#x)\n", i, status);
			jobs[i] = 0;
			stop_signal = SIGCHLD;
			return false;
		}
	}
	return true;
}

static bool pause_ms(int ms)
{
	for (; ms > 0; ms -= 100) {
		if (!going())
			return false;
		usleep(100 * 1000);
	}
	return going();
}

/* Run a program beside this one with the job PIDs as its last argument when `pids`. Shows the command. */
static bool show(const char *program, const char *const *arguments, bool pids)
{
	char path[PATH_MAX + 32], list[128] = "";
	char *argv[16];
	int argc = 0;

	for (int i = 0; i < JOBS && pids; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%d", i ? "," : "",
			(int)jobs[i]);
	snprintf(path, sizeof(path), "%s/%s", programs, program);
	printf("\n$ %s", program);
	argv[argc++] = path;
	for (; *arguments; arguments++) {
		printf(" %s", *arguments);
		argv[argc++] = (char *)*arguments;
	}
	if (pids) {
		printf(" -p %s", list);
		argv[argc++] = (char *)"-p";
		argv[argc++] = list;
	}
	argv[argc] = NULL;
	putchar('\n');
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		execv(path, argv);
		perror(path);
		_exit(127);
	}
	int status = -1;
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool start_jobs(void)
{
	int fd = memfd_create("job reports", 0);
	size_t bytes = JOBS * sizeof(*reports);
	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
		return false;
	reports = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (reports == MAP_FAILED)
		return false;
	for (int i = 0; i < JOBS; i++) {
		char path[PATH_MAX + 32], number[12], report[12];
		snprintf(path, sizeof(path), "%s/tests/job", programs);
		snprintf(number, sizeof(number), "%d", i);
		snprintf(report, sizeof(report), "%d", fd);
		jobs[i] = fork();
		if (jobs[i] == 0) {
			/* The kernel frees zeros in a huge page that it splits, and no counter has them. */
			prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
			execl(path, "job", number, report, (char *)NULL);
			perror(path);
			_exit(127);
		}
		if (jobs[i] < 0)
			return false;
	}
	close(fd);
	for (int i = 0; i < JOBS; i++) {
		while (!atomic_load(&reports[i].ready)) {
			if (!pause_ms(100))
				return false;
		}
	}
	return true;
}

/* Sums of all reports; the speed of a span is the difference of two sums. */
static void sum_reports(uint64_t sums[3])
{
	memset(sums, 0, 3 * sizeof(*sums));
	for (int i = 0; i < JOBS; i++) {
		sums[0] += atomic_load(&reports[i].events);
		sums[1] += atomic_load(&reports[i].event_cpu_ns);
		sums[2] += atomic_load(&reports[i].event_wall_ns);
	}
}

static struct speed speed_since(const uint64_t before[3])
{
	uint64_t now[3];
	sum_reports(now);
	double events = now[0] > before[0] ? (double)(now[0] - before[0]) : 1;
	return (struct speed){ .cpu_ms = (double)(now[1] - before[1]) / events / 1e6,
		.wall_ms = (double)(now[2] - before[2]) / events / 1e6 };
}

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double ksmd_s(const struct ksmd *ksmd)
{
	uint64_t cpu_ns;
	return ksmd->fd >= 0 && !ksmd_cpu_ns(ksmd, &cpu_ns) ? (double)cpu_ns / 1e9 : 0;
}

static double mib(int64_t pages)
{
	return (double)pages * (double)page_bytes / (1 << 20);
}

/* What the jobs' own page counts allow to save, in pages, with zero pages merged as such or not. */
static int64_t possible_pages(bool zero_pages)
{
	int64_t equal = (int64_t)JOB_EQUAL_MIB * PAGES_PER_MIB * (JOBS - 1);
	int64_t zero = (int64_t)JOB_ZERO_MIB * PAGES_PER_MIB * JOBS;
	return equal + (zero_pages ? zero : zero - (zero + 255) / 256);
}

/* What merging saved of the jobs' memory, as ksmstat counts it: others may merge at the same time. */
static int64_t saved_pages(void)
{
	struct root root;
	int64_t kib = 0;
	if (root_open(&root, NULL))
		return 0;
	for (int i = 0; i < JOBS; i++) {
		struct proc proc;
		struct smaps_sum sum = { 0 };
		struct proc_ksm ksm;
		if (proc_open(&proc, &root, jobs[i]))
			continue;
		if (!smaps_read(&proc, smaps_add, &sum))
			kib += (int64_t)sum.saved_kib;
		if (!proc_read_ksm_stat(&proc, &ksm))
			kib += ksm.zero_pages * (page_bytes >> 10);
		proc_close(&proc);
	}
	root_close(&root);
	return kib / (page_bytes >> 10);
}

/* Watch until the service rests, or the time is over. Returns pages saved. */
static int64_t watch_merging(const struct ksmd *ksmd, int64_t possible)
{
	double start = now_s(), cpu = ksmd_s(ksmd), shown = 0;
	bool terminal = isatty(STDOUT_FILENO), resting = false;
	int64_t saved = 0;
	char phase[16];

	while (!resting && pause_ms(400) && now_s() - start < MERGE_MAX_S) {
		double took = now_s() - start;
		saved = saved_pages();
		resting = !strcmp(service_phase(&service, phase, sizeof(phase)), "parked") &&
			  saved > 0;
		if (!terminal && took - shown < 1 && !resting)
			continue;
		printf("%s%5.1f s  %-8s %3d %%  %6.1f MiB saved  ksmd %.2f s CPU%s",
			terminal ? "\r\033[K" : "", took, phase, (int)(saved * 100 / possible),
			mib(saved), ksmd_s(ksmd) - cpu, terminal && !resting ? "" : "\n");
		fflush(stdout);
		shown = took;
	}
	return saved;
}

static void print_speed(const char *name, struct speed now, struct speed before)
{
	printf("  %-16s CPU per event %.2f ms, %.3f of before; time %.2f ms, %.3f of before\n",
		name, now.cpu_ms, now.cpu_ms / before.cpu_ms, now.wall_ms,
		now.wall_ms / before.wall_ms);
}

/* Merge the jobs' memory and report. Returns an exit code; the guard is held. */
static int merge_demo(void)
{
	struct root root;
	struct ksmd ksmd = { .fd = -1 };
	uint64_t mark[3];
	int64_t use_zero_pages;
	bool zero_pages = ksm_get(guard_ksm(), KSM_USE_ZERO_PAGES, &use_zero_pages) == 0;
	int64_t possible = possible_pages(zero_pages);

	if (!root_open(&root, NULL)) {
		if (ksmd_open(&ksmd, &root))
			ksmd.fd = -1;
		root_close(&root);
	}
	sum_reports(mark);
	printf("The jobs work for %d s without merging.\n", BASELINE_S);
	fflush(stdout);
	if (!pause_ms(BASELINE_S * 1000))
		return 1;
	struct speed before = speed_since(mark);
	static const char *const none[] = { NULL };
	if (!show("ksmstat", none, true))
		return 1;

	printf("\n$ ksmctl daemon &\n");
	fflush(stdout);
	double cpu = ksmd_s(&ksmd);
	int err = service_start(&service, programs, guard_ksm()->fd);
	if (err) {
		fprintf(stderr, "demo: the service could not be started: %s\n", strerror(-err));
		return 1;
	}
	sum_reports(mark);
	watch_merging(&ksmd, possible);
	struct speed during = speed_since(mark);
	double merge_cpu = ksmd_s(&ksmd) - cpu;
	sum_reports(mark);
	if (!pause_ms(AFTER_S * 1000) || !show("ksmstat", none, true))
		return 1;
	int64_t saved = saved_pages();
	struct speed after = speed_since(mark);

	const char *const why[] = { "why", "-c", service.config, NULL };
	show("ksmctl", why, false);

	uint64_t damaged = 0;
	for (int i = 0; i < JOBS; i++)
		damaged += atomic_load(&reports[i].damaged);
	printf("\nSaved   %.1f MiB of %.1f MiB possible (%.1f %%)", mib(saved), mib(possible),
		100.0 * (double)saved / (double)possible);
	printf("; of %d MiB of data %.0f %% were merged\n",
		JOBS * (JOB_EQUAL_MIB + JOB_UNIQUE_MIB + JOB_ZERO_MIB + JOB_CHANGING_MIB),
		100.0 * (mib(saved) + JOB_EQUAL_MIB) /
			(JOBS * (JOB_EQUAL_MIB + JOB_UNIQUE_MIB + JOB_ZERO_MIB +
					JOB_CHANGING_MIB)));
	printf("Cost    %.2f s CPU of ksmd\n", merge_cpu);
	puts("Jobs");
	print_speed("while merging", during, before);
	print_speed("afterwards", after, before);
	printf("  events that read wrong data: %" PRIu64 "\n", damaged);
	if (saved * 100 < possible * 95) {
		fprintf(stderr, "demo: less than 95 %% of the possible was saved\n");
		return 1;
	}
	return damaged != 0;
}

/* Where KSM cannot be used: what it would save, from the pages themselves. */
static int estimate_demo(int err)
{
	const char *why = err == -ENOENT  ? "this kernel has no KSM, or /sys is hidden"
			  : err == -EROFS ? "/sys is read-only here, as in a container"
					  : "writing the knobs needs root";
	printf("KSM cannot be used (%s), so this shows what merging would save.\n", why);
	static const char *const none[] = { NULL }, *const estimate[] = { "--estimate", NULL };
	printf("The jobs' own page counts: %.1f MiB can be saved, %d MiB of it in zero pages.\n",
		mib(possible_pages(true)), JOB_ZERO_MIB * JOBS);
	return show("ksmstat", none, true) && show("ksmstat", estimate, true) ? 0 : 1;
}

/* The machine's own service would do the merging here, and take ours for a foreign controller. */
static bool service_of_system(void)
{
	struct state_dir dir;
	pid_t holder = state_open(&dir, "/run/ksmctl", false) ? -ESRCH : state_holder(&dir);
	state_close(&dir);
	if (holder > 0)
		fprintf(stderr,
			"demo: the ksmctl service runs (PID %d): stop it for the demonstration\n",
			(int)holder);
	return holder > 0;
}

int main(int argc, char **argv)
{
	if (argc != 1) {
		fputs("usage: demo (no arguments; 'make demo' runs it)\n", stderr);
		return 2;
	}
	ssize_t len = readlink("/proc/self/exe", programs, sizeof(programs) - 1);
	if (len < 0) {
		perror("demo: /proc/self/exe");
		return 1;
	}
	(void)argv;
	dirname(dirname(programs));
	page_bytes = sysconf(_SC_PAGESIZE);
	struct sigaction action = { .sa_handler = on_signal };
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);

	if (service_of_system())
		return 1;
	int guard_err = guard_take(), code;
	printf("Starting %d jobs of %d MiB each, whose allocator registers its memory.\n", JOBS,
		JOB_EQUAL_MIB + JOB_UNIQUE_MIB + JOB_ZERO_MIB + JOB_CHANGING_MIB);
	fflush(stdout);
	if (!start_jobs()) {
		if (!stop_signal)
			fprintf(stderr, "demo: the jobs could not be started: %s\n",
				strerror(errno));
		code = 1;
	} else {
		code = guard_err ? estimate_demo(guard_err) : merge_demo();
	}
	if (service.pid > 0 && service_stop(&service) != 0) {
		fprintf(stderr, "demo: the service did not stop in order\n");
		code = 1;
	}
	end_jobs();
	if (!guard_err) {
		int err = guard_release();
		if (err)
			code = 1;
		else
			puts(stop_signal ? "\nInterrupted; the kernel is as it was found."
					 : "The kernel is as it was found.");
	}
	return stop_signal && stop_signal != SIGCHLD ? 128 + stop_signal : code;
}
