/* The rules of ksmctl doctor about the machine: each looks at the facts and says one thing, or nothing. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ksmctl/doctor.h"

enum {
	SLOW_PASS_S = 600,   /* a pass that takes longer is told */
	NS_PER_PAGE = 2000,  /* ksmd's usual cost, where it is not measured */
	ENOUGH_PASSES = 3,   /* a page merges in the second pass that sees it */
	WAKE_MS = 400,	     /* ksmd that sleeps shorter has worked between two looks */
	SMALL_KIB = 4 << 10, /* less registered memory is not worth a word */
};

#define TITLE(...) FINDING_SET(out->title, __VA_ARGS__)
#define SEEN(...) FINDING_SET(out->evidence, __VA_ARGS__)
#define REMEDY(...) FINDING_SET(out->remedy, __VA_ARGS__)
#define KSM_DIR "/sys/kernel/mm/ksm"

/* No machine has so much of anything, and a thousand times this still fits. */
#define MOST (INT64_C(1) << 50)

static int64_t sane(int64_t number)
{
	return number > MOST ? MOST : number < -MOST ? -MOST : number;
}

/* The value of a key, or `unknown`. */
static int64_t value(const struct facts *f, enum ksm_key key, int64_t unknown)
{
	return !f->ksm_error && ksm_has(&f->now, key) ? sane(f->now.value[key]) : sane(unknown);
}

static bool known(const struct facts *f, enum ksm_key key)
{
	return !f->ksm_error && ksm_has(&f->now, key);
}

/* What a counter gained between the two looks; -1 where that is not known. */
static int64_t gained(const struct facts *f, enum ksm_key key)
{
	if (!f->interval_ms || !known(f, key) || !ksm_has(&f->before, key))
		return -1;
	return sane(f->now.value[key]) - sane(f->before.value[key]);
}

/* Our own service parks the scanner between passes and sets the rate: then these knobs tell nothing. */
static bool service_at_work(const struct facts *f)
{
	return *f->service_phase && strcmp(f->service_phase, "hold") != 0;
}

static bool scanning(const struct facts *f)
{
	return value(f, KSM_RUN, 0) == KSM_RUN_MERGE;
}

static int64_t saved_pages(const struct facts *f)
{
	return known(f, KSM_PAGES_SHARING)
		       ? value(f, KSM_PAGES_SHARING, 0) + value(f, KSM_ZERO_PAGES, 0)
		       : -1;
}

/* Pages per second that the scanner gets through, by its settings or as seen; -1 not known. */
static int64_t rate(const struct facts *f)
{
	int64_t pages = value(f, KSM_PAGES_TO_SCAN, -1);
	int64_t sleep = value(f, KSM_SLEEP_MILLISECS, -1);
	int64_t seen = gained(f, KSM_PAGES_SCANNED);
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
	int64_t pages_per_s = rate(f);
	if (pages_per_s < 0 || f->registered_kib <= 0)
		return -1;
	int64_t pages = f->registered_kib * 1024 / f->page_bytes;
	return pages_per_s ? pages / pages_per_s : MOST;
}

static const char *duration(int64_t s, char *buf, size_t size)
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

static double mib_of_kib(int64_t kib)
{
	return (double)kib / 1024;
}

static bool no_ksm(const struct facts *f, struct finding *out)
{
	if (f->ksm_error != -ENOENT || !f->sys_mounted)
		return false;
	TITLE("this kernel cannot merge pages");
	SEEN("%s does not exist", KSM_DIR);
	out->meaning =
		"The kernel was built without CONFIG_KSM, or a sandbox shows a /sys of its own.";
	REMEDY("boot a kernel with CONFIG_KSM=y, as Debian's are; in a container look on the host");
	return true;
}

static bool no_sys(const struct facts *f, struct finding *out)
{
	if (!f->ksm_error || (f->ksm_error == -ENOENT && f->sys_mounted))
		return false;
	TITLE("the kernel's settings cannot be seen from here");
	SEEN("%s: %s", KSM_DIR, strerror(-f->ksm_error));
	out->meaning = "Without /sys nothing can be said about the scanner. It may be at work all "
		       "the same.";
	REMEDY("%s", f->sys_mounted ? "run ksmctl doctor as root"
				    : "mount -t sysfs sysfs /sys, or ask on the host");
	return true;
}

static bool run_off(const struct facts *f, struct finding *out)
{
	int64_t run = value(f, KSM_RUN, KSM_RUN_MERGE);
	if (run == KSM_RUN_MERGE || run & KSM_RUN_OFFLINE || service_at_work(f))
		return false;
	TITLE(run == KSM_RUN_UNMERGE ? "everything was unmerged, and merging is off"
				     : "merging is switched off");
	SEEN("%s/run is %" PRId64, KSM_DIR, run);
	out->meaning =
		"The scanner does not run, so nothing new merges, whatever programs register.";
	if (f->write_error)
		REMEDY("on the host, as root: ksmctl start, or systemctl enable --now ksmctl");
	else
		REMEDY("ksmctl start, or for good: systemctl enable --now ksmctl");
	return true;
}

