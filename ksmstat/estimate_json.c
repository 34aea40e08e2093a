/* Prints an estimate as one JSON object, in bytes, with everything that was found out. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ksmstat/estimate.h"
#include "ksmstat/estimate_text.h"
#include "ksmstat/text.h"

#define PAIRS_MAX 100
#define NAME_MAX_BYTES 512

static void print_bytes(const struct estimate *estimate, const char *name, int64_t pages)
{
	printf(",\n    \"%s\": %" PRId64, name, pages * (int64_t)estimate->page_bytes);
}

static void print_share(const struct estimate *estimate, const struct class_share *share)
{
	int64_t page = (int64_t)estimate->page_bytes;
	printf("\"read\": %" PRId64 ", \"saved\": %" PRId64 ", \"zero\": %" PRId64
	       ", \"merged\": %" PRId64 ", \"changed\": %" PRId64 " }",
		(int64_t)share->pages * page, (share->saved_parts * page) >> CLASS_PART_SHIFT,
		(int64_t)share->zero * page, (int64_t)share->merged * page,
		(int64_t)share->changed * page);
}

static void print_group_name(const struct estimate *estimate, uint32_t group)
{
	text_quote(stdout, estimate->groups[group].name);
}

static void print_head(const struct estimate *estimate)
{
	const struct class_sums *sums = &estimate->sums;
	const struct reading *reading = &estimate->reading;
	uint64_t scanned = estimate_scanned_pages(estimate);

	printf("{\n  \"estimate\": {\n    \"partial\": %s", estimate->partial ? "true" : "false");
	printf(",\n    \"processes\": %zu,\n    \"unreadable\": %zu", estimate->processes,
		estimate->unreadable);
	print_bytes(estimate, "read", (int64_t)sums->total.pages);
	print_bytes(estimate, "saved", estimate_saved_pages(estimate));
	print_bytes(estimate, "saved_across_processes", sums->saved - sums->saved_in_process);
	print_bytes(estimate, "saved_within_processes", sums->saved_in_process);
	print_bytes(estimate, "saved_within_groups", sums->saved_in_group);
	print_bytes(estimate, "saved_zero",
		sums->rules.zero_pages ? sums->zero_saved_all : sums->zero_saved);
	print_bytes(estimate, "saved_zero_with_use_zero_pages", sums->zero_saved_all);
	print_bytes(estimate, "saved_mergeable", sums->saved_mergeable);
	print_bytes(estimate, "saved_already", sums->saved_now);
	print_bytes(estimate, "merged", (int64_t)sums->total.merged);
	print_bytes(estimate, "changed", (int64_t)sums->total.changed);
	printf(",\n    \"settle_seconds\": %.3f,\n    \"exact_sharing\": %s",
		estimate->settle_ms / 1e3, reading->knows_merged ? "true" : "false");
	printf(",\n    \"cost\": { \"rmap_items\": %" PRIu64 ", \"memory\": %" PRIu64
	       ", \"page_ns\": %" PRIu64 ", \"measured\": %s, \"pass_seconds\": %.3f }",
		scanned, scanned * ESTIMATE_RMAP_ITEM_BYTES, estimate->page_ns,
		estimate->page_ns_measured ? "true" : "false",
		(double)(scanned * estimate->page_ns) / 1e9);
	printf(",\n    \"kernel\": { \"max_page_sharing\": %" PRIu64
	       ", \"use_zero_pages\": %d, \"pages_shared\": %" PRId64
	       ", \"pages_sharing\": %" PRId64 ", \"ksm_zero_pages\": %" PRId64 " }",
		sums->rules.max_page_sharing, sums->rules.zero_pages, sums->pages_shared,
		sums->pages_sharing, sums->zero_pages);
	printf(",\n    \"reading\": { \"threads\": %u, \"first_bytes\": %" PRIu64
	       ", \"first_seconds\": %.6f, \"first_cpu_seconds\": %.6f, \"second_bytes\": %" PRIu64
	       ", \"second_seconds\": %.6f, \"second_cpu_seconds\": %.6f, \"own_memory\": %" PRIu64
	       " }",
		reading->first.threads, reading->first.bytes, (double)reading->first.wall_ns / 1e9,
		(double)reading->first.cpu_ns / 1e9, reading->second.bytes,
		(double)reading->second.wall_ns / 1e9, (double)reading->second.cpu_ns / 1e9,
		estimate->own_bytes);
}

static int print_groups(const struct estimate *estimate)
{
	uint32_t *order = estimate_order(estimate);
	if (!order)
		return -ENOMEM;
	printf(",\n    \"kinds\": [");
	for (size_t i = 0; i < PLAN_KINDS; i++) {
		printf("%s\n      { \"kind\": \"%s\", ", i ? "," : "", plan_kind_names[i]);
		print_share(estimate, &estimate->sums.kinds[i]);
	}
	printf("\n    ],\n    \"by\": \"%s\",\n    \"groups\": [", estimate->group_word);
	for (size_t i = 0; i < estimate->group_count; i++) {
		printf("%s\n      { \"group\": ", i ? "," : "");
		print_group_name(estimate, order[i]);
		printf(", \"processes\": %zu, ", estimate->groups[order[i]].processes);
		print_share(estimate, &estimate->sums.groups[order[i]]);
	}
	printf("\n    ]");
	free(order);
	return 0;
}

static void print_together(const struct estimate *estimate)
{
	const struct together *together = &estimate->sums.together;
	struct together_pair pairs[PAIRS_MAX];
	size_t count = together_pairs(together, estimate->group_count, pairs, PAIRS_MAX);
	int64_t page = (int64_t)estimate->page_bytes;

	printf(",\n    \"together\": [");
	for (size_t i = 0; i < together->count && i < PAIRS_MAX; i++) {
		const struct together_set *set = &together->sets[i];
		printf("%s\n      { \"groups\": [", i ? "," : "");
		for (size_t k = 0; k < set->count; k++) {
			printf(k ? ", " : "");
			print_group_name(estimate, together->ids[set->first + k]);
		}
		printf("], \"saved\": %" PRId64 " }", set->saved_pages * page);
	}
	printf("\n    ],\n    \"pairs\": [");
	for (size_t i = 0; i < count; i++) {
		printf("%s\n      { \"groups\": [", i ? "," : "");
		print_group_name(estimate, pairs[i].a);
		printf(", ");
		print_group_name(estimate, pairs[i].b);
		printf("], \"saved\": %" PRId64 " }", pairs[i].saved_pages * page);
	}
	printf("\n    ]");
}

static void print_processes(const struct estimate *estimate)
{
	bool first = true;
	printf(",\n    \"by_process\": [");
	for (size_t i = 0; i < estimate->plan.process_count; i++) {
		const struct plan_process *process = &estimate->plan.processes[i];
		char safe[NAME_MAX_BYTES];
		if (atomic_load(&process->error))
			continue;
		printf("%s\n      { \"pid\": %d, \"command\": ", first ? "" : ",",
			(int)process->pid);
		text_quote(stdout, text_safe(process->comm, safe, sizeof(safe)));
		printf(", ");
		print_share(estimate, &estimate->sums.processes[i]);
		first = false;
	}
	printf("\n    ]");
}

static void print_top(const struct estimate *estimate)
{
	const struct class_sums *sums = &estimate->sums;
	printf(",\n    \"top_pages\": [");
	for (size_t i = 0; i < sums->top_count; i++) {
		const struct class_top *top = &sums->top[i];
		char content[16];
		estimate_content(estimate, top, content, sizeof(content));
		printf("%s\n      { \"content\": %s%s%s, \"kind\": \"%s\", \"pages\": %" PRIu64
		       ", \"distinct\": %" PRIu64 ", \"merged\": %" PRIu64
		       ", \"processes\": %u, \"groups\": %u }",
			i ? "," : "", *content == '-' ? "" : "\"",
			*content == '-' ? "null" : content, *content == '-' ? "" : "\"",
			estimate_top_kind(top), top->pages, top->distinct, top->merged,
			top->processes, top->groups);
	}
	printf("\n    ]");
}

int estimate_json(const struct estimate *estimate)
{
	print_head(estimate);
	int err = print_groups(estimate);
	print_together(estimate);
	print_processes(estimate);
	if (estimate->sums.top_max)
		print_top(estimate);
	printf("\n  }\n}\n");
	return err;
}
