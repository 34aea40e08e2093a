/* Which processes are meant: by PID, name, user and control group. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SYSFS_SELECT_H
#define SYSFS_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "sysfs/proc.h"
#include "sysfs/root.h"

/* A process is meant when one of each kind that is given fits. All zero means every process. */
struct selection {
	pid_t *pids;
	size_t pid_count;
	char **comms; /* names or patterns of the shell */
	size_t comm_count;
	uid_t *users;
	size_t user_count;
	char **cgroups; /* "/a/b": it and all below; "a/b": wherever these components are */
	size_t cgroup_count;
};

static inline bool select_any(const struct selection *selection)
{
	return selection->pid_count || selection->comm_count || selection->user_count ||
	       selection->cgroup_count;
}

/*
 * Add "A,B,..." to one kind. Return 0, -ENOMEM, or -EINVAL with the offending word in *bad (no PID,
 * an unknown user, an empty word). Freed with select_free.
 */
int select_add_pids(struct selection *selection, const char *list, const char **bad, size_t *len);
int select_add_comms(struct selection *selection, const char *list, const char **bad, size_t *len);
int select_add_users(struct selection *selection, const char *list, const char **bad, size_t *len);
/* One path, commas and all. /sys/fs/cgroup in front of it is taken off. */
int select_add_cgroup(struct selection *selection, const char *path);
void select_free(struct selection *selection);

/*
 * Is this process meant? Cheap tests first. `stat` is NULL where it could not be read. What cannot
 * be told (a process hidden from us) does not fit. Safe to call from several threads.
 */
bool select_wanted(
	const struct selection *selection, const struct proc *proc, const struct proc_stat *stat);

/*
 * Visit every process that is meant, without kernel threads; the visitor's `stat` is NULL where it
 * could not be read. The walk ends when the visitor returns other than 0, and returns that; else
 * 0 or -errno. Processes named by PID that are not there are counted in *missing.
 */
typedef int (*select_visit)(const struct proc *proc, const struct proc_stat *stat, void *data);
int select_each(const struct selection *selection, const struct root *root, select_visit visit,
	void *data, size_t *missing);

/* The two of select_wanted that look at nothing but text; for tests. */
bool select_comm_fits(const char *wanted, const char *comm);
bool select_cgroup_fits(const char *wanted, const char *path);

#endif
