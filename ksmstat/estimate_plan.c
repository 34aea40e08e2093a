/* What an estimate is to read: processes, their private areas, and pieces of work of them. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/estimate_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sysfs/smaps.h"

/* Large enough that opening the process again for each costs nothing, small enough to share out. */
#define TASK_PAGES 16384

const char *const plan_kind_names[PLAN_KINDS] = {
	[PLAN_HEAP] = "heap",
	[PLAN_ANONYMOUS] = "anonymous",
	[PLAN_NAMED] = "named",
	[PLAN_STACK] = "stack",
	[PLAN_FILE] = "file",
};

enum plan_kind plan_kind_of(const char *name, uint64_t inode)
{
	if (!strcmp(name, "[heap]"))
		return PLAN_HEAP;
	if (!strncmp(name, "[stack", 6))
		return PLAN_STACK;
	if (!strncmp(name, "[anon:", 6))
		return PLAN_NAMED;
	/* A file can have any name, but never no inode. */
	return inode ? PLAN_FILE : PLAN_ANONYMOUS;
}

/* Room for one more in an array. Returns false when there is none. */
static bool make_room(void **array, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return true;
	size_t more = *room ? *room * 2 : 256;
	void *grown = reallocarray(*array, more, size);
	if (!grown)
		return false;
	*array = grown;
	*room = more;
	return true;
}

struct planning {
	struct plan *plan;
	const struct plan_request *request;
	size_t page_bytes;
};

/* A visitor of smaps. ksmd merges anonymous pages of private areas: also written copies of files. */
static int add_area(const struct smaps_area *area, void *data)
{
	struct planning *planning = data;
	struct plan *plan = planning->plan;
	bool tells_ksm = area->seen & 1u << SMAPS_KSM;
	uint64_t pages = area->seen & 1u << SMAPS_ANONYMOUS
				 ? area->kib[SMAPS_ANONYMOUS] * 1024 / planning->page_bytes
				 : (area->end - area->start) / planning->page_bytes;

	if (area->bits & SMAPS_MAYSHARE || pages == 0)
		return 0;
	if (!make_room((void **)&plan->areas, plan->area_count, &plan->area_room,
		    sizeof(*plan->areas)))
		return -ENOMEM;
	plan->areas[plan->area_count++] = (struct plan_area){
		.start = area->start,
		.end = area->end,
		.pages = pages,
		.kind = plan_kind_of(area->name, area->inode),
		.mergeable = area->bits & SMAPS_MERGEABLE,
		.maybe_merged = !tells_ksm || area->kib[SMAPS_KSM],
	};
	plan->pages += pages;
	return 0;
}

static int add_task(struct plan *plan, struct plan_task task)
{
	if (!make_room((void **)&plan->tasks, plan->task_count, &plan->task_room,
		    sizeof(*plan->tasks)))
		return -ENOMEM;
	plan->tasks[plan->task_count++] = task;
	return 0;
}

/* A large area is work for several: equal parts of its addresses. */
static int split_area(struct plan *plan, uint32_t process, size_t at, size_t page_bytes)
{
	const struct plan_area *area = &plan->areas[at];
	uint64_t parts = area->pages / TASK_PAGES;
	uint64_t step = ((area->end - area->start) / page_bytes / parts + 1) * page_bytes;

	for (uint64_t start = area->start; start < area->end; start += step) {
		uint64_t end = area->end - start > step ? start + step : area->end;
		int err = add_task(plan, (struct plan_task){ process, 1, at, start, end });
		if (err)
			return err;
	}
	return 0;
}

/* Tasks of the areas from `first` on, which belong to one process. */
static int add_tasks(struct plan *plan, uint32_t process, size_t first, size_t page_bytes)
{
	uint64_t pages = 0;
	size_t begin = first;
	int err = 0;

	for (size_t i = first; i < plan->area_count && !err; i++) {
		bool large = plan->areas[i].pages >= 2 * TASK_PAGES;
		if (i > begin && (large || pages >= TASK_PAGES)) {
			err = add_task(plan, (struct plan_task){ process, (uint32_t)(i - begin),
						     begin, 0, UINT64_MAX });
			begin = i;
			pages = 0;
		}
		pages += plan->areas[i].pages;
		if (large && !err) {
			err = split_area(plan, process, i, page_bytes);
			begin = i + 1;
			pages = 0;
		}
	}
	if (!err && begin < plan->area_count)
		err = add_task(
			plan, (struct plan_task){ process, (uint32_t)(plan->area_count - begin),
				      begin, 0, UINT64_MAX });
	return err;
}

/* A PID can be named twice on the command line; a walk meets each once. */
static bool is_planned(const struct plan *plan, const struct plan_request *request, pid_t pid)
{
	for (size_t i = 0; i < plan->process_count && request->selection->pid_count > 1; i++) {
		if (plan->processes[i].pid == pid)
			return true;
	}
	return false;
}

/* A visitor of processes. */
static int add_process(const struct proc *proc, const struct proc_stat *stat, void *data)
{
	struct planning *planning = data;
	struct plan *plan = planning->plan;
	size_t first = plan->area_count;
	uint64_t pages = plan->pages;

	if (proc->pid == getpid() || is_planned(plan, planning->request, proc->pid))
		return 0;
	int err = stat ? smaps_read(proc, add_area, planning) : -EACCES;
	if (err == -ENOMEM)
		return err;
	if (err || plan->process_count == (1u << PLAN_PROCESS_BITS)) {
		/* What went away meanwhile was there to be asked for, but is not unreadable. */
		plan->unreadable += err != -ESRCH;
		plan->area_count = first;
		plan->pages = pages;
		return 0;
	}
	if (!make_room((void **)&plan->processes, plan->process_count, &plan->process_room,
		    sizeof(*plan->processes)))
		return -ENOMEM;
	struct plan_process *process = &plan->processes[plan->process_count];
	memset(process, 0, sizeof(*process));
	process->pid = proc->pid;
	process->start_ticks = stat->start_ticks;
	if (proc_read_uid(proc, &process->uid))
		process->uid = (uid_t)-1;
	if (planning->request->places)
		process->place = place_read(&plan->places, proc);
	memcpy(process->comm, stat->comm, sizeof(process->comm));
	return add_tasks(plan, (uint32_t)plan->process_count++, first, planning->page_bytes);
}

int plan_make(struct plan *plan, const struct plan_request *request, const struct root *root,
	size_t page_bytes)
{
	struct planning planning = { plan, request, page_bytes };
	memset(plan, 0, sizeof(*plan));
	places_init(&plan->places);
	return select_each(request->selection, root, add_process, &planning, &plan->missing);
}

void plan_free(struct plan *plan)
{
	free(plan->processes);
	free(plan->areas);
	free(plan->tasks);
	places_free(&plan->places);
	memset(plan, 0, sizeof(*plan));
}
