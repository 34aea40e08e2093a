/* /sys/kernel/mm/ksm: every tunable and counter of the kernel's samepage merging. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/ksm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sysfs/file.h"

const struct ksm_key_info ksm_keys[KSM_KEYS] = {
	[KSM_RUN] = { "run", "", 0, 2, "0 stopped, 1 merging, 2 stopped and everything unmerged" },
	[KSM_PAGES_TO_SCAN] = { "pages_to_scan", "pages", 0, UINT32_MAX,
		"pages that ksmd scans in one batch" },
	[KSM_SLEEP_MILLISECS] = { "sleep_millisecs", "ms", 0, UINT32_MAX,
		"how long ksmd sleeps between batches" },
	[KSM_SMART_SCAN] = { "smart_scan", "", 0, 1,
		"skip pages that failed to merge for up to 8 scans" },
	[KSM_USE_ZERO_PAGES] = { "use_zero_pages", "", 0, 1,
		"merge zero-filled pages with the kernel's zero page" },
	[KSM_MERGE_ACROSS_NODES] = { "merge_across_nodes", "", 0, 1,
		"merge pages of different NUMA nodes" },
	[KSM_MAX_PAGE_SHARING] = { "max_page_sharing", "pages", 2, INT32_MAX,
		"mappings that one merged page may have" },
	[KSM_CHAINS_PRUNE_MILLISECS] = { "stable_node_chains_prune_millisecs", "ms", 0, UINT32_MAX,
		"how often stale entries of long chains are pruned" },
	[KSM_ADVISOR_MODE] = { "advisor_mode", "", 0, 1,
		"the kernel's own controller: none or scan-time" },
	[KSM_ADVISOR_MAX_CPU] = { "advisor_max_cpu", "%", 0, UINT32_MAX,
		"CPU limit of the kernel's controller" },
	[KSM_ADVISOR_MIN_PAGES] = { "advisor_min_pages_to_scan", "pages", 0, UINT32_MAX,
		"smallest batch of the kernel's controller" },
	[KSM_ADVISOR_MAX_PAGES] = { "advisor_max_pages_to_scan", "pages", 0, UINT32_MAX,
		"largest batch of the kernel's controller" },
	[KSM_ADVISOR_TARGET_SCAN_TIME] = { "advisor_target_scan_time", "s", 1, UINT32_MAX,
		"time for one scan that the kernel's controller aims at" },
	[KSM_PAGES_SHARED] = { "pages_shared", "pages", 0, 0, "merged pages in use" },
	[KSM_PAGES_SHARING] = { "pages_sharing", "pages", 0, 0,
		"further mappings of them: pages saved" },
	[KSM_ZERO_PAGES] = { "ksm_zero_pages", "pages", 0, 0,
		"mappings of the zero page made by merging: pages saved" },
	[KSM_PAGES_UNSHARED] = { "pages_unshared", "pages", 0, 0, "scanned and found unique" },
	[KSM_PAGES_VOLATILE] = { "pages_volatile", "pages", 0, 0, "changing too fast to merge" },
	[KSM_PAGES_SKIPPED] = { "pages_skipped", "pages", 0, 0, "passed over by smart_scan" },
	[KSM_PAGES_SCANNED] = { "pages_scanned", "pages", 0, 0, "scanned since boot" },
	[KSM_FULL_SCANS] = { "full_scans", "", 0, 0, "complete passes over all registered memory" },
	[KSM_STABLE_CHAINS] = { "stable_node_chains", "", 0, 0,
		"contents that reached max_page_sharing" },
	[KSM_STABLE_DUPS] = { "stable_node_dups", "", 0, 0, "duplicates kept for them" },
	[KSM_GENERAL_PROFIT] = { "general_profit", "bytes", 0, 0,
		"saved memory less the kernel's bookkeeping" },
};

static const char *const advisor_words[] = { "none", "scan-time" };

int ksm_find(const char *name)
{
	for (int key = 0; key < KSM_KEYS; key++) {
		if (!strcmp(ksm_keys[key].name, name))
			return key;
	}
	return -ENOENT;
}

int ksm_open(struct ksm *ksm, const struct root *root)
{
	int fd = root_opendir(root, "sys/kernel/mm/ksm");
	ksm->fd = fd < 0 ? -1 : fd;
	return fd < 0 ? fd : 0;
}

void ksm_close(struct ksm *ksm)
{
	if (ksm->fd >= 0)
		close(ksm->fd);
	ksm->fd = -1;
}

/* "[none] scan-time" names the chosen word in brackets; a command line gives the bare word. */
static int parse_advisor(const char *text, size_t len, int64_t *value)
{
	if (len && text[len - 1] == '\n')
		len--;
	const char *open = memchr(text, '[', len);
	if (open) {
		const char *close = memchr(open, ']', len - (size_t)(open - text));
		if (!close)
			return -EINVAL;
		text = open + 1;
		len = (size_t)(close - text);
	}
	for (int i = 0; i < (int)(sizeof(advisor_words) / sizeof(*advisor_words)); i++) {
		if (strlen(advisor_words[i]) == len && !memcmp(advisor_words[i], text, len)) {
			*value = i;
			return 0;
		}
	}
	if (!open)
		return -EINVAL;
	*value = KSM_ADVISOR_OTHER;
	return 0;
}

