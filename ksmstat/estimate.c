/* ksmstat --estimate: what merging would save, found by hashing the resident pages of processes. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/estimate.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ksmstat/estimate_sum.h"
#include "sysfs/ksm.h"
#include "sysfs/ksmd.h"

/* The kernel's default of max_page_sharing. */
#define MAX_PAGE_SHARING 256
/* What a page costs ksmd on an ordinary machine. */
#define PAGE_NS 2000
/* Fewer scanned pages than these tell more of the rest of ksmd's life than of pages. */
#define PAGES_MEASURED 100000

static atomic_bool stop;

static void on_interrupt(int signal_number)
{
	(void)signal_number;
	atomic_store(&stop, true);
}

/* The first Ctrl-C asks for the result so far, the second ends the program. */
static void catch_interrupt(void)
{
	struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = SA_RESETHAND };
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
}

/* How this kernel is set to merge, and what its pages have cost. */
static struct class_rules read_kernel(struct estimate *estimate, const struct root *root)
{
	struct class_rules rules = { .max_page_sharing = MAX_PAGE_SHARING };
	struct ksm ksm;
	struct ksmd ksmd;
	int64_t value, scanned = 0;
	uint64_t cpu_ns = 0;

	estimate->page_ns = PAGE_NS;
	if (ksm_open(&ksm, root))
		return rules;
	if (!ksm_get(&ksm, KSM_MAX_PAGE_SHARING, &value) && value >= 2)
		rules.max_page_sharing = (uint64_t)value;
	if (!ksm_get(&ksm, KSM_USE_ZERO_PAGES, &value))
		rules.zero_pages = value == 1;
	if (!ksm_get(&ksm, KSM_MERGE_ACROSS_NODES, &value) && value == 0)
		error("merge_across_nodes is 0: pages of different NUMA nodes will not merge, "
		      "which is not estimated");
	if (!ksm_get(&ksm, KSM_PAGES_SCANNED, &scanned) && scanned >= PAGES_MEASURED &&
		!ksmd_open(&ksmd, root)) {
		if (!ksmd_cpu_ns(&ksmd, &cpu_ns) && cpu_ns / (uint64_t)scanned) {
			estimate->page_ns = cpu_ns / (uint64_t)scanned;
			estimate->page_ns_measured = true;
		}
		ksmd_close(&ksmd);
	}
	ksm_close(&ksm);
	return rules;
}

static void settle(const struct estimate *estimate)
{
	uint64_t end = progress_now_ns() + estimate->settle_ms * UINT64_C(1000000);
	bool told = isatty(STDERR_FILENO) == 1;
	if (told)
		fprintf(stderr, "\rwaiting %.1f s to look again\033[K", estimate->settle_ms / 1e3);
	for (uint64_t now; !atomic_load(&stop) && (now = progress_now_ns()) < end;) {
		uint64_t left = end - now < 50000000 ? end - now : 50000000;
		struct timespec pause = { 0, (long)left };
		nanosleep(&pause, NULL);
	}
	if (told)
		fputs("\r\033[K", stderr);
}

static int read_pages(struct estimate *estimate, const struct root *root)
{
	struct reading *reading = &estimate->reading;
	int err = page_store_make(&estimate->store, &estimate->plan, estimate->settle_ms > 0);
	if (err)
		return err;
	reading->root = root;
	reading->plan = &estimate->plan;
	reading->store = &estimate->store;
	reading->page_bytes = estimate->page_bytes;
	reading->stop = &stop;
	err = read_first(reading);
	if (!err && estimate->settle_ms && !atomic_load(&stop)) {
		settle(estimate);
		err = read_second(reading);
	}
	estimate->partial = atomic_load(&stop) || reading->first_partial;
	return err;
}

static void count_processes(struct estimate *estimate)
{
	const struct plan *plan = &estimate->plan;
	estimate->unreadable = plan->unreadable;
	for (size_t i = 0; i < plan->process_count; i++) {
		int err = atomic_load(&plan->processes[i].error);
		estimate->processes += !err;
		estimate->gone += err == -ESRCH;
		estimate->unreadable += err && err != -ESRCH;
		estimate->groups[plan->processes[i].group].processes -= err != 0;
	}
}

/* Everything between the plan and the output. Returns 0 or -errno. */
static int find_out(
	struct estimate *estimate, const struct options *options, const struct root *root)
{
	estimate->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	estimate->settle_ms = options->settle_ms;
	const struct plan_request request = {
		.selection = &options->selection,
		.places = options->by == GROUP_CGROUP || options->by == GROUP_UNIT ||
			  options->by == GROUP_CONTAINER || options->by == GROUP_POD,
	};
	int err = plan_make(&estimate->plan, &request, root, estimate->page_bytes);
	if (!err)
		err = estimate_group(estimate, options->by);
	if (!err)
		err = read_pages(estimate, root);
	if (err)
		return err;
	struct class_rules rules = read_kernel(estimate, root);
	err = sum_pages(&estimate->sums, &estimate->store, &estimate->plan, estimate->group_count,
		&rules, options->top_pages, estimate->reading.first.threads);
	count_processes(estimate);
	estimate->own_bytes =
		estimate->sums.total.pages * sizeof(struct page) + estimate->store.seen_size / 4;
	return err;
}

int64_t estimate_saved_pages(const struct estimate *estimate)
{
	const struct class_sums *sums = &estimate->sums;
	return sums->saved + (sums->rules.zero_pages ? sums->zero_saved_all : sums->zero_saved);
}

uint64_t estimate_scanned_pages(const struct estimate *estimate)
{
	return estimate->sums.total.pages;
}

double estimate_rate(const struct estimate *estimate)
{
	const struct read_cost *cost = &estimate->reading.first;
	return cost->wall_ns ? (double)cost->bytes * 1e9 / (double)cost->wall_ns : 0;
}

static int exit_code(const struct estimate *estimate, const struct options *options)
{
	size_t missing = estimate->plan.missing + estimate->gone;
	if (missing && select_any(&options->selection))
		error("%zu of the processes asked for %s not there", missing,
			missing == 1 ? "is" : "are");
	if (estimate->unreadable)
		error("%zu of %zu processes could not be read%s", estimate->unreadable,
			estimate->processes + estimate->unreadable,
			geteuid() ? "; as root more can be" : "");
	if (atomic_load(&estimate->reading.out_of_room))
		error("processes grew so much meanwhile that not all of them was read");
	if (atomic_load(&stop))
		return STAT_INTERRUPTED;
	if (!select_any(&options->selection))
		return STAT_OK;
	if (estimate->processes && !estimate->unreadable && !missing)
		return STAT_OK;
	return estimate->processes ? STAT_SOME_FOUND : STAT_NONE_FOUND;
}

int estimate(const struct options *options, const struct root *root)
{
	struct estimate estimate = { 0 };

	if (root->foreign) {
		error("--estimate reads the memory of running processes, not of a tree of --root");
		return STAT_USAGE;
	}
	catch_interrupt();
	int err = find_out(&estimate, options, root);
	if (!err && (estimate.processes || options->print.form == PRINT_JSON))
		err = options->print.form == PRINT_JSON ? estimate_json(&estimate)
							: estimate_print(&estimate, options);
	if (err)
		error("cannot estimate: %s", strerror(-err));
	int code = err ? STAT_FAILED : exit_code(&estimate, options);
	class_sums_free(&estimate.sums);
	page_store_free(&estimate.store);
	plan_free(&estimate.plan);
	estimate_group_free(&estimate);
	return code;
}
