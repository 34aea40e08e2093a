/* The memory of a process from /proc/PID/pagemap: the numbers of smaps, faster, and in small steps. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/pagemap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "sysfs/areas.h"

/* include/uapi/linux/fs.h of Linux 6.7, which older headers lack */
struct region {
	uint64_t start, end, categories;
};
struct scan {
	uint64_t size, flags;
	uint64_t start, end, walk_end;
	uint64_t regions, room, max_pages;
	uint64_t inverted, all_of, any_of, wanted;
};
#define SCAN _IOWR('f', 16, struct scan)
#define SCAN_PRESENT (UINT64_C(1) << 3)
#define SCAN_SWAPPED (UINT64_C(1) << 4)
#define SCAN_ZERO (UINT64_C(1) << 5)
#define SCAN_HUGE (UINT64_C(1) << 6)

/* Documentation/admin-guide/mm/pagemap.rst. An entry's kind is its bits 61, 62, 63 and 56. */
enum { FILE_PAGE = 1, SWAPPED = 2, PRESENT = 4, EXCLUSIVE = 8, KINDS = 16 };
#define EXCLUSIVE_BIT (UINT64_C(1) << 56)
#define FRAME ((UINT64_C(1) << 55) - 1)
#define KIND(entry) ((entry) >> 61 | ((entry) >> 53 & EXCLUSIVE))
#define MARKED (UINT64_C(1) << 57 | UINT64_C(1) << 58) /* userfaultfd, guard region */

enum {
	AT_ONCE = 4096, /* entries per read */
	STEP = 512,	/* the same when gentle: what the kernel looks at under one lock */
	SMALL = 512,	/* pages: none of them huge. Of larger areas what is populated is read */
	GAP = 256,	/* pages between areas: reading on is cheaper than another read */
	REGIONS = 64,	/* the same of a scan; zeroed, for valgrind does not see a scan write */
	STEPS = 4,	/* when gentle, from pause to pause */
	PAUSE_US = 200,
};

struct reading {
	int pagemap_fd;
	const struct pagemap_how *how;
	struct smaps_sum *sum;
	struct pagemap_shared *shared;
	uint64_t page_bytes;
	bool swap_unsure;
	unsigned steps;
	uint64_t entries[AT_ONCE];
};

static void pause_when_gentle(struct reading *reading)
{
	if (reading->how->gentle && ++reading->steps % STEPS == 0)
		nanosleep(&(struct timespec){ .tv_nsec = PAUSE_US * 1000 }, NULL);
}

/* Entries of pages first ... first + count - 1, of which there are at most AT_ONCE. */
static int read_entries(struct reading *reading, uint64_t first, size_t count)
{
	size_t step = reading->how->gentle ? STEP : AT_ONCE;
	for (size_t at = 0; at < count;) {
		size_t want = count - at < step ? count - at : step;
		ssize_t len = pread(reading->pagemap_fd, reading->entries + at,
			want * sizeof(*reading->entries),
			(off_t)((first + at) * sizeof(*reading->entries)));
		if (len < 0)
			return -errno;
		if (len < (ssize_t)sizeof(*reading->entries))
			return -ESRCH; /* its memory is gone */
		at += (size_t)len / sizeof(*reading->entries);
		pause_when_gentle(reading);
	}
	return 0;
}

/* Pages of [*from, end) that are in one of the categories. Returns the regions found, or -errno. */
static ssize_t scan(struct reading *reading, uint64_t categories, uint64_t *from, uint64_t end,
	struct region *regions)
{
	struct scan arg = { .size = sizeof(arg),
		.start = *from * reading->page_bytes,
		.end = end * reading->page_bytes,
		.regions = (uintptr_t)regions,
		.room = REGIONS,
		.max_pages = reading->how->gentle ? STEP : AT_ONCE,
		.any_of = categories,
		.wanted = categories | SCAN_HUGE };
	int found = ioctl(reading->pagemap_fd, SCAN, &arg);
	if (found < 0)
		return -errno;
	pause_when_gentle(reading);
	for (int i = 0; i < found; i++) {
		regions[i].start /= reading->page_bytes;
		regions[i].end /= reading->page_bytes;
	}
	if (arg.walk_end <= arg.start)
		return -EIO; /* it would never end */
	*from = arg.walk_end / reading->page_bytes;
	return found;
}