static bool offline(const struct facts *f, struct finding *out)
{
	int64_t run = value(f, KSM_RUN, KSM_RUN_MERGE);
	if (!(run & KSM_RUN_OFFLINE))
		return false;
	TITLE("memory is going offline");
	SEEN("%s/run is %" PRId64, KSM_DIR, run);
	out->meaning =
		"The scanner waits while the kernel takes memory away; it goes on by itself.";
	REMEDY("wait for the removal of memory to end");
	return true;
}

static bool nothing_per_batch(const struct facts *f, struct finding *out)
{
	if (!scanning(f) || value(f, KSM_PAGES_TO_SCAN, 1) != 0 || service_at_work(f))
		return false;
	TITLE("the scanner is on, with nothing to do per batch");
	SEEN("%s/pages_to_scan is 0", KSM_DIR);
	out->meaning = "Each batch of the scanner looks at no page at all.";
	REMEDY("ksmctl set pages_to_scan=1000");
	return true;
}

static bool nothing_registered(const struct facts *f, struct finding *out)
{
	/* where many cannot be asked, one of them may well have */
	if (f->registered || f->processes <= 1 || (f->unseen > 1 && f->unseen > f->processes / 10))
		return false;
	TITLE("no program has registered memory");
	if (f->unseen)
		SEEN("none of %" PRId64 " processes; %" PRId64 " more could not be asked",
			f->processes - f->unseen, f->unseen);
	else
		SEEN("none of %" PRId64 " processes", f->processes);
	out->meaning = "The kernel merges only memory that a program offered by madvise or prctl.";
	REMEDY("start programs by: ksmctl run COMMAND...; for running ones: ksmctl enable PID...");
	return true;
}

static bool asleep(const struct facts *f, struct finding *out)
{
	int64_t sleep = value(f, KSM_SLEEP_MILLISECS, INT64_MAX);
	if (!scanning(f) || f->registered <= 0 || !value(f, KSM_PAGES_TO_SCAN, 0) ||
		sleep * 2 > f->interval_ms || gained(f, KSM_PAGES_SCANNED) != 0 ||
		gained(f, KSM_FULL_SCANS) > 0 || f->ksmd_cpu_ns != 0)
		return false;
	TITLE("ksmd sleeps although it is switched on");
	SEEN("run is 1 and memory is registered, but in %" PRId64
	     " ms ksmd looked at no page and used no CPU time",
		f->interval_ms);
	out->meaning =
		"A race in the kernel can leave it asleep; writing the setting again wakes it.";
	REMEDY("ksmctl start");
	return true;
}

static bool sleeps_long(const struct facts *f, struct finding *out)
{
	int64_t sleep = value(f, KSM_SLEEP_MILLISECS, 0);
	char buf[32];
	if (!scanning(f) || service_at_work(f) || sleep < 10000)
		return false;
	TITLE("the scanner sleeps very long between batches");
	SEEN("%s/sleep_millisecs is %" PRId64 ", that is %s", KSM_DIR, sleep,
		duration(sleep / 1000, buf, sizeof(buf)));
	out->meaning = "Few pages are looked at in a day.";
	REMEDY("ksmctl set sleep_millisecs=20");
	return true;
}

static bool advisor_stuck(const struct facts *f, struct finding *out)
{
	int64_t pages = value(f, KSM_PAGES_TO_SCAN, INT64_MAX);
	char buf[32];
	if (!scanning(f) || value(f, KSM_ADVISOR_MODE, KSM_ADVISOR_NONE) == KSM_ADVISOR_NONE ||
		pages > 1000 || findings_pass_s(f) < SLOW_PASS_S / 4)
		return false;
	TITLE("the kernel's advisor scans at a tiny rate");
	SEEN("advisor_mode is on and pages_to_scan is %" PRId64 "; a pass takes about %s", pages,
		duration(findings_pass_s(f), buf, sizeof(buf)));
	out->meaning = "The advisor sets the rate once per pass, from the pass before, and can get "
		       "stuck low.";
	REMEDY("ksmctl set advisor_mode=none pages_to_scan=1000, or run the service");
	return true;
}

