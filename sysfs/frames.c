/* Page frames: which pages of a process are merged, and how many mappings share each. For root. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/frames.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGEMAP_PRESENT (UINT64_C(1) << 63)
#define PAGEMAP_FILE (UINT64_C(1) << 61)
#define PAGEMAP_FRAME ((UINT64_C(1) << 55) - 1)
#define KPAGEFLAGS_KSM (UINT64_C(1) << 21)

enum {
	AT_ONCE = 512, /* entries per read */
	GAP = 32, /* frames between two that are wanted: reading on is cheaper than another read */
};

int frames_open(struct frames *frames, const struct root *root)
{
	int proc = root_opendir(root, "proc"), err = 0;
	frames->flags_fd = frames->count_fd = -1;
	frames->page_bytes = sysconf(_SC_PAGESIZE);
	if (proc < 0)
		return proc;
	frames->flags_fd = openat(proc, "kpageflags", O_RDONLY | O_CLOEXEC);
	if (frames->flags_fd >= 0)
		frames->count_fd = openat(proc, "kpagecount", O_RDONLY | O_CLOEXEC);
	if (frames->count_fd < 0)
		err = -errno;
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
	return err ? err : (flags & KPAGEFLAGS_KSM) != 0;
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
			if (!(flags[frame - first] & KPAGEFLAGS_KSM))
				continue;
			add_frame(sum, here, counts[frame - first], frames->page_bytes, &rest);
			while (here--)
				list->frames[kept++] = frame;
		}
	}
	list->count = kept;
	return 0;
}
