/* The service's folder: lock, first values of the kernel's knobs, and the status that others read. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_STATE_H
#define KSMCTL_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "sysfs/ksm.h"

struct state_dir {
	int fd;	     /* the folder; -1 when closed */
	int lock_fd; /* held while the service runs; -1 otherwise */
};

/*
 * Open the folder, making it (mode 0755) when `create` is set. A folder that is a symbolic link,
 * or that others than root and ourselves may write to, is refused. Returns 0 or -errno (-EPERM).
 */
int state_open(struct state_dir *dir, const char *path, bool create);
void state_close(struct state_dir *dir);

/* Take the lock that says a service is running. Returns 0, or -EBUSY with the holder's PID (0 unknown). */
int state_lock(struct state_dir *dir, pid_t *holder);

/*
 * Who holds the lock. Returns the PID, or -ESRCH when nobody does, or -errno: -EACCES to other users, who
 * cannot ask.
 */
pid_t state_holder(const struct state_dir *dir);

/*
 * The first values: what the kernel had before the service wrote to it. Saved before the first
 * write, and dropped when they have been restored. Load returns -ENOENT when there are none; *ksmd_nice stays as it
 * is where none was saved.
 */
int state_save_first(const struct state_dir *dir, const struct ksm_state *first, int ksmd_nice);
int state_load_first(const struct state_dir *dir, struct ksm_state *first, int *ksmd_nice);

/* The same of its text, which is changed. Returns 0 or -EINVAL. */
int state_parse_first(char *text, struct ksm_state *first, int *ksmd_nice);
int state_drop_first(const struct state_dir *dir);

/*
 * Read a file of the folder whole, as a string. Returns its length, or -errno: -EINVAL where it is no file of
 * this folder's own (a pipe, a second name of another), -EPERM where others than root and ourselves may write
 * to it, -ELOOP for a symbolic link, -EFBIG.
 */
ssize_t state_read(const struct state_dir *dir, const char *name, char *text, size_t size);

/* Replace a file of the folder at once, so that a reader sees the old or the new. 0 or -errno. */
int state_replace(const struct state_dir *dir, const char *name, const char *text, size_t len);

#endif