static void count(const uint64_t *entries, size_t n, uint64_t kinds[KINDS])
{
	for (size_t i = 0; i < n; i++)
		kinds[KIND(entries[i])]++;
}

/*
 * The kernel's page of zeros is in no number of smaps, and looks like a shared page. Take it out.
 * `entries` are of the pages from first on.
 */
static int without_zeros(struct reading *reading, uint64_t *entries, uint64_t first, size_t n)
{
	struct region regions[REGIONS] = { 0 };
	for (uint64_t at = first; at < first + n;) {
		ssize_t found = scan(reading, SCAN_ZERO, &at, first + n, regions);
		if (found < 0)
			return (int)found;
		for (ssize_t i = 0; i < found; i++)
			memset(entries + (regions[i].start - first), 0,
				(regions[i].end - regions[i].start) * sizeof(*entries));
	}
	return 0;
}

/* Add pages of an area, whose entries are of the pages from first on. */
static int add_pages(struct reading *reading, const struct areas_one *area, uint64_t *entries,
	uint64_t first, size_t n, uint64_t kinds[KINDS])
{
	uint64_t here[KINDS] = { 0 };
	bool is_private = !(area->bits & SMAPS_MAYSHARE);
	count(entries, n, here);
	/* The huge page of zeros is of no anonymous memory, so it looks like one of a file. */
	bool may_be_huge = area->end - area->start >= SMALL * reading->page_bytes && !area->inode;
	if (is_private && (here[PRESENT] || (here[PRESENT | FILE_PAGE] && may_be_huge))) {
		int err = without_zeros(reading, entries, first, n);
		if (err)
			return err;
		memset(here, 0, sizeof(here));
		count(entries, n, here);
	}
	for (size_t i = 0; i < n && here[SWAPPED]; i++) {
		if (entries[i] & MARKED && KIND(entries[i]) == SWAPPED)
			reading->swap_unsure = true;
	}
	/* In a shared mapping there are none but pages of a file, or what is no page. */
	if (!is_private)
		here[PRESENT] = here[PRESENT | EXCLUSIVE] = 0;
	for (size_t i = 0; i < KINDS; i++)
		kinds[i] += here[i];
	bool anonymous = here[PRESENT] || here[PRESENT | EXCLUSIVE];
	return anonymous && reading->how->frames
		       ? frames_add_entries(reading->how->frames, entries, n)
		       : 0;
}

static void add_area(
	struct reading *reading, const struct areas_one *area, const uint64_t kinds[KINDS])
{
	struct smaps_sum *sum = reading->sum;
	uint64_t kib = reading->page_bytes / 1024;
	uint64_t anon = kinds[PRESENT] * kib, file = kinds[PRESENT | FILE_PAGE] * kib;
	uint64_t own_anon = kinds[PRESENT | EXCLUSIVE] * kib;
	uint64_t own = own_anon + kinds[PRESENT | EXCLUSIVE | FILE_PAGE] * kib;

	/* Shared memory that was swapped out leaves no trace in pagemap, and counts in smaps. */
	if (area->inode && !area->dev_major)
		reading->swap_unsure = true;
	sum->rss_kib += own + anon + file;
	sum->uss_kib += own;
	sum->anonymous_kib += own_anon + anon;
	sum->swap_kib += kinds[SWAPPED] * kib;
	reading->shared->file_kib += file;
	reading->shared->anon_kib += anon;
	if (area->bits & SMAPS_EXEC) {
		sum->code_private_kib += own;
		sum->code_shared_kib += anon + file;
	} else {
		sum->data_private_kib += own;
		sum->data_shared_kib += anon + file;
	}
}

