/* How fast ksmstat --estimate reads memory, next to what copying alone allows, in one run. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 5
#define PIECE ((size_t)512 << 10) /* as the estimate reads */
#define LEAST_GB_S 1.5		  /* what is promised for a core */

enum { COPY_MEMCPY, COPY_READV, COPY_MEM, ESTIMATE, WAYS };
static const char *const names[WAYS] = {
	[COPY_MEMCPY] = "memcpy of own memory",
	[COPY_READV] = "process_vm_readv (parts shared pages)",
	[COPY_MEM] = "read of /proc/PID/mem",
	[ESTIMATE] = "ksmstat --estimate, per core",
};

static double cpu_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A number behind "name": in the output of a command; 0 when it is not there. */
static double number(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	return at ? strtod(at + strlen(name), NULL) : 0;
}

/* GB per second of CPU time that ksmstat read, and hashed. */
static double estimate(const char *ksmstat, pid_t child)
{
	char pid[16], text[16384];
	int out[2];
	size_t len = 0;
	snprintf(pid, sizeof(pid), "%d", (int)child);
	if (pipe(out))
		return 0;
	pid_t run = fork();
	if (run == 0) {
		dup2(out[1], STDOUT_FILENO);
		execl(ksmstat, "ksmstat", "--estimate", "--settle", "0", "-J", "-p", pid,
			(char *)NULL);
		_exit(127);
	}
	close(out[1]);
	for (ssize_t n; (n = read(out[0], text + len, sizeof(text) - 1 - len)) > 0;)
		len += (size_t)n;
	text[len] = '\0';
	close(out[0]);
	waitpid(run, NULL, 0);
	double seconds = number(text, "\"first_cpu_seconds\": ");
	return seconds > 0 ? number(text, "\"first_bytes\": ") / seconds / 1e9 : 0;
}

static double copy(int way, pid_t child, int mem_fd, char *area, size_t bytes, char *buffer)
{
	double begin = cpu_s();
	for (size_t at = 0; at < bytes; at += PIECE) {
		struct iovec local = { buffer, PIECE }, remote = { area + at, PIECE };
		ssize_t got = PIECE;
		if (way == COPY_MEMCPY)
			memcpy(buffer, area + at, PIECE);
		else if (way == COPY_READV)
			got = process_vm_readv(child, &local, 1, &remote, 1, 0);
		else
			got = pread(mem_fd, buffer, PIECE, (off_t)(uintptr_t)(area + at));
		if (got != (ssize_t)PIECE)
			return 0;
		/* So that no compiler leaves the copy out. */
		__asm__ volatile("" : : "r"(buffer) : "memory");
	}
	return (double)bytes / (cpu_s() - begin) / 1e9;
}

static void fill(char *area, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes / sizeof(seed); i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		memcpy(area + i * sizeof(seed), &seed, sizeof(seed));
	}
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Returns whether the estimate was fast enough. */
static bool measure(const char *ksmstat, size_t bytes, bool huge)
{
	char *area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *buffer = aligned_alloc(4096, PIECE);
	double rate[WAYS][ROUNDS];
	char path[32], byte;
	int ready[2];
	if (area == MAP_FAILED || !buffer || pipe(ready))
		return false;
	madvise(area, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fill(area, bytes, 1);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	fill(area, bytes, 2);
	memset(buffer, 1, PIECE);
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)child);
	int mem_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (child < 0 || mem_fd < 0 || read(ready[0], &byte, 1) != 1)
		return false;
	for (int round = 0; round < ROUNDS; round++) {
		for (int way = 0; way < ESTIMATE; way++)
			rate[way][round] = copy(way, child, mem_fd, area, bytes, buffer);
		rate[ESTIMATE][round] = estimate(ksmstat, child);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(mem_fd);
	close(ready[0]);
	close(ready[1]);
	munmap(area, bytes);
	free(buffer);
	for (int way = 0; way < WAYS; way++)
		qsort(rate[way], ROUNDS, sizeof(double), by_size);
	double limit = rate[COPY_MEM][ROUNDS / 2], is = rate[ESTIMATE][ROUNDS / 2];
	for (int way = 0; way < WAYS; way++)
		printf("%-6s  %-38s %6.2f  %3.0f %%\n", huge ? "2 MiB" : "4 KiB", names[way],
			rate[way][ROUNDS / 2], limit > 0 ? 100 * rate[way][ROUNDS / 2] / limit : 0);
	return is >= LEAST_GB_S;
}

int main(int argc, char **argv)
{
	size_t mib = argc > 2 ? strtoul(argv[2], NULL, 10) : 1024;
	if (argc < 2 || mib < 1) {
		fputs("usage: estimate_copy KSMSTAT [MIB]\n", stderr);
		return 2;
	}
	printf("%zu MiB of a process, median of %d rounds\n", mib, ROUNDS);
	printf("%-6s  %-38s %6s  %s\n", "pages", "way", "GB/s", "of /proc/PID/mem");
	bool small = measure(argv[1], mib << 20, false);
	bool huge = measure(argv[1], mib << 20, true);
	if (small && huge)
		return 0;
	fprintf(stderr, "estimate_copy: slower than %.1f GB/s per core\n", LEAST_GB_S);
	return 1;
}
