/* Memory of every kind, for processes whose numbers are to be the same by both ways of reading them. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_LIVE_MEMORY_ROLES_H
#define TESTS_LIVE_MEMORY_ROLES_H

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#define MADV_GUARD 102 /* MADV_GUARD_INSTALL of Linux 6.13 */
#define HUGE_BYTES (UINT64_C(2) << 20)
#define MIB (UINT64_C(1) << 20)

static size_t page;

static inline void role_fail(const char *what)
{
	fprintf(stderr, "# %s: %s\n", what, strerror(errno));
	_exit(1);
}

static inline char *role_map(size_t bytes, int flags, int fd)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED)
		role_fail("mmap");
	return p;
}

static inline char *role_private(size_t bytes)
{
	return role_map(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

static inline void role_touch(volatile char *p, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += page)
		(void)p[at];
}

static inline char *role_huge(size_t bytes)
{
	uintptr_t p = (uintptr_t)role_private(bytes + HUGE_BYTES);

	p = (p + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1);
	madvise((char *)p, bytes, MADV_HUGEPAGE);
	return (char *)p;
}

/* Huge pages: whole, cut by an area's end, with a hole, protected in part; shared by a fork. */
static inline void role_thp(void)
{
	char *p = role_huge(8 * HUGE_BYTES);

	memset(p, 1, 8 * HUGE_BYTES);
	munmap(p + HUGE_BYTES + 64 * page, 32 * page);
	madvise(p + 3 * HUGE_BYTES + 5 * page, page, MADV_DONTNEED);
	mprotect(p + 5 * HUGE_BYTES, 7 * page, PROT_READ);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		memset(p + 6 * HUGE_BYTES, 2, 100 * page);
		for (;;)
			pause();
	}
}

/* Pages of zeros that were only read: small ones, the huge one, and both in between others. */
static inline void role_zeros(void)
{
	char *small = role_private(4 * MIB), *huge = role_huge(4 * HUGE_BYTES);

	role_touch(small, 4 * MIB);
	memset(small + MIB, 1, 10 * page);
	role_touch(huge, 4 * HUGE_BYTES);
	memset(huge + HUGE_BYTES, 1, HUGE_BYTES);
}

static inline void role_fork(void)
{
	char *p = role_private(8 * MIB);

	memset(p, 1, 8 * MIB);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		memset(p + MIB, 2, 2 * MIB);
		for (;;)
			pause();
	}
}

/* Shared memory and files, mapped shared and private, read, written, and written in part. */
static inline void role_shared(void)
{
	int memfd = memfd_create("role", 0), file = open("/proc/self/exe", O_RDONLY);
	int temp = open("/tmp", O_TMPFILE | O_RDWR, 0600);

	memset(role_map(2 * MIB, MAP_SHARED | MAP_ANONYMOUS, -1), 1, MIB);
	if (ftruncate(memfd, 2 * MIB))
		role_fail("memfd");
	memset(role_map(2 * MIB, MAP_SHARED, memfd), 1, 2 * MIB);
	char *p = role_map(2 * MIB, MAP_PRIVATE, memfd);
	role_touch(p, 2 * MIB);
	memset(p + 10 * page, 2, 100 * page);
	p = role_map(8 * page, MAP_PRIVATE, file);
	role_touch(p, 8 * page);
	p[page] = 1;
	if (temp >= 0 && !ftruncate(temp, MIB)) {
		memset(role_map(MIB, MAP_SHARED, temp), 3, MIB / 2);
		role_touch(role_map(MIB, MAP_PRIVATE, temp), MIB);
	}
}

