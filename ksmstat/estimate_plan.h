/* What an estimate is to read: processes, their private areas, and pieces of work of them. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_ESTIMATE_PLAN_H
#define KSMSTAT_ESTIMATE_PLAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ksmstat/place.h"
#include "sysfs/select.h"
#include "sysfs/proc.h"
#include "sysfs/root.h"

/* Kinds of areas, in the order in which they are shown. */
enum plan_kind { PLAN_HEAP, PLAN_ANONYMOUS, PLAN_NAMED, PLAN_STACK, PLAN_FILE, PLAN_KINDS };
extern const char *const plan_kind_names[PLAN_KINDS];

/* An area with private anonymous pages. */
struct plan_area {
	uint64_t start, end;
	uint64_t pages; /* anonymous, resident, when the plan was made */
	uint8_t kind;
	bool mergeable;	   /* VmFlags "mg" */
	bool maybe_merged; /* has merged pages, or the kernel does not say */
};

/* Indexes of processes fit into as many bits. */
#define PLAN_PROCESS_BITS 24

struct plan_process {
	pid_t pid;
	uint64_t start_ticks; /* tells a reused PID */
	uid_t uid;
	const struct place *place; /* NULL: not known, or not asked for */
	uint32_t group;		   /* set by whoever makes groups */
	char comm[PROC_COMM_MAX];  /* raw bytes */
	atomic_int error; /* -errno when its memory could not be read; then nothing of it counts */
};

/* A piece of work: whole areas of one process, or a part of one area. */
struct plan_task {
	uint32_t process;
	uint32_t areas;
	size_t first_area;
	uint64_t start, end; /* what of these areas is meant */
};

struct plan {
	struct plan_process *processes;
	size_t process_count, process_room;
	struct plan_area *areas;
	size_t area_count, area_room;
	struct plan_task *tasks;
	size_t task_count, task_room;
	uint64_t pages;	   /* of all areas */
	size_t unreadable; /* processes that were met and could not be read */
	size_t missing;	   /* asked for by PID, and not there */
	struct places places;
};

/* What is meant, and what to find out besides its areas. */
struct plan_request {
	const struct selection *selection;
	bool places;
};

/*
 * Find the areas of every process that is meant, each once; the calling process is never one.
 * *plan may be anything; returns 0 or -errno; free with plan_free in any case.
 */
int plan_make(struct plan *plan, const struct plan_request *request, const struct root *root,
	size_t page_bytes);
void plan_free(struct plan *plan);

/* The kind of an area by its name; for tests. */
enum plan_kind plan_kind_of(const char *name, uint64_t inode);

#endif