static bool slow_pass(const struct facts *f, struct finding *out)
{
	int64_t seconds = findings_pass_s(f);
	char buf[32];
	if (!scanning(f) || service_at_work(f) || seconds < SLOW_PASS_S)
		return false;
	TITLE("a pass over the registered memory takes %s",
		seconds == MOST ? "for ever" : duration(seconds, buf, sizeof(buf)));
	SEEN("%.0f MiB are registered, and the scanner gets through %" PRId64 " pages/s",
		mib_of_kib(f->registered_kib), rate(f));
	out->meaning =
		"A page merges in the second pass that sees it, with smart_scan up to the ninth.";
	REMEDY("ksmctl start 2000 20, or run the service, which is fast only while that pays");
	return true;
}

static bool too_early(const struct facts *f, struct finding *out)
{
	int64_t passes = value(f, KSM_FULL_SCANS, INT64_MAX), seconds = findings_pass_s(f);
	char buf[32] = "a while";
	if (!scanning(f) || passes >= ENOUGH_PASSES || f->registered_kib < SMALL_KIB ||
		saved_pages(f) > 0)
		return false;
	TITLE("the scanner has only just begun");
	SEEN("%s/full_scans is %" PRId64, KSM_DIR, passes);
	out->meaning = "A page merges in the second pass that sees it.";
	if (seconds > 0 && seconds < MOST)
		duration((ENOUGH_PASSES - passes) * seconds + 1, buf, sizeof(buf));
	REMEDY("wait %s and ask again", seconds == 0 ? "some seconds" : buf);
	return true;
}

static bool changing(const struct facts *f, struct finding *out)
{
	int64_t changing_pages = value(f, KSM_PAGES_VOLATILE, 0);
	int64_t seen = changing_pages + value(f, KSM_PAGES_UNSHARED, 0) +
		       value(f, KSM_PAGES_SHARING, 0) + value(f, KSM_PAGES_SHARED, 0);
	if (!f->registered || value(f, KSM_FULL_SCANS, 0) < ENOUGH_PASSES ||
		changing_pages < 1024 || changing_pages * 2 < seen)
		return false;
	TITLE("most registered pages change between two passes");
	SEEN("pages_volatile is %" PRId64 " of %" PRId64 " pages", changing_pages, seen);
	out->meaning = "A page must stay as it is for a whole pass before it merges.";
	REMEDY("register the memory that is written once; or faster passes: ksmctl start 2000 20");
	return true;
}

static bool nothing_equal(const struct facts *f, struct finding *out)
{
	int64_t unique = value(f, KSM_PAGES_UNSHARED, 0);
	if (value(f, KSM_FULL_SCANS, 0) < ENOUGH_PASSES || saved_pages(f) != 0 || unique < 256 ||
		value(f, KSM_PAGES_VOLATILE, 0) > unique)
		return false;
	TITLE("nothing in the registered memory is equal");
	SEEN("after %" PRId64 " passes pages_sharing is 0 and pages_unshared %" PRId64,
		value(f, KSM_FULL_SCANS, 0), unique);
	out->meaning = "Every page was compared with all others; whole pages of 4 KiB must be "
		       "equal to the byte.";
	REMEDY("ksmctl doctor PID... looks how near they are; ksmstat --estimate shows what else "
	       "is equal");
	return true;
}

static bool profit_negative(const struct facts *f, struct finding *out)
{
	int64_t profit = value(f, KSM_GENERAL_PROFIT, 0);
	if (value(f, KSM_FULL_SCANS, 0) < ENOUGH_PASSES || profit >= 0 || saved_pages(f) <= 0 ||
		profit > -(1 << 20))
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
	int64_t lost = value(f, KSM_STABLE_DUPS, 0) - value(f, KSM_STABLE_CHAINS, 0);
	int64_t saved = saved_pages(f);
	if (saved <= 0 || lost < 256 || lost * 20 < saved)
		return false;
	TITLE("max_page_sharing makes copies");
	SEEN("stable_node_dups is %" PRId64 " in %" PRId64 " chains, max_page_sharing %" PRId64,
		value(f, KSM_STABLE_DUPS, 0), value(f, KSM_STABLE_CHAINS, 0),
		value(f, KSM_MAX_PAGE_SHARING, -1));
	out->meaning = "One page may stand for so many; each further group of equal pages keeps "
		       "one of its own.";
	REMEDY("ksmctl set --unmerge-first max_page_sharing=1024");
	return true;
}

static bool nodes_apart(const struct facts *f, struct finding *out)
{
	if (f->nodes < 2 || value(f, KSM_MERGE_ACROSS_NODES, 1) != 0)
		return false;
	TITLE("equal pages of different NUMA nodes are not merged");
	SEEN("merge_across_nodes is 0 on a machine with %" PRId64 " nodes", f->nodes);
	out->meaning = "Each node keeps a copy of its own, which is nearer, but is one more.";
	REMEDY("to save more: ksmctl set --unmerge-first merge_across_nodes=1");
	return true;
}

