/* Rules of ksmctl doctor about what memory a process has, and how much of it is offered. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ksmctl/findings.h"

static bool gone(const struct findings_look *l, struct finding *out)
{
	if (l->p->error != -ESRCH && l->p->error != -ENOENT)
		return false;
	TITLE("there is no process %d", (int)l->p->pid);
	SEEN("/proc/%d does not exist", (int)l->p->pid);
	out->meaning = "It has ended, or belongs to another PID namespace.";
	REMEDY("pgrep NAME finds processes");
	return true;
}

static bool unreadable(const struct findings_look *l, struct finding *out)
{
	if (!l->p->error || gone(l, out))
		return false;
	TITLE("process %d cannot be looked at", (int)l->p->pid);
	SEEN("/proc/%d/smaps: %s", (int)l->p->pid, strerror(-l->p->error));
	out->meaning = "Only its owner and root may read what it has mapped.";
	REMEDY("run ksmctl doctor as root");
	return true;
}

static bool kernel_thread(const struct findings_look *l, struct finding *out)
{
	if (!l->p->kernel_thread)
		return false;
	TITLE("process %d is a kernel thread", (int)l->p->pid);
	SEEN("/proc/%d/stat says so", (int)l->p->pid);
	out->meaning = "It has no memory of its own that could merge.";
	REMEDY("name a process of a program");
	return true;
}

static bool is_secret(const struct findings_look *l, struct finding *out)
{
	if (l->p->secret_kib < FINDINGS_SMALL_OF_ONE_KIB ||
		l->p->secret_kib < l->p->anonymous_kib * 2)
		return false;
	TITLE("most of the memory of %s is secret memory", l->p->comm);
	SEEN("%.0f MiB are of memfd_secret, %.0f MiB are private and anonymous",
		findings_mib(l->p->secret_kib), findings_mib(l->p->anonymous_kib));
	out->meaning = "The kernel itself cannot read it any more, so it can compare nothing.";
	REMEDY("leave it: it is made so that nobody learns what is in it");
	return true;
}

static bool of_device(const struct findings_look *l, struct finding *out)
{
	if (l->p->device_kib < FINDINGS_SMALL_OF_ONE_KIB ||
		l->p->device_kib < l->p->anonymous_kib * 2 || l->p->registered_kib)
		return false;
	TITLE("most of what %s has mapped belongs to a device", l->p->comm);
	SEEN("%.0f MiB are of a device or driver (pf or io in VmFlags), %.0f MiB are private and "
	     "anonymous",
		findings_mib(l->p->device_kib), findings_mib(l->p->anonymous_kib));
	out->meaning = "Such frames are not the process's own; madvise says 0 and does nothing.";
	REMEDY("only what a program allocates can be merged");
	return true;
}

static bool mapped_shared(const struct findings_look *l, struct finding *out)
{
	if (l->p->shared_kib < FINDINGS_SMALL_OF_ONE_KIB ||
		l->p->shared_kib < l->p->anonymous_kib * 2)
		return false;
	TITLE("most of the memory of %s is mapped shared", l->p->comm);
	SEEN("%.0f MiB are in MAP_SHARED areas, %.0f MiB are private and anonymous",
		findings_mib(l->p->shared_kib), findings_mib(l->p->anonymous_kib));
	out->meaning =
		"The kernel merges private anonymous memory only; for shared memory madvise says 0 "
		"and does nothing.";
	REMEDY("map it private; for qemu a memory backend with share=off");
	return true;
}

static bool in_hugetlb(const struct findings_look *l, struct finding *out)
{
	if (l->p->hugetlb_kib < FINDINGS_SMALL_OF_ONE_KIB ||
		l->p->hugetlb_kib < l->p->anonymous_kib * 2)
		return false;
	TITLE("most of the memory of %s is in hugetlb pages", l->p->comm);
	SEEN("%.0f MiB are hugetlb, %.0f MiB other anonymous memory",
		findings_mib(l->p->hugetlb_kib), findings_mib(l->p->anonymous_kib));
	out->meaning = "Pages of hugetlbfs are never merged nor split.";
	REMEDY("use ordinary or transparent huge pages for what shall merge");
	return true;
}

static bool flag_lost(const struct findings_look *l, struct finding *out)
{
	if (!l->p->parent_opted || l->p->registered_kib)
		return false;
	TITLE("%s lost the permission to merge that its parent has", l->p->comm);
	SEEN("ksm_merge_any is yes in its parent and no here");
	out->meaning =
		"Before Linux 6.10 it is lost, or without effect, when a program is executed.";
	REMEDY("ksmctl enable %d; from the start: ksmctl run COMMAND...", (int)l->p->pid);
	return true;
}

static bool not_registered(const struct findings_look *l, struct finding *out)
{
	if (!l->p->has_vmflags || l->p->registered_kib ||
		l->p->anonymous_kib < FINDINGS_SMALL_OF_ONE_KIB)
		return false;
	TITLE("%s has registered no memory", l->p->comm);
	SEEN("no area of /proc/%d/smaps has the flag mg; %.0f MiB are private and anonymous",
		(int)l->p->pid, findings_mib(l->p->anonymous_kib));
	out->meaning =
		"The kernel merges only memory that the program offered by madvise or prctl.";
	REMEDY("ksmctl enable %d; from the start: ksmctl run COMMAND...", (int)l->p->pid);
	return true;
}

static bool is_pinned(const struct findings_look *l, struct finding *out)
{
	if (!l->p->registered_kib || l->p->pinned_kib < FINDINGS_SMALL_OF_ONE_KIB ||
		l->p->pinned_kib * 2 < l->p->registered_kib || findings_merges_well(l))
		return false;
	TITLE("memory of %s is pinned", l->p->comm);
	SEEN("%.0f MiB by VmPin and VmLck of /proc/%d/status; %.0f MiB are registered",
		findings_mib(l->p->pinned_kib), (int)l->p->pid, findings_mib(l->p->registered_kib));
	out->meaning =
		"A device (VFIO, RDMA) or io_uring has its address, so the kernel may not put "
		"another page in its place.";
	REMEDY("guests that shall merge need emulated or virtio devices; do not register buffers "
	       "of io_uring");
	return true;
}

static bool many_areas(const struct findings_look *l, struct finding *out)
{
	if (!l->p->registered_kib || l->p->areas_max <= 0 || l->p->areas * 10 < l->p->areas_max * 9)
		return false;
	TITLE("%s has nearly as many memory areas as it may have", l->p->comm);
	SEEN("%" PRId64 " in /proc/%d/maps; vm.max_map_count is %" PRId64, l->p->areas,
		(int)l->p->pid, l->p->areas_max);
	out->meaning =
		"Beyond it the program's own mmap and malloc fail. With the prctl of Linux 6.4 "
		"to 6.16 new areas do not join, and areas offered in pieces never do.";
	REMEDY("sysctl vm.max_map_count=%" PRId64 "; offer large areas as a whole",
		l->p->areas_max * 4);
	return true;
}

static bool locked_too(const struct findings_look *l, struct finding *out)
{
	if (l->p->locked_kib < FINDINGS_SMALL_OF_ONE_KIB)
		return false;
	TITLE("locked memory of %s is offered, too", l->p->comm);
	SEEN("%.0f MiB of its registered areas are locked by mlock",
		findings_mib(l->p->locked_kib));
	out->meaning = "mlock does not keep memory from merging: a write to it may then have to "
		       "wait for a copy, and keys that lie there are compared as all else is.";
	REMEDY("take keys and what must be fast out of it: ksmreg_unregister");
	return true;
}

static bool part_registered(const struct findings_look *l, struct finding *out)
{
	if (!l->p->registered_kib ||
		l->p->anonymous_kib - l->p->registered_kib < 16 * FINDINGS_SMALL_OF_ONE_KIB ||
		l->p->registered_kib * 2 > l->p->anonymous_kib)
		return false;
	TITLE("%s has registered only a part of its memory", l->p->comm);
	SEEN("%.0f of %.0f MiB of anonymous memory", findings_mib(l->p->registered_kib),
		findings_mib(l->p->anonymous_kib));
	out->meaning = "What is not registered is never looked at.";
	REMEDY("to offer all of it: ksmctl enable %d", (int)l->p->pid);
	return true;
}

/* Most likely cause first. */
const struct findings_process_rule findings_offered[] = {
	{ "process-gone", FINDING_STOPS, gone },
	{ "process-unreadable", FINDING_STOPS, unreadable },
	{ "kernel-thread", FINDING_STOPS, kernel_thread },
	{ "secret-memory", FINDING_STOPS, is_secret },
	{ "mapped-shared", FINDING_STOPS, mapped_shared },
	{ "hugetlb", FINDING_STOPS, in_hugetlb },
	{ "device-memory", FINDING_STOPS, of_device },
	{ "flag-lost", FINDING_STOPS, flag_lost },
	{ "not-registered", FINDING_STOPS, not_registered },
	{ "pinned", FINDING_STOPS, is_pinned },
	{ NULL, FINDING_STOPS, NULL },
};

/* Less likely than what is in the memory. */
const struct findings_process_rule findings_offered_rest[] = {
	{ "part-registered", FINDING_LIMITS, part_registered },
	{ "many-areas", FINDING_RISK, many_areas },
	{ "locked-too", FINDING_ADVICE, locked_too },
	{ NULL, FINDING_STOPS, NULL },
};
