/* Rules of ksmctl doctor about the registered memory: what is in it, where it lies, and what it costs. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ksmctl/findings.h"

enum {
	SWAPPED_IN = 8,	     /* copies while we look: one may be anything */
	CHANGES_LOOKED = 16, /* a sample of fewer pages says nothing */
	ZEROS_LOOKED = 64,   /* a sample of fewer pages says nothing */
	ZEROS_KIB = 16 << 10,
};

/*
 * pages_volatile counts pages that changed since the last pass, and those that smart_scan passes
 * over: then only the sample tells, by what changed while we looked.
 */
static bool counts_skipped(const struct facts *f)
{
	return findings_value(f, KSM_SMART_SCAN, 0) == 1 &&
	       findings_value(f, KSM_PAGES_SKIPPED, 0) > 0;
}

static bool sample_changes(const struct facts *f)
{
	return f->sample.again >= CHANGES_LOOKED && f->sample.changed * 4 >= f->sample.again;
}

static bool changing(const struct facts *f, struct finding *out)
{
	int64_t changing_pages = findings_value(f, KSM_PAGES_VOLATILE, 0);
	int64_t seen = changing_pages + findings_value(f, KSM_PAGES_UNSHARED, 0) +
		       findings_value(f, KSM_PAGES_SHARING, 0) +
		       findings_value(f, KSM_PAGES_SHARED, 0);
	bool skipped = counts_skipped(f);
	if (!f->registered || findings_value(f, KSM_FULL_SCANS, 0) < FINDINGS_PASSES ||
		changing_pages < 1024 || changing_pages * 2 < seen ||
		(skipped && !sample_changes(f)))
		return false;
	TITLE("most registered pages change between two passes");
	if (skipped)
		SEEN("%" PRId64 " of %" PRId64 " pages of a sample changed within %" PRId64
		     " ms; pages_volatile is %" PRId64 " of %" PRId64,
			f->sample.changed, f->sample.again, f->interval_ms, changing_pages, seen);
	else
		SEEN("pages_volatile is %" PRId64 " of %" PRId64 " pages", changing_pages, seen);
	out->meaning = "A page must stay as it is for a whole pass before it merges.";
	REMEDY("register the memory that is written once; or faster passes: ksmctl start 2000 20");
	return true;
}

static bool nothing_equal(const struct facts *f, struct finding *out)
{
	int64_t unique = findings_value(f, KSM_PAGES_UNSHARED, 0);
	int64_t changed = findings_value(f, KSM_PAGES_VOLATILE, 0);
	if (counts_skipped(f)) {
		unique += changed;
		changed = sample_changes(f) || f->sample.again < CHANGES_LOOKED ? unique + 1 : 0;
	}
	if (findings_value(f, KSM_FULL_SCANS, 0) < FINDINGS_PASSES ||
		findings_saved_pages(f) != 0 || unique < 256 || changed > unique)
		return false;
	TITLE("nothing in the registered memory is equal");
	SEEN("after %" PRId64 " passes pages_sharing is 0; %" PRId64 " pages are alone",
		findings_value(f, KSM_FULL_SCANS, 0), unique);
	out->meaning = "Every page was compared with all others; whole pages of 4 KiB must be "
		       "equal to the byte.";
	REMEDY("ksmctl doctor PID... looks how near they are; ksmstat --estimate shows what else "
	       "is equal");
	return true;
}

static bool swap_breaks(const struct facts *f, struct finding *out)
{
	int64_t before = f->vmstat_before.ksm_swpin_copy, now = f->vmstat.ksm_swpin_copy;
	if (before < 0 || now < before + SWAPPED_IN || f->interval_ms <= 0)
		return false;
	TITLE("swap undoes merging");
	SEEN("in %" PRId64 " ms %" PRId64 " merged pages came back from swap as copies "
	     "(ksm_swpin_copy of /proc/vmstat)",
		f->interval_ms, now - before);
	out->meaning = "A merged page that is swapped out comes back as a private copy for each "
		       "process, and has to be merged anew.";
	REMEDY("let merging come before swap: run the service, or lower vm.swappiness");
	return true;
}

static bool swapped(const struct facts *f, struct finding *out)
{
	if (f->registered_swap_kib < FINDINGS_SMALL_KIB ||
		f->registered_swap_kib * 4 < f->registered_kib)
		return false;
	TITLE("much of the registered memory is swapped out");
	SEEN("%.0f MiB are swapped out and %.0f MiB resident; ksm_swpin_copy is %" PRId64,
		findings_mib(f->registered_swap_kib), findings_mib(f->registered_kib),
		f->vmstat.ksm_swpin_copy);
	out->meaning = "Only resident pages merge, and a merged page that comes back from swap is "
		       "a copy again.";
	REMEDY("let merging come before swap: run the service, or lower vm.swappiness");
	return true;
}

