/* Rules of ksmctl doctor about what is in the memory of one process, and what the scanner made of it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>

#include "ksmctl/findings.h"

static int percent(int64_t part, int64_t whole)
{
	return whole > 0 ? (int)((double)part * 100 / (double)whole) : 0;
}

/* The pages were looked at, and there are enough to speak of. */
static bool sampled(const struct findings_look *l)
{
	return !l->p->likeness_error && l->p->likeness.pages >= FINDINGS_ENOUGH_PAGES;
}

static bool by_fork(const struct findings_look *l, struct finding *out)
{
	if (l->p->forked_kib < FINDINGS_SMALL_OF_ONE_KIB ||
		l->p->forked_kib * 2 < l->p->registered_kib || findings_merges_well(l))
		return false;
	TITLE("most of the registered memory of %s is shared since a fork", l->p->comm);
	SEEN("%.0f of %.0f MiB are mapped by parent or child as well, and not merged",
		findings_mib(l->p->forked_kib), findings_mib(l->p->registered_kib));
	out->meaning = "A fork shares all pages until they are written to. That saves what merging "
		       "would, at no cost.";
	REMEDY("nothing, for these processes; merging pays where others have the same pages");
	return true;
}

/* Merged pages of which there is one mapping left: they cost as much as any other page. */
static bool twins_gone(const struct findings_look *l, struct finding *out)
{
	if (l->p->alone_pages < FINDINGS_ENOUGH_PAGES || l->p->alone_pages * 2 < l->p->merged_pages)
		return false;
	TITLE("%s has merged pages, and nobody has them with it any more", l->p->comm);
	SEEN("%" PRId64 " of %" PRId64 " merged pages are mapped once", l->p->alone_pages,
		l->p->merged_pages);
	out->meaning = "The others have ended, or wrote to theirs. ksm_merging_pages counts these "
		       "pages, and nothing is saved by them.";
	REMEDY("nothing is lost; SAVED of ksmstat tells what is really saved");
	return true;
}

static bool itself_only(const struct findings_look *l, struct finding *out)
{
	if (l->p->self_pages < FINDINGS_ENOUGH_PAGES || twins_gone(l, out) ||
		l->p->self_pages * 10 < l->p->merged_pages * 9 || findings_merges_well(l))
		return false;
	TITLE("%s merged with itself only", l->p->comm);
	SEEN("of %" PRId64 " merged pages %" PRId64 " are mapped by no other process",
		l->p->merged_pages, l->p->self_pages);
	out->meaning = "It holds some content several times; with others it has nothing in common "
		       "that was found.";
	if (l->p->twin)
		REMEDY("the other findings tell what keeps it apart from process %d",
			(int)l->p->twin);
	else
		REMEDY("ksmctl doctor %d OTHER_PID compares it with another", (int)l->p->pid);
	return true;
}

static bool keeps_changing(const struct findings_look *l, struct finding *out)
{
	if (!sampled(l) || findings_merges_well(l) ||
		l->p->likeness.changing * 2 < l->p->likeness.pages)
		return false;
	TITLE("the registered memory of %s keeps changing", l->p->comm);
	SEEN("%d %% of its pages changed within half a second",
		percent(l->p->likeness.changing, l->p->likeness.pages + l->p->likeness.zero));
	out->meaning = "A page must stay as it is for a whole pass before it merges.";
	REMEDY("register the memory that is written once and then read");
	return true;
}

static bool not_scanned(const struct findings_look *l, struct finding *out)
{
	int64_t seconds = findings_pass_s(l->machine);
	int64_t registered = l->p->registered_kib * 1024 / l->machine->page_bytes;
	if (registered < FINDINGS_ENOUGH_PAGES || l->p->scanned_pages < 0 ||
		l->p->scanned_pages * 4 > registered)
		return false;
	TITLE("the scanner has not come to %s yet", l->p->comm);
	SEEN("it knows %" PRId64 " of %" PRId64 " registered pages", l->p->scanned_pages,
		registered);
	out->meaning = "A page merges in the second pass that sees it.";
	if (!l->machine->ksm_error && l->machine->now.value[KSM_RUN] != KSM_RUN_MERGE &&
		!*l->machine->service_phase)
		REMEDY("start the scanner first: ksmctl start");
	else if (seconds >= 0 && seconds < 100000)
		REMEDY("wait; three passes take about %" PRId64 " s at the present rate",
			3 * seconds + 1);
	else
		REMEDY("ksmctl doctor tells about the scanner; ksmctl boost asks the service to "
		       "hurry");
	return true;
}

