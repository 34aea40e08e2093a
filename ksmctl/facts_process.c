/* Looks at one process for ksmctl doctor, and at how alike it is to another of its kind. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ksmctl/doctor.h"
#include "sysfs/file.h"
#include "sysfs/frames.h"
#include "sysfs/smaps.h"

/* Between the two looks at its pages. */
#define WAIT_MS 400

struct visit {
	struct process_facts *facts;
	int64_t locked_size_kib; /* of areas that are locked */
	bool tells_merged;	 /* smaps has a line for merged pages */
	/* for the frames of merged pages */
	int pagemap;
	struct frames_list frames;
	int frames_error;
};

/* Anonymous pages that are mapped more than once, and not because they are merged. */
static int64_t forked(const struct smaps_area *area)
{
	int64_t shared = (int64_t)(area->kib[SMAPS_SHARED_CLEAN] + area->kib[SMAPS_SHARED_DIRTY]);
	int64_t by_fork = shared - (int64_t)area->kib[SMAPS_KSM];
	return area->inode || by_fork < 0 ? 0 : by_fork;
}

static void visit_registered(struct visit *v, const struct smaps_area *area)
{
	struct process_facts *facts = v->facts;
	int64_t anonymous = (int64_t)area->kib[SMAPS_ANONYMOUS];
	facts->registered_kib += anonymous;
	facts->forked_kib += forked(area);
	if (area->bits & SMAPS_LOCKED)
		facts->locked_kib += anonymous;
	if (v->pagemap >= 0 && !v->frames_error && anonymous)
		v->frames_error = frames_add(
			&v->frames, v->pagemap, area->start, area->end, ctl_page_bytes());
}

static int visit(const struct smaps_area *area, void *data)
{
	struct visit *v = data;
	struct process_facts *facts = v->facts;
	int64_t size = (int64_t)area->kib[SMAPS_SIZE];

	facts->areas++;
	facts->anonymous_kib += (int64_t)area->kib[SMAPS_ANONYMOUS];
	if (area->bits & SMAPS_MERGEABLE)
		visit_registered(v, area);
	if (!strncmp(area->name, "/secretmem", 10))
		facts->secret_kib += size;
	else if (area->bits & SMAPS_DEVICE)
		facts->device_kib += size;
	else if (area->bits & SMAPS_MAYSHARE)
		facts->shared_kib += (int64_t)area->kib[SMAPS_RSS];
	if (area->bits & SMAPS_LOCKED)
		v->locked_size_kib += size;
	facts->hugetlb_kib +=
		(int64_t)(area->kib[SMAPS_SHARED_HUGETLB] + area->kib[SMAPS_PRIVATE_HUGETLB]);
	facts->has_vmflags |= (area->bits & SMAPS_HAS_VMFLAGS) != 0;
	v->tells_merged |= (area->seen & 1U << SMAPS_KSM) != 0;
	return 0;
}

/* Which merged pages are mapped by nobody else. For root. */
static void look_up(struct visit *v, const struct root *root)
{
	struct frames_sum sum;
	struct frames frames;
	if (v->pagemap < 0 || v->frames_error || frames_open(&frames, root))
		return;
	if (!frames_look_up(&frames, &v->frames, &sum)) {
		v->facts->self_pages = (int64_t)sum.self_pages;
		v->facts->alone_pages = (int64_t)sum.alone_pages;
	}
	frames_close(&frames);
}

/*
 * What is pinned for devices and io_uring has a count of its own; VFIO counts it as locked, which
 * is then more than the areas that are.
 */
static void read_pinned(struct visit *v, const struct proc *proc)
{
	struct proc_locked locked;
	v->facts->pinned_kib = -1;
	if (proc_read_locked(proc, &locked))
		return;
	int64_t beyond = locked.locked_kib - v->locked_size_kib;
	v->facts->pinned_kib = locked.pinned_kib + (beyond > 0 ? beyond : 0);
}

static void read_areas_max(struct process_facts *facts, const struct root *root)
{
	int fd = root_opendir(root, "proc/sys/vm");
	facts->areas_max = -1;
	if (fd < 0)
		return;
	file_read_i64(fd, "max_map_count", &facts->areas_max);
	close(fd);
}

