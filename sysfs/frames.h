/* Page frames: which pages of a process are merged, and how many mappings share each. For root. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SYSFS_FRAMES_H
#define SYSFS_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sysfs/proc.h"
#include "sysfs/root.h"

/* /proc/kpageflags and /proc/kpagecount. One of it serves many threads. */
struct frames {
	int flags_fd, count_fd; /* -1 when closed */
	int64_t page_bytes;
	/* This kernel says of every anonymous page that it is merged: seen on Linux 6.12. */
	bool all_said_merged;
};

/* Is a page with these flags of /proc/kpageflags a merged one? */
bool frames_flags_merged(const struct frames *frames, uint64_t flags);

/* Returns 0, -ENOENT (no CONFIG_PROC_PAGE_MONITOR) or -EACCES (only root may). */
int frames_open(struct frames *frames, const struct root *root);
void frames_close(struct frames *frames);

/* Merged pages of one process. */
struct frames_sum {
	uint64_t merged_pages; /* mappings of merged pages */
	uint64_t self_pages;   /* of these: nobody but this process maps the page */
	uint64_t alone_pages;  /* of these: mapped once, so that nothing is shared */
	uint64_t
		saved_bytes; /* the sum of (1 - 1 / mappings of the page): adds up over processes */
};

/* Where to look: collects the frames of one process, area by area. Start with a zeroed one. */
struct frames_list {
	uint64_t *frames;
	size_t count, room;
};

/*
 * Add the frames of the resident pages of [start, end) of the process whose pagemap is open as
 * pagemap_fd. Returns 0, -ENOMEM, -EACCES (the kernel hides the numbers: needs CAP_SYS_ADMIN) or
 * -errno.
 */
int frames_add(
	struct frames_list *list, int pagemap_fd, uint64_t start, uint64_t end, int64_t page_bytes);

/* The same for entries of a pagemap that are read already. */
int frames_add_entries(struct frames_list *list, const uint64_t *entries, size_t count);

/* How often each of the frames first ... first + count - 1 is mapped. Returns 0 or -errno. */
int frames_counts(const struct frames *frames, uint64_t first, size_t count, uint64_t *counts);

/* Is this frame a merged page? Returns 1, 0 or -errno. */
int frames_is_merged(const struct frames *frames, uint64_t frame);

/*
 * Look each of them up. Sorts the list and leaves the merged ones in it, each as often as it is
 * mapped here. Returns 0 or -errno.
 */
int frames_look_up(const struct frames *frames, struct frames_list *list, struct frames_sum *sum);

#endif
