/* What the rules of ksmctl doctor about the machine share, and all of them in their order. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/findings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	NS_PER_PAGE = 2000, /* ksmd's usual cost, where it is not measured */
	WAKE_MS = 400,	    /* ksmd that sleeps shorter has worked between two looks */
};

static int64_t sane(int64_t number)
{
	return number > FINDINGS_MOST	 ? FINDINGS_MOST
	       : number < -FINDINGS_MOST ? -FINDINGS_MOST
					 : number;
}

int64_t findings_value(const struct facts *f, enum ksm_key key, int64_t unknown)
{
	return !f->ksm_error && ksm_has(&f->now, key) ? sane(f->now.value[key]) : sane(unknown);
}

bool findings_known(const struct facts *f, enum ksm_key key)
{
	return !f->ksm_error && ksm_has(&f->now, key);
}

int64_t findings_gained(const struct facts *f, enum ksm_key key)
{
	if (!f->interval_ms || !findings_known(f, key) || !ksm_has(&f->before, key))
		return -1;
	return sane(f->now.value[key]) - sane(f->before.value[key]);
}

bool findings_service_at_work(const struct facts *f)
{
	return *f->service_phase && strcmp(f->service_phase, "hold") != 0;
}

bool findings_scanning(const struct facts *f)
{
	return findings_value(f, KSM_RUN, 0) == KSM_RUN_MERGE;
}

int64_t findings_saved_pages(const struct facts *f)
{
	return findings_known(f, KSM_PAGES_SHARING) ? findings_value(f, KSM_PAGES_SHARING, 0) +
							      findings_value(f, KSM_ZERO_PAGES, 0)
						    : -1;
}

int64_t findings_rate(const struct facts *f)
{
	int64_t pages = findings_value(f, KSM_PAGES_TO_SCAN, -1);
	int64_t sleep = findings_value(f, KSM_SLEEP_MILLISECS, -1);
	int64_t seen = findings_gained(f, KSM_PAGES_SCANNED);
	if (pages < 0 || sleep < 0)
		return -1;
	/* a batch that is seen only now and then says less than the settings */
	if (seen > 0 && sleep < WAKE_MS / 4)
		return seen * 1000 / f->interval_ms;
	double batch_ms = (double)pages * NS_PER_PAGE / 1e6;
	return (int64_t)((double)pages * 1000 / (batch_ms + (double)sleep + 0.001));
}

int64_t findings_pass_s(const struct facts *f)
{
	int64_t pages_per_s = findings_rate(f);
	if (pages_per_s < 0 || f->registered_kib <= 0)
		return -1;
	int64_t pages = f->registered_kib * 1024 / f->page_bytes;
	return pages_per_s ? pages / pages_per_s : FINDINGS_MOST;
}

const char *findings_duration(int64_t s, char *buf, size_t size)
{
	if (s < 120)
		snprintf(buf, size, "%" PRId64 " s", s);
	else if (s < 2 * 3600)
		snprintf(buf, size, "%" PRId64 " minutes", s / 60);
	else if (s < 48 * 3600)
		snprintf(buf, size, "%" PRId64 " hours", s / 3600);
	else
		snprintf(buf, size, "%" PRId64 " days", s / 86400);
	return buf;
}

double findings_mib(int64_t kib)
{
	return (double)kib / 1024;
}

/* Most likely cause first. */
static const struct findings_rule *const tables[] = { findings_scanner, findings_memory,
	findings_host, NULL };

static const struct findings_rule *rule_at(size_t i)
{
	for (const struct findings_rule *const *table = tables; *table; table++) {
		for (const struct findings_rule *rule = *table; rule->id; rule++) {
			if (i-- == 0)
				return rule;
		}
	}
	return NULL;
}

const char *findings_id(size_t i)
{
	const struct findings_rule *rule = rule_at(i);
	return rule ? rule->id : NULL;
}

size_t findings_of_machine(const struct facts *facts, struct finding *findings, size_t room)
{
	const struct findings_rule *rule;
	struct facts f = *facts;
	size_t count = 0;
	f.registered_kib = sane(f.registered_kib);
	f.registered_swap_kib = sane(f.registered_swap_kib);
	f.registered_huge_kib = sane(f.registered_huge_kib);
	for (size_t i = 0; count < room && (rule = rule_at(i)); i++) {
		findings[count] = (struct finding){ .id = rule->id, .severity = rule->severity };
		if (rule->applies(&f, &findings[count]))
			count++;
	}
	return count;
}
