/* Control groups of processes: where one is, and what unit or container that is. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SYSFS_CGROUP_H
#define SYSFS_CGROUP_H

#include <stddef.h>
#include <sys/types.h>

#include "sysfs/proc.h"

/* PATH_MAX of the kernel, which makes no longer ones; with the NUL. */
#define CGROUP_PATH_MAX 4096

/*
 * Find the path of a process in the text of /proc/PID/cgroup: of version 2 ("0::/path"), or, where
 * that is the root as on hybrid systems, of the first of systemd's hierarchy, memory and the others
 * that is not. Copied raw, ended by a NUL. Returns its length, -EINVAL (no line with a path) or
 * -ENAMETOOLONG; path is untouched on failure.
 */
ssize_t cgroup_parse(const char *text, size_t len, char *path, size_t size);
/* Read it. Returns the length or -errno. */
ssize_t cgroup_read(const struct proc *proc, char *path, size_t size);

/* Length of a path without what the kernel writes behind that of a group which is gone. */
size_t cgroup_path_length(const char *path);

/*
 * One step through the parts of a path between slashes, without "..", which stands in front of the
 * path where a namespace hides it. Start with *next = path and its length in *left. Returns the
 * part (not ended by a NUL) and its length in *len, or NULL at the end.
 */
const char *cgroup_part(const char **next, size_t *left, size_t *len);

/* Longest name of a unit, and the two of them that a user's unit is. */
#define CGROUP_UNIT_MAX (2 * 256)

/*
 * The systemd unit of a path: as `systemctl status PID` finds it, the first part behind the slices
 * in front that is a service, scope or the like; for what a user's own manager runs, both:
 * "user@1000.service/app.scope". Where only slices are there, the last of them. Units inside of a
 * container are none of this machine. Characters are those that systemd allows, \x2d and all:
 * nothing in it needs to be escaped. Returns 0, or -ENOENT with `unit` untouched.
 */
int cgroup_unit(const char *path, char unit[CGROUP_UNIT_MAX]);

#endif
