/* A demonstration job: an arena allocator hooked by libksmreg, and events that use its memory. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
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
	bool huge;
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
	if (arena.huge)
		madvise(chunk, CHUNK_BYTES, MADV_HUGEPAGE);
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

/* What a job is made of, and how far in the equal memory the look-ups of one event reach. */
struct shape {
	uint64_t equal_mib, unique_mib, zero_mib, changing_mib, reach_mib;
};
static const struct shape shapes[] = {
	{ JOB_EQUAL_MIB, JOB_UNIQUE_MIB, JOB_ZERO_MIB, JOB_CHANGING_MIB, 1 },
	{ JOB_FARM_EQUAL_MIB, JOB_FARM_UNIQUE_MIB, JOB_FARM_ZERO_MIB, JOB_FARM_CHANGING_MIB,
		JOB_FARM_EQUAL_MIB },
};
static const struct shape *shape = &shapes[0];

static uint64_t *equal[JOB_FARM_EQUAL_MIB], *changing[JOB_FARM_CHANGING_MIB];

static void build(uint64_t number)
{
	for (uint64_t i = 0; i < shape->equal_mib; i++)
		fill(equal[i] = arena_mib(), i);
	for (uint64_t i = 0; i < shape->unique_mib; i++)
		fill(arena_mib(), (number + 1) << 32 | i);
	for (uint64_t i = 0; i < shape->zero_mib; i++)
		memset(arena_mib(), 0, 1u << 20);
	for (uint64_t i = 0; i < shape->changing_mib; i++)
		fill(changing[i] = arena_mib(), (number + 1) << 48 | i);
}

/* One event: look things up in the equal memory, write the event memory. Returns 0 when all was right. */
static int event(uint64_t seed, uint64_t *result)
{
	uint64_t state = seed, where = seed % shape->equal_mib, expected = where;
	const uint64_t *table = equal[where];
	uint64_t *out = changing[seed % shape->changing_mib];
	int wrong = table[0] != mix(&expected);
	for (size_t i = 0; i < MIB_WORDS; i++) {
		uint64_t at = mix(&state) % (shape->reach_mib * MIB_WORDS);
		table = equal[(where + at / MIB_WORDS) % shape->equal_mib];
		out[i] = table[at % MIB_WORDS] ^ state;
		*result = *result << 1 ^ *result >> 63 ^ out[i];
	}
	return wrong;
}

static const char usage_text[] =
	"usage: job NUMBER REPORT_FD [EVENTS [huge]]\n"
	"Started by the demonstration, and by the farm benchmark for so many "
	"events of a large job;\nhuge asks the kernel for huge pages.\n";

int main(int argc, char **argv)
{
	if (argc < 3 || argc > 5 || (argc == 5 && strcmp(argv[4], "huge") != 0)) {
		fputs(usage_text, stderr);
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == 1)
		return 1;
	uint64_t number = strtoull(argv[1], NULL, 10);
	uint64_t events = argc > 3 ? strtoull(argv[3], NULL, 10) : UINT64_MAX, result = 0;
	struct job_report *all = mmap(NULL, (number + 1) * sizeof(*all), PROT_READ | PROT_WRITE,
		MAP_SHARED, atoi(argv[2]), 0);
	if (all == MAP_FAILED) {
		perror("job: report");
		return 1;
	}
	struct job_report *report = &all[number];
	shape = &shapes[argc > 3];
	arena.huge = argc == 5;
	build(number);
	atomic_store(&report->ready, 1);

	for (uint64_t n = 0; n < events; n++) {
		uint64_t cpu = now_ns(CLOCK_THREAD_CPUTIME_ID), wall = now_ns(CLOCK_MONOTONIC);
		atomic_fetch_add(&report->damaged, (uint64_t)event(n * 7919 + number, &result));
		atomic_fetch_add(&report->event_cpu_ns, now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu);
		atomic_fetch_add(&report->event_wall_ns, now_ns(CLOCK_MONOTONIC) - wall);
		atomic_fetch_add(&report->events, 1);
		/* Paced: each job keeps a core about a tenth busy, so that CPU time per event can be compared. */
		if (argc == 3)
			usleep(20 * 1000);
	}
	printf("job %" PRIu64 " result %016" PRIx64 "\n", number, result);
	return 0;
}
