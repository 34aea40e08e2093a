/* The memory of one process as an estimate reads it: which pages are there, and their contents. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/estimate_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* As in linux/fs.h since 6.7; the headers here may be older than the kernel. */
struct scan {
	uint64_t size, flags, start, end, walk_end, regions, region_count, max_pages;
	uint64_t inverted, mask, anyof_mask, return_mask;
};
struct scan_region {
	uint64_t start, end, categories;
};
#define SCAN_IOCTL _IOWR('f', 16, struct scan)
#define SCAN_FILE (1u << 2)
#define SCAN_PRESENT (1u << 3)
#define SCAN_PFNZERO (1u << 5)
#define SCAN_REGIONS 256

static int open_below(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : errno == ENOENT ? -ESRCH : -errno;
}

/* Open the files of the thread `tid` below dirfd. -ESRCH when it has no memory any more. */
static int open_files(struct source *source, int dirfd, pid_t tid)
{
	char path[32];
	uint64_t entry;

	snprintf(path, sizeof(path), "%d/pagemap", (int)tid);
	source->pagemap_fd = open_below(dirfd, path);
	if (source->pagemap_fd < 0)
		return source->pagemap_fd;
	snprintf(path, sizeof(path), "%d/mem", (int)tid);
	source->mem_fd = open_below(dirfd, path);
	int err = source->mem_fd < 0 ? source->mem_fd : 0;
	/* The files of a thread that has exited open, and are empty. */
	if (!err && pread(source->pagemap_fd, &entry, sizeof(entry), 0) != sizeof(entry))
		err = -ESRCH;
	if (!err)
		return 0;
	close(source->pagemap_fd);
	if (source->mem_fd >= 0)
		close(source->mem_fd);
	return err;
}

/* A visitor of threads: ends at the first whose memory can be opened. */
static int open_thread(int task_fd, const char *path, void *data)
{
	return open_files(data, task_fd, atoi(path)) == 0;
}

/* All threads share the memory; the main one may have exited before the others. */
static int open_memory(struct source *source)
{
	int task_fd = openat(source->proc.fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (task_fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	int err = open_files(source, task_fd, source->proc.pid);
	close(task_fd);
	if (err != -ESRCH)
		return err;
	err = proc_each_thread(&source->proc, "stat", open_thread, source);
	return err == 1 ? 0 : err ? err : -ESRCH;
}

int source_open(struct source *source, const struct root *root, const struct plan_process *process,
	size_t page_bytes)
{
	struct proc_stat stat;
	memset(source, 0, sizeof(*source));
	source->page_bytes = page_bytes;
	int err = proc_open(&source->proc, root, process->pid);
	if (err)
		return err;
	err = proc_read_stat(&source->proc, &stat);
	if (!err && stat.start_ticks != process->start_ticks)
		err = -ESRCH;
	if (!err)
		err = open_memory(source);
	if (err)
		proc_close(&source->proc);
	return err == -ENOENT ? -ESRCH : err;
}

void source_close(struct source *source)
{
	close(source->mem_fd);
	close(source->pagemap_fd);
	proc_close(&source->proc);
}

bool source_alive(const struct source *source)
{
	struct proc_stat stat;
	return proc_read_stat(&source->proc, &stat) == 0;
}

size_t source_entries(const struct source *source, uint64_t number, uint64_t *entries, size_t count)
{
	ssize_t len = pread(source->pagemap_fd, entries, count * sizeof(*entries),
		(off_t)(number * sizeof(*entries)));
	return len < 0 ? 0 : (size_t)len / sizeof(*entries);
}

/* Visit the anonymous pages among those from `number` to `last`. */
static int find_among(
	struct source *source, uint64_t number, uint64_t last, source_visit visit, void *data)
{
	uint64_t entries[512];
	while (number < last) {
		size_t want = last - number < 512 ? (size_t)(last - number) : 512;
		size_t got = source_entries(source, number, entries, want);
		if (!got) /* the area went away */
			return 0;
		for (size_t i = 0; i < got; i++) {
			if ((entries[i] & (SOURCE_PRESENT | SOURCE_FILE)) != SOURCE_PRESENT)
				continue;
			int result = visit(number + i, entries[i], data);
			if (result)
				return result;
		}
		number += got;
	}
	return 0;
}

int source_find(struct source *source, uint64_t start, uint64_t end, source_visit visit, void *data)
{
	struct scan_region regions[SCAN_REGIONS] = { 0 }; /* valgrind does not see a scan write */
	struct scan scan = {
		.size = sizeof(scan),
		.start = start,
		.end = end,
		.regions = (uintptr_t)regions,
		.region_count = SCAN_REGIONS,
		.inverted = SCAN_FILE | SCAN_PFNZERO,
		.mask = SCAN_FILE | SCAN_PFNZERO | SCAN_PRESENT,
		.return_mask = SCAN_PRESENT,
	};
	/* It steps over holes of any size, and tells the kernel's page of zeros. */
	while (!source->no_scan && scan.start < end) {
		int count = ioctl(source->pagemap_fd, SCAN_IOCTL, &scan);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0) {
			source->no_scan = errno == ENOTTY || errno == EINVAL;
			if (!source->no_scan)
				return errno == ESRCH ? 0 : -errno;
			break;
		}
		for (int i = 0; i < count; i++) {
			int result = find_among(source, regions[i].start / source->page_bytes,
				regions[i].end / source->page_bytes, visit, data);
			if (result)
				return result;
		}
		if (scan.walk_end <= scan.start)
			return 0;
		scan.start = scan.walk_end;
	}
	if (!source->no_scan)
		return 0;
	return find_among(
		source, scan.start / source->page_bytes, end / source->page_bytes, visit, data);
}

/*
 * Through /proc/PID/mem, although process_vm_readv copies faster: that one pins the pages, and since
 * Linux 5.19 a pin gives the process a copy of its own of every page that it shares, be it since a
 * fork or by merging. To look would undo what is looked for.
 */
void source_copy(const struct source *source, const uint64_t *numbers, size_t count, char *buffer,
	bool *there)
{
	size_t page = source->page_bytes;
	for (size_t i = 0, run; i < count; i += run) {
		run = 1;
		while (i + run < count && numbers[i + run] == numbers[i] + run)
			run++;
		ssize_t len = pread(
			source->mem_fd, buffer + i * page, run * page, (off_t)(numbers[i] * page));
		size_t copied = len < 0 ? 0 : (size_t)len / page;
		for (size_t n = 0; n < run; n++)
			there[i + n] = n < copied;
		/* It ends at a page that cannot be read; those behind it are tried again. */
		if (copied < run)
			run = copied + 1;
	}
}
