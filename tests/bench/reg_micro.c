/* What a call of the hook costs: switched off, and in growth, against a bare madvise. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libksmreg/ksmreg.h"
#include "tests/bench/reg_growth.h"
#include "tests/bench/reg_stat.h"

#define OFF_NS_MOST 5.0
#define GROWTH_MOST 1.05      /* of a bare madvise */
#define RESERVATION_MOST 1.02 /* of no library: nothing is done per growth */
#define AREAS_MOST \
	2 /* more than with no library: one reservation may lie apart from its neighbours */

#define THREADS_MAX 4
#define GROWTHS 64 /* in one measured block, all threads together */
#define ROUNDS_MAX 2000
#define OFF_CALLS 100000
#define OFF_REPEATS 101

static struct {
	int rounds;
	const char *library;
} options = { .rounds = 300 };

static bool any_missed;

static void print(struct row row, double *values, int n)
{
	reg_stat_row(&row, values, n);
	any_missed |= reg_stat_print(&row);
}

/* madvise fails as in a kernel without KSM. */
static void without_ksm(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("seccomp");
		exit(1);
	}
}

static void by_environment(void)
{
	setenv("KSMREG", "off", 1);
}

static void by_caller(void)
{
	ksmreg_set_enabled(0);
}

static const struct {
	const char *name;
	void (*switch_off)(void);
	bool shared; /* through libksmreg.so */
} off_cases[] = {
	{ "off: KSMREG=off", by_environment, false },
	{ "off: KSMREG=off, shared library", by_environment, true },
	{ "off: kernel without KSM", without_ksm, false },
	{ "off: ksmreg_set_enabled(0)", by_caller, false },
};

typedef int (*hook_function)(void *addr, size_t len);

static hook_function shared_hook(void)
{
	void *library = dlopen(options.library, RTLD_NOW);
	void *symbol = library ? dlsym(library, "ksmreg_register") : NULL;

	if (!symbol) {
		fprintf(stderr, "reg_micro: %s\n", dlerror());
		exit(1);
	}
	return (hook_function)symbol;
}

