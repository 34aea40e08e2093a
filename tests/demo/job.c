/* A demonstration job: an arena allocator hooked by libksmreg, and events that use its memory. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "libksmreg/ksmreg.h"
#include "tests/demo/job.h"

#define CHUNK_BYTES (8u << 20)
#define MIB_WORDS ((1u << 20) / sizeof(uint64_t))

static struct {
	char *next;
	size_t left;
} arena;

/* The one line that an allocator adds: register the new region before anybody touches it. */
static void arena_grow(void)
{
	void *chunk =
		mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (chunk == MAP_FAILED) {
		perror("job: mmap");
		exit(EXIT_FAILURE);
	}
	ksmreg_register(chunk, CHUNK_BYTES);
	arena.next = chunk;
	arena.left = CHUNK_BYTES;
}

static uint64_t *arena_mib(void)
{
	if (arena.left < 1u << 20)
		arena_grow();
	char *p = arena.next;
	arena.next += 1u << 20;
	arena.left -= 1u << 20;
	return (uint64_t *)(void *)p;
}

/* splitmix64: a stream of well mixed numbers from a seed. */
static uint64_t mix(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void fill(uint64_t *words, uint64_t seed)
{
	for (size_t i = 0; i < MIB_WORDS; i++)
		words[i] = mix(&seed);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t *equal[JOB_EQUAL_MIB], *unique[JOB_UNIQUE_MIB], *changing[JOB_CHANGING_MIB];

static void build(uint64_t number)
{
	for (uint64_t i = 0; i < JOB_EQUAL_MIB; i++)
		fill(equal[i] = arena_mib(), i);
	for (uint64_t i = 0; i < JOB_UNIQUE_MIB; i++)
		fill(unique[i] = arena_mib(), (number + 1) << 32 | i);
	for (uint64_t i = 0; i < JOB_ZERO_MIB; i++)
		memset(arena_mib(), 0, 1u << 20);
	for (uint64_t i = 0; i < JOB_CHANGING_MIB; i++)
		fill(changing[i] = arena_mib(), (number + 1) << 48 | i);
}

/* One event: look things up in the equal memory, write the event memory. Returns 0 when all was right. */
static int event(uint64_t seed)
{
	uint64_t state = seed, where = seed % JOB_EQUAL_MIB, expected = where;
	const uint64_t *table = equal[where];
	uint64_t *out = changing[seed % JOB_CHANGING_MIB];
	int wrong = table[0] != mix(&expected);
	for (size_t i = 0; i < MIB_WORDS; i++)
		out[i] = table[mix(&state) % MIB_WORDS] ^ state;
	return wrong;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fputs("usage: job NUMBER REPORT_FD (started by the demonstration)\n", stderr);
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == 1)
		return 1;
	uint64_t number = strtoull(argv[1], NULL, 10);
	struct job_report *all = mmap(NULL, (number + 1) * sizeof(*all), PROT_READ | PROT_WRITE,
		MAP_SHARED, atoi(argv[2]), 0);
	if (all == MAP_FAILED) {
		perror("job: report");
		return 1;
	}
	struct job_report *report = &all[number];
	build(number);
	atomic_store(&report->ready, 1);

	/* Paced: each job keeps a core about a tenth busy, so that CPU time per event can be compared. */
	for (uint64_t n = 0;; n++) {
		uint64_t cpu = now_ns(CLOCK_THREAD_CPUTIME_ID), wall = now_ns(CLOCK_MONOTONIC);
		atomic_fetch_add(&report->damaged, (uint64_t)event(n * 7919 + number));
		atomic_fetch_add(&report->event_cpu_ns, now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu);
		atomic_fetch_add(&report->event_wall_ns, now_ns(CLOCK_MONOTONIC) - wall);
		atomic_fetch_add(&report->events, 1);
		usleep(20 * 1000);
	}
}
