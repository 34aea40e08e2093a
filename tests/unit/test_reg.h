/* What the tests of libksmreg share: pages, a look into smaps, the counters. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_UNIT_TEST_REG_H
#define TESTS_UNIT_TEST_REG_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libksmreg/ksmreg.h"
#include "tests/tap.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* Check runs each test in a child of its own, so each makes the library's first call of a process. */

/* bytes; main() sets it */
static size_t page;

static inline char *map_pages(size_t n)
{
	char *p = mmap(NULL, n * page, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ck_assert_ptr_ne(p, MAP_FAILED);
	return p;
}

/* Walk smaps: the areas in all, and whether the one that holds addr carries "mg". */
static inline bool look(const void *addr, long *areas)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long start, end;
	bool inside = false, mergeable = false;
	char line[4096];

	if (!f) /* not an assertion of Check: programs under test look too */
		abort();
	*areas = 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
			++*areas;
			inside = (uintptr_t)addr >= start && (uintptr_t)addr < end;
		} else if (inside && !strncmp(line, "VmFlags:", 8)) {
			mergeable = strstr(line, " mg") != NULL;
		}
	}
	fclose(f);
	return mergeable;
}

static inline bool marked(const void *addr)
{
	long areas;

	return look(addr, &areas);
}

static inline long areas_now(void)
{
	long areas;

	look(NULL, &areas);
	return areas;
}

static inline struct ksmreg_stats stats(void)
{
	struct ksmreg_stats s = { .size = sizeof(s) };

	ck_assert_int_eq(ksmreg_get_stats(&s), 0);
	ck_assert_uint_eq(s.size, sizeof(s));
	ck_assert_uint_eq(s.calls, s.registered + s.skipped + s.refused + s.failed);
	return s;
}

#endif
