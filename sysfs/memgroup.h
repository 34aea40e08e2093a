/* Memory control groups: what limits one, and how much of that anonymous memory takes. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SYSFS_MEMGROUP_H
#define SYSFS_MEMGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sysfs/proc.h"
#include "sysfs/root.h"

/* Of a group with all below it, in KiB; -1 where it is not known. */
struct memgroup {
	int64_t anon_kib; /* resident */
	int64_t swap_kib;
	int64_t limit_kib; /* the lower of memory.max and memory.high; v1: limit_in_bytes. -1 also: none */
};

/*
 * Find the memory group in the text of /proc/PID/cgroup: of version 1 where memory has a hierarchy
 * there (*v1), else of version 2. Copied raw, ended by a NUL. Returns its length, -EINVAL or
 * -ENAMETOOLONG; path is untouched on failure.
 */
ssize_t memgroup_parse_path(const char *text, size_t len, char *path, size_t size, bool *v1);
ssize_t memgroup_read_path(const struct proc *proc, char *path, size_t size, bool *v1);

/* "max" is INT64_MAX, as is the huge number by which version 1 says so. 0, -EINVAL or -ERANGE. */
int memgroup_parse_limit(const char *text, size_t len, int64_t *bytes);

/* Read a group. Returns 0, or -ENOENT (none there, or not mounted where it usually is) or -errno. */
int memgroup_read(const struct root *root, const char *path, bool v1, struct memgroup *group);

#endif
