/* Reads the memory of one process, by the way that is fastest for what is asked, or gentlest. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* Areas as they come from smaps: summed, and of those with merged pages the frames taken down. */
struct areas {
	struct entry *entry;
	const struct proc *proc;
	const struct frames *frames; /* NULL when no more are wanted */
	bool merged;		     /* as in the request */
	struct frames_list list;
	int pagemap_fd;
};

/* Before Linux 6.6 smaps does not tell, and every area that is open to merging has to be looked at. */
static bool may_hold_merged(const struct areas *areas, const struct smaps_area *area)
{
	if (area->seen & 1U << SMAPS_KSM)
		return area->kib[SMAPS_KSM];
	return areas->merged && area->bits & SMAPS_MERGEABLE;
}

static int add_area(const struct smaps_area *area, void *data)
{
	struct areas *areas = data;
	if (areas->frames && may_hold_merged(areas, area)) {
		if (areas->pagemap_fd < 0)
			areas->pagemap_fd =
				openat(areas->proc->fd, "pagemap", O_RDONLY | O_CLOEXEC);
		if (areas->pagemap_fd < 0 ||
			frames_add(&areas->list, areas->pagemap_fd, area->start, area->end,
				areas->frames->page_bytes))
			areas->frames = NULL;
	}
	return smaps_add(area, &areas->entry->sum);
}

/* The list of frames is looked up: whoever asked for it has it now. */
static void keep(struct entry *entry, struct frames_list *list, const struct entry_request *request)
{
	if (request->merged && entry->frames_known)
		entry->merged = *list;
	else
		free(list->frames);
}

/* All that smaps tells, and the exact saving where frames can be looked at. */
static int read_smaps(
	struct entry *entry, const struct proc *proc, const struct entry_request *request)
{
	struct areas areas = { .entry = entry,
		.proc = proc,
		.frames = request->frames,
		.merged = request->merged,
		.pagemap_fd = -1 };
	int err = smaps_read(proc, add_area, &areas);
	entry->frames_known = areas.frames && !err &&
			      (request->merged || entry->sum.seen & 1U << SMAPS_KSM) &&
			      frames_look_up(areas.frames, &areas.list, &entry->frames) == 0;
	keep(entry, &areas.list, request);
	if (areas.pagemap_fd >= 0)
		close(areas.pagemap_fd);
	return err;
}

/* Merged pages lie in areas that are open to merging and nowhere else: the kernel tells since 6.13. */
static bool none_merged(const struct entry *entry)
{
	return !entry->ksm_error && entry->ksm.present & PROC_KSM_MERGEABLE &&
	       !entry->ksm.mergeable;
}

/* Pagemap, and all that it tells. Which pages are merged is told by their frames alone. */
static int read_pagemap(
	struct entry *entry, const struct proc *proc, const struct entry_request *request)
{
	struct frames_list list = { 0 };
	bool look = request->frames && !none_merged(entry);
	struct pagemap_how how = { .gentle = request->gentle,
		.not_huge = !request->gentle && !(request->needs & ENTRY_NEEDS_SHARED),
		.counts = request->frames,
		.frames = look ? &list : NULL };

	int err = pagemap_read(proc, &how, &entry->sum, &entry->shared);
	if (err == -EACCES && look) { /* the numbers of frames are hidden from us */
		look = false;
		how.frames = NULL;
		err = pagemap_read(proc, &how, &entry->sum, &entry->shared);
	}
	if (!err && look)
		entry->frames_known = !frames_look_up(request->frames, &list, &entry->frames);
	else if (!err)
		entry->frames_known = none_merged(entry);
	keep(entry, &list, request);
	entry->shared_known = !err;
	if (entry->frames_known) {
		entry->sum.ksm_kib =
			entry->frames.merged_pages * ((uint64_t)sysconf(_SC_PAGESIZE) / 1024);
		entry->sum.seen |= 1U << SMAPS_KSM;
	}
	return err;
}

int memory_read(struct entry *entry, const struct proc *proc, const struct entry_request *request)
{
	bool smaps = !request->pagemap || request->needs & ENTRY_NEEDS_SMAPS || !none_merged(entry);
	struct entry before = *entry;
	int err;

	free(before.merged.frames); /* of a try that failed */
	before.merged = entry->merged = (struct frames_list){ 0 };
	entry->frames_known = before.frames_known = false;
	if (request->merged && none_merged(entry)) {
		entry->frames_known = true;
		entry->sum.areas = 1; /* it has memory */
		return 0;
	}
	if (!smaps || (request->pagemap && request->gentle)) {
		err = read_pagemap(entry, proc, request);
		if (err != -ENOTTY && err != -EOPNOTSUPP)
			return err;
		*entry = before;
	}
	err = read_smaps(entry, proc, request);
	if (!err && request->pagemap && request->needs & ENTRY_NEEDS_SHARED) {
		struct pagemap_how how = { .counts = request->frames };
		struct smaps_sum unused;
		entry->shared_known = !pagemap_read(proc, &how, &unused, &entry->shared);
	}
	return err;
}