static bool huge_pages(const struct facts *f, struct finding *out)
{
	if (!findings_scanning(f) || f->max_ptes_shared <= 0 ||
		f->registered_huge_kib < FINDINGS_SMALL_KIB ||
		f->registered_huge_kib * 4 < f->registered_kib ||
		findings_value(f, KSM_FULL_SCANS, 0) < FINDINGS_PASSES)
		return false;
	TITLE("much of the registered memory lies in huge pages");
	SEEN("%.0f of %.0f MiB; khugepaged/max_ptes_shared is %" PRId64,
		findings_mib(f->registered_huge_kib), findings_mib(f->registered_kib),
		f->max_ptes_shared);
	out->meaning = "Huge pages are split only where part of one has a twin, and khugepaged "
		       "joins those again "
		       "of which less than half is merged.";
	REMEDY("start the program with KSMREG_NOHUGEPAGE=1, or set khugepaged/max_ptes_shared to "
	       "0");
	return true;
}

static bool profit_negative(const struct facts *f, struct finding *out)
{
	int64_t profit = findings_value(f, KSM_GENERAL_PROFIT, 0);
	if (findings_value(f, KSM_FULL_SCANS, 0) < FINDINGS_PASSES || profit >= 0 ||
		findings_saved_pages(f) <= 0 || profit > -(1 << 20))
		return false;
	TITLE("the kernel's bookkeeping takes more memory than merging saves");
	SEEN("%s/general_profit is %.1f MiB", KSM_DIR, (double)profit / (1 << 20));
	out->meaning = "Each registered page costs 64 bytes; here too few of them are equal.";
	REMEDY("ksmstat --sort -PROFIT shows which programs cost; opt those out: ksmctl disable "
	       "PID...");
	return true;
}

/* A page beyond max_page_sharing starts a copy of its own: chains of such copies are dups. */
static bool sharing_limited(const struct facts *f, struct finding *out)
{
	int64_t lost =
		findings_value(f, KSM_STABLE_DUPS, 0) - findings_value(f, KSM_STABLE_CHAINS, 0);
	int64_t saved = findings_saved_pages(f);
	if (saved <= 0 || lost < 256 || lost * 20 < saved)
		return false;
	TITLE("max_page_sharing makes copies");
	SEEN("stable_node_dups is %" PRId64 " in %" PRId64 " chains, max_page_sharing %" PRId64,
		findings_value(f, KSM_STABLE_DUPS, 0), findings_value(f, KSM_STABLE_CHAINS, 0),
		findings_value(f, KSM_MAX_PAGE_SHARING, -1));
	out->meaning = "One page may stand for so many; each further group of equal pages keeps "
		       "one of its own.";
	REMEDY("ksmctl set --unmerge-first max_page_sharing=1024");
	return true;
}

static bool nodes_apart(const struct facts *f, struct finding *out)
{
	if (f->nodes < 2 || findings_value(f, KSM_MERGE_ACROSS_NODES, 1) != 0)
		return false;
	TITLE("equal pages of different NUMA nodes are not merged");
	SEEN("merge_across_nodes is 0 on a machine with %" PRId64 " nodes", f->nodes);
	out->meaning = "Each node keeps a copy of its own, which is nearer, but is one more.";
	REMEDY("to save more: ksmctl set --unmerge-first merge_across_nodes=1");
	return true;
}

static bool zeros_apart(const struct facts *f, struct finding *out)
{
	const struct facts_sample *sample = &f->sample;
	if (findings_value(f, KSM_USE_ZERO_PAGES, 1) != 0 || sample->looked < ZEROS_LOOKED)
		return false;
	double part = (double)sample->zeros / (double)sample->looked;
	double kib = part * (double)f->registered_kib;
	if (part < 0.1 || kib < ZEROS_KIB)
		return false;
	TITLE("much of the registered memory is zeros");
	SEEN("%" PRId64 " of %" PRId64 " pages looked at, so about %.0f MiB; use_zero_pages is 0",
		sample->zeros, sample->looked, kib / 1024);
	out->meaning = "They merge as others do, each max_page_sharing of them keeping a page; the "
		       "kernel's zero page costs none.";
	REMEDY("ksmctl set use_zero_pages=1");
	return true;
}

/* Most likely cause first. */
const struct findings_rule findings_memory[] = {
	{ "pages-change", FINDING_LIMITS, changing },
	{ "nodes-apart", FINDING_LIMITS, nodes_apart },
	{ "nothing-equal", FINDING_STOPS, nothing_equal },
	{ "swap-breaks", FINDING_LIMITS, swap_breaks },
	{ "swapped-out", FINDING_LIMITS, swapped },
	{ "huge-pages", FINDING_LIMITS, huge_pages },
	{ "profit-negative", FINDING_LIMITS, profit_negative },
	{ "sharing-limited", FINDING_LIMITS, sharing_limited },
	{ "zeros-apart", FINDING_ADVICE, zeros_apart },
	{ NULL, FINDING_STOPS, NULL },
};
