/* How long a process of 4 GiB is stopped by being looked at: by smaps, by pagemap, and gently. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: stall KSMSTAT [ROUNDS [MIB]]
 * A victim maps a page, writes to it and unmaps it, over and over, and keeps the longest time that
 * took. Each way of looking is tried once per round. Fails when --gentle is not 6 times better
 * than reading smaps.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 99
#define WANTED 6

struct shared {
	atomic_bool ready;
	atomic_uint_fast64_t worst_ns;
};

static struct shared *shared;
static pid_t victim;
static const char *ksmstat;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "stall: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *map(size_t bytes, int flags)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static void be_victim(size_t bytes)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	char *all = map(bytes, MAP_PRIVATE);
	madvise(all, bytes, MADV_NOHUGEPAGE);
	memset(all, 1, bytes);
	shared->ready = true;
	for (;;) {
		uint64_t from = now_ns();
		char *p = map(4096, MAP_PRIVATE);
		*p = 1;
		munmap(p, 4096);
		uint64_t took = now_ns() - from;
		if (took > shared->worst_ns)
			shared->worst_ns = took;
		/* asleep most of the time: what is measured is the waiting, not the sharing of a CPU */
		nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
	}
}

static void nothing(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 500000000 }, NULL);
}

static void read_file(const char *name)
{
	char path[64], buf[65536];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)victim, name);
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		die(path);
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	close(fd);
}

static void smaps(void)
{
	read_file("smaps");
}

static void rollup(void)
{
	read_file("smaps_rollup");
}

static void run_ksmstat(const char *option)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)victim);
	pid_t child = fork();
	if (child == 0) {
		int null = open("/dev/null", O_WRONLY);
		dup2(null, STDOUT_FILENO);
		execl(ksmstat, ksmstat, "-p", pid, option, (char *)NULL);
		_exit(127);
	}
	int status;
	if (child < 0 || waitpid(child, &status, 0) < 0 || status)
		die("ksmstat");
}

static void by_default(void)
{
	run_ksmstat(NULL);
}

static void gently(void)
{
	run_ksmstat("--gentle");
}

static const struct {
	const char *name;
	void (*look)(void);
} ways[] = {
	{ "nobody looks", nothing },
	{ "smaps", smaps },
	{ "smaps_rollup", rollup },
	{ "ksmstat", by_default },
	{ "ksmstat --gentle", gently },
};
enum { SMAPS = 1, GENTLE = 4, WAYS = sizeof(ways) / sizeof(*ways) };

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv)
{
	static uint64_t worst[WAYS][ROUNDS_MAX], took[WAYS][ROUNDS_MAX];
	int rounds = argc > 2 ? atoi(argv[2]) : 7;
	size_t mib = argc > 3 ? strtoul(argv[3], NULL, 10) : 4096;

	if (argc < 2 || rounds < 1 || rounds > ROUNDS_MAX || !mib) {
		fprintf(stderr, "usage: stall KSMSTAT [ROUNDS [MIB]]\n");
		return 2;
	}
	int middle = rounds / 2;
	ksmstat = argv[1];
	shared = map(sizeof(*shared), MAP_SHARED);
	victim = fork();
	if (victim < 0)
		die("fork");
	if (victim == 0)
		be_victim(mib << 20);
	while (!shared->ready && !waitpid(victim, NULL, WNOHANG))
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	for (int round = 0; round < rounds; round++) {
		for (size_t i = 0; i < WAYS; i++) {
			shared->worst_ns = 0;
			uint64_t from = now_ns();
			ways[i].look();
			took[i][round] = now_ns() - from;
			/* whoever waited to the end of it has not said so yet */
			nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
			worst[i][round] = shared->worst_ns;
		}
	}
	kill(victim, SIGKILL);
	printf("%zu MiB, longest mmap + write + munmap while looked at; medians of %d rounds\n",
		mib, rounds);
	printf("%-18s %12s %12s %12s\n", "looked at by", "stall us", "most us", "took ms");
	for (size_t i = 0; i < WAYS; i++) {
		qsort(worst[i], (size_t)rounds, sizeof(**worst), compare);
		qsort(took[i], (size_t)rounds, sizeof(**took), compare);
		printf("%-18s %12.0f %12.0f %12.1f\n", ways[i].name, (double)worst[i][middle] / 1e3,
			(double)worst[i][rounds - 1] / 1e3, (double)took[i][middle] / 1e6);
	}
	double ratio = (double)worst[SMAPS][middle] / (double)worst[GENTLE][middle];
	printf("--gentle stalls 1/%.1f of what smaps does, wanted at most 1/%d\n", ratio, WANTED);
	return ratio < WANTED;
}