static bool foreign_controller(const struct facts *f, struct finding *out)
{
	if (!*f->controller && strcmp(f->service_phase, "hold") != 0)
		return false;
	TITLE("another program sets the scanner");
	if (*f->controller)
		SEEN("a process named %s is running", f->controller);
	else
		SEEN("the service stepped aside (ksmctl why tells what it saw)");
	out->meaning = "Two controllers undo each other's settings.";
	REMEDY("keep one: systemctl disable --now %s, or ksmctl",
		*f->controller ? f->controller : "the other");
	return true;
}

static bool swapped(const struct facts *f, struct finding *out)
{
	if (f->registered_swap_kib < SMALL_KIB || f->registered_swap_kib * 4 < f->registered_kib)
		return false;
	TITLE("much of the registered memory is swapped out");
	SEEN("%.0f MiB are swapped out and %.0f MiB resident; ksm_swpin_copy is %" PRId64,
		mib_of_kib(f->registered_swap_kib), mib_of_kib(f->registered_kib),
		f->vmstat.ksm_swpin_copy);
	out->meaning = "Only resident pages merge, and a merged page that comes back from swap is "
		       "a copy again.";
	REMEDY("let merging come before swap: run the service, or lower vm.swappiness");
	return true;
}

static bool huge_pages(const struct facts *f, struct finding *out)
{
	if (!scanning(f) || f->max_ptes_shared <= 0 || f->registered_huge_kib < SMALL_KIB ||
		f->registered_huge_kib * 4 < f->registered_kib ||
		value(f, KSM_FULL_SCANS, 0) < ENOUGH_PASSES)
		return false;
	TITLE("much of the registered memory lies in huge pages");
	SEEN("%.0f of %.0f MiB; khugepaged/max_ptes_shared is %" PRId64,
		mib_of_kib(f->registered_huge_kib), mib_of_kib(f->registered_kib),
		f->max_ptes_shared);
	out->meaning = "Huge pages are split only where part of one has a twin, and khugepaged "
		       "joins those again "
		       "of which less than half is merged.";
	REMEDY("start the program with KSMREG_NOHUGEPAGE=1, or set khugepaged/max_ptes_shared to "
	       "0");
	return true;
}

static bool read_only(const struct facts *f, struct finding *out)
{
	if (f->ksm_error || f->write_error != -EROFS)
		return false;
	TITLE("the settings cannot be changed from here");
	SEEN("%s is mounted read-only", KSM_DIR);
	out->meaning = "Containers see /sys read-only; merging is set up on the host.";
	REMEDY("run ksmctl on the host, or give the container a writable /sys");
	return true;
}

/* The rules, most likely cause first. */
static const struct rule {
	const char *id;
	enum severity severity;
	bool (*applies)(const struct facts *facts, struct finding *out);
} rules[] = {
	{ "no-ksm", FINDING_STOPS, no_ksm },
	{ "no-sys", FINDING_STOPS, no_sys },
	{ "run-off", FINDING_STOPS, run_off },
	{ "memory-offline", FINDING_STOPS, offline },
	{ "nothing-registered", FINDING_STOPS, nothing_registered },
	{ "no-pages-to-scan", FINDING_STOPS, nothing_per_batch },
	{ "ksmd-asleep", FINDING_STOPS, asleep },
	{ "sleeps-long", FINDING_LIMITS, sleeps_long },
	{ "advisor-stuck", FINDING_LIMITS, advisor_stuck },
	{ "slow-pass", FINDING_LIMITS, slow_pass },
	{ "too-early", FINDING_LIMITS, too_early },
	{ "pages-change", FINDING_LIMITS, changing },
	{ "nothing-equal", FINDING_STOPS, nothing_equal },
	{ "another-controller", FINDING_LIMITS, foreign_controller },
	{ "swapped-out", FINDING_LIMITS, swapped },
	{ "huge-pages", FINDING_LIMITS, huge_pages },
	{ "profit-negative", FINDING_LIMITS, profit_negative },
	{ "sharing-limited", FINDING_LIMITS, sharing_limited },
	{ "nodes-apart", FINDING_LIMITS, nodes_apart },
	{ "read-only", FINDING_RISK, read_only },
};
#define RULES (sizeof(rules) / sizeof(*rules))

const char *findings_id(size_t i)
{
	return i < RULES ? rules[i].id : NULL;
}

size_t findings_of_machine(const struct facts *facts, struct finding *findings, size_t room)
{
	struct facts f = *facts;
	size_t count = 0;
	f.registered_kib = sane(f.registered_kib);
	f.registered_swap_kib = sane(f.registered_swap_kib);
	f.registered_huge_kib = sane(f.registered_huge_kib);
	for (size_t i = 0; i < RULES && count < room; i++) {
		findings[count] =
			(struct finding){ .id = rules[i].id, .severity = rules[i].severity };
		if (rules[i].applies(&f, &findings[count]))
			count++;
	}
	return count;
}
