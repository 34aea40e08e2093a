/* The whole library: argument checks, the bound on areas, the calls to the kernel, the counters. */
/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "ksmreg.h"
#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * The smallest range worth marking. Marking may split an area into three, and two more areas cost
 * about 0.5 KiB of kernel memory; each page then carries a 64 byte rmap item. At 32 KiB that is
 * 1 KiB, paid back when 1 page in 32 merges; at one page it would take every seventh. Ranges
 * shorter than this hold next to nothing of a program's memory, but most of its calls.
 */
#define MIN_DEFAULT (32u << 10)

/*
 * No range is longer than this. A negative number taken for a length would be, and the kernel marks
 * everything above the address before it finds the end missing and says ENOMEM.
 */
#define LEN_MAX (sizeof(size_t) > 4 ? UINT64_C(1) << 47 : UINT64_C(3) << 30)

/*
 * The bound on areas. Marking a range inside an area that is not marked makes up to two more. With
 * vm.max_map_count areas (65530 by default) the program's own mmap and munmap fail, so this library
 * makes none past half of that, however odd the pattern of calls; areas that the program makes
 * itself between two counts are seen by the second.
 *
 * Counting areas means reading /proc/self/maps, about 0.5 us an area, too much for every call. So
 * calls draw on an allowance, and only when it is used up are the areas that really exist counted.
 * An honest allocator's ranges join each other: it pays for one short count in 8192 calls. The
 * first allowance needs no count, and is small: the program may be crowded with areas of its own
 * by then. A new one is (limit - areas) / 2, clipped to 8192, so the limit holds even when each call
 * makes two. Less than a 16th of the limit is not granted, or a program just below it would count
 * at every call.
 */
#define ALLOWANCE 8192
#define FIRST_ALLOWANCE 512
/*
 * Calls let through on credit while another thread counts; after every quarter of them one more
 * counts too, so that an honest program is not refused because the first one lost its CPU. Twice
 * this is set aside: for them, and for as many threads that drew before the count and marked after
 * it. With a vm.max_map_count below some 9000 that leaves nothing beyond the first allowance.
 */
#define GRACE 1024
#define MAX_MAP_COUNT 65530 /* where the kernel does not say */

enum {
	READY = 1 << 0,	 /* the environment has been read */
	PROVED = 1 << 1, /* the kernel took a range: EINVAL means the range, not the kernel */
	OFF_ENVIRONMENT = 1 << 2,
	OFF_CALLER = 1 << 3,
	OFF_KERNEL = 1 << 4,
	NO_HUGE_PAGES = 1 << 5, /* for every range */
	OFF = OFF_ENVIRONMENT | OFF_CALLER | OFF_KERNEL,
};

/*
 * Everything that calls write. One cache line, because with several threads it is the line that
 * costs and not the addition. Words of the machine's size, so that no machine needs libatomic.
 */
static struct {
	_Alignas(64) atomic_long allowance; /* calls left; <= 0 see allowed() */
	atomic_ulong registered, pages, skipped, refused, failed;
	atomic_int last_error;
} count = { .allowance = FIRST_ALLOWANCE };

static atomic_uint state;
static atomic_uint recounts; /* finished ones */
static atomic_size_t page_size;
static atomic_size_t min_bytes = MIN_DEFAULT;

#define add(counter, n) atomic_fetch_add_explicit(&(counter), n, memory_order_relaxed)
#define get(variable) atomic_load_explicit(&(variable), memory_order_relaxed)
#define set(variable, value) atomic_store_explicit(&(variable), value, memory_order_relaxed)

/*
 * Read the settings, and say what the state is then. Several threads may come here at once; all
 * read the same and store the same. Before libc has set environ up the defaults serve, and the next
 * call looks again.
 */
static unsigned settle(void)
{
	unsigned bits = READY;
	struct ksmreg_environment env = { .min_bytes = MIN_DEFAULT };

	set(page_size, getauxval(AT_PAGESZ));
	if (!ksmreg_read_environment(&env))
		return get(state) | READY;
	if (env.off)
		bits |= OFF_ENVIRONMENT;
	if (env.nohugepage)
		bits |= NO_HUGE_PAGES;
	set(min_bytes, env.min_bytes);
	return atomic_fetch_or_explicit(&state, bits, memory_order_release) | bits;
}

