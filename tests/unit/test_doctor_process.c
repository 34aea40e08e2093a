/* The rules of ksmctl doctor about one process: each speaks first in its situation, and is silent elsewhere. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ksmctl/doctor.h"
#include "tests/tap.h"

/* A machine of which only what these rules ask for is set: the scanner runs, zeros stay pages. */
static struct facts machine(void)
{
	struct facts f = { .page_bytes = 4096, .processes = 100, .registered_kib = 128 << 10 };

	for (int key = 0; key < KSM_KEYS; key++)
		f.now.error[key] = 0;
	f.now.value[KSM_RUN] = 1;
	f.now.value[KSM_PAGES_TO_SCAN] = 1000;
	f.now.value[KSM_SLEEP_MILLISECS] = 20;
	return f;
}

/* 64 MiB of 80 are registered, most of it is merged with a twin. */
static struct process_facts healthy(void)
{
	return (struct process_facts){
		.pid = 1234,
		.comm = "job",
		.has_vmflags = true,
		.anonymous_kib = 80 << 10,
		.registered_kib = 64 << 10,
		.scanned_pages = 16384,
		.merged_pages = 14000,
		.self_pages = 100,
		.pinned_kib = 0,
		.areas = 200,
		.areas_max = 65530,
		.twin = 1235,
		.likeness = { .pages = 16000, .zero = 100, .equal = 14000 },
	};
}

/* The same before anything is merged: then content matters. */
static struct process_facts unmerged(void)
{
	struct process_facts p = healthy();

	p.merged_pages = p.self_pages = 0;
	p.likeness.equal = 1000;
	p.likeness.near = p.likeness.shifted = 1000;
	return p;
}

#define SITUATION(name) static void name(struct process_facts *p)

SITUATION(gone)
{
	p->error = -ESRCH;
}
SITUATION(denied)
{
	p->error = -EACCES;
}
SITUATION(thread)
{
	*p = (struct process_facts){ .pid = 2, .comm = "kthreadd", .kernel_thread = true };
	p->likeness_error = -ENODATA;
}
/* Nothing of it is offered, and there is little else. */
SITUATION(bare)
{
	*p = (struct process_facts){ .pid = 7, .comm = "bare", .has_vmflags = true };
	p->anonymous_kib = 500;
	p->self_pages = p->alone_pages = p->scanned_pages = p->merged_pages = -1;
	p->likeness_error = -ENODATA;
}
SITUATION(secret)
{
	bare(p);
	p->secret_kib = 16 << 10;
}
SITUATION(mapped_shared)
{
	bare(p);
	p->shared_kib = 16 << 10;
}
SITUATION(device)
{
	bare(p);
	p->device_kib = 16 << 10;
}
SITUATION(hugetlb)
{
	bare(p);
	p->hugetlb_kib = 16 << 10;
}
SITUATION(lost)
{
	bare(p);
	p->parent_opted = true;
}
SITUATION(nothing)
{
	bare(p);
	p->anonymous_kib = 16 << 10;
}
SITUATION(pinned)
{
	*p = unmerged();
	p->pinned_kib = 60 << 10;
}
SITUATION(forked)
{
	*p = unmerged();
	p->forked_kib = 60 << 10;
}
SITUATION(changing)
{
	*p = unmerged();
	p->likeness.changing = 12000;
}
SITUATION(new)
{
	*p = unmerged();
	p->scanned_pages = 10;
}
SITUATION(zeros)
{
	*p = unmerged();
	p->likeness.zero = 16000, p->likeness.pages = 100;
}
SITUATION(left_alone)
{
	p->alone_pages = p->self_pages = 13000;
}
SITUATION(with_itself)
{
	*p = unmerged();
	p->merged_pages = p->self_pages = 500;
}
SITUATION(single)
{
	*p = unmerged();
	p->twin = 0;
}
SITUATION(not_yet)
{
	*p = unmerged();
	p->likeness.equal = 15000;
}
SITUATION(near)
{
	*p = unmerged();
	p->likeness.near = 12000, p->likeness.near_words = 50000;
}
SITUATION(shifted)
{
	*p = unmerged();
	p->likeness.shifted = 12000;
}
SITUATION(unlike)
{
	*p = unmerged();
}
SITUATION(part)
{
	p->anonymous_kib = 400 << 10;
}
SITUATION(crowded)
{
	p->areas = 64000;
}
SITUATION(locked)
{
	p->locked_kib = 64 << 10;
}

