/* Rules of ksmctl doctor about what else is on the machine, and may disturb. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ksmctl/findings.h"

enum { LAZY_KIB = 64 }; /* given up by MADV_FREE: less is not worth a word */

/* The first tunable that is another at the second look, while our own service sets none; -1. */
static int changed_meanwhile(const struct facts *f)
{
	bool advised = findings_value(f, KSM_ADVISOR_MODE, KSM_ADVISOR_NONE) != KSM_ADVISOR_NONE;
	if (f->captured || f->ksm_error || findings_service_at_work(f))
		return -1;
	for (int key = 0; key < KSM_TUNABLES; key++) {
		/* the advisor's own; and the kernel's, while memory goes offline */
		if ((key == KSM_PAGES_TO_SCAN && advised) ||
			(key == KSM_RUN &&
				(f->before.value[key] | f->now.value[key]) & KSM_RUN_OFFLINE))
			continue;
		if (ksm_has(&f->before, key) && ksm_has(&f->now, key) &&
			f->before.value[key] != f->now.value[key])
			return key;
	}
	return -1;
}

static bool advisor_fights(const struct facts *f, struct finding *out)
{
	if (!*f->controller ||
		findings_value(f, KSM_ADVISOR_MODE, KSM_ADVISOR_NONE) == KSM_ADVISOR_NONE)
		return false;
	TITLE("%s and the kernel's advisor both set the scanner", f->controller);
	SEEN("a process named %s is running, and advisor_mode is on", f->controller);
	out->meaning =
		"While the advisor is on the kernel refuses every other pages_to_scan, so the "
		"program's settings have no effect.";
	REMEDY("ksmctl set advisor_mode=none, or systemctl disable --now %s", f->controller);
	return true;
}

static bool foreign_controller(const struct facts *f, struct finding *out)
{
	int changed = changed_meanwhile(f);
	char from[32], to[32];
	bool held = !strcmp(f->service_phase, "hold");
	if (!*f->controller && !held && changed < 0)
		return false;
	TITLE("another program sets the scanner");
	if (*f->controller)
		SEEN("a process named %s is running", f->controller);
	else if (held)
		SEEN("the service stepped aside (ksmctl why tells what it saw)");
	else
		SEEN("%s/%s went from %s to %s while we looked", KSM_DIR, ksm_keys[changed].name,
			ksm_format(changed, f->before.value[changed], from, sizeof(from)),
			ksm_format(changed, f->now.value[changed], to, sizeof(to)));
	out->meaning = "Two controllers undo each other's settings.";
	REMEDY("keep one: systemctl disable --now %s, or ksmctl",
		*f->controller ? f->controller : "the other");
	return true;
}

static bool group_limit(const struct facts *f, struct finding *out)
{
	const struct memgroup *group = &f->in_group;
	if (!*f->group || group->limit_kib <= 0 || group->anon_kib < 0 ||
		(double)group->anon_kib < (double)group->limit_kib * 0.9)
		return false;
	TITLE("a control group with registered memory is at its limit");
	if (group->swap_kib > 0)
		SEEN("%s: %.0f of %.0f MiB are anonymous memory, %.0f MiB are swapped out",
			f->group, findings_mib(group->anon_kib), findings_mib(group->limit_kib),
			findings_mib(group->swap_kib));
	else
		SEEN("%s: %.0f of %.0f MiB are anonymous memory", f->group,
			findings_mib(group->anon_kib), findings_mib(group->limit_kib));
	out->meaning =
		"A merged page stays charged to the group that had it first. At the limit the "
		"kernel swaps, and what comes back is a private copy, or it kills.";
	REMEDY("raise memory.max and memory.high of the group, or keep what merges in one group");
	return true;
}

static bool madv_free(const struct facts *f, struct finding *out)
{
	if (f->registered_lazy_kib < LAZY_KIB ||
		(!findings_scanning(f) && findings_saved_pages(f) <= 0))
		return false;
	TITLE("registered memory is freed by MADV_FREE");
	SEEN("LazyFree in registered areas of smaps: %.1f MiB",
		findings_mib(f->registered_lazy_kib));
	out->meaning =
		"On many kernels MADV_FREE on a merged page can lose what other processes have "
		"in it (CVE-2026-99656); this one may be one of them.";
	REMEDY("MADV_DONTNEED instead: GODEBUG=madvdontneed=1, or in MALLOC_CONF "
	       "muzzy_decay_ms:0");
	return true;
}