static unsigned current_state(void)
{
	unsigned now = atomic_load_explicit(&state, memory_order_acquire);

	return now & READY ? now : settle();
}

/* 0, or -EINVAL for what no mapping can be. */
static int check(const void *addr, size_t len)
{
	if (!addr || len > LEN_MAX || (uintptr_t)addr > UINTPTR_MAX - len)
		return -EINVAL;
	return 0;
}

/* Reads by pieces: hooks also run on small signal stacks. */
static long count_areas(void)
{
	char buf[1024];
	long areas = 0, got;
	long fd =
		call(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);

	if (fd < 0)
		return fd;
	do {
		got = call(SYS_read, fd, (long)buf, sizeof(buf), 0, 0, 0);
		for (long i = 0; i < got; i++)
			areas += buf[i] == '\n';
	} while (got > 0 || got == -EINTR);
	call(SYS_close, fd, 0, 0, 0, 0, 0);
	return got < 0 ? got : areas;
}

static long area_limit(void)
{
	static const char path[] = "/proc/sys/vm/max_map_count";
	char buf[24];
	long fd = call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	long got;
	size_t limit = MAX_MAP_COUNT;

	if (fd >= 0) {
		got = call(SYS_read, fd, (long)buf, sizeof(buf), 0, 0, 0);
		call(SYS_close, fd, 0, 0, 0, 0, 0);
		if (got > 1) {
			buf[got - 1] = '\0'; /* instead of the newline */
			ksmreg_parse(buf, &limit);
		}
	}
	return limit / 2;
}

static void refuse_for_long(void)
{
	set(count.allowance, -ALLOWANCE - 1);
}

static int recount(int credit)
{
	unsigned turn = get(recounts);
	long limit = area_limit();
	long areas = count_areas();
	long room = areas < 0 ? 0 : (limit - areas) / 2 - 2 * GRACE;
	long others;

	/* where several counted, the first to end decides: it may have granted what others counted */
	if (!atomic_compare_exchange_strong(&recounts, &turn, turn + 1))
		return credit;
	if (room <= limit / 16) {
		refuse_for_long();
		return 0;
	}
	if (room > ALLOWANCE)
		room = ALLOWANCE;
	/* this call, and those on credit that the count may have missed, have drawn on it already */
	others = -atomic_exchange_explicit(&count.allowance, room - 1, memory_order_relaxed);
	if (others > 0)
		add(count.allowance, others < GRACE ? -others : -GRACE);
	return 1;
}

/*
 * May this call make areas? Each call takes a number of its own from the allowance. Whoever takes
 * exactly 0 counts; others meanwhile get negative ones and pass on credit, then are refused. A
 * refusal, and a count that never ends because its thread is not there in a forked child, are
 * looked at again by whoever takes the next multiple of ALLOWANCE. No lock, and nobody waits.
 */
static int allowed(void)
{
	long left = atomic_fetch_sub_explicit(&count.allowance, 1, memory_order_relaxed);
	int credit = left > -GRACE;

	if (left > 0)
		return 1;
	if (left % (credit ? GRACE / 4 : ALLOWANCE) == 0)
		return recount(credit);
	return credit;
}

static int failed(int err)
{
	add(count.failed, 1);
	set(count.last_error, err);
	return err;
}

/* The kernel said no: for this range, or for good? */
static int refused(int err, unsigned now)
{
	if (err == -EINVAL && !(now & PROVED) && ksmreg_try_page(get(page_size)) == -EINVAL)
		now |= OFF_KERNEL;
	if (err == -EPERM || err == -ENOSYS || now & OFF_KERNEL)
		atomic_fetch_or_explicit(&state, OFF_KERNEL, memory_order_relaxed);
	if (err == -EAGAIN)
		refuse_for_long();
	return failed(err);
}

