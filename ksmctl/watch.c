/* Keeps count of the processes that opted in to merging, cheaply: who they are and how they grow. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sysfs/file.h"
#include "sysfs/proc.h"
#include "sysfs/smaps.h"

enum {
	/* A process is looked at after 1/4 of its age, so that its opting in and growth are seen in time. */
	AGE_PART = 4,
	LOOK_FIRST_MS = 200,
	YOUNG_MS = 3000, /* and till then an update is asked for when its turn comes */
	LOOK_OPTED_MS = 30 * 1000,
	LOOK_AGAIN_MS = 400, /* while those that opted in are few, each is looked at so often */
	LOOK_OTHER_MS = 300 * 1000,
	LOOKS_PER_UPDATE = 100, /* at about 5 us each */
	/* The walk repairs what events missed; without events it is all there is. */
	WALK_EVENTS_MS = 300 * 1000,
	WALK_MIN_MS = 1000,
	WALK_PARTS = 1000, /* and it may cost one part in so many of the time; */
	LOST_PARTS = 20,   /* in so many while events get lost */
	FAILURES_MAX = 5,  /* readings of events in a row that fail, and then it goes without */
};

struct watched {
	pid_t pid;
	bool opted, unreadable;
	bool met; /* by the walk under way */
	int64_t since_ms, look_ms, looked_ms;
	int64_t kib; /* resident anonymous memory, when opted */
};