/* In a process of its own, for the state is the process's. */
static void off_case(int which)
{
	char *p = mmap(NULL, 2 * PIECE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	hook_function hook = off_cases[which].shared ? shared_hook() : ksmreg_register;
	double ns[OFF_REPEATS];

	off_cases[which].switch_off();
	hook(p, PIECE);
	if (hook(p, PIECE) != -EOPNOTSUPP) {
		fprintf(stderr, "reg_micro: %s: the hook is not off\n", off_cases[which].name);
		exit(1);
	}
	for (int i = 0; i < OFF_REPEATS; i++) {
		uint64_t begin = growth_now_ns();

		for (int n = 0; n < OFF_CALLS; n++)
			hook(p, PIECE);
		ns[i] = (double)(growth_now_ns() - begin) / OFF_CALLS;
	}
	print((struct row){ .group = "hook",
		      .name = off_cases[which].name,
		      .what = "time",
		      .unit = "ns",
		      .kind = LIMIT_MOST,
		      .limit = OFF_NS_MOST },
		ns, OFF_REPEATS);
}

/* The threads of one block, and what it took. */
struct block {
	pthread_barrier_t start, end;
	struct growth growth[THREADS_MAX];
	int threads;
	bool stop;
};

struct worker {
	struct block *block;
	int number;
};

static void *work(void *data)
{
	struct worker *worker = data;
	struct block *block = worker->block;

	for (;;) {
		pthread_barrier_wait(&block->start);
		if (block->stop)
			return NULL;
		growth_run(&block->growth[worker->number]);
		pthread_barrier_wait(&block->end);
	}
}

enum { WALL, CPU, CALL, TIMES };

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* One block of growths by all threads. Time in ns, of one growth. */
static void measure(struct block *block, enum pattern pattern, enum offer offer, double *times)
{
	const int growths = GROWTHS / block->threads;
	uint64_t begin, call = 0;
	double cpu;

	for (int i = 0; i < block->threads; i++) {
		block->growth[i] = (struct growth){ .pattern = pattern,
			.offer = offer,
			.growths = growths,
			.touched = PIECE / 4096 };
		growth_begin(&block->growth[i]);
	}
	cpu = cpu_ns();
	begin = growth_now_ns();
	pthread_barrier_wait(&block->start);
	pthread_barrier_wait(&block->end);
	times[WALL] = (double)(growth_now_ns() - begin) / GROWTHS;
	times[CPU] = (cpu_ns() - cpu) / GROWTHS;
	for (int i = 0; i < block->threads; i++) {
		call += block->growth[i].call_ns;
		growth_end(&block->growth[i]);
	}
	times[CALL] = (double)call / GROWTHS;
}

static double ratios[OFFERS][OFFERS][TIMES][ROUNDS_MAX];
static double absolute[OFFERS][TIMES][ROUNDS_MAX];

/* Every offer in every round, in another order each time. */
static void rounds(struct block *block, enum pattern pattern)
{
	double times[OFFERS][TIMES];

	for (int round = -2; round < options.rounds; round++) {
		for (int i = 0; i < OFFER_LATE; i++) {
			int offer = round % 2 ? (round + 2 + i) % OFFER_LATE
					      : (round + 4 - i) % OFFER_LATE;

			measure(block, pattern, offer, times[offer]);
		}
		for (int a = 0; round >= 0 && a < OFFER_LATE; a++) {
			for (int t = 0; t < TIMES; t++) {
				absolute[a][t][round] = times[a][t];
				for (int b = 0; b < OFFER_LATE; b++)
					ratios[a][b][t][round] = times[a][t] / times[b][t];
			}
		}
	}
}

static void growth_rows(enum pattern pattern, int threads)
{
	static const char *const what[TIMES] = { "wall", "cpu", "call" };
	const bool pieces = pattern == PATTERN_PIECES;
	struct row row = { .group = "growth" };
	char name[80];

	for (int t = 0; t < (pieces ? TIMES : CALL); t++) {
		row.what = what[t];
		row.unit = "ratio";
		row.name = name;
		snprintf(name, sizeof(name), "%s, %d threads: hook / %s",
			growth_pattern_name[pattern], threads, pieces ? "bare madvise" : "nothing");
		row.kind = t == CALL ? LIMIT_NONE : LIMIT_MOST;
		row.limit = pieces ? GROWTH_MOST : RESERVATION_MOST;
		print(row, ratios[OFFER_HOOK][pieces ? OFFER_BARE : OFFER_NONE][t], options.rounds);
		row.kind = LIMIT_NONE;
		if (pieces && t < CALL) {
			snprintf(name, sizeof(name), "%s, %d threads: hook / nothing",
				growth_pattern_name[pattern], threads);
			print(row, ratios[OFFER_HOOK][OFFER_NONE][t], options.rounds);
		}
		row.unit = "ns";
		for (int a = 0; t == CALL && a < OFFER_LATE; a++) {
			snprintf(name, sizeof(name), "%s, %d threads: %s",
				growth_pattern_name[pattern], threads, growth_offer_name[a]);
			print(row, absolute[a][t], options.rounds);
		}
	}
}

static void growth_case(enum pattern pattern, int threads)
{
	struct block block = { .threads = threads };
	struct worker workers[THREADS_MAX];
	pthread_t ids[THREADS_MAX];

	pthread_barrier_init(&block.start, NULL, threads + 1);
	pthread_barrier_init(&block.end, NULL, threads + 1);
	for (int i = 0; i < threads; i++) {
		workers[i] = (struct worker){ &block, i };
		if (pthread_create(&ids[i], NULL, work, &workers[i]))
			exit(1);
	}
	rounds(&block, pattern);
	block.stop = true;
	pthread_barrier_wait(&block.start);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	growth_rows(pattern, threads);
}

static long areas(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	long lines = 0;

	if (!f)
		exit(1);
	for (int c; (c = getc(f)) != EOF;)
		lines += c == '\n';
	fclose(f);
	return lines;
}

static long areas_made(enum pattern pattern, enum offer offer)
{
	struct growth growth = {
		.pattern = pattern, .offer = offer, .growths = 1000, .touched = 1
	};
	long before = areas(), made;

	growth_begin(&growth);
	growth_run(&growth);
	made = areas() - before;
	growth_end(&growth);
	return made;
}

static void area_rows(int pattern)
{
	long none = areas_made(pattern, OFFER_NONE);
	char name[80];

	for (int offer = 0; offer < (pattern == PATTERN_PIECES ? OFFERS : OFFER_LATE); offer++) {
		double made = (double)areas_made(pattern, offer);
		struct row row = {
			.group = "areas of 1000 growths",
			.name = name,
			.what = "areas",
			.unit = "areas",
			.kind = offer == OFFER_HOOK ? LIMIT_MOST : LIMIT_NONE,
			.limit = (double)none + AREAS_MOST,
		};

		snprintf(name, sizeof(name), "%s: %s", growth_pattern_name[pattern],
			growth_offer_name[offer]);
		print(row, &made, 1);
	}
}

/* Run one part in a process of its own. */
static void apart(void (*part)(int), int argument)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		part(argument);
		exit(any_missed);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
		WEXITSTATUS(status) > 1) {
		fprintf(stderr, "reg_micro: a part failed\n");
		exit(2);
	}
	any_missed |= WEXITSTATUS(status);
}

static void growth_part(int n)
{
	growth_case(n / 8, n % 8);
}

/* For an instruction counter: nothing but calls of the hook. */
static int calls(int n)
{
	char *p = mmap(NULL, PIECE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int result = 0;

	for (int i = 0; i < n; i++)
		result = ksmreg_register(p, PIECE);
	return result == 0 || result == -EOPNOTSUPP ? 0 : 1;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "library", required_argument, NULL, 'l' },
		{ "calls", required_argument, NULL, 'c' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 'r')
			options.rounds = atoi(optarg);
		else if (c == 'l')
			options.library = optarg;
		else if (c == 'c')
			return calls(atoi(optarg));
		else
			options.rounds = 0;
	}
	if (optind < argc || options.rounds < 1 || options.rounds > ROUNDS_MAX ||
		!options.library) {
		fputs("usage: reg_micro --library libksmreg.so [--rounds N] | --calls N\n", stderr);
		return 2;
	}
	unsetenv("KSMREG");
	unsetenv("KSMREG_MIN");
	for (int i = 0; i < (int)(sizeof(off_cases) / sizeof(off_cases[0])); i++)
		apart(off_case, i);
	for (int pattern = 0; pattern < PATTERNS; pattern++) {
		for (int threads = 1; threads <= THREADS_MAX; threads *= 2)
			apart(growth_part, pattern * 8 + threads);
		apart(area_rows, pattern);
	}
	return any_missed;
}
