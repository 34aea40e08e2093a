/* What merging would save, found by hashing the resident pages of processes. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_ESTIMATE_H
#define KSMSTAT_ESTIMATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sysfs/root.h"

struct estimate {
	uint64_t pages;	      /* private anonymous pages that were read */
	uint64_t zero_pages;  /* of these, filled with zeros */
	uint64_t equal_pages; /* not zero, and equal to a page met before: these would be saved */
	size_t processes, unreadable;
};

/*
 * Read the resident private pages of these processes and count equal ones. Pages that are not
 * resident are not touched. Returns 0 or -ENOMEM; a process that cannot be read is counted.
 */
int estimate_read(
	struct estimate *estimate, const struct root *root, const pid_t *pids, size_t count);

/* Read and print. Returns an exit code of ksmstat. */
int estimate_print(const struct root *root, const pid_t *pids, size_t count);

#endif