/* The table is sorted by PID. Returns where pid is or would be. */
static size_t position(const struct watch *watch, pid_t pid)
{
	size_t low = 0, high = watch->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (watch->table[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool holds(const struct watch *watch, size_t at, pid_t pid)
{
	return at < watch->count && watch->table[at].pid == pid;
}

static int add(struct watch *watch, pid_t pid, int64_t since_ms, int64_t look_ms)
{
	size_t at = position(watch, pid);
	if (holds(watch, at, pid)) { /* an exec: what was known is no longer true */
		struct watched *known = &watch->table[at];
		*known = (struct watched){ .pid = pid, .since_ms = since_ms, .look_ms = look_ms };
		return 0;
	}
	if (watch->count == watch->room) {
		size_t room = watch->room ? watch->room * 2 : 128;
		struct watched *table = reallocarray(watch->table, room, sizeof(*table));
		if (!table)
			return -ENOMEM;
		watch->table = table;
		watch->room = room;
	}
	memmove(&watch->table[at + 1], &watch->table[at],
		(watch->count - at) * sizeof(*watch->table));
	watch->count++;
	watch->table[at] = (struct watched){ .pid = pid, .since_ms = since_ms, .look_ms = look_ms };
	return 0;
}

static void drop(struct watch *watch, size_t at)
{
	watch->count--;
	memmove(&watch->table[at], &watch->table[at + 1],
		(watch->count - at) * sizeof(*watch->table));
}

struct events {
	struct watch *watch;
	int64_t now_ms;
	int err;
};

static void on_event(pid_t pid, int alive, void *data)
{
	struct events *events = data;
	if (alive) {
		int err = add(events->watch, pid, events->now_ms, events->now_ms + LOOK_FIRST_MS);
		if (err)
			events->err = err;
		return;
	}
	size_t at = position(events->watch, pid);
	if (holds(events->watch, at, pid))
		drop(events->watch, at);
}

/* Returns 1 when the process opted in, 0 when not, -ENODATA for a kernel thread, or -errno. */
static int is_opted(const struct proc *proc)
{
	struct proc_ksm ksm;
	int err = proc_read_ksm_stat(proc, &ksm);
	if (err)
		return err;
	if (!ksm.present)
		return -ENODATA;
	if (ksm.present & (PROC_KSM_MERGE_ANY | PROC_KSM_MERGEABLE))
		return ksm.merge_any || ksm.mergeable;
	if (ksm.present & PROC_KSM_RMAP_ITEMS && ksm.rmap_items > 0)
		return 1;
	/* Before 6.13 only the areas themselves tell. */
	return smaps_any_mergeable(proc);
}

/* Resident anonymous memory: fields 2 and 3 of statm are resident and shared pages. */
static int anonymous_kib(const struct proc *proc, int64_t page_kib, int64_t *kib)
{
	char buf[128];
	long long resident, shared;
	ssize_t len = file_read(proc->fd, "statm", buf, sizeof(buf));
	if (len < 0)
		return (int)len;
	bool has = sscanf(buf, "%*s %lld %lld", &resident, &shared) == 2 && resident > shared;
	*kib = has ? (resident - shared) * page_kib : 0;
	return 0;
}

/* A fault that may pass, as when descriptors run out: what was known before still holds. */
static bool passes(int err)
{
	return err < 0 && err != -ESRCH && err != -ENODATA && err != -EACCES && err != -EPERM;
}

/* Look at one process. Returns false when it is gone. */
static bool look(struct watch *watch, struct watched *watched, int64_t now_ms)
{
	struct proc proc;
	int opted = proc_open(&proc, watch->root, watched->pid);
	if (opted == -ESRCH)
		return false;
	if (!opted) {
		opted = watched->opted ? 1 : is_opted(&proc);
		int err = opted > 0 ? anonymous_kib(&proc, watch->page_kib, &watched->kib) : 0;
		watch->news += opted > 0 && !watched->opted;
		watched->opted |= opted > 0;
		watched->unreadable = opted < 0 && opted != -ENODATA;
		opted = err ? err : opted;
		proc_close(&proc);
	}
	int64_t wait_ms = (now_ms - watched->since_ms) / AGE_PART;
	int64_t most_ms = passes(opted)	   ? LOOK_AGAIN_MS
			  : watched->opted ? LOOK_OPTED_MS
					   : LOOK_OTHER_MS;
	if (opted == -ENODATA)
		wait_ms = most_ms;
	wait_ms = wait_ms < LOOK_FIRST_MS ? LOOK_FIRST_MS : wait_ms > most_ms ? most_ms : wait_ms;
	watched->look_ms = now_ms + wait_ms;
	watched->looked_ms = now_ms;
	return opted != -ESRCH;
}

static int64_t now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Make the table what /proc is: newcomers are to be looked at next, the dead are dropped. */
static int walk(struct watch *watch, int64_t now_ms)
{
	struct proc_walk processes;
	struct proc proc;
	int64_t begin_us = now_us();
	int err = proc_walk_open(&processes, watch->root);
	if (err)
		return err;
	for (size_t i = 0; i < watch->count; i++)
		watch->table[i].met = false;
	while ((err = proc_walk_next(&processes, &proc)) > 0) {
		pid_t pid = proc.pid;
		proc_close(&proc);
		if (!holds(watch, position(watch, pid), pid)) {
			err = add(watch, pid, now_ms, now_ms);
			if (err)
				break;
		}
		watch->table[position(watch, pid)].met = true;
	}
	proc_walk_close(&processes);
	if (err)
		return err;
	size_t kept = 0;
	for (size_t i = 0; i < watch->count; i++) {
		if (watch->table[i].met)
			watch->table[kept++] = watch->table[i];
	}
	watch->count = kept;
	int64_t cost_us = now_us() - begin_us, wait_ms = cost_us * WALK_PARTS / 1000;
	int64_t least_ms = watch->connector.fd >= 0 ? WALK_EVENTS_MS : WALK_MIN_MS;
	watch->walk_soonest_ms = now_ms + cost_us * LOST_PARTS / 1000;
	watch->walk_due_ms = now_ms + (wait_ms > least_ms ? wait_ms : least_ms);
	return 0;
}

static void sum_up(struct watch *watch, int64_t now_ms)
{
	size_t unreadable = 0;
	watch->processes = watch->kib = 0;
	watch->due_ms = INT64_MAX;
	for (size_t i = 0; i < watch->count; i++) {
		const struct watched *watched = &watch->table[i];
		unreadable += watched->unreadable;
		if (now_ms - watched->since_ms < YOUNG_MS && watched->look_ms < watch->due_ms)
			watch->due_ms = watched->look_ms;
		if (!watched->opted)
			continue;
		watch->processes++;
		watch->kib += watched->kib;
	}
	/* Mostly closed to us, as without privileges: better to know nothing than to take it for none. */
	if (unreadable * 2 > watch->count)
		watch->processes = watch->kib = -1;
}

/* Look at those whose time has come, at most so many at a time, going round. */
static void look_at_due(struct watch *watch, int64_t now_ms, int most)
{
	bool few = watch->processes <= LOOKS_PER_UPDATE;
	size_t i = watch->cursor;
	for (size_t left = watch->count; left > 0 && most > 0 && watch->count > 0; left--) {
		if (i >= watch->count)
			i = 0;
		struct watched *watched = &watch->table[i];
		if (watched->look_ms > now_ms &&
			!(few && watched->opted && now_ms - watched->looked_ms >= LOOK_AGAIN_MS)) {
			i++;
			continue;
		}
		most--;
		if (look(watch, watched, now_ms))
			i++;
		else
			drop(watch, i);
	}
	watch->cursor = i;
}

int watch_open(struct watch *watch, const struct root *root, bool use_connector, int64_t now_ms)
{
	*watch = (struct watch){ .root = root, .connector.fd = -1 };
	watch->page_kib = sysconf(_SC_PAGESIZE) >> 10;
	if (use_connector)
		connector_open(&watch->connector);
	int err = walk(watch, now_ms);
	if (!err) /* the first look is at everybody */
		look_at_due(watch, now_ms, INT_MAX);
	sum_up(watch, now_ms);
	return err;
}

void watch_close(struct watch *watch)
{
	connector_close(&watch->connector);
	free(watch->table);
	watch->table = NULL;
	watch->count = watch->room = 0;
}

/* Take in the events. Where some were lost, everything is looked at, as soon as that is not too dear. */
static int read_events(struct watch *watch, int64_t now_ms)
{
	struct events events = { .watch = watch, .now_ms = now_ms };
	int read = connector_read(&watch->connector, on_event, &events);
	bool failed = read < 0 && read != -ENOBUFS;
	if ((read < 0 || events.err) && watch->walk_due_ms > watch->walk_soonest_ms)
		watch->walk_due_ms = watch->walk_soonest_ms;
	watch->failures = failed ? watch->failures + 1 : 0;
	if (watch->failures >= FAILURES_MAX)
		connector_close(&watch->connector);
	return events.err;
}

int watch_update(struct watch *watch, int64_t now_ms)
{
	int err = watch->connector.fd >= 0 ? read_events(watch, now_ms) : 0;
	if (!err && now_ms >= watch->walk_due_ms)
		err = walk(watch, now_ms);
	look_at_due(watch, now_ms, LOOKS_PER_UPDATE);
	sum_up(watch, now_ms);
	return err;
}
