/* Writes metrics in the text format of Prometheus: names, what they mean, and values in base units. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "ksmstat/prom.h"
#include "ksmstat/text.h"
#include "sysfs/ksm.h"
#include "sysfs/ksmd.h"
#include "sysfs/mem.h"

#define LABEL_MAX 512

/* How a number of the kernel becomes one in a base unit. */
enum unit { PLAIN, PAGES, MILLISECONDS, PERCENT };

static const struct {
	enum ksm_key key;
	enum unit unit;
	bool counter;
	const char *name, *help;
} machine[] = {
	{ KSM_PAGES_SHARED, PAGES, false, "ksm_shared_bytes", "Merged pages that are kept." },
	{ KSM_PAGES_SHARING, PAGES, false, "ksm_sharing_bytes",
		"Mappings of merged pages beyond the first of each: what merging saves." },
	{ KSM_ZERO_PAGES, PAGES, false, "ksm_zero_bytes",
		"Pages of zeros that were merged with the kernel's own page of zeros." },
	{ KSM_PAGES_UNSHARED, PAGES, false, "ksm_unshared_bytes",
		"Pages that are compared in each pass and equal no other." },
	{ KSM_PAGES_VOLATILE, PAGES, false, "ksm_volatile_bytes",
		"Pages that change too fast to be merged." },
	{ KSM_GENERAL_PROFIT, PLAIN, false, "ksm_profit_bytes",
		"The kernel's account: saved less its bookkeeping. May be negative." },
	{ KSM_FULL_SCANS, PLAIN, true, "ksm_full_scans_total",
		"Passes over all registered memory. Starts again when all is unmerged." },
	{ KSM_PAGES_SCANNED, PLAIN, true, "ksm_scanned_pages_total", "Pages that ksmd visited." },
	{ KSM_PAGES_SKIPPED, PLAIN, true, "ksm_skipped_pages_total",
		"Pages that ksmd passed over as they did not merge before." },
	{ KSM_STABLE_CHAINS, PLAIN, false, "ksm_stable_node_chains",
		"Contents that more mappings share than max_page_sharing allows for one page." },
	{ KSM_STABLE_DUPS, PLAIN, false, "ksm_stable_node_dups",
		"Pages that hold these contents." },
	{ KSM_RUN, PLAIN, false, "ksm_run", "Setting: 0 stopped, 1 merging, 2 unmerging." },
	{ KSM_PAGES_TO_SCAN, PLAIN, false, "ksm_pages_to_scan", "Setting: pages per batch." },
	{ KSM_SLEEP_MILLISECS, MILLISECONDS, false, "ksm_sleep_seconds",
		"Setting: time between batches." },
	{ KSM_SMART_SCAN, PLAIN, false, "ksm_smart_scan",
		"Setting: pass over pages that did not merge before." },
	{ KSM_USE_ZERO_PAGES, PLAIN, false, "ksm_use_zero_pages",
		"Setting: merge zeros with the kernel's own page of zeros." },
	{ KSM_MERGE_ACROSS_NODES, PLAIN, false, "ksm_merge_across_nodes",
		"Setting: merge pages of different NUMA nodes." },
	{ KSM_MAX_PAGE_SHARING, PLAIN, false, "ksm_max_page_sharing",
		"Setting: most mappings of one page." },
	{ KSM_ADVISOR_MODE, PLAIN, false, "ksm_advisor_mode",
		"Setting: the kernel's own controller; 0 none, 1 scan-time, 2 another." },
	{ KSM_ADVISOR_MAX_CPU, PERCENT, false, "ksm_advisor_max_cpu_ratio",
		"Setting of the advisor: most CPU time, of one core." },
	{ KSM_ADVISOR_TARGET_SCAN_TIME, PLAIN, false, "ksm_advisor_target_scan_seconds",
		"Setting of the advisor: time for one pass." },
};

/* Sums over the processes of a group, and what of a single process is more than these. */
static const struct {
	const char *column, *name, *help;
	bool of_groups, of_each;
} sums[] = {
	{ "SAVED", "saved_bytes", "Its share of what merging saves; without merged zeros.", true,
		true },
	{ "ZERO", "zero_bytes", "Its pages of zeros that were merged with the kernel's own.", true,
		true },
	{ "USS", "private_bytes", "Resident memory of its own: freed when it ends.", true, true },
	{ "SCANNED", "tracked_pages", "Pages that ksmd keeps track of.", true, true },
	{ "PROCS", "processes", "Processes.", true, false },
	{ "UNREADABLE", "unreadable_processes",
		"Processes that could not be read, and are in no sum.", true, false },
	{ "KSM", "merged_bytes", "Merged pages that it maps. Does not add up.", false, true },
	{ "PROFIT", "profit_bytes", "The kernel's account of it. Does not add up.", false, true },
};
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void head(FILE *f, const char *name, const char *help, bool counter)
{
	fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, counter ? "counter" : "gauge");
}

static void print_value(FILE *f, int64_t value, enum unit unit)
{
	int64_t page_bytes = sysconf(_SC_PAGESIZE);
	if (unit == MILLISECONDS || unit == PERCENT)
		fprintf(f, " %.12g\n", (double)value / (unit == PERCENT ? 100 : 1000));
	else
		fprintf(f, " %" PRId64 "\n", unit == PAGES ? value * page_bytes : value);
}

