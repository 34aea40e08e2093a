/* Keeps count of the processes that opted in to merging, cheaply: who they are and how they grow. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_WATCH_H
#define KSMCTL_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "ksmctl/connector.h"
#include "sysfs/root.h"

struct watched; /* one process, known to watch.c alone */

struct watch {
	const struct root *root;
	struct connector
		connector; /* fd is -1 where there is none: then only the walk finds newcomers */
	struct watched *table;
	size_t count, room;
	int64_t walk_due_ms, walk_soonest_ms; /* the latter where events were lost */
	int failures;			      /* of reading events, in a row */
	int64_t due_ms; /* when the next young process is to be looked at; far off where there is none */
	int64_t page_kib;
	size_t cursor; /* where the round over long-lived processes goes on */

	/* What the policy wants to know. -1 when no process can be read at all. */
	int64_t processes, kib;
	int64_t news; /* processes found to be opted in, ever */
};

/* Start watching; looks at every process once. Returns 0 or -errno (-ENOMEM, /proc unreadable). */
int watch_open(struct watch *watch, const struct root *root, bool use_connector, int64_t now_ms);
void watch_close(struct watch *watch);

/*
 * Take in what happened, and look again at the processes whose turn it is: newcomers often, old
 * ones in a round of bounded cost. Returns 0 or -errno; a process that went away is no error.
 */
int watch_update(struct watch *watch, int64_t now_ms);

#endif