static bool mostly_zero(const struct findings_look *l, struct finding *out)
{
	const struct likeness *like = &l->p->likeness;
	bool zero_pages_off = ksm_has(&l->machine->now, KSM_USE_ZERO_PAGES) &&
			      l->machine->now.value[KSM_USE_ZERO_PAGES] == 0;
	if (l->machine->ksm_error || l->p->likeness_error || !zero_pages_off ||
		like->zero < 4 * FINDINGS_ENOUGH_PAGES || like->zero < like->pages)
		return false;
	TITLE("most pages of %s are filled with zeros", l->p->comm);
	SEEN("%" PRId64 " of %" PRId64 " pages looked at; use_zero_pages is 0", like->zero,
		like->zero + like->pages);
	out->meaning = "They merge as others do, each max_page_sharing of them keeping a page; the "
		       "kernel's zero "
		       "page costs none.";
	REMEDY("ksmctl set use_zero_pages=1");
	return true;
}

static bool no_twin(const struct findings_look *l, struct finding *out)
{
	if (!sampled(l) || findings_merges_well(l) || l->p->twin)
		return false;
	TITLE("no other process of the name %s has registered memory", l->p->comm);
	SEEN("of %" PRId64 " processes", l->machine->processes);
	out->meaning = "Equal pages are mostly in processes of the same program.";
	REMEDY("ksmctl doctor %d OTHER_PID compares it with another", (int)l->p->pid);
	return true;
}

static bool will_merge(const struct findings_look *l, struct finding *out)
{
	const struct likeness *like = &l->p->likeness;
	if (!sampled(l) || !l->p->twin || findings_merges_well(l) || like->equal * 2 < like->pages)
		return false;
	TITLE("the pages of %s are equal to others, and not merged yet", l->p->comm);
	SEEN("%d %% of its pages have an equal in process %d", percent(like->equal, like->pages),
		(int)l->p->twin);
	out->meaning = "They will merge once the scanner has seen both twice.";
	REMEDY("see to the scanner: ksmctl doctor, ksmctl status");
	return true;
}

static bool differs_little(const struct findings_look *l, struct finding *out)
{
	const struct likeness *like = &l->p->likeness;
	if (!sampled(l) || !l->p->twin || findings_merges_well(l) || like->near * 4 < like->pages)
		return false;
	bool addresses = like->near_address_words * 2 > like->near_words;
	TITLE("pages of %s differ from others in a few words only", l->p->comm);
	SEEN("%d %% of its pages; from those of process %d by %" PRId64
	     " of 512 words on average%s",
		percent(like->near, like->pages), (int)l->p->twin, like->near_words / like->near,
		addresses ? ", mostly addresses" : "");
	out->meaning =
		addresses
			? "Pointers differ in each process, as the kernel puts memory at random "
			  "addresses."
			: "Counters, times or numbers of the process lie among data that is equal.";
	if (addresses)
		REMEDY("keep pointers away from bulk data, or try: setarch -R COMMAND (same "
		       "addresses)");
	else
		REMEDY("keep what differs per process on pages of its own");
	return true;
}

static bool shifted(const struct findings_look *l, struct finding *out)
{
	const struct likeness *like = &l->p->likeness;
	if (!sampled(l) || !l->p->twin || findings_merges_well(l) ||
		like->shifted * 4 < like->pages)
		return false;
	TITLE("%s has the same content as others, at other places in its pages", l->p->comm);
	SEEN("%d %% of its pages hold stretches that process %d has, shifted by less than a page",
		percent(like->shifted, like->pages), (int)l->p->twin);
	out->meaning = "Whole pages must be equal. Allocators that vary where a block starts, and "
		       "blocks got in "
		       "another order, shift content.";
	REMEDY("align large blocks to pages (aligned_alloc 4096); allocate in the same order");
	return true;
}

static bool nothing_alike(const struct findings_look *l, struct finding *out)
{
	const struct likeness *like = &l->p->likeness;
	if (!sampled(l) || !l->p->twin || findings_merges_well(l) ||
		(like->equal + like->near + like->shifted) * 4 >= like->pages)
		return false;
	TITLE("%s has little in common with process %d", l->p->comm, (int)l->p->twin);
	SEEN("of %" PRId64 " pages %d %% are equal, %d %% nearly so, %d %% shifted", like->pages,
		percent(like->equal, like->pages), percent(like->near, like->pages),
		percent(like->shifted, like->pages));
	out->meaning = "There is nothing to merge between these two.";
	REMEDY("ksmstat --estimate shows which processes have equal pages");
	return true;
}

/* Most likely cause first. */
const struct findings_process_rule findings_content[] = {
	{ "shared-by-fork", FINDING_STOPS, by_fork },
	{ "keeps-changing", FINDING_STOPS, keeps_changing },
	{ "not-scanned-yet", FINDING_STOPS, not_scanned },
	{ "zero-pages", FINDING_LIMITS, mostly_zero },
	{ "twins-gone", FINDING_LIMITS, twins_gone },
	{ "itself-only", FINDING_LIMITS, itself_only },
	{ "no-twin", FINDING_LIMITS, no_twin },
	{ "not-merged-yet", FINDING_LIMITS, will_merge },
	{ "few-words-differ", FINDING_STOPS, differs_little },
	{ "shifted", FINDING_STOPS, shifted },
	{ "nothing-alike", FINDING_STOPS, nothing_alike },
	{ NULL, FINDING_STOPS, NULL },
};
