/* The rules of ksmctl doctor about one process. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ksmctl/doctor.h"

#define TITLE(...) FINDING_SET(out->title, __VA_ARGS__)
#define SEEN(...) FINDING_SET(out->evidence, __VA_ARGS__)
#define REMEDY(...) FINDING_SET(out->remedy, __VA_ARGS__)

enum {
	SMALL_KIB = 1024, /* less is not worth a word */
	ENOUGH_PAGES = 64 /* a sample of fewer says nothing */
};

struct process_look {
	const struct facts *machine;
	const struct process_facts *p;
};

static double mib(int64_t kib)
{
	return (double)kib / 1024;
}

static int percent(int64_t part, int64_t whole)
{
	return whole > 0 ? (int)((double)part * 100 / (double)whole) : 0;
}

/* At least half of what is registered is merged by now: all is well. */
static bool merges_well(const struct process_look *l)
{
	int64_t registered = l->p->registered_kib * 1024 / l->machine->page_bytes;
	return l->p->merged_pages > 0 && l->p->merged_pages * 2 >= registered;
}

/* The pages were looked at, and there are enough to speak of. */
static bool sampled(const struct process_look *l)
{
	return !l->p->likeness_error && l->p->likeness.pages >= ENOUGH_PAGES;
}

static bool gone(const struct process_look *l, struct finding *out)
{
	if (l->p->error != -ESRCH && l->p->error != -ENOENT)
		return false;
	TITLE("there is no process %d", (int)l->p->pid);
	SEEN("/proc/%d does not exist", (int)l->p->pid);
	out->meaning = "It has ended, or belongs to another PID namespace.";
	REMEDY("pgrep NAME finds processes");
	return true;
}

static bool unreadable(const struct process_look *l, struct finding *out)
{
	if (!l->p->error || gone(l, out))
		return false;
	TITLE("process %d cannot be looked at", (int)l->p->pid);
	SEEN("/proc/%d/smaps: %s", (int)l->p->pid, strerror(-l->p->error));
	out->meaning = "Only its owner and root may read what it has mapped.";
	REMEDY("run ksmctl doctor as root");
	return true;
}

static bool kernel_thread(const struct process_look *l, struct finding *out)
{
	if (!l->p->kernel_thread)
		return false;
	TITLE("process %d is a kernel thread", (int)l->p->pid);
	SEEN("/proc/%d/stat says so", (int)l->p->pid);
	out->meaning = "It has no memory of its own that could merge.";
	REMEDY("name a process of a program");
	return true;
}

static bool mapped_shared(const struct process_look *l, struct finding *out)
{
	if (l->p->shared_kib < SMALL_KIB || l->p->shared_kib < l->p->anonymous_kib * 2)
		return false;
	TITLE("most of the memory of %s is mapped shared", l->p->comm);
	SEEN("%.0f MiB are in MAP_SHARED areas, %.0f MiB are private and anonymous",
		mib(l->p->shared_kib), mib(l->p->anonymous_kib));
	out->meaning =
		"The kernel merges private anonymous memory only; for shared memory madvise says 0 "
		"and does nothing.";
	REMEDY("map it private; for qemu a memory backend with share=off");
	return true;
}

static bool in_hugetlb(const struct process_look *l, struct finding *out)
{
	if (l->p->hugetlb_kib < SMALL_KIB || l->p->hugetlb_kib < l->p->anonymous_kib * 2)
		return false;
	TITLE("most of the memory of %s is in hugetlb pages", l->p->comm);
	SEEN("%.0f MiB are hugetlb, %.0f MiB other anonymous memory", mib(l->p->hugetlb_kib),
		mib(l->p->anonymous_kib));
	out->meaning = "Pages of hugetlbfs are never merged nor split.";
	REMEDY("use ordinary or transparent huge pages for what shall merge");
	return true;
}

static bool flag_lost(const struct process_look *l, struct finding *out)
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

static bool not_registered(const struct process_look *l, struct finding *out)
{
	if (!l->p->has_vmflags || l->p->registered_kib || l->p->anonymous_kib < SMALL_KIB)
		return false;
	TITLE("%s has registered no memory", l->p->comm);
	SEEN("no area of /proc/%d/smaps has the flag mg; %.0f MiB are private and anonymous",
		(int)l->p->pid, mib(l->p->anonymous_kib));
	out->meaning =
		"The kernel merges only memory that the program offered by madvise or prctl.";
	REMEDY("ksmctl enable %d; from the start: ksmctl run COMMAND...", (int)l->p->pid);
	return true;
}

