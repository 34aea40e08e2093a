/* Rules of ksmctl doctor about the scanner: whether there is one, whether it works, and how fast. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ksmctl/findings.h"

enum {
	SLOW_PASS_S = 600,     /* a pass that takes longer is told */
	SMART_PASSES = 9,      /* smart_scan passes over a page for 1, 2, 4, then 8 passes */
	SMART_PATIENCE_S = 60, /* so long is not worth a word */
};

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
	int64_t run = findings_value(f, KSM_RUN, KSM_RUN_MERGE);
	if (run == KSM_RUN_MERGE || run & KSM_RUN_OFFLINE || findings_service_at_work(f))
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
	int64_t run = findings_value(f, KSM_RUN, KSM_RUN_MERGE);
	if (!(run & KSM_RUN_OFFLINE))
		return false;
	TITLE("memory is going offline");
	SEEN("%s/run is %" PRId64, KSM_DIR, run);
	out->meaning =
		"The scanner waits while the kernel takes memory away; it goes on by itself.";
	REMEDY("wait for the removal of memory to end");
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

static bool nothing_per_batch(const struct facts *f, struct finding *out)
{
	if (!findings_scanning(f) || findings_value(f, KSM_PAGES_TO_SCAN, 1) != 0 ||
		findings_service_at_work(f))
		return false;
	TITLE("the scanner is on, with nothing to do per batch");
	SEEN("%s/pages_to_scan is 0", KSM_DIR);
	out->meaning = "Each batch of the scanner looks at no page at all.";
	REMEDY("ksmctl set pages_to_scan=1000");
	return true;
}

static bool asleep(const struct facts *f, struct finding *out)
{
	int64_t sleep = findings_value(f, KSM_SLEEP_MILLISECS, INT64_MAX);
	if (!findings_scanning(f) || f->registered <= 0 ||
		!findings_value(f, KSM_PAGES_TO_SCAN, 0) || sleep * 2 > f->interval_ms ||
		findings_gained(f, KSM_PAGES_SCANNED) > 0 ||
		findings_gained(f, KSM_FULL_SCANS) > 0 || f->ksmd_cpu_ns != 0)
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
	int64_t sleep = findings_value(f, KSM_SLEEP_MILLISECS, 0);
	char buf[32];
	if (!findings_scanning(f) || findings_service_at_work(f) || sleep < 10000)
		return false;
	TITLE("the scanner sleeps very long between batches");
	SEEN("%s/sleep_millisecs is %" PRId64 ", that is %s", KSM_DIR, sleep,
		findings_duration(sleep / 1000, buf, sizeof(buf)));
	out->meaning = "Few pages are looked at in a day.";
	REMEDY("ksmctl set sleep_millisecs=20");
	return true;
}

static bool advisor_stuck(const struct facts *f, struct finding *out)
{
	int64_t pages = findings_value(f, KSM_PAGES_TO_SCAN, INT64_MAX);
	char buf[32];
	if (!findings_scanning(f) ||
		findings_value(f, KSM_ADVISOR_MODE, KSM_ADVISOR_NONE) == KSM_ADVISOR_NONE ||
		pages > 1000 || findings_pass_s(f) < SLOW_PASS_S / 4)
		return false;
	TITLE("the kernel's advisor scans at a tiny rate");
	SEEN("advisor_mode is on and pages_to_scan is %" PRId64 "; a pass takes about %s", pages,
		findings_duration(findings_pass_s(f), buf, sizeof(buf)));
	out->meaning = "The advisor sets the rate once per pass, from the pass before, and can get "
		       "stuck low.";
	REMEDY("ksmctl set advisor_mode=none pages_to_scan=1000, or run the service");
	return true;
}

static bool slow_pass(const struct facts *f, struct finding *out)
{
	int64_t seconds = findings_pass_s(f);
	char buf[32];
	if (!findings_scanning(f) || findings_service_at_work(f) || seconds < SLOW_PASS_S)
		return false;
	TITLE("a pass over the registered memory takes %s",
		seconds == FINDINGS_MOST ? "for ever"
					 : findings_duration(seconds, buf, sizeof(buf)));
	SEEN("%.0f MiB are registered, and the scanner gets through %" PRId64 " pages/s",
		findings_mib(f->registered_kib), findings_rate(f));
	out->meaning =
		"A page merges in the second pass that sees it, with smart_scan up to the ninth.";
	REMEDY("ksmctl start 2000 20, or run the service, which is fast only while that pays");
	return true;
}

static bool too_early(const struct facts *f, struct finding *out)
{
	int64_t passes = findings_value(f, KSM_FULL_SCANS, INT64_MAX), seconds = findings_pass_s(f);
	char buf[32] = "a while";
	if (!findings_scanning(f) || passes >= FINDINGS_PASSES ||
		f->registered_kib < FINDINGS_SMALL_KIB || findings_saved_pages(f) > 0)
		return false;
	TITLE("the scanner has only just begun");
	SEEN("%s/full_scans is %" PRId64, KSM_DIR, passes);
	out->meaning = "A page merges in the second pass that sees it.";
	/* no kernel counts below zero; a file may */
	int64_t left = FINDINGS_PASSES - (passes > 0 ? passes : 0);
	if (seconds > 0 && seconds < FINDINGS_MOST)
		findings_duration(left * seconds + 1, buf, sizeof(buf));
	REMEDY("wait %s and ask again", seconds == 0 ? "some seconds" : buf);
	return true;
}

/* A twin that comes late, among pages that found no partner so far. */
static bool smart_scan(const struct facts *f, struct finding *out)
{
	int64_t pass_s = findings_pass_s(f), alone = findings_value(f, KSM_PAGES_UNSHARED, 0);
	int64_t skipped = findings_value(f, KSM_PAGES_SKIPPED, 0);
	char buf[32];
	if (!findings_scanning(f) || findings_service_at_work(f) || f->registered < 2 ||
		findings_value(f, KSM_SMART_SCAN, 0) != 1 || alone < 1024 ||
		alone <= findings_saved_pages(f) || skipped < alone || pass_s >= SLOW_PASS_S ||
		pass_s * SMART_PASSES < SMART_PATIENCE_S || f->youngest_ms < 0 ||
		f->youngest_ms / 1000 >= pass_s * SMART_PASSES)
		return false;
	TITLE("the scanner passes over pages that a newcomer may be equal to");
	SEEN("smart_scan is 1, pages_skipped %" PRId64 "; %" PRId64
	     " pages have no partner, and a registered process began %" PRId64 " s ago",
		skipped, alone, f->youngest_ms / 1000);
	out->meaning = "A page that found no partner is passed over for up to eight passes; a twin "
		       "that comes meanwhile waits for it.";
	REMEDY("wait up to %s, or look at all: ksmctl set smart_scan=0",
		findings_duration(pass_s * SMART_PASSES, buf, sizeof(buf)));
	return true;
}

/* Most likely cause first. */
const struct findings_rule findings_scanner[] = {
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
	{ "smart-scan", FINDING_LIMITS, smart_scan },
	{ NULL, FINDING_STOPS, NULL },
};