/*
 * Of a page that is mapped as a huge one the kernel says for all parts what holds for the first:
 * whether nobody else maps it. After a fork that is wrong for those that somebody wrote to. Make it
 * right for n entries of huge pages, whose frames follow each other from part to part.
 */
static int fix_huge(const struct reading *reading, uint64_t *entries, size_t n)
{
	uint64_t counts[STEP];
	if (reading->how->not_huge)
		return -EOPNOTSUPP;
	if (!reading->how->counts || !(entries[0] & FRAME))
		return 0;
	for (size_t at = 0; at < n;) {
		uint64_t first = entries[at] & FRAME;
		size_t run = 1;
		while (at + run < n && run < STEP && (entries[at + run] & FRAME) == first + run)
			run++;
		int err = frames_counts(reading->how->counts, first, run, counts);
		if (err)
			return err;
		for (size_t i = 0; i < run; i++, at++)
			entries[at] = (entries[at] & ~EXCLUSIVE_BIT) |
				      (counts[i] == 1 ? EXCLUSIVE_BIT : 0);
	}
	return 0;
}

/* A large area: what is populated, piece by piece. It may be of terabytes with next to nothing in it. */
static int read_large(struct reading *reading, const struct areas_one *area, uint64_t kinds[KINDS])
{
	struct region regions[REGIONS] = { 0 };
	uint64_t at = area->start / reading->page_bytes, end = area->end / reading->page_bytes;
	while (at < end) {
		ssize_t found = scan(reading, SCAN_PRESENT | SCAN_SWAPPED, &at, end, regions);
		int err = found < 0 ? (int)found : 0;
		for (ssize_t i = 0; i < found && !err;) {
			/* those near to each other in one */
			uint64_t first = regions[i].start, last = regions[i].end;
			ssize_t from = i;
			for (i++; i < found && regions[i].start - last < GAP &&
				  regions[i].end - first <= AT_ONCE;
				i++)
				last = regions[i].end;
			err = read_entries(reading, first, last - first);
			for (; from < i && !err; from++) {
				if (regions[from].categories & SCAN_HUGE)
					err = fix_huge(reading,
						reading->entries + (regions[from].start - first),
						regions[from].end - regions[from].start);
			}
			if (!err)
				err = add_pages(reading, area, reading->entries, first,
					last - first, kinds);
		}
		if (err)
			return err;
	}
	return 0;
}

/* How many of the areas, from the first on, are near enough to be read in one piece. */
static size_t piece(const struct reading *reading, const struct areas_one *areas, size_t count)
{
	uint64_t most = AT_ONCE * reading->page_bytes, gap = GAP * reading->page_bytes;
	size_t n = 1;
	while (n < count && areas[n].end - areas[0].start <= most &&
		areas[n].end - areas[n].start < SMALL * reading->page_bytes &&
		areas[n].start - areas[n - 1].end <= gap)
		n++;
	return n;
}

static int read_areas(const struct areas_one *areas, size_t count, void *data)
{
	struct reading *reading = data;
	reading->sum->areas += (unsigned)count;
	for (size_t done = 0; done < count;) {
		const struct areas_one *first = &areas[done];
		uint64_t base = first->start / reading->page_bytes;
		bool large = first->end - first->start >= SMALL * reading->page_bytes;
		size_t n = large ? 1 : piece(reading, first, count - done);
		int err = large ? 0
				: read_entries(reading, base,
					  first[n - 1].end / reading->page_bytes - base);
		for (size_t i = 0; i < n && !err; i++) {
			uint64_t kinds[KINDS] = { 0 };
			uint64_t start = first[i].start / reading->page_bytes;
			if (first[i].page_bytes != reading->page_bytes)
				continue; /* hugetlb is not in the numbers of smaps either */
			err = large ? read_large(reading, first, kinds)
				    : add_pages(reading, &first[i],
					      reading->entries + (start - base), start,
					      first[i].end / reading->page_bytes - start, kinds);
			add_area(reading, &first[i], kinds);
		}
		if (err)
			return err;
		done += n;
	}
	return 0;
}

