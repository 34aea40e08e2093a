/* The memory areas of a process, by the PROCMAP_QUERY request: without a walk over its pages. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SYSFS_AREAS_H
#define SYSFS_AREAS_H

#include <stddef.h>
#include <stdint.h>

#include "sysfs/smaps.h"

/* One area. The kernel's own page at the end of the address space ([vsyscall]) is not among them. */
struct areas_one {
	uint64_t start, end; /* addresses */
	uint64_t inode;	     /* 0: anonymous, or made by the kernel for itself, as [vdso] is */
	uint64_t page_bytes; /* more than a page of memory: hugetlb, or DAX */
	unsigned bits;	     /* SMAPS_READ, WRITE, EXEC, MAYSHARE */
	uint32_t
		dev_major; /* 0: not known; or no device, as of shared memory and some file systems */
};

/* Visits the next areas. Return non-zero to stop; that value becomes the reader's. */
typedef int (*areas_visit)(const struct areas_one *areas, size_t count, void *data);

/* Most areas that are visited at once. */
#define AREAS_AT_ONCE 128

/*
 * Visit the areas of the process whose maps file is open, and was not read yet, as maps_fd. Returns
 * 0, -ENOTTY (before Linux 6.11, or a captured tree), -ESRCH when the process has no memory any
 * more (what was visited is then not all of it), -errno or the visitor's value.
 */
int areas_each(int maps_fd, areas_visit visit, void *data);

#endif
