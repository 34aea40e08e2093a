/* Page frames: which pages of a process are merged, and how many mappings share each. For root. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/frames.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGEMAP_PRESENT (UINT64_C(1) << 63)
#define PAGEMAP_FILE (UINT64_C(1) << 61)
#define PAGEMAP_FRAME ((UINT64_C(1) << 55) - 1)
#define KPAGEFLAGS_DIRTY (UINT64_C(1) << 4)
#define KPAGEFLAGS_KSM (UINT64_C(1) << 21)
/* Called MAPPEDTODISK, and on an anonymous page the mark that it belongs to one process alone. */
#define KPAGEFLAGS_EXCLUSIVE (UINT64_C(1) << 34)

enum {
	AT_ONCE = 512, /* entries per read */
	GAP = 32, /* frames between two that are wanted: reading on is cheaper than another read */
};

/* Are we told that a page is merged which we have made this moment? */
static bool all_said_merged(const struct frames *frames, int proc)
{
	size_t len = (size_t)frames->page_bytes;
	uint64_t entry = 0, flags = 0;
	char *page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = openat(proc, "self/pagemap", O_RDONLY | O_CLOEXEC);
	if (page != MAP_FAILED && fd >= 0) {
		*(volatile char *)page = 1;
		off_t at = (off_t)((uintptr_t)page / len * sizeof(entry));
		if (pread(fd, &entry, sizeof(entry), at) == sizeof(entry) &&
			entry & PAGEMAP_PRESENT && entry & PAGEMAP_FRAME) {
			at = (off_t)((entry & PAGEMAP_FRAME) * sizeof(flags));
			if (pread(frames->flags_fd, &flags, sizeof(flags), at) != sizeof(flags))
				flags = 0;
		}
	}
	if (page != MAP_FAILED)
		munmap(page, len);
	if (fd >= 0)
		close(fd);
	return flags & KPAGEFLAGS_KSM;
}

/*
 * Where the flag of merging stands on every anonymous page, others tell: ksmd makes what it merges
 * dirty, and nobody's own. A page that a fork shares is seldom dirty: when it came back from swap,
 * or a device wrote into it.
 */
bool frames_flags_merged(const struct frames *frames, uint64_t flags)
{
	return flags & KPAGEFLAGS_KSM &&
	       (!frames->all_said_merged ||
		       (flags & (KPAGEFLAGS_DIRTY | KPAGEFLAGS_EXCLUSIVE)) == KPAGEFLAGS_DIRTY);
}

int frames_open(struct frames *frames, const struct root *root)
{
	int proc = root_opendir(root, "proc"), err = 0;
	frames->flags_fd = frames->count_fd = -1;
	frames->all_said_merged = false;
	frames->page_bytes = sysconf(_SC_PAGESIZE);
	if (proc < 0)
		return proc;
	frames->flags_fd = openat(proc, "kpageflags", O_RDONLY | O_CLOEXEC);
	if (frames->flags_fd >= 0)
		frames->count_fd = openat(proc, "kpagecount", O_RDONLY | O_CLOEXEC);
	if (frames->count_fd < 0)
		err = -errno;
	else
		frames->all_said_merged = all_said_merged(frames, proc);
	close(proc);
	if (err)
		frames_close(frames);
	return err == -EPERM ? -EACCES : err;
}

void frames_close(struct frames *frames)
{
	if (frames->flags_fd >= 0)
		close(frames->flags_fd);
	if (frames->count_fd >= 0)
		close(frames->count_fd);
	frames->flags_fd = frames->count_fd = -1;
}

static int append(struct frames_list *list, uint64_t frame)
{
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 4096;
		uint64_t *bigger = reallocarray(list->frames, room, sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		list->frames = bigger;
		list->room = room;
	}
	list->frames[list->count++] = frame;
	return 0;
}