/* Memory of devices: pages without an owner, or none at all. What cannot be had here is left out. */
static inline void role_devices(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.exclude_kernel = 1 };
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	if (fd >= 0) {
		char *p = mmap(NULL, 9 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p != MAP_FAILED)
			role_touch(p, 9 * page);
	}
	uint32_t params[30] = { 0 }; /* struct io_uring_params */
	fd = (int)syscall(SYS_io_uring_setup, 64, params);
	if (fd >= 0) {
		char *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p != MAP_FAILED)
			role_touch(p, page);
	}
	memset(role_map(MIB, MAP_PRIVATE, open("/dev/zero", O_RDWR)), 1, MIB / 2);
	fd = open("/dev/mem", O_RDONLY);
	char *p = fd < 0 ? MAP_FAILED : mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0xf0000);
	if (p != MAP_FAILED)
		role_touch(p, page);
}

static inline void role_moved(void)
{
	char *p = role_private(4 * MIB);

	memset(p, 1, 4 * MIB);
	if (mremap(p, MIB, 3 * MIB, MREMAP_MAYMOVE) == MAP_FAILED ||
		mremap(p + 3 * MIB, MIB / 2, MIB / 4, 0) == MAP_FAILED)
		role_fail("mremap");
}

/* Terabytes of address space, and a page here and there. */
static inline void role_sparse(void)
{
	char *p = role_private(UINT64_C(4) << 40);

	for (uint64_t at = 0; at < UINT64_C(4) << 40; at += UINT64_C(37) << 30)
		memset(p + at, 1, 3 * page);
}

static inline void role_guards(void)
{
	char *p = role_private(MIB);

	memset(p, 1, MIB / 2);
	madvise(p + 10 * page, 20 * page, MADV_GUARD);
}

static inline void role_none(void)
{
	char *p = role_private(4 * MIB);

	memset(p, 1, 2 * MIB);
	mprotect(p, MIB, PROT_NONE);
	mprotect(p + MIB, MIB / 2, PROT_READ | PROT_EXEC);
}

/* An area for every second page, up to nearly as many as the kernel allows. */
#define ROLE_AREAS 60000
static inline void role_areas(void)
{
	char *p = role_private(ROLE_AREAS * page);

	memset(p, 1, ROLE_AREAS * page);
	for (size_t i = 0; i < ROLE_AREAS; i += 2) {
		if (mprotect(p + i * page, page, PROT_READ))
			role_fail("mprotect");
	}
}

static inline void role_hugetlb(void)
{
	char *p = mmap(NULL, 2 * HUGE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	char *q = mmap(NULL, 2 * HUGE_BYTES, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p == MAP_FAILED || q == MAP_FAILED)
		role_fail("hugetlb");
	memset(p, 1, HUGE_BYTES);
	memset(q, 1, HUGE_BYTES);
	memset(role_private(MIB), 1, MIB);
}

static inline void role_swap(void)
{
	char *p = role_private(8 * MIB);

	for (size_t i = 0; i < 8 * MIB; i += 8)
		memcpy(p + i, &i, 8);
	madvise(p, 6 * MIB, MADV_PAGEOUT);
	role_touch(p, MIB);
}

/* Where pagemap cannot tell all of it. */
static inline void role_swap_shared(void)
{
	char *p = role_map(2 * MIB, MAP_SHARED | MAP_ANONYMOUS, -1);

	role_swap();
	memset(p, 1, 2 * MIB);
	madvise(p, MIB, MADV_PAGEOUT);
	madvise(role_private(MIB), 8 * page, MADV_GUARD);
}

static inline void role_mergeable(void)
{
	char *p = role_private(4 * MIB);

	madvise(p, 4 * MIB, MADV_NOHUGEPAGE);
	madvise(p, 4 * MIB, MADV_MERGEABLE);
	for (size_t i = 0; i < 4 * MIB; i += 8) {
		size_t word = i < 2 * MIB ? i : i % page; /* half of it is equal within, too */
		memcpy(p + i, &word, 8);
	}
	memset(role_private(MIB), 1, MIB); /* shared with the child, but not by merging */
	/* a child has merged pages that were never merged in it */
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}

#endif
