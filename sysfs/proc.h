/* Processes: the walk over /proc and what the kernel tells of each. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SYSFS_PROC_H
#define SYSFS_PROC_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sysfs/root.h"

/* One process, held by its directory so that a reused PID is never mixed in. */
struct proc {
	pid_t pid;
	int fd; /* /proc/PID; -1 when closed */
};

/* Returns 0, -ESRCH (no such process) or -errno. */
int proc_open(struct proc *proc, const struct root *root, pid_t pid);
void proc_close(struct proc *proc);

struct proc_walk {
	DIR *dir;
};

int proc_walk_open(struct proc_walk *walk, const struct root *root);
/* The next number, of a process that may have gone meanwhile. Returns 1, 0 at the end, or -errno. */
int proc_walk_pid(struct proc_walk *walk, pid_t *pid);
/* Opens the next process. Returns 1, 0 at the end, or -errno. The caller closes each. */
int proc_walk_next(struct proc_walk *walk, struct proc *proc);
void proc_walk_close(struct proc_walk *walk);

/*
 * Visit the threads of a process: its task directory, and a path below that to the thread's own
 * file `name`. Ends when the visitor returns other than 0, and returns that; else 0 or -errno.
 * For a process whose main thread has exited: its other threads still show what it has.
 */
typedef int (*proc_thread_visit)(int task_fd, const char *path, void *data);
int proc_each_thread(
	const struct proc *proc, const char *name, proc_thread_visit visit, void *data);

#define PROC_COMM_MAX 64

struct proc_stat {
	char comm[PROC_COMM_MAX]; /* raw bytes: escape before showing */
	char state;
	bool kernel_thread;
	bool exiting; /* its main thread is, or has done so */
	pid_t ppid;
	int threads;
	uint64_t minflt, majflt; /* page faults */
	uint64_t utime_ticks, stime_ticks;
	uint64_t start_ticks; /* since boot */
	uint64_t rss_pages;
};

/* Parse /proc/PID/stat: comm lies between the first '(' and the last ')'. 0 or -EINVAL. */
int proc_parse_stat(const char *text, size_t len, struct proc_stat *stat);
int proc_read_stat(const struct proc *proc, struct proc_stat *stat);

/* Effective user, from the "Uid:" line of status. 0 or -errno. */
int proc_parse_uid(const char *text, size_t len, uid_t *uid);
int proc_read_uid(const struct proc *proc, uid_t *uid);

/*
 * Memory that the kernel counts as locked (VmLck: mlock, and what VFIO pins) and as pinned for
 * devices or io_uring (VmPin), from the text of status, in KiB. 0 or -errno; -ENOENT before 3.2.
 */
struct proc_locked {
	int64_t locked_kib, pinned_kib;
};
int proc_parse_locked(const char *text, size_t len, struct proc_locked *locked);
int proc_read_locked(const struct proc *proc, struct proc_locked *locked);

enum {
	PROC_KSM_RMAP_ITEMS = 1 << 0,
	PROC_KSM_MERGING = 1 << 1,
	PROC_KSM_ZERO = 1 << 2,
	PROC_KSM_PROFIT = 1 << 3,
	PROC_KSM_MERGE_ANY = 1 << 4,
	PROC_KSM_MERGEABLE = 1 << 5,
};

/* /proc/PID/ksm_stat. `present` has a bit for each field that this kernel reports. */
struct proc_ksm {
	unsigned present;
	int64_t rmap_items;
	int64_t merging_pages;
	int64_t zero_pages; /* the kernel may report a passing negative: clamped to 0 */
	int64_t profit_bytes;
	bool merge_any; /* opted in by prctl */
	bool mergeable; /* any area opted in, by either way */
};

/* Parse ksm_stat, lines "name value" or "name: yes". Unknown lines are passed over. 0 or -EINVAL. */
int proc_parse_ksm_stat(const char *text, size_t len, struct proc_ksm *ksm);
/* Also reads ksm_merging_pages where ksm_stat lacks it (6.1). -ENOENT before 5.19, -EACCES, -ESRCH. */
int proc_read_ksm_stat(const struct proc *proc, struct proc_ksm *ksm);

#endif
