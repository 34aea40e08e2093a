/* /proc/PID/smaps: a streaming parser, a reader, and the sums that a reporter needs. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SYSFS_SMAPS_H
#define SYSFS_SMAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sysfs/proc.h"

enum smaps_field {
	SMAPS_SIZE,
	SMAPS_RSS,
	SMAPS_PSS,
	SMAPS_SHARED_CLEAN,
	SMAPS_SHARED_DIRTY,
	SMAPS_PRIVATE_CLEAN,
	SMAPS_PRIVATE_DIRTY,
	SMAPS_ANONYMOUS,
	SMAPS_KSM,
	SMAPS_LAZY_FREE,
	SMAPS_ANON_HUGE,
	SMAPS_SHMEM_PMD,
	SMAPS_FILE_PMD,
	SMAPS_SHARED_HUGETLB,
	SMAPS_PRIVATE_HUGETLB,
	SMAPS_SWAP,
	SMAPS_FIELDS
};

/* Bits of an area: its permissions, and of VmFlags those that bear on merging. */
enum {
	SMAPS_READ = 1 << 0,
	SMAPS_WRITE = 1 << 1,
	SMAPS_EXEC = 1 << 2,
	SMAPS_MAYSHARE = 1 << 3,  /* mapped shared */
	SMAPS_MERGEABLE = 1 << 4, /* VmFlags "mg" */
	SMAPS_HAS_VMFLAGS = 1 << 5,
	SMAPS_LOCKED = 1 << 6, /* "lo": mlock */
	SMAPS_DEVICE = 1 << 7, /* "pf" or "io": frames of a device, or given by a driver */
};

#define SMAPS_NAME_MAX 256

/* One memory area with its record. kib[f] holds only where bit f of `seen` is set. */
struct smaps_area {
	uint64_t start, end; /* addresses */
	uint64_t offset, inode;
	unsigned bits;
	unsigned seen;
	uint64_t kib[SMAPS_FIELDS];
	char name[SMAPS_NAME_MAX]; /* path or "[heap]"; raw bytes, cut to fit, "" when anonymous */
};

/* Return non-zero to stop; that value becomes the reader's. The area is valid during the call. */
typedef int (*smaps_visit)(const struct smaps_area *area, void *data);

/* The parser's memory between two pieces of text. Start with a zeroed one. */
struct smaps_parser {
	struct smaps_area area;
	bool in_area;
	unsigned next; /* where the next field is expected in the table */
};

/*
 * Parse whole lines of text[0..len), which end in a newline. An area is visited when the header of
 * the next one is met; smaps_finish visits the last. Lines and fields of other kernels are passed
 * over. Returns 0, -EINVAL (text before the first header, or a header that is none) or the visitor's value.
 */
int smaps_parse(
	struct smaps_parser *parser, const char *text, size_t len, smaps_visit visit, void *data);
int smaps_finish(struct smaps_parser *parser, smaps_visit visit, void *data);

/*
 * Read smaps of a process and visit every area. A process whose main thread has exited is read
 * through another of its threads. Returns 0, -errno (-ESRCH when it went away meanwhile, -EACCES)
 * or the visitor's value. An empty map (a kernel thread, a zombie) is 0 with no visit.
 */
int smaps_read(const struct proc *proc, smaps_visit visit, void *data);

/*
 * The same for a file that is open, smaps or maps (which is its headers). *empty: there was nothing
 * in it. Where the memory goes while it is read the file ends there: then this is -ESRCH.
 */
int smaps_read_fd(int fd, smaps_visit visit, void *data, bool *empty);

/*
 * Is any area open to merging, whoever marked it? Returns 1, 0 (also where the kernel does not tell) or
 * -errno of smaps_read. Ends at the first.
 */
int smaps_any_mergeable(const struct proc *proc);

/* No machine has as much, and four such sums in bytes still fit into a signed number. */
#define SMAPS_KIB_MAX ((UINT64_C(1) << 51) - 1)

/* Sums over all areas of one process, in KiB. Code is memory of executable areas, data all other. */
struct smaps_sum {
	unsigned areas, mergeable_areas;
	unsigned seen;	  /* fields that at least one area had */
	bool has_vmflags; /* at least one area had them: else "mergeable" is not known */
	bool no_dirty;	  /* clean and dirty were not told apart: dirty_kib is not known */
	uint64_t code_private_kib, code_shared_kib;
	uint64_t data_private_kib, data_shared_kib;
	uint64_t rss_kib, pss_kib, uss_kib, swap_kib, dirty_kib, anonymous_kib;
	uint64_t huge_kib; /* THP of every kind and hugetlb */
	uint64_t ksm_kib;
	uint64_t saved_kib; /* estimate of KSM rss - KSM pss, area by area */
};

/* A visitor: data is a zeroed struct smaps_sum. */
int smaps_add(const struct smaps_area *area, void *data);

#endif