/* A kernel's number, as far as its name tells. */
struct kernel {
	int major, minor, patch;
	bool sure; /* the last number is that of the stable series */
};

static bool parse_kernel(const char *version, struct kernel *k)
{
	const char *debian = strstr(version, " Debian ");
	int end = 0;
	*k = (struct kernel){ 0 };
	if (sscanf(version, "Linux version %d.%d%n.%d%n", &k->major, &k->minor, &end, &k->patch,
		    &end) < 2)
		return false;
	/* "6.1.0-41-amd64" numbers the ABI; what it was made from stands further behind */
	k->sure = k->patch > 0 || version[end] == ' ';
	if (debian && sscanf(debian, " Debian %d.%d.%d", &k->major, &k->minor, &k->patch) == 3)
		k->sure = true;
	return true;
}

/* MADV_UNMERGEABLE cleared the upper half of an area's flags, from 5.13 until it was mended in each series. */
static bool kernel_flags(const struct facts *f, struct finding *out)
{
	static const struct {
		int major, minor, last; /* the last number of the series that may have it */
	} mended[] = { { 5, 15, 196 }, { 6, 1, 157 }, { 6, 6, 113 }, { 6, 12, 54 }, { 6, 17, 2 } };
	struct kernel k;
	if (!parse_kernel(f->version, &k) || f->registered <= 0)
		return false;
	int number = k.major * 1000 + k.minor;
	if (number < 5013 || number > 6017)
		return false;
	bool may = !k.sure;
	for (size_t i = 0; i < sizeof(mended) / sizeof(*mended); i++) {
		if (number != mended[i].major * 1000 + mended[i].minor || !k.sure)
			continue;
		if (k.patch > mended[i].last)
			return false;
		may = k.patch == mended[i].last;
	}
	TITLE("this kernel %s a fault of MADV_UNMERGEABLE", may ? "may have" : "has");
	SEEN("Linux %d.%d.%d of /proc/version; CVE-2025-40040", k.major, k.minor, k.patch);
	out->meaning = "Taking an offer back clears other flags of the area too, as those of "
		       "userfaultfd and protection keys. Where nobody takes back nothing happens.";
	REMEDY("a kernel after 5.15.196, 6.1.157, 6.6.113, 6.12.54 or 6.17.2; distributions mend "
	       "older numbers too");
	return true;
}

static bool users_share(const struct facts *f, struct finding *out)
{
	const struct facts_sample *sample = &f->sample;
	if (sample->users_share_pages < 0 ? sample->users < 2 : sample->users_share_pages == 0)
		return false;
	TITLE("users have merged pages together");
	if (sample->users_share_pages > 0)
		SEEN("%" PRId64 " page frames, some of them of user IDs %u and %u",
			sample->users_share_pages, (unsigned)sample->user_one,
			(unsigned)sample->user_two);
	else
		SEEN("%" PRId64 " users have merged pages; whose are the same only root can see",
			sample->users);
	out->meaning = "A write to a merged page takes longer: by that one user can find out what "
		       "another holds.";
	REMEDY("merge for one user, or one customer, at a time: ksmctl disable PID...");
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

/* Most likely cause first. */
const struct findings_rule findings_host[] = {
	{ "advisor-fights", FINDING_LIMITS, advisor_fights },
	{ "another-controller", FINDING_LIMITS, foreign_controller },
	{ "group-limit", FINDING_LIMITS, group_limit },
	{ "madv-free", FINDING_RISK, madv_free },
	{ "read-only", FINDING_RISK, read_only },
	{ "kernel-flags", FINDING_ADVICE, kernel_flags },
	{ "users-share", FINDING_ADVICE, users_share },
	{ NULL, FINDING_STOPS, NULL },
};
