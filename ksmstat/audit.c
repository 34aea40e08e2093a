/* ksmstat --audit: which processes share merged pages, and where that crosses users, control groups, containers. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/audit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ksmstat/text.h"

/* Those that are meant, and were they seen. */
static void count_processes(struct audit *audit, const struct selection *selection)
{
	for (size_t i = 0; i < audit->list.count; i++) {
		const struct entry *entry = &audit->list.entries[i];
		audit->selected += entry->selected && entry->frames_known;
		/* Two that are hidden may share pages that nobody else has; one may not. */
		audit->unreadable += !entry->frames_known && entry->selected;
		if (entry->selected && !entry->ksm_error && entry->ksm.present & PROC_KSM_ZERO)
			audit->zero_pages += (uint64_t)entry->ksm.zero_pages;
	}
	for (size_t k = 0; k < selection->pid_count; k++) {
		bool found = false;
		for (size_t i = 0; i < audit->list.count && !found; i++)
			found = audit->list.entries[i].pid == selection->pids[k];
		audit->missing += !found;
	}
}

/* One record for each mapping of a merged page. The lists of the entries are freed on the way. */
static int gather(struct audit *audit, struct audit_input *input)
{
	size_t count = 0, at = 0;
	for (size_t i = 0; i < audit->list.count; i++)
		count += audit->list.entries[i].merged.count;
	if (audit->list.count >> AUDIT_PROCESS_BITS)
		return -EOVERFLOW;
	input->records = calloc(count + 1, sizeof(*input->records));
	if (!input->records)
		return -ENOMEM;
	for (size_t i = 0; i < audit->list.count; i++) {
		size_t entry = (size_t)(audit->order[i] - audit->list.entries);
		struct frames_list *merged = &audit->list.entries[entry].merged;
		for (size_t k = 0; k < merged->count; k++) {
			if (merged->frames[k] > AUDIT_FRAME_MAX)
				return -EOVERFLOW;
			input->records[at++] = audit_record(merged->frames[k], (uint32_t)i);
		}
		free(merged->frames);
		*merged = (struct frames_list){ 0 };
	}
	input->count = at;
	return 0;
}

static int find_out(struct audit *audit, const struct options *options, const struct root *root,
	const struct frames *frames)
{
	const struct entry_request request = {
		.selection = &options->selection,
		.all = true,
		.merged = true,
		.places = true,
		.frames = frames,
		.pagemap = pagemap_probe(root) == 0,
		.gentle = options->gentle,
	};
	struct audit_input input = { .frames = frames };

	if (options->gentle && !request.pagemap)
		return -ENOTTY;
	int err = entry_read(&audit->list, root, &request);
	audit->page_bytes = frames->page_bytes;
	audit->by = options->by;
	if (!err)
		err = audit_group(audit);
	if (!err)
		err = gather(audit, &input);
	input.cell_of = audit->cell_of;
	input.cells = audit->cells;
	input.groups = audit->group_count;
	if (!err)
		err = audit_sum(&audit->sums, &input);
	free(input.records);
	if (err)
		return err;
	count_processes(audit, &options->selection);
	audit->complete = !audit->sums.unseen_pages && !audit->sums.left_out_pages &&
			  audit->unreadable <= !select_any(&options->selection);
	return 0;
}

/* Whether pages cross what was asked about: with --by a boundary that one, else any. */
static bool crosses(const struct audit *audit)
{
	const struct audit_sums *sums = &audit->sums;
	switch (audit->by) {
	case GROUP_USER:
		return sums->crossing_pages[AUDIT_USER];
	case GROUP_CGROUP:
		return sums->crossing_pages[AUDIT_CGROUP];
	case GROUP_CONTAINER:
		return sums->crossing_pages[AUDIT_CONTAINER];
	case GROUP_UNIT:
	case GROUP_POD:
		for (size_t i = 0; i < sums->pair_count; i++) {
			if (sums->pairs[i].a != sums->pairs[i].b)
				return true;
		}
		return sums->left_out_pages;
	default:
		for (unsigned i = 0; i < AUDIT_BOUNDARIES; i++) {
			if (sums->crossing_pages[i])
				return true;
		}
		return false;
	}
}

static int exit_code(const struct audit *audit, const struct options *options)
{
	bool asked = select_any(&options->selection);
	char buf[32];
	if (audit->missing)
		error("%zu of the processes asked for %s not there", audit->missing,
			audit->missing == 1 ? "is" : "are");
	if (audit->unreadable)
		error("%zu of %zu processes could not be read", audit->unreadable,
			audit->unreadable + audit->selected);
	if (audit->sums.unseen_pages)
		error("%s of merged pages are mapped by processes, too, that were not seen",
			text_size((int64_t)audit->sums.unseen_pages * audit->page_bytes, buf,
				sizeof(buf)));
	if (asked && !audit->selected)
		return STAT_NONE_FOUND;
	if (crosses(audit))
		return STAT_CROSSES;
	return audit->complete && !audit->missing ? STAT_OK : STAT_SOME_FOUND;
}

static void audit_free(struct audit *audit)
{
	audit_sums_free(&audit->sums);
	for (unsigned i = 0; i < AUDIT_BOUNDARIES; i++)
		free(audit->sides[i]);
	free(audit->groups);
	free(audit->cell_of);
	free(audit->cells);
	free(audit->order);
	entry_free(&audit->list);
}

int audit_run(const struct options *options, const struct root *root)
{
	struct audit audit = { 0 };
	struct frames frames;

	if (root->foreign) {
		error("--audit looks at the pages of running processes, not at a tree of --root");
		return STAT_USAGE;
	}
	int err = frames_open(&frames, root);
	if (err == -EACCES)
		error("--audit needs root: which page is whose is hidden from others");
	else if (err)
		error("cannot open /proc/kpageflags: %s", strerror(-err));
	if (err)
		return STAT_FAILED;
	err = find_out(&audit, options, root, &frames);
	if (!err)
		err = options->print.form == PRINT_JSON ? audit_json(&audit)
							: audit_print(&audit, options);
	if (err == -ENOTTY)
		error("--gentle needs Linux 6.11 or later");
	else if (err)
		error("cannot audit: %s", strerror(-err));
	int code = err ? STAT_FAILED : exit_code(&audit, options);
	audit_free(&audit);
	frames_close(&frames);
	return code;
}
