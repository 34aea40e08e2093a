/* Copies what the kernel says of itself and of processes into a tree of files that --root can read. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_COPY_H
#define KSMSTAT_COPY_H

#include "ksmstat/anonym.h"
#include "sysfs/proc.h"
#include "sysfs/root.h"

struct copy {
	int dir;	       /* the tree, which is ours: files are made there, never replaced */
	struct anonym *anonym; /* NULL: all as it is */
};

/*
 * Copy what is the machine's: KSM's values, memory, pressure. A file that is absent or cannot be
 * read is absent in the tree. Returns 0, or -errno of what could not be written.
 */
int copy_system(const struct copy *copy, const struct root *root);

/*
 * Copy a process: to proc/PID when all of it is there, or not at all. Where its main thread has
 * exited the other threads are copied too. Returns 0; 1 when its memory could not be read, so that
 * there is no smaps in the tree; -ESRCH when it is a zombie or went away meanwhile; -EACCES when not even its stat can be
 * read; or another -errno of what could not be written.
 */
int copy_process(const struct copy *copy, const struct proc *proc);

/* Remove a file, or a folder with all in it; symbolic links are not followed. Returns 0 or -errno. */
int copy_remove(int dirfd, const char *name);

#endif
