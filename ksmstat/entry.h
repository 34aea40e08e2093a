/* One process as ksmstat reports it, and the list of them. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_ENTRY_H
#define KSMSTAT_ENTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "sysfs/proc.h"
#include "sysfs/smaps.h"

struct entry {
	pid_t pid;
	struct proc_stat stat;
	int uid_error; /* 0: uid holds */
	uid_t uid;
	const char *user; /* name, or the number where there is none; lives as long as the list */
	int smaps_error;  /* 0: sum holds; else -errno and nothing of it does */
	struct smaps_sum sum;
	int ksm_error; /* 0: ksm holds, its `present` bits saying what of it */
	struct proc_ksm ksm;
};

struct entry_list {
	struct entry *entries;
	size_t count, room;
	size_t unreadable; /* entries of which smaps could not be read */
	size_t missing;	   /* asked for by PID, and not there */
};

/* Read all processes, without kernel threads. Returns 0 or -errno; free with entry_free in any case. */
int entry_read_all(struct entry_list *list, const struct root *root);

/* Read these processes. One that is not there counts as missing. Returns 0 or -errno. */
int entry_read_pids(
	struct entry_list *list, const struct root *root, const pid_t *pids, size_t count);

void entry_free(struct entry_list *list);

#endif
