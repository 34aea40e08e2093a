/* Fills an allocator's heap with what every process of this program has the same, for two of them to merge. */
/* SPDX-License-Identifier: MIT */
/*
 * Compiled once for each allocator: WITH_TCMALLOC, WITH_JEMALLOC, WITH_MIMALLOC or WITH_ARENA call the
 * adapter in main; without any it is an ordinary program, for the preload and ksmctl run.
 *
 * usage: fill [MIB [WORD...]]
 *	late      call the adapter when the first thread has filled its share, not before
 *	twice     call it from two threads at once, again and again, while others allocate
 *	tight     reserve 64 MiB only (mimalloc; in the arena, for each thread)
 *	apart     one thread after the other: no race for memory, the same layout in each process
 * Prints "ready PID BYTES", and stays until its standard input ends.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t reservation = (size_t)4 << 30; /* bytes */

#if defined(WITH_ARENA)
#include "arena.h"
static _Thread_local struct arena arena; /* opened by its thread */
#define get(size) (install() ? NULL : arena_get(&arena, size))
#define put(block) ((void)(block))
#define install() (arena.start ? 0 : arena_open(&arena, reservation))
#else
#define get(size) malloc(size)
#define put(block) free(block)
#if defined(WITH_TCMALLOC)
#include "adapters/adapters.h"
#define install() ksmreg_tcmalloc_install()
#elif defined(WITH_JEMALLOC)
#include "adapters/adapters.h"
#define install() ksmreg_jemalloc_install()
#elif defined(WITH_MIMALLOC)
#include "adapters/adapters.h"
#define install() ksmreg_mimalloc_install(reservation)
#else
#define install() 0
#endif
#endif

#define THREADS 4

/* Sizes of blocks, each taking a like share of the memory; the last is for the first thread alone. */
static const size_t sizes[] = { 48, 640, 8 << 10, 100 << 10, 1 << 20, 12 << 20 };
#define SIZES (sizeof(sizes) / sizeof(*sizes))

struct work {
	uint64_t seed;
	size_t bytes;
	size_t got;
	bool failed;
};

static sem_t filled; /* posted by each thread */
static struct {
	bool late, twice, apart;
} how;

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

/* One block in 16 is given back and its place taken by a later one, except in the arena. */
static bool fill_size(struct work *work, size_t size, uint64_t *x)
{
	void *freed = NULL;

	for (size_t done = 0, n = 0; done < work->bytes / SIZES; done += size, n++) {
		void *block = get(size);

		if (!block)
			return false;
		fill(block, size, x);
		work->got += size;
		if (n % 16 == 3)
			freed = block;
		if (n % 16 == 7) {
			put(freed);
			work->got -= size;
		}
	}
	return true;
}

static void fill_all(struct work *work)
{
	uint64_t x = work->seed * 0x9e3779b97f4a7c15 | 1;

	for (size_t i = 0; i < (work->seed == 1 ? SIZES : SIZES - 1); i++)
		work->failed |= !fill_size(work, sizes[i], &x);
}

/* Threads stay, as those of a service do: with them their caches. */
static void *run(void *data)
{
	fill_all(data);
	sem_post(&filled);
	for (;;)
		pause();
	return NULL;
}

static bool start(pthread_t *thread, void *(*function)(void *), void *data)
{
	return !pthread_create(thread, NULL, function, data);
}

static void *install_often(void *data)
{
	int *first = data;

	for (int i = 0; i < 1000; i++) {
		int err = install();

		if (err && !*first)
			*first = err;
	}
	return NULL;
}

/* Returns 0, the adapter's error, or 1. */
static int fill_from_all(struct work *work)
{
	pthread_t threads[THREADS], callers[2];
	int errs[2] = { 0 };

	if (how.late || how.apart)
		fill_all(&work[0]);
	if (how.late)
		errs[0] = install();
	for (int i = 0; i < THREADS; i++) {
		if (!start(&threads[i], run, &work[1 + i]))
			return 1;
		if (how.apart)
			sem_wait(&filled);
	}
	for (int i = 0; i < 2 && how.twice; i++) {
		if (!start(&callers[i], install_often, &errs[i]))
			return 1;
	}
	if (!how.late && !how.apart)
		fill_all(&work[0]);
	for (int i = 0; i < THREADS && !how.apart; i++)
		sem_wait(&filled);
	for (int i = 0; i < 2 && how.twice; i++)
		pthread_join(callers[i], NULL);
	return errs[0] ? errs[0] : errs[1];
}

static bool understand(char **words)
{
	for (; *words; words++) {
		if (!strcmp(*words, "late"))
			how.late = true;
		else if (!strcmp(*words, "twice"))
			how.twice = true;
		else if (!strcmp(*words, "tight"))
			reservation = (size_t)64 << 20;
		else if (!strcmp(*words, "apart"))
			how.apart = true;
		else
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 128, got = 0;
	struct work work[1 + THREADS];
	bool failed = false;
	int err = 0;
	char c;

	if (!mib || (argc > 2 && !understand(argv + 2))) {
		fprintf(stderr, "usage: fill [MIB [late|twice|tight|apart]...]\n");
		return 2;
	}
	if (!how.late && !how.twice)
		err = install();
	for (int i = 0; i <= THREADS; i++)
		work[i] = (struct work){ .seed = i + 1, .bytes = (mib << 20) / (1 + THREADS) };
	sem_init(&filled, 0, 0);
	if (!err)
		err = fill_from_all(work);
	if (err) {
		fprintf(stderr, "fill: %s\n",
			err < 0 ? strerror(-err) : "a thread could not be started");
		return 1;
	}
	for (int i = 0; i <= THREADS; i++) {
		got += work[i].got;
		failed |= work[i].failed;
	}
	if (failed) {
		fprintf(stderr, "fill: no memory\n");
		return 1;
	}
	printf("ready %ld %zu\n", (long)getpid(), got);
	fflush(stdout);
	return read(0, &c, 1) != 0;
}