/* Read the memory of the task whose files are at these paths below dirfd. 0 areas: it has none. */
static int read_task(struct reading *reading, int dirfd, const char *maps, const char *pagemap)
{
	int err = 0, maps_fd = openat(dirfd, maps, O_RDONLY | O_CLOEXEC);

	if (maps_fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	reading->pagemap_fd = openat(dirfd, pagemap, O_RDONLY | O_CLOEXEC);
	if (reading->pagemap_fd < 0)
		err = errno == ENOENT ? -ESRCH : -errno;
	*reading->sum = (struct smaps_sum){ 0 };
	*reading->shared = (struct pagemap_shared){ 0 };
	if (reading->how->frames)
		reading->how->frames->count = 0;
	if (!err)
		err = areas_each(maps_fd, read_areas, reading);
	if (reading->pagemap_fd >= 0)
		close(reading->pagemap_fd);
	close(maps_fd);
	return err;
}

/* All threads share the memory: end at the first one that still has any. */
static int read_thread(int task_fd, const char *path, void *data)
{
	struct reading *reading = data;
	char maps[64];
	snprintf(maps, sizeof(maps), "%.*s/maps", (int)strcspn(path, "/"), path);
	int err = read_task(reading, task_fd, maps, path);
	return err == -ESRCH || (!err && !reading->sum->areas) ? 0 : err ? err : 1;
}

int pagemap_read(const struct proc *proc, const struct pagemap_how *how, struct smaps_sum *sum,
	struct pagemap_shared *shared)
{
	struct reading reading = { .how = how,
		.sum = sum,
		.shared = shared,
		.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE) };
	int err = read_task(&reading, proc->fd, "maps", "pagemap");
	if (err == -ESRCH || (!err && !sum->areas)) {
		int found = proc_each_thread(proc, "pagemap", read_thread, &reading);
		err = found > 0 ? 0 : found ? found : err;
	}
	sum->no_dirty = true;
	sum->seen = 1U << SMAPS_RSS | 1U << SMAPS_SHARED_CLEAN | 1U << SMAPS_SHARED_DIRTY |
		    1U << SMAPS_PRIVATE_CLEAN | 1U << SMAPS_PRIVATE_DIRTY | 1U << SMAPS_ANONYMOUS |
		    (reading.swap_unsure ? 0 : 1U << SMAPS_SWAP);
	return err;
}

static int take_first(const struct areas_one *areas, size_t count, void *data)
{
	(void)count;
	*(struct areas_one *)data = areas[0];
	return 1;
}

int pagemap_probe(const struct root *root)
{
	struct reading reading = { .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE) };
	struct pagemap_how how = { 0 };
	struct region regions[REGIONS] = { 0 };
	struct areas_one first;
	struct statfs fs;

	int proc = root_opendir(root, "proc");
	if (proc < 0)
		return proc;
	int maps_fd = openat(proc, "self/maps", O_RDONLY | O_CLOEXEC);
	reading.how = &how;
	reading.pagemap_fd = openat(proc, "self/pagemap", O_RDONLY | O_CLOEXEC);
	bool live = fstatfs(proc, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
	bool can = maps_fd >= 0 && reading.pagemap_fd >= 0 &&
		   areas_each(maps_fd, take_first, &first) == 1;
	uint64_t from = can ? first.start / reading.page_bytes : 0;
	can = can && scan(&reading, SCAN_ZERO, &from, from + 1, regions) >= 0;
	if (maps_fd >= 0)
		close(maps_fd);
	if (reading.pagemap_fd >= 0)
		close(reading.pagemap_fd);
	close(proc);
	return can ? 0 : live ? -ENOTTY : -ENOENT;
}