static bool part_registered(const struct process_look *l, struct finding *out)
{
	if (!l->p->registered_kib || l->p->anonymous_kib - l->p->registered_kib < 16 * SMALL_KIB ||
		l->p->registered_kib * 2 > l->p->anonymous_kib)
		return false;
	TITLE("%s has registered only a part of its memory", l->p->comm);
	SEEN("%.0f of %.0f MiB of anonymous memory", mib(l->p->registered_kib),
		mib(l->p->anonymous_kib));
	out->meaning = "What is not registered is never looked at.";
	REMEDY("to offer all of it: ksmctl enable %d", (int)l->p->pid);
	return true;
}

static bool not_scanned(const struct process_look *l, struct finding *out)
{
	int64_t seconds = findings_pass_s(l->machine);
	int64_t registered = l->p->registered_kib * 1024 / l->machine->page_bytes;
	if (registered < ENOUGH_PAGES || l->p->scanned_pages < 0 ||
		l->p->scanned_pages * 4 > registered)
		return false;
	TITLE("the scanner has not come to %s yet", l->p->comm);
	SEEN("it knows %" PRId64 " of %" PRId64 " registered pages", l->p->scanned_pages,
		registered);
	out->meaning = "A page merges in the second pass that sees it.";
	if (!l->machine->ksm_error && l->machine->now.value[KSM_RUN] != KSM_RUN_MERGE &&
		!*l->machine->service_phase)
		REMEDY("start the scanner first: ksmctl start");
	else if (seconds >= 0 && seconds < 100000)
		REMEDY("wait; three passes take about %" PRId64 " s at the present rate",
			3 * seconds + 1);
	else
		REMEDY("ksmctl doctor tells about the scanner; ksmctl boost asks the service to "
		       "hurry");
	return true;
}

static bool keeps_changing(const struct process_look *l, struct finding *out)
{
	if (!sampled(l) || merges_well(l) || l->p->likeness.changing * 2 < l->p->likeness.pages)
		return false;
	TITLE("the registered memory of %s keeps changing", l->p->comm);
	SEEN("%d %% of its pages changed within half a second",
		percent(l->p->likeness.changing, l->p->likeness.pages + l->p->likeness.zero));
	out->meaning = "A page must stay as it is for a whole pass before it merges.";
	REMEDY("register the memory that is written once and then read");
	return true;
}

static bool mostly_zero(const struct process_look *l, struct finding *out)
{
	const struct likeness *like = &l->p->likeness;
	bool zero_pages_off = ksm_has(&l->machine->now, KSM_USE_ZERO_PAGES) &&
			      l->machine->now.value[KSM_USE_ZERO_PAGES] == 0;
	if (l->machine->ksm_error || l->p->likeness_error || !zero_pages_off ||
		like->zero < 4 * ENOUGH_PAGES || like->zero < like->pages)
		return false;
	TITLE("most pages of %s are filled with zeros", l->p->comm);
	SEEN("%" PRId64 " of %" PRId64 " pages looked at; use_zero_pages is 0", like->zero,
		like->zero + like->pages);
	out->meaning = "They merge as others do, each max_page_sharing of them keeping a page; the "
		       "kernel's zero "
		       "page costs none.";
	REMEDY("ksmctl set use_zero_pages=1");
	return true;
}

static bool no_twin(const struct process_look *l, struct finding *out)
{
	if (!sampled(l) || merges_well(l) || l->p->twin)
		return false;
	TITLE("no other process of the name %s has registered memory", l->p->comm);
	SEEN("of %" PRId64 " processes", l->machine->processes);
	out->meaning = "Equal pages are mostly in processes of the same program.";
	REMEDY("ksmctl doctor %d OTHER_PID compares it with another", (int)l->p->pid);
	return true;
}

static bool will_merge(const struct process_look *l, struct finding *out)
{
	const struct likeness *like = &l->p->likeness;
	if (!sampled(l) || !l->p->twin || merges_well(l) || like->equal * 2 < like->pages)
		return false;
	TITLE("the pages of %s are equal to others, and not merged yet", l->p->comm);
	SEEN("%d %% of its pages have an equal in process %d", percent(like->equal, like->pages),
		(int)l->p->twin);
	out->meaning = "They will merge once the scanner has seen both twice.";
	REMEDY("see to the scanner: ksmctl doctor, ksmctl status");
	return true;
}