/* And where they must hold their peace. */
SITUATION(well)
{
	(void)p;
}
SITUATION(small)
{
	bare(p);
}
SITUATION(little_secret)
{
	p->secret_kib = 16 << 10;
}
SITUATION(some_device)
{
	p->device_kib = 256 << 10; /* as a graphics driver maps, beside memory that merges */
}
SITUATION(pinned_yet_merges)
{
	p->pinned_kib = 60 << 10;
}
SITUATION(pinned_unknown)
{
	p->pinned_kib = -1;
}
SITUATION(forked_yet_merges)
{
	p->forked_kib = 40 << 10;
}
SITUATION(frames_unseen)
{
	p->self_pages = p->alone_pages = -1;
}
SITUATION(few_alone)
{
	p->alone_pages = 2000;
}
SITUATION(itself_mostly_and_well)
{
	p->self_pages = 13900;
}
SITUATION(many_allowed)
{
	p->areas = 64000, p->areas_max = 1 << 20;
}
SITUATION(areas_unknown)
{
	p->areas = 64000, p->areas_max = -1;
}
SITUATION(zeros_unread)
{
	p->likeness_error = -EACCES;
	p->likeness = (struct likeness){ 0 };
}

static const struct {
	void (*make)(struct process_facts *p);
	const char *first; /* finding, NULL for none */
	int severity;
} situations[] = {
	{ gone, "process-gone", FINDING_STOPS },
	{ denied, "process-unreadable", FINDING_STOPS },
	{ thread, "kernel-thread", FINDING_STOPS },
	{ secret, "secret-memory", FINDING_STOPS },
	{ mapped_shared, "mapped-shared", FINDING_STOPS },
	{ device, "device-memory", FINDING_STOPS },
	{ hugetlb, "hugetlb", FINDING_STOPS },
	{ lost, "flag-lost", FINDING_STOPS },
	{ nothing, "not-registered", FINDING_STOPS },
	{ pinned, "pinned", FINDING_STOPS },
	{ forked, "shared-by-fork", FINDING_STOPS },
	{ changing, "keeps-changing", FINDING_STOPS },
	{ new, "not-scanned-yet", FINDING_STOPS },
	{ zeros, "zero-pages", FINDING_LIMITS },
	{ left_alone, "twins-gone", FINDING_LIMITS },
	{ with_itself, "itself-only", FINDING_LIMITS },
	{ single, "no-twin", FINDING_LIMITS },
	{ not_yet, "not-merged-yet", FINDING_LIMITS },
	{ near, "few-words-differ", FINDING_STOPS },
	{ shifted, "shifted", FINDING_STOPS },
	{ unlike, "nothing-alike", FINDING_STOPS },
	{ part, "part-registered", FINDING_LIMITS },
	{ crowded, "many-areas", FINDING_RISK },
	{ locked, "locked-too", FINDING_ADVICE },
	{ well, NULL, 0 },
	{ small, NULL, 0 },
	{ little_secret, NULL, 0 },
	{ some_device, NULL, 0 },
	{ pinned_yet_merges, NULL, 0 },
	{ pinned_unknown, NULL, 0 },
	{ forked_yet_merges, NULL, 0 },
	{ frames_unseen, NULL, 0 },
	{ few_alone, NULL, 0 },
	{ itself_mostly_and_well, NULL, 0 },
	{ many_allowed, NULL, 0 },
	{ areas_unknown, NULL, 0 },
	{ zeros_unread, NULL, 0 },
};
#define SITUATIONS (sizeof(situations) / sizeof(*situations))

START_TEST(speaks)
{
	struct process_facts p = healthy();
	struct facts f = machine();
	struct finding findings[32];

	situations[_i].make(&p);
	size_t count = findings_of_process(&f, &p, findings, 32);
	if (!situations[_i].first) {
		ck_assert_msg(count == 0, "situation %d: %s", _i, count ? findings[0].id : "");
		return;
	}
	ck_assert_msg(count > 0, "situation %d: silent", _i);
	ck_assert_str_eq(findings[0].id, situations[_i].first);
	ck_assert_int_eq(findings[0].severity, situations[_i].severity);
	for (size_t i = 0; i < count; i++) {
		/* whole sentences that were not cut */
		ck_assert_uint_gt(strlen(findings[i].title), 10);
		ck_assert_uint_lt(strlen(findings[i].title), sizeof(findings[i].title) - 1);
		ck_assert_uint_gt(strlen(findings[i].evidence), 0);
		ck_assert_uint_lt(strlen(findings[i].evidence), sizeof(findings[i].evidence) - 1);
		ck_assert_ptr_nonnull(findings[i].meaning);
		ck_assert_uint_gt(strlen(findings[i].remedy), 0);
		ck_assert_uint_lt(strlen(findings[i].remedy), sizeof(findings[i].remedy) - 1);
	}
}
END_TEST

START_TEST(every_rule_has_its_situation)
{
	const char *id;

	for (size_t i = 0; (id = findings_process_id(i)); i++) {
		bool found = false;
		for (size_t k = 0; k < SITUATIONS; k++)
			found |= situations[k].first && !strcmp(situations[k].first, id);
		ck_assert_msg(found, "%s has no test", id);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("doctor_process");
	TCase *t = tcase_create("doctor_process");

	tcase_add_loop_test(t, speaks, 0, SITUATIONS);
	tcase_add_test(t, every_rule_has_its_situation);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(suite());
}