static void single(
	FILE *f, const char *name, const char *help, bool counter, int64_t value, enum unit unit)
{
	head(f, name, help, counter);
	fputs(name, f);
	print_value(f, value, unit);
}

/* CPU time of the thread, and what it costs others that pages are merged. */
static void print_costs(FILE *f, const struct root *root)
{
	struct ksmd ksmd;
	struct mem_vmstat vmstat;
	uint64_t cpu_ns;
	if (!ksmd_open(&ksmd, root)) {
		if (!ksmd_cpu_ns(&ksmd, &cpu_ns)) {
			const char *name = "ksm_ksmd_cpu_seconds_total";
			head(f, name, "CPU time that ksmd used.", true);
			fprintf(f, "%s %.9f\n", name, (double)cpu_ns / 1e9);
		}
		ksmd_close(&ksmd);
	}
	if (mem_read_vmstat(root, &vmstat))
		return;
	if (vmstat.cow_ksm >= 0)
		single(f, "ksm_copied_pages_total",
			"Merged pages that were copied as somebody wrote to them.", true,
			vmstat.cow_ksm, PLAIN);
	if (vmstat.ksm_swpin_copy >= 0)
		single(f, "ksm_swapped_in_pages_total",
			"Merged pages that were copied as they were swapped in.", true,
			vmstat.ksm_swpin_copy, PLAIN);
}

int prom_machine(FILE *f, const struct root *root)
{
	struct ksm ksm;
	struct ksm_state state;
	int64_t pages;
	int err = ksm_open(&ksm, root);
	if (err)
		return err;
	ksm_read(&ksm, &state);
	ksm_close(&ksm);
	if (ksm_saved_pages(&state, &pages))
		single(f, "ksm_saved_bytes", "What merging saves now, merged zeros included.",
			false, pages, PAGES);
	for (size_t i = 0; i < COUNT(machine); i++) {
		if (ksm_has(&state, machine[i].key))
			single(f, machine[i].name, machine[i].help, machine[i].counter,
				state.value[machine[i].key], machine[i].unit);
	}
	print_costs(f, root);
	return 0;
}

void prom_processes(FILE *f, const struct entry_list *list)
{
	single(f, "ksm_processes", "Processes that were looked at.", false, (int64_t)list->count,
		PLAIN);
	single(f, "ksm_unreadable_processes", "Processes of these that could not be read.", false,
		(int64_t)list->unreadable, PLAIN);
}

/* {name="value"}, in which a value that is not known or of nothing is "-", as in the tables. */
static void label(FILE *f, const char *before, const char *name, const char *raw)
{
	char text[LABEL_MAX];
	fprintf(f, "%s%s=", before, name);
	text_quote(f, text_safe(raw ? raw : "-", text, sizeof(text)));
}

/* What place.c has made safe already may be longer, and must not be escaped twice. */
static void group_label(FILE *f, enum group_by by, const char *key)
{
	if (by <= GROUP_USER) {
		label(f, "{", group_word(by), key);
	} else {
		fprintf(f, "{%s=", group_word(by));
		text_quote(f, key ? key : "-");
	}
	putc('}', f);
}

int prom_groups(FILE *f, const struct entry_list *list, enum group_by by)
{
	const struct group_order by_key = { NULL, false };
	struct group_list groups;
	int err = group_make(&groups, by, list, &by_key);
	for (size_t i = 0; i < COUNT(sums) && !err; i++) {
		const struct column *column = column_find(sums[i].column, strlen(sums[i].column));
		size_t at = (size_t)(column - columns);
		bool first = true;
		char name[96];
		snprintf(name, sizeof(name), "ksm_%s_%s", group_word(by), sums[i].name);
		for (size_t g = 0; g < groups.count && sums[i].of_groups; g++) {
			if (!(groups.groups[g].known >> at & 1))
				continue;
			if (first)
				head(f, name, sums[i].help, false);
			first = false;
			fputs(name, f);
			group_label(f, by, groups.groups[g].key);
			print_value(f, groups.groups[g].sum[at], PLAIN);
		}
	}
	group_free(&groups);
	return err;
}

void prom_each(FILE *f, const struct entry_list *list)
{
	for (size_t i = 0; i < COUNT(sums); i++) {
		const struct column *column = column_find(sums[i].column, strlen(sums[i].column));
		bool first = true;
		char name[96];
		snprintf(name, sizeof(name), "ksm_process_%s", sums[i].name);
		for (size_t p = 0; p < list->count && sums[i].of_each; p++) {
			const struct entry *entry = &list->entries[p];
			int64_t value;
			if (!column->number(entry, &value))
				continue;
			if (first)
				head(f, name, sums[i].help, false);
			first = false;
			fprintf(f, "%s{pid=\"%d\"", name, (int)entry->pid);
			label(f, ",", "program", entry->stat.comm);
			label(f, ",", "user", entry->user);
			putc('}', f);
			print_value(f, value, PLAIN);
		}
	}
}