static int read_memory(struct visit *v, const struct ctl *ctl, const struct proc *proc)
{
	struct process_facts *facts = v->facts;
	facts->self_pages = facts->alone_pages = -1;
	v->pagemap = ctl->root.foreign ? -1 : openat(proc->fd, "pagemap", O_RDONLY | O_CLOEXEC);
	int err = smaps_read(proc, visit, v);
	if (!err) {
		look_up(v, &ctl->root);
		read_pinned(v, proc);
		read_areas_max(facts, &ctl->root);
		if (!v->tells_merged)
			facts->forked_kib = -1;
	}
	free(v->frames.frames);
	if (v->pagemap >= 0)
		close(v->pagemap);
	return err;
}

static int stack_offered(const struct smaps_area *area, void *data)
{
	(void)data;
	return area->bits & SMAPS_MERGEABLE && !strcmp(area->name, "[stack]");
}

/*
 * By prctl, for all of its memory. Before 6.13 the kernel does not say so of a process, but its stack
 * does: nobody would offer that by madvise.
 */
static bool is_opted(const struct proc *proc)
{
	struct proc_ksm ksm;
	if (!proc_read_ksm_stat(proc, &ksm) && ksm.present & PROC_KSM_MERGE_ANY)
		return ksm.merge_any;
	return smaps_read(proc, stack_offered, NULL) == 1;
}

static int any_mergeable(const struct smaps_area *area, void *data)
{
	(void)data;
	return area->bits & SMAPS_MERGEABLE && area->kib[SMAPS_ANONYMOUS] ? 1 : 0;
}

/* Another process of the same name that registered memory. Returns its PID or 0. */
static pid_t find_twin(const struct root *root, pid_t pid, const char *comm)
{
	struct proc_walk walk;
	struct proc proc;
	pid_t twin = 0;
	if (proc_walk_open(&walk, root))
		return 0;
	while (!twin && proc_walk_next(&walk, &proc) > 0) {
		struct proc_stat stat;
		if (proc.pid != pid && !proc_read_stat(&proc, &stat) && !strcmp(stat.comm, comm) &&
			smaps_read(&proc, any_mergeable, NULL) == 1)
			twin = proc.pid;
		proc_close(&proc);
	}
	proc_walk_close(&walk);
	return twin;
}

static void read_ksm(struct process_facts *facts, const struct proc *proc)
{
	struct proc_ksm ksm;
	facts->scanned_pages = facts->merged_pages = facts->zero_pages = -1;
	if (proc_read_ksm_stat(proc, &ksm))
		return;
	if (ksm.present & PROC_KSM_RMAP_ITEMS)
		facts->scanned_pages = ksm.rmap_items;
	if (ksm.present & PROC_KSM_MERGING)
		facts->merged_pages = ksm.merging_pages;
	if (ksm.present & PROC_KSM_ZERO)
		facts->zero_pages = ksm.zero_pages;
}

static void compare(struct process_facts *facts, const struct ctl *ctl, const struct proc *proc)
{
	struct proc twin;
	int err = facts->twin ? proc_open(&twin, &ctl->root, facts->twin) : -ESRCH;
	facts->likeness_error =
		likeness_measure(&facts->likeness, proc, err ? NULL : &twin, WAIT_MS);
	if (!err)
		proc_close(&twin);
}

void facts_collect_process(
	struct process_facts *facts, const struct ctl *ctl, pid_t pid, pid_t twin)
{
	struct visit look = { .facts = facts };
	struct proc proc, parent;
	struct proc_stat stat;

	memset(facts, 0, sizeof(*facts));
	facts->pid = pid;
	facts->likeness_error = -ENODATA;
	facts->error = proc_open(&proc, &ctl->root, pid);
	if (facts->error)
		return;
	facts->error = proc_read_stat(&proc, &stat);
	if (!facts->error) {
		ctl_safe_name(facts->comm, sizeof(facts->comm), stat.comm);
		facts->kernel_thread = stat.kernel_thread;
		facts->error = read_memory(&look, ctl, &proc);
	}
	if (!facts->error && !facts->kernel_thread) {
		read_ksm(facts, &proc);
		if (!proc_open(&parent, &ctl->root, stat.ppid)) {
			facts->parent_opted = is_opted(&parent) && !is_opted(&proc);
			proc_close(&parent);
		}
		if (facts->registered_kib && !ctl->root.foreign) {
			facts->twin = twin ? twin : find_twin(&ctl->root, pid, stat.comm);
			compare(facts, ctl, &proc);
		}
	}
	proc_close(&proc);
}