/* Out of line, so that the hook that is off stays a load and a branch. */
__attribute__((noinline)) static int register_range(
	void *addr, size_t len, unsigned flags, unsigned now)
{
	uintptr_t start, end;
	size_t page;
	int err;

	if (!(now & READY)) {
		now = settle();
		if (now & OFF)
			return -EOPNOTSUPP;
	}
	if (check(addr, len) || flags & ~(KSMREG_NOHUGEPAGE | KSMREG_ANY_SIZE))
		return failed(-EINVAL);
	page = get(page_size);
	start = ((uintptr_t)addr + page - 1) & -page;
	end = ((uintptr_t)addr + len) & -page;
	/* start may have wrapped to 0 in the last page, which nothing can be in */
	if (start < (uintptr_t)addr || end <= start ||
		(end - start < get(min_bytes) && !(flags & KSMREG_ANY_SIZE))) {
		add(count.skipped, 1);
		return 0;
	}
	if (!allowed()) {
		add(count.refused, 1);
		return -ENOSPC;
	}
	/* refused by kernels without huge pages, and then not needed */
	if (flags & KSMREG_NOHUGEPAGE || now & NO_HUGE_PAGES)
		advise(start, end - start, MADV_NOHUGEPAGE);
	err = advise(start, end - start, MADV_MERGEABLE);
	if (err)
		return refused(err, now);
	if (!(now & PROVED))
		atomic_fetch_or_explicit(&state, PROVED, memory_order_relaxed);
	add(count.registered, 1);
	add(count.pages, (end - start) / page);
	return 0;
}

static inline int hook(void *addr, size_t len, unsigned flags)
{
	unsigned now = atomic_load_explicit(&state, memory_order_acquire);

	if (now & OFF)
		return -EOPNOTSUPP;
	return register_range(addr, len, flags, now);
}

int ksmreg_register(void *addr, size_t len)
{
	return hook(addr, len, 0);
}

int ksmreg_register_with(void *addr, size_t len, unsigned flags)
{
	return hook(addr, len, flags);
}

int ksmreg_registerv(const struct iovec *ranges, size_t n)
{
	int err, first = 0;

	for (size_t i = 0; i < n; i++) {
		err = hook(ranges[i].iov_base, ranges[i].iov_len, 0);
		if (!first)
			first = err;
	}
	return first;
}

void ksm_register_memory(void *ptr, size_t size)
{
	ksmreg_register(ptr, size);
}

int ksmreg_unregister(void *addr, size_t len)
{
	uintptr_t start, end;
	size_t page;

	if (check(addr, len))
		return -EINVAL;
	if (!len)
		return 0;
	current_state();
	page = get(page_size);
	start = (uintptr_t)addr & -page;
	end = ((uintptr_t)addr + len - 1) | (page - 1); /* the last byte: one more could wrap */
	return advise(start, end - start + 1, MADV_UNMERGEABLE);
}

int ksmreg_is_off(void)
{
	return !!(current_state() & OFF);
}

int ksmreg_process(int on)
{
	unsigned now = current_state();

	if (on && now & OFF)
		return -EOPNOTSUPP;
	if (on && now & NO_HUGE_PAGES)
		call(SYS_prctl, SET_THP_DISABLE, 1, 0, 0, 0, 0);
	return call(SYS_prctl, SET_MEMORY_MERGE, !!on, 0, 0, 0, 0);
}

void ksmreg_set_enabled(int on)
{
	if (on)
		atomic_fetch_and_explicit(&state, ~OFF_CALLER, memory_order_relaxed);
	else
		atomic_fetch_or_explicit(&state, OFF_CALLER, memory_order_relaxed);
}

/* Hand out the part of a struct that the caller knows. Both begin with their size. */
static int give(void *to, const void *from, size_t known, size_t smallest)
{
	size_t size;

	if (!to)
		return -EINVAL;
	memcpy(&size, to, sizeof(size));
	if (size < smallest)
		return -EINVAL;
	if (size > known)
		size = known;
	memcpy(to, from, size);
	memcpy(to, &size, sizeof(size));
	return 0;
}

int ksmreg_get_stats(struct ksmreg_stats *stats)
{
	unsigned now = current_state();
	struct ksmreg_stats mine = {
		.registered = get(count.registered),
		.skipped = get(count.skipped),
		.refused = get(count.refused),
		.failed = get(count.failed),
		.last_error = get(count.last_error),
	};

	mine.registered_bytes = (uint64_t)get(count.pages) * get(page_size);
	mine.calls = mine.registered + mine.skipped + mine.refused + mine.failed;
	if (now & OFF_ENVIRONMENT)
		mine.state = KSMREG_OFF_ENVIRONMENT;
	else if (now & OFF_KERNEL)
		mine.state = KSMREG_OFF_KERNEL;
	else if (now & OFF_CALLER)
		mine.state = KSMREG_OFF_CALLER;
	return give(stats, &mine, sizeof(mine), sizeof(mine));
}
