/* What the service tells of itself in its folder: how it is, and its last decisions. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define STATUS_EVERY_MS 1000

static int64_t unix_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A knob as it is now: what was just written, else what was found; -1 where there is none. */
static int64_t in_force(bool written, int64_t decided, int64_t found)
{
	return written && decided >= 0 && found >= 0 ? decided : found;
}

static int write_status(struct journal *journal, const struct governor *governor, int64_t now_ms)
{
	const struct policy_sample *sample = &governor->sample;
	const struct policy_decision *decision = &governor->decision;
	const struct journal_line *last =
		&journal->lines[(journal->next + JOURNAL_KEPT - 1) % JOURNAL_KEPT];
	char text[2048];

	if (journal->last_ms && sample->ksmd_cpu_ns >= 0 && now_ms > journal->last_ms)
		journal->ksmd_cpu_ppm = (sample->ksmd_cpu_ns - journal->last_ksmd_cpu_ns) /
					(now_ms - journal->last_ms);
	else
		journal->ksmd_cpu_ppm = -1;
	journal->last_ksmd_cpu_ns = sample->ksmd_cpu_ns;
	journal->last_ms = now_ms;

	/* -1 is "not known", as in a sample. */
	bool written = decision->write && !governor->write_error;
	int len = snprintf(text, sizeof(text),
		"pid=%d\nupdated_unix_ms=%" PRId64 "\nphase=%s\nreason=%s\nsince_unix_ms=%" PRId64
		"\nsince_monotonic_ms=%" PRId64 "\nwriting=%d\nrun=%" PRId64
		"\npages_to_scan=%" PRId64 "\nsleep_millisecs=%" PRId64 "\nsmart_scan=%" PRId64
		"\nbudget_ppm=%" PRIu32 "\nksmd_cpu_ppm=%" PRId64 "\nksmd_cpu_ns=%" PRId64
		"\nns_per_page=%" PRId64 "\nsaved_bytes=%" PRId64 "\nfull_scans=%" PRId64
		"\nregistered_processes=%" PRId64 "\nregistered_bytes=%" PRId64 "\nconnector=%d\n",
		(int)getpid(), unix_ms(), policy_phase_name(decision->phase),
		policy_reason_text(decision->reason), last->unix_ms, last->monotonic_ms,
		decision->write, in_force(written, decision->run, sample->run),
		in_force(written, decision->pages_to_scan, sample->pages_to_scan),
		in_force(written, decision->sleep_ms, sample->sleep_ms),
		in_force(written, decision->smart_scan, sample->smart_scan), decision->budget_ppm,
		journal->ksmd_cpu_ppm, sample->ksmd_cpu_ns,
		governor->policy.rate.ns_per_page[decision->smart_scan != 0],
		policy_saved_pages(sample) * sysconf(_SC_PAGESIZE), sample->full_scans,
		sample->registered_processes,
		sample->registered_kib < 0 ? -1 : sample->registered_kib * 1024,
		governor->watch.connector.fd >= 0);
	journal->status_due_ms = now_ms + STATUS_EVERY_MS;
	return state_replace(governor->dir, JOURNAL_STATUS, text, (size_t)len);
}

static int write_decisions(const struct journal *journal, const struct state_dir *dir)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < journal->count; i++) {
		const struct journal_line *line =
			&journal->lines[(journal->next + JOURNAL_KEPT - journal->count + i) %
					JOURNAL_KEPT];
		fprintf(out,
			"%" PRId64 "\t%s\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%s\n",
			line->unix_ms, policy_phase_name(line->phase), line->budget_ppm,
			line->pages_to_scan, line->sleep_ms,
			line->saved_pages * sysconf(_SC_PAGESIZE),
			policy_reason_text(line->reason));
	}
	int err = fclose(out) ? -ENOMEM : state_replace(dir, JOURNAL_DECISIONS, text, size);
	free(text);
	return err;
}

int journal_note(struct journal *journal, const struct governor *governor, int64_t now_ms)
{
	const struct policy_decision *decision = &governor->decision;
	const struct journal_line *last =
		&journal->lines[(journal->next + JOURNAL_KEPT - 1) % JOURNAL_KEPT];
	bool fresh = !journal->count || last->phase != decision->phase ||
		     last->reason != decision->reason;
	int err = 0;
	if (fresh) {
		journal->lines[journal->next] = (struct journal_line){
			.unix_ms = unix_ms(),
			.monotonic_ms = now_ms,
			.phase = decision->phase,
			.reason = decision->reason,
			.budget_ppm = decision->budget_ppm,
			.pages_to_scan = decision->run == 1 ? decision->pages_to_scan : 0,
			.sleep_ms = decision->sleep_ms,
			.saved_pages = policy_saved_pages(&governor->sample),
		};
		journal->next = (journal->next + 1) % JOURNAL_KEPT;
		journal->count += journal->count < JOURNAL_KEPT;
		journal->unwritten = true;
	}
	if (journal->unwritten) {
		err = write_decisions(journal, governor->dir);
		journal->unwritten = err != 0;
	}
	if (fresh || now_ms >= journal->status_due_ms) {
		int status_err = write_status(journal, governor, now_ms);
		if (status_err) /* readers shall not wait longer than the fault lasts */
			journal->status_due_ms = now_ms;
		err = err ? err : status_err;
	}
	return err ? err : fresh;
}
