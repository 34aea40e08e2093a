/* One process as ksmstat reports it, and the list of them. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_ENTRY_H
#define KSMSTAT_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ksmstat/place.h"
#include "sysfs/select.h"
#include "sysfs/frames.h"
#include "sysfs/pagemap.h"
#include "sysfs/proc.h"
#include "sysfs/smaps.h"

struct entry {
	pid_t pid;
	struct proc_stat stat;
	int uid_error; /* 0: uid holds */
	uid_t uid;
	const struct place
		*place;	  /* NULL: not known, or not asked for; lives as long as the list */
	const char *user; /* name, or the number where there is none; lives as long as the list */
	int smaps_error;  /* 0: sum holds; else -errno and nothing of it does */
	struct smaps_sum sum;
	bool shared_known; /* shared holds */
	struct pagemap_shared shared;
	bool frames_known; /* frames holds, and with it the exact saving */
	struct frames_sum frames;
	struct frames_list merged; /* where it is asked for: the frames that frames is of */
	bool selected;		   /* fits the selection */
	int ksm_error;		   /* 0: ksm holds, its `present` bits saying what of it */
	struct proc_ksm ksm;
};

struct entry_list {
	struct entry *entries;
	size_t count, room;
	size_t unreadable; /* entries of which smaps could not be read */
	size_t missing;	   /* asked for by PID, and not there */
	size_t too_large;  /* meant, and left out for their size */
	struct places places;
};

/* What of a process's memory is wanted besides sizes, private and shared, and what is merged. */
enum {
	ENTRY_NEEDS_SMAPS = 1 << 0,  /* what only smaps tells */
	ENTRY_NEEDS_SHARED = 1 << 1, /* what only pagemap tells */
};

/* What is read, and how. */
struct entry_request {
	const struct selection *selection;
	bool all;    /* those that do not fit are read too, and not `selected` */
	bool merged; /* of memory nothing but the frames of merged pages is wanted */
	unsigned needs;
	bool places;		     /* also where each process is */
	const struct frames *frames; /* to look at page frames; NULL where that cannot be */
	bool pagemap;		     /* it can be read on this kernel */
	bool gentle;		     /* by pagemap alone, in small steps */
	uint64_t max_rss_bytes;	     /* larger ones are left out; 0: none is */
};

/*
 * Read the processes that are meant, without kernel threads. One that is named by PID and not there
 * counts as missing. *list may be anything; returns 0 or -errno; free with entry_free in any case.
 */
int entry_read(
	struct entry_list *list, const struct root *root, const struct entry_request *request);

void entry_free(struct entry_list *list);

#endif