int frames_add_entries(struct frames_list *list, const uint64_t *entries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		/* a merged page is anonymous */
		if ((entries[i] & (PAGEMAP_PRESENT | PAGEMAP_FILE)) != PAGEMAP_PRESENT)
			continue;
		if (!(entries[i] & PAGEMAP_FRAME))
			return -EACCES;
		int err = append(list, entries[i] & PAGEMAP_FRAME);
		if (err)
			return err;
	}
	return 0;
}

int frames_add(
	struct frames_list *list, int pagemap_fd, uint64_t start, uint64_t end, int64_t page_bytes)
{
	uint64_t entries[AT_ONCE];
	uint64_t page = start / (uint64_t)page_bytes, last = end / (uint64_t)page_bytes;
	while (page < last) {
		size_t want = last - page < AT_ONCE ? (size_t)(last - page) : AT_ONCE;
		ssize_t len = pread(pagemap_fd, entries, want * sizeof(*entries),
			(off_t)(page * sizeof(*entries)));
		if (len < 0)
			return -errno;
		size_t got = (size_t)len / sizeof(*entries);
		if (!got)
			return 0; /* the process is going away */
		int err = frames_add_entries(list, entries, got);
		if (err)
			return err;
		page += got;
	}
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* The entries of frames first ... first + count - 1. A frame that is not there reads as 0. */
static int read_entries(int fd, uint64_t first, size_t count, uint64_t *entries)
{
	ssize_t len =
		pread(fd, entries, count * sizeof(*entries), (off_t)(first * sizeof(*entries)));
	if (len < 0)
		return -errno;
	for (size_t i = (size_t)len / sizeof(*entries); i < count; i++)
		entries[i] = 0;
	return 0;
}

int frames_counts(const struct frames *frames, uint64_t first, size_t count, uint64_t *counts)
{
	return read_entries(frames->count_fd, first, count, counts);
}

int frames_is_merged(const struct frames *frames, uint64_t frame)
{
	uint64_t flags;
	int err = read_entries(frames->flags_fd, frame, 1, &flags);
	return err ? err : frames_flags_merged(frames, flags);
}

/* One frame that this process maps `here` times. Parts of a byte are kept in `rest`, in 2^-32. */
static void add_frame(struct frames_sum *sum, uint64_t here, uint64_t mappings, int64_t page_bytes,
	uint64_t *rest)
{
	if (mappings < here)
		mappings = here; /* it changed while we looked */
	sum->merged_pages += here;
	sum->self_pages += mappings == here ? here : 0;
	sum->alone_pages += mappings == 1;
	uint64_t whole = (uint64_t)page_bytes << 32, each = whole - whole / mappings;
	*rest += (each & UINT32_MAX) * here;
	sum->saved_bytes += (each >> 32) * here + (*rest >> 32);
	*rest &= UINT32_MAX;
}

int frames_look_up(const struct frames *frames, struct frames_list *list, struct frames_sum *sum)
{
	uint64_t flags[AT_ONCE], counts[AT_ONCE], rest = 0;
	size_t kept = 0;
	*sum = (struct frames_sum){ 0 };
	if (list->count)
		qsort(list->frames, list->count, sizeof(*list->frames), by_number);
	for (size_t i = 0; i < list->count;) {
		/* as many as lie near to each other */
		uint64_t first = list->frames[i];
		size_t end = i + 1;
		while (end < list->count && list->frames[end] - list->frames[end - 1] < GAP &&
			list->frames[end] - first < AT_ONCE)
			end++;
		size_t span = (size_t)(list->frames[end - 1] - first) + 1;
		int err = read_entries(frames->flags_fd, first, span, flags);
		if (!err)
			err = read_entries(frames->count_fd, first, span, counts);
		if (err)
			return err;
		while (i < end) {
			uint64_t frame = list->frames[i], here = 1;
			while (i + here < end && list->frames[i + here] == frame)
				here++;
			i += here;
			if (!frames_flags_merged(frames, flags[frame - first]))
				continue;
			add_frame(sum, here, counts[frame - first], frames->page_bytes, &rest);
			while (here--)
				list->frames[kept++] = frame;
		}
	}
	list->count = kept;
	return 0;
}
