/* /sys/kernel/mm/ksm: every tunable and counter of the kernel's samepage merging. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SYSFS_KSM_H
#define SYSFS_KSM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sysfs/root.h"

enum ksm_key {
	/* tunables, in the order in which a tool should show them */
	KSM_RUN,
	KSM_PAGES_TO_SCAN,
	KSM_SLEEP_MILLISECS,
	KSM_SMART_SCAN,
	KSM_USE_ZERO_PAGES,
	KSM_MERGE_ACROSS_NODES,
	KSM_MAX_PAGE_SHARING,
	KSM_CHAINS_PRUNE_MILLISECS,
	KSM_ADVISOR_MODE,
	KSM_ADVISOR_MAX_CPU,
	KSM_ADVISOR_MIN_PAGES,
	KSM_ADVISOR_MAX_PAGES,
	KSM_ADVISOR_TARGET_SCAN_TIME,
	KSM_TUNABLES,
	/* counters */
	KSM_PAGES_SHARED = KSM_TUNABLES,
	KSM_PAGES_SHARING,
	KSM_ZERO_PAGES,
	KSM_PAGES_UNSHARED,
	KSM_PAGES_VOLATILE,
	KSM_PAGES_SKIPPED,
	KSM_PAGES_SCANNED,
	KSM_FULL_SCANS,
	KSM_STABLE_CHAINS,
	KSM_STABLE_DUPS,
	KSM_GENERAL_PROFIT,
	KSM_KEYS
};

/* Values of KSM_RUN. OFFLINE is a bit that the kernel adds for as long as memory goes offline. */
enum { KSM_RUN_STOP = 0, KSM_RUN_MERGE = 1, KSM_RUN_UNMERGE = 2, KSM_RUN_OFFLINE = 4 };
/* Values of KSM_ADVISOR_MODE; OTHER is a word that this version does not know. */
enum { KSM_ADVISOR_NONE = 0, KSM_ADVISOR_SCAN_TIME = 1, KSM_ADVISOR_OTHER = 2 };

/* What is known of a key without asking the kernel. */
struct ksm_key_info {
	const char *name;    /* file name */
	const char *unit;    /* "pages", "ms", "bytes", "%", "s" or "" */
	int64_t min, max;    /* what a write may carry; unused for counters */
	const char *meaning; /* one line for people */
};
extern const struct ksm_key_info ksm_keys[KSM_KEYS];

/* Find a key by its file name. Returns the key or -ENOENT. */
int ksm_find(const char *name);

struct ksm {
	int fd; /* the directory; -1 when closed */
};

/* One reading of all files. error[k] is 0 when value[k] holds, else -errno (-ENOENT: not in this kernel). */
struct ksm_state {
	int64_t value[KSM_KEYS];
	int error[KSM_KEYS];
};

static inline bool ksm_has(const struct ksm_state *state, enum ksm_key key)
{
	return state->error[key] == 0;
}

/* Open the directory. Returns 0 or -errno; -ENOENT means a kernel without CONFIG_KSM. */
int ksm_open(struct ksm *ksm, const struct root *root);
void ksm_close(struct ksm *ksm);

/* Read every file. Files that are absent or unreadable are marked, never taken for 0. */
void ksm_read(const struct ksm *ksm, struct ksm_state *state);

/* Read one file. Returns 0 or -errno; *value is untouched on failure. */
int ksm_get(const struct ksm *ksm, enum ksm_key key, int64_t *value);

/*
 * Write a tunable and read it back. Returns 0, -errno of the write, or -EBADE when the kernel
 * accepted the write but reads something else. Writing run, merge_across_nodes and
 * max_page_sharing waits for the end of ksmd's batch; run=2 takes as long as unmerging does.
 */
int ksm_set(const struct ksm *ksm, enum ksm_key key, int64_t value);

/*
 * Bring every tunable back to what `saved` holds, writing only those that differ; `run` comes last.
 * Goes on after a failure and returns the first: 0, or -errno (-EBUSY for merge_across_nodes and
 * max_page_sharing while pages are shared), with the key in *failed when that is not NULL.
 */
int ksm_restore(const struct ksm *ksm, const struct ksm_state *saved, enum ksm_key *failed);

/* Parse the text of a file or of a command line ("1", "[none] scan-time", "none"). 0 or -errno. */
int ksm_parse(enum ksm_key key, const char *text, size_t len, int64_t *value);

/* The text that a write carries; also good for showing. Returns buf. */
const char *ksm_format(enum ksm_key key, int64_t value, char *buf, size_t size);

/* Pages saved now: pages_sharing and merged zero pages. False when the kernel did not say. */
bool ksm_saved_pages(const struct ksm_state *state, int64_t *pages);

#endif