int ksm_parse(enum ksm_key key, const char *text, size_t len, int64_t *value)
{
	if (key == KSM_ADVISOR_MODE)
		return parse_advisor(text, len, value);
	return file_parse_i64(text, len, value);
}

const char *ksm_format(enum ksm_key key, int64_t value, char *buf, size_t size)
{
	if (key == KSM_ADVISOR_MODE)
		snprintf(buf, size, "%s",
			value == KSM_ADVISOR_NONE	 ? "none"
			: value == KSM_ADVISOR_SCAN_TIME ? "scan-time"
							 : "other");
	else
		snprintf(buf, size, "%" PRId64, value);
	return buf;
}

int ksm_get(const struct ksm *ksm, enum ksm_key key, int64_t *value)
{
	char buf[128];
	ssize_t len = file_read(ksm->fd, ksm_keys[key].name, buf, sizeof(buf));
	if (len < 0)
		return (int)len;
	return ksm_parse(key, buf, (size_t)len, value);
}

void ksm_read(const struct ksm *ksm, struct ksm_state *state)
{
	for (int key = 0; key < KSM_KEYS; key++) {
		state->value[key] = 0;
		state->error[key] = ksm_get(ksm, key, &state->value[key]);
	}
}

int ksm_set(const struct ksm *ksm, enum ksm_key key, int64_t value)
{
	char text[32];
	int64_t now = 0;
	int err =
		file_write(ksm->fd, ksm_keys[key].name, ksm_format(key, value, text, sizeof(text)));
	if (!err)
		err = ksm_get(ksm, key, &now);
	if (!err && key == KSM_RUN)
		now &= ~(int64_t)KSM_RUN_OFFLINE;
	if (!err && now != value)
		err = -EBADE;
	return err;
}

int ksm_restore(const struct ksm *ksm, const struct ksm_state *saved, enum ksm_key *failed)
{
	/* pages_to_scan cannot be written under an advisor, and a change of advisor resets it. */
	static const enum ksm_key order[] = { KSM_ADVISOR_MODE, KSM_ADVISOR_MAX_CPU,
		KSM_ADVISOR_MIN_PAGES, KSM_ADVISOR_MAX_PAGES, KSM_ADVISOR_TARGET_SCAN_TIME,
		KSM_SLEEP_MILLISECS, KSM_SMART_SCAN, KSM_USE_ZERO_PAGES, KSM_CHAINS_PRUNE_MILLISECS,
		KSM_MERGE_ACROSS_NODES, KSM_MAX_PAGE_SHARING, KSM_PAGES_TO_SCAN, KSM_RUN };
	int first = 0;
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		enum ksm_key key = order[i];
		int64_t now = 0, wanted = saved->value[key];
		if (!ksm_has(saved, key))
			continue;
		if (key == KSM_PAGES_TO_SCAN && ksm_has(saved, KSM_ADVISOR_MODE) &&
			saved->value[KSM_ADVISOR_MODE] != KSM_ADVISOR_NONE)
			continue;
		int err = ksm_get(ksm, key, &now);
		if (!err && key == KSM_RUN) {
			now &= ~(int64_t)KSM_RUN_OFFLINE;
			wanted &= ~(int64_t)KSM_RUN_OFFLINE;
		}
		/* What cannot be read is written all the same: the value is known. */
		if (err || now != wanted)
			err = ksm_set(ksm, key, wanted);
		if (err && !first) {
			first = err;
			if (failed)
				*failed = key;
		}
	}
	return first;
}

bool ksm_saved_pages(const struct ksm_state *state, int64_t *pages)
{
	if (!ksm_has(state, KSM_PAGES_SHARING))
		return false;
	int64_t zero = ksm_has(state, KSM_ZERO_PAGES) ? state->value[KSM_ZERO_PAGES] : 0, sum;
	if (__builtin_add_overflow(state->value[KSM_PAGES_SHARING], zero, &sum))
		return false;
	*pages = sum;
	return true;
}