static bool shifted(const struct process_look *l, struct finding *out)
{
	const struct likeness *like = &l->p->likeness;
	if (!sampled(l) || !l->p->twin || merges_well(l) || like->shifted * 4 < like->pages)
		return false;
	TITLE("%s has the same content as others, at other places in its pages", l->p->comm);
	SEEN("%d %% of its pages hold stretches that process %d has, shifted by less than a page",
		percent(like->shifted, like->pages), (int)l->p->twin);
	out->meaning = "Whole pages must be equal. Allocators that vary where a block starts, and "
		       "blocks got in "
		       "another order, shift content.";
	REMEDY("align large blocks to pages (aligned_alloc 4096); allocate in the same order");
	return true;
}

static bool differs_little(const struct process_look *l, struct finding *out)
{
	const struct likeness *like = &l->p->likeness;
	if (!sampled(l) || !l->p->twin || merges_well(l) || like->near * 4 < like->pages)
		return false;
	bool addresses = like->near_address_words * 2 > like->near_words;
	TITLE("pages of %s differ from others in a few words only", l->p->comm);
	SEEN("%d %% of its pages; from those of process %d by %" PRId64
	     " of 512 words on average%s",
		percent(like->near, like->pages), (int)l->p->twin, like->near_words / like->near,
		addresses ? ", mostly addresses" : "");
	out->meaning =
		addresses
			? "Pointers differ in each process, as the kernel puts memory at random "
			  "addresses."
			: "Counters, times or numbers of the process lie among data that is equal.";
	if (addresses)
		REMEDY("keep pointers away from bulk data, or try: setarch -R COMMAND (same "
		       "addresses)");
	else
		REMEDY("keep what differs per process on pages of its own");
	return true;
}

static bool nothing_alike(const struct process_look *l, struct finding *out)
{
	const struct likeness *like = &l->p->likeness;
	if (!sampled(l) || !l->p->twin || merges_well(l) ||
		(like->equal + like->near + like->shifted) * 4 >= like->pages)
		return false;
	TITLE("%s has little in common with process %d", l->p->comm, (int)l->p->twin);
	SEEN("of %" PRId64 " pages %d %% are equal, %d %% nearly so, %d %% shifted", like->pages,
		percent(like->equal, like->pages), percent(like->near, like->pages),
		percent(like->shifted, like->pages));
	out->meaning = "There is nothing to merge between these two.";
	REMEDY("ksmstat --estimate shows which processes have equal pages");
	return true;
}

/* The rules, most likely cause first. */
static const struct rule {
	const char *id;
	enum severity severity;
	bool (*applies)(const struct process_look *look, struct finding *out);
} rules[] = {
	{ "process-gone", FINDING_STOPS, gone },
	{ "process-unreadable", FINDING_STOPS, unreadable },
	{ "kernel-thread", FINDING_STOPS, kernel_thread },
	{ "mapped-shared", FINDING_STOPS, mapped_shared },
	{ "hugetlb", FINDING_STOPS, in_hugetlb },
	{ "flag-lost", FINDING_STOPS, flag_lost },
	{ "not-registered", FINDING_STOPS, not_registered },
	{ "keeps-changing", FINDING_STOPS, keeps_changing },
	{ "not-scanned-yet", FINDING_STOPS, not_scanned },
	{ "zero-pages", FINDING_LIMITS, mostly_zero },
	{ "no-twin", FINDING_LIMITS, no_twin },
	{ "not-merged-yet", FINDING_LIMITS, will_merge },
	{ "few-words-differ", FINDING_STOPS, differs_little },
	{ "shifted", FINDING_STOPS, shifted },
	{ "nothing-alike", FINDING_STOPS, nothing_alike },
	{ "part-registered", FINDING_LIMITS, part_registered },
};
#define RULES (sizeof(rules) / sizeof(*rules))

const char *findings_process_id(size_t i)
{
	return i < RULES ? rules[i].id : NULL;
}

size_t findings_of_process(const struct facts *machine, const struct process_facts *process,
	struct finding *findings, size_t room)
{
	const struct process_look look = { machine, process };
	size_t count = 0;
	for (size_t i = 0; i < RULES && count < room; i++) {
		findings[count] =
			(struct finding){ .id = rules[i].id, .severity = rules[i].severity };
		if (!rules[i].applies(&look, &findings[count]))
			continue;
		count++;
		if (process->error)
			break; /* nothing else is known */
	}
	return count;
}
