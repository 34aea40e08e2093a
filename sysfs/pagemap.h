/* The memory of a process from /proc/PID/pagemap: the numbers of smaps, faster, and in small steps. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SYSFS_PAGEMAP_H
#define SYSFS_PAGEMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "sysfs/frames.h"
#include "sysfs/proc.h"
#include "sysfs/root.h"
#include "sysfs/smaps.h"

/* What the pages say that smaps does not: by what the shared ones are shared. */
struct pagemap_shared {
	uint64_t file_kib; /* pages of files and of shared memory */
	uint64_t anon_kib; /* anonymous pages, since a fork or by merging */
};

/* How to read. All zero: as fast as can be, and without frames. */
struct pagemap_how {
	bool gentle;		     /* in small steps, with pauses between them */
	bool not_huge;		     /* give up at the first huge page: smaps is faster then */
	const struct frames *counts; /* to see which part of a huge page is shared, or NULL */
	struct frames_list *frames;  /* takes frames of resident anonymous pages, or NULL */
};

/*
 * Read the resident memory of a process, as smaps_read with smaps_add does. Of *sum it fills the
 * number of areas, code, data, rss, uss, anonymous and, where it is certain, swap, with their bits
 * in `seen`; no_dirty is set. What smaps calls shared is a page that is mapped twice or more; so is it here. Of a
 * huge page the kernel tells this of its first part alone: without `counts` it holds for all of it.
 * Returns 0, -ENOTTY (before Linux 6.11, or a captured tree: smaps is for these), -ESRCH (it went
 * away meanwhile: nothing of *sum holds), -EACCES (also: frames wanted and hidden), -EOPNOTSUPP
 * (not_huge, and there is one) or -errno. An empty map is 0 with no area.
 */
int pagemap_read(const struct proc *proc, const struct pagemap_how *how, struct smaps_sum *sum,
	struct pagemap_shared *shared);

/*
 * Whether it can be read so below this root. Returns 0, -ENOTTY (this kernel cannot) or -ENOENT (a
 * captured tree, in which there is no process to read).
 */
int pagemap_probe(const struct root *root);

#endif
