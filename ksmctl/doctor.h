/* Why nothing, or little, merges: what was seen of the machine, and what is found in it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_DOCTOR_H
#define KSMCTL_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ksmctl/ksmctl.h"
#include "ksmctl/likeness.h"
#include "sysfs/mem.h"
#include "sysfs/memgroup.h"
#include "sysfs/proc.h"
#include "sysfs/smaps.h"

enum severity {
	FINDING_STOPS,	/* nothing merges because of it */
	FINDING_LIMITS, /* less merges, or slower, than could */
	FINDING_RISK,	/* merging works; something else may suffer from it */
	FINDING_ADVICE, /* nothing is wrong; worth to know. Shown only with --all */
};

struct finding {
	const char *id; /* stable, for scripts */
	enum severity severity;
	char title[128];
	char evidence[256]; /* the value seen, and where */
	const char *meaning;
	char remedy[160]; /* what to type or to change */
};

/* A sample of the registered pages. All -1 where none was taken, or by part where it is not known. */
struct facts_sample {
	int64_t looked, zeros;	/* pages that were read, and of these filled with zeros */
	int64_t again, changed; /* read once more at the end, and of these now with other content */
	int64_t users;		/* users with merged pages */
	int64_t users_share_pages; /* page frames that are merged and mapped for two of them or more */
	uid_t user_one, user_two; /* two that have one together */
};

/* What was looked at. A number is -1 where it is not known; nothing unknown makes a finding. */
struct facts {
	bool captured;	  /* below --root: nothing moves, and nothing is running */
	bool sys_mounted; /* sys/kernel is there */
	int ksm_error;	  /* of opening the KSM directory: 0 or -errno */
	int write_error;  /* may the tunables be written? 0, -EROFS or -EACCES */
	struct ksm_state before, now;
	int64_t interval_ms; /* between these two */
	int64_t ksmd_cpu_ns; /* in the interval */
	int64_t page_bytes;

	int64_t processes, unseen; /* without kernel threads; of these unseen could not be asked */
	int64_t registered;	   /* that opted in */
	int64_t registered_kib;	   /* their resident anonymous memory */
	int64_t registered_swap_kib;
	int64_t registered_huge_kib;	/* in huge pages */
	int64_t registered_lazy_kib;	/* given up by MADV_FREE, and still there */
	int64_t youngest_ms;		/* age of the process that registered and started last */
	char controller[PROC_COMM_MAX]; /* a known program that also sets the tunables; "" none */
	char service_phase[16];		/* of our own service; "" when it does not run */

	int64_t nodes;		 /* NUMA nodes with memory */
	int64_t max_ptes_shared; /* of khugepaged, pages; -1 where huge pages are never made */
	struct mem_vmstat vmstat_before, vmstat;
	char version[256]; /* /proc/version; "" not known */

	char group[64];		  /* the tightest memory control group with registered memory; "" */
	struct memgroup in_group; /* only where there is such a group */
	struct facts_sample sample;
};

/*
 * Look at the machine for about half a second, and into some registered pages; with `all` also at
 * what users have together. Changes nothing.
 */
void facts_collect(struct facts *facts, const struct ctl *ctl, bool all);

/* Looks for the tightest group: one such while processes are walked over. Start with a zeroed one. */
struct facts_groups {
	uint64_t seen[512]; /* hashes of paths that were looked at */
	size_t count;
};
void facts_groups_add(struct facts_groups *groups, struct facts *facts, const struct root *root,
	const struct proc *proc);

/* Looks into the areas of a process that are registered; then counts what users have together. */
struct facts_sampler;
/* With `frames` also by page frames, for root. NULL without memory. */
struct facts_sampler *facts_sampler_new(const struct root *root, bool frames);
/* For each process: begin, its areas, and add where it registered some. */
void facts_sampler_begin(struct facts_sampler *sampler);
void facts_sampler_area(struct facts_sampler *sampler, const struct smaps_area *area);
void facts_sampler_add(struct facts_sampler *sampler, const struct proc *proc);
/* Looks once more at the pages that were read, and ends. */
void facts_sampler_finish(
	struct facts_sampler *sampler, const struct root *root, struct facts_sample *sample);

/*
 * What is wrong, most likely cause first. Fills up to `room` findings. Returns how many. A pure
 * function of the facts.
 */
size_t findings_of_machine(const struct facts *facts, struct finding *findings, size_t room);

/* What was looked at of one process. */
struct process_facts {
	pid_t pid;
	char comm[32]; /* made fit for a terminal; the kernel keeps 15 bytes */
	int error;     /* 0 or -errno (-ESRCH, -EACCES): then nothing below holds */
	bool kernel_thread;
	bool has_vmflags;		       /* the kernel says which areas are registered */
	int64_t anonymous_kib, registered_kib; /* resident */
	int64_t shared_kib, hugetlb_kib; /* in areas that are mapped shared; in huge TLB pages */
	int64_t scanned_pages, merged_pages, zero_pages; /* of ksm_stat; -1 */
	bool parent_opted;		/* its parent offers all its memory, and it does not */
	int64_t secret_kib, device_kib; /* size of areas of memfd_secret, of device memory */
	int64_t locked_kib;		/* registered, and locked by mlock; resident */
	int64_t pinned_kib;		/* pinned for devices and io_uring; -1 */
	int64_t forked_kib; /* registered, and shared since a fork: not by merging; resident */
	int64_t areas, areas_max;	 /* and how many it may have; -1 */
	int64_t self_pages, alone_pages; /* merged with itself only; with nobody any more; -1 */
	pid_t twin;			 /* another registered process of the same name; 0 none */
	int likeness_error;
	struct likeness likeness;
};

/* Look at a process, and compare it with `twin`, or with one that it finds where that is 0. */
void facts_collect_process(
	struct process_facts *facts, const struct ctl *ctl, pid_t pid, pid_t twin);

/* As findings_of_machine, of one process on that machine. */
size_t findings_of_process(const struct facts *machine, const struct process_facts *process,
	struct finding *findings, size_t room);

/* Seconds of one pass over what is registered; -1 not known. */
int64_t findings_pass_s(const struct facts *facts);

/* All rules, for tests and the manual: the id of number i, NULL at the end. */
const char *findings_id(size_t i);
const char *findings_process_id(size_t i);

/* For the rules: fills a text of a finding. */
#define FINDING_SET(to, ...) snprintf(to, sizeof(to), __VA_ARGS__)

#endif
