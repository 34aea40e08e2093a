/* What the service tells of itself in its folder: how it is, and its last decisions. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_JOURNAL_H
#define KSMCTL_JOURNAL_H

#include "ksmctl/governor.h"

#define JOURNAL_STATUS "status"	      /* lines of key=value */
#define JOURNAL_DECISIONS "decisions" /* a line each, fields divided by tabs, oldest first */
#define JOURNAL_KEPT 200

struct journal_line {
	int64_t unix_ms, monotonic_ms;
	enum policy_phase phase;
	enum policy_reason reason;
	int64_t budget_ppm, pages_to_scan, sleep_ms, saved_pages;
};

struct journal {
	struct journal_line lines[JOURNAL_KEPT];
	size_t count, next;
	int64_t last_ksmd_cpu_ns, last_ms;
	int64_t ksmd_cpu_ppm; /* its share between the last two status files; -1 not known */
	int64_t status_due_ms;
	bool unwritten; /* decisions, which could not be */
};

/*
 * Note the governor's last step. Phase or reason new: a line more, written at once. The status file
 * is written then, and otherwise once a second at most. Returns 0 or -errno; 1 when a line was added.
 */
int journal_note(struct journal *journal, const struct governor *governor, int64_t now_ms);

#endif
