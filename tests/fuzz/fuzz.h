/* What the fuzz targets share: how a broken promise is told, pieces, safe text, and the columns of a process. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The one function of a target: libFuzzer calls it with what it made up, replay.c with files. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What shall hold of any input. The end is that of a crash, so that the input is kept. */
#define FUZZ_MUST(condition) \
	do { \
		if (!(condition)) \
			fuzz_broken(#condition, __FILE__, __LINE__); \
	} while (0)

static inline __attribute__((noreturn)) void fuzz_broken(
	const char *condition, const char *file, int line)
{
	dprintf(2, "%s:%d: broken: %s\n", file, line, condition);
	abort();
}

/* Untouched: the same bytes, padding and all. */
static inline bool fuzz_same(const void *a, const void *b, size_t size)
{
	return memcmp(a, b, size) == 0;
}

/* A copy of exactly that size, so that a sanitizer sees each byte that is read beyond. Freed by the caller. */
static inline char *fuzz_copy(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1);

	FUZZ_MUST(copy != NULL);
	if (size)
		memcpy(copy, data, size);
	return copy;
}

/* The same with a NUL behind it. */
static inline char *fuzz_string(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1);

	FUZZ_MUST(copy != NULL);
	if (size)
		memcpy(copy, data, size);
	copy[size] = '\0';
	return copy;
}

/* Numbers that follow from the input: a file of the corpus is the kernel's text and nothing else. */
static inline uint32_t fuzz_seed(const uint8_t *data, size_t size)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < size; i++)
		hash = (uint32_t)((hash ^ data[i]) * UINT64_C(16777619));
	return hash | 1;
}

static inline uint32_t fuzz_next(uint32_t *seed)
{
	*seed ^= (uint32_t)(*seed << 13);
	*seed ^= *seed >> 17;
	*seed ^= (uint32_t)(*seed << 5);
	return *seed;
}

/* What programs print while they are tried goes nowhere; findings are written to descriptor 2 itself. */
static inline void fuzz_silence(void)
{
	static FILE *nowhere;

	if (nowhere)
		return;
	nowhere = fopen("/dev/null", "we");
	FUZZ_MUST(nowhere != NULL);
	stdout = stderr = nowhere;
}

#endif
