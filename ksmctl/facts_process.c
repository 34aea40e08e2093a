/* Looks at one process for ksmctl doctor, and at how alike it is to another of its kind. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "ksmctl/doctor.h"
#include "sysfs/smaps.h"

/* Between the two looks at its pages. */
#define WAIT_MS 400

static int visit(const struct smaps_area *area, void *data)
{
	struct process_facts *facts = data;
	int64_t anonymous = (int64_t)area->kib[SMAPS_ANONYMOUS];

	facts->anonymous_kib += anonymous;
	if (area->bits & SMAPS_MERGEABLE)
		facts->registered_kib += anonymous;
	if (area->bits & SMAPS_MAYSHARE)
		facts->shared_kib += (int64_t)area->kib[SMAPS_RSS];
	facts->hugetlb_kib +=
		(int64_t)(area->kib[SMAPS_SHARED_HUGETLB] + area->kib[SMAPS_PRIVATE_HUGETLB]);
	facts->has_vmflags |= (area->bits & SMAPS_HAS_VMFLAGS) != 0;
	return 0;
}

static bool is_opted(const struct proc *proc)
{
	struct proc_ksm ksm;
	return !proc_read_ksm_stat(proc, &ksm) && ksm.present & PROC_KSM_MERGE_ANY && ksm.merge_any;
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
		facts->error = smaps_read(&proc, visit, facts);
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
