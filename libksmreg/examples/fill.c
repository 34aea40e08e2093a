/* Fills an allocator's heap with what every process of this program has the same, for two of them to merge. */
/* SPDX-License-Identifier: MIT */
/*
 * Compiled once for each allocator: WITH_TCMALLOC, WITH_JEMALLOC, WITH_MIMALLOC or WITH_ARENA call the
 * adapter in main; without any it is an ordinary program, for the preload and ksmctl run.
 *
 * usage: fill [MIB]
 * Prints "ready PID BYTES", and stays until its standard input ends.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(WITH_ARENA)
#include "arena.h"
static struct arena arena;
#define get(size) arena_get(&arena, size)
#define install() arena_open(&arena, (size_t)4 << 30)
#else
#define get(size) malloc(size)
#if defined(WITH_TCMALLOC)
#include "adapters/adapters.h"
#define install() ksmreg_tcmalloc_install()
#elif defined(WITH_JEMALLOC)
#include "adapters/adapters.h"
#define install() ksmreg_jemalloc_install()
#elif defined(WITH_MIMALLOC)
#include "adapters/adapters.h"
#define install() ksmreg_mimalloc_install((size_t)4 << 30)
#else
#define install() 0
#endif
#endif

#define THREADS 3

/* Sizes of blocks, each taking a like share of the memory; the last is for the first thread alone. */
static const size_t sizes[] = { 48, 640, 8 << 10, 100 << 10, 1 << 20, 12 << 20 };
#define SIZES (sizeof(sizes) / sizeof(*sizes))

struct work {
	uint64_t seed;
	size_t bytes;
	size_t got;
};

/* xorshift: no two pages of one process are equal, and all processes have the same. */
static void fill(void *block, size_t size, uint64_t *x)
{
	for (size_t i = 0; i + 8 <= size; i += 8) {
		*x ^= *x << 13;
		*x ^= *x >> 7;
		*x ^= *x << 17;
		memcpy((char *)block + i, x, 8);
	}
}

static void *run(void *data)
{
	struct work *work = data;
	uint64_t x = work->seed * 0x9e3779b97f4a7c15 | 1;

	for (size_t i = 0; i < (work->seed == 1 ? SIZES : SIZES - 1); i++) {
		for (size_t done = 0; done < work->bytes / SIZES; done += sizes[i]) {
			void *block = get(sizes[i]);

			if (!block)
				return work;
			fill(block, sizes[i], &x);
			work->got += sizes[i];
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 128;
	struct work work[1 + THREADS];
	pthread_t threads[THREADS];
	size_t got = 0;
	int err = install(), failed = 0;
	char c;

	if (err) {
		fprintf(stderr, "fill: the adapter failed: %s\n", strerror(-err));
		return 1;
	}
	/* one after the other: threads that race for memory put it in another order each time */
	for (int i = 0; i <= THREADS; i++)
		work[i] = (struct work){ .seed = i + 1, .bytes = (mib << 20) / (1 + THREADS) };
	failed |= run(&work[0]) != NULL;
	for (int i = 0; i < THREADS; i++) {
		void *result;

		if (pthread_create(&threads[i], NULL, run, &work[1 + i]) ||
			pthread_join(threads[i], &result))
			return 1;
		failed |= result != NULL;
	}
	for (int i = 0; i <= THREADS; i++)
		got += work[i].got;
	if (failed) {
		fprintf(stderr, "fill: no memory\n");
		return 1;
	}
	printf("ready %ld %zu\n", (long)getpid(), got);
	fflush(stdout);
	return read(0, &c, 1) != 0;
}
