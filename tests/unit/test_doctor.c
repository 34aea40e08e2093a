/* The rules of ksmctl doctor: each speaks in its situation, is the first to speak there, and is silent elsewhere. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ksmctl/doctor.h"
#include "tests/tap.h"

/* A machine on which all is well: the scanner makes passes, memory is registered and merged. */
static struct facts healthy(void)
{
	struct facts f = {
		.sys_mounted = true,
		.interval_ms = 500,
		.ksmd_cpu_ns = 20 * 1000 * 1000,
		.page_bytes = 4096,
		.processes = 100,
		.registered = 4,
		.registered_kib = 400 << 10,
		.nodes = 1,
		.max_ptes_shared = 256,
		.youngest_ms = 3600 * 1000,
		.version = "Linux version 6.18.2 (builder@host) (gcc 14) #1 SMP",
		.group = "/system.slice/jobs.service",
		.in_group = { .anon_kib = 500 << 10, .swap_kib = 0, .limit_kib = 1 << 20 },
		.sample = { .looked = 64, .zeros = 1, .again = 64, .users = 1 },
	};
	int64_t *v = f.now.value;

	for (int key = 0; key < KSM_KEYS; key++)
		f.now.error[key] = 0;
	v[KSM_RUN] = 1;
	v[KSM_PAGES_TO_SCAN] = 1000;
	v[KSM_SLEEP_MILLISECS] = 20;
	v[KSM_SMART_SCAN] = 1;
	v[KSM_MERGE_ACROSS_NODES] = 1;
	v[KSM_MAX_PAGE_SHARING] = 256;
	v[KSM_PAGES_SHARED] = 10000;
	v[KSM_PAGES_SHARING] = 60000;
	v[KSM_PAGES_UNSHARED] = 30000;
	v[KSM_FULL_SCANS] = 20;
	v[KSM_PAGES_SCANNED] = 1000000;
	v[KSM_GENERAL_PROFIT] = 200 << 20;
	f.before = f.now;
	f.before.value[KSM_PAGES_SCANNED] -= 10000;
	return f;
}

#define SITUATION(name) static void name(struct facts *f)
#define V(key) f->now.value[KSM_##key]
#define SET(key, to) V(key) = f->before.value[KSM_##key] = (to)

SITUATION(no_ksm)
{
	f->ksm_error = -ENOENT;
}
SITUATION(no_sys)
{
	f->ksm_error = -ENOENT, f->sys_mounted = false;
}
SITUATION(hidden)
{
	f->ksm_error = -EACCES;
}
SITUATION(stopped)
{
	V(RUN) = 0;
}
SITUATION(unmerged)
{
	V(RUN) = 2;
}
SITUATION(held)
{
	V(RUN) = 0;
	strcpy(f->service_phase, "hold");
}
SITUATION(offline)
{
	V(RUN) = 5;
}
SITUATION(nobody)
{
	f->registered = 0, f->registered_kib = 0;
}
SITUATION(no_pages)
{
	V(PAGES_TO_SCAN) = 0;
}
SITUATION(asleep)
{
	f->before = f->now;
	f->ksmd_cpu_ns = 0;
}
SITUATION(asleep_on_old_kernel)
{
	f->now.error[KSM_PAGES_SCANNED] = f->before.error[KSM_PAGES_SCANNED] = -ENOENT;
	f->ksmd_cpu_ns = 0;
}
SITUATION(sleeps_long)
{
	V(SLEEP_MILLISECS) = 3600 * 1000;
	f->before = f->now;
	f->ksmd_cpu_ns = 0;
}
SITUATION(advisor)
{
	V(ADVISOR_MODE) = KSM_ADVISOR_SCAN_TIME;
	V(PAGES_TO_SCAN) = 10;
	f->before.value[KSM_PAGES_SCANNED] = V(PAGES_SCANNED) - 20;
}
SITUATION(slow)
{
	V(PAGES_TO_SCAN) = 100;
	f->before.value[KSM_PAGES_SCANNED] = V(PAGES_SCANNED) - 1000;
	f->registered_kib = 64 << 20;
}
SITUATION(early)
{
	V(FULL_SCANS) = 1, V(PAGES_SHARING) = 0, V(PAGES_SHARED) = 0;
}
SITUATION(changing)
{
	V(PAGES_VOLATILE) = 200000;
}
/* With smart_scan pages_volatile holds those that were passed over: the sample tells. */
SITUATION(changing_smart)
{
	changing(f);
	V(PAGES_SKIPPED) = 1000000;
	f->sample.changed = 40;
}
SITUATION(unequal_smart)
{
	V(PAGES_SHARING) = 0, V(PAGES_SHARED) = 0;
	V(PAGES_VOLATILE) = 200000, V(PAGES_UNSHARED) = 10, V(PAGES_SKIPPED) = 1000000;
}
SITUATION(passed_over)
{
	changing(f);
	V(PAGES_SKIPPED) = 1000000;
}
SITUATION(unequal)
{
	V(PAGES_SHARING) = 0, V(PAGES_SHARED) = 0;
}
SITUATION(other)
{
	strcpy(f->controller, "ksmtuned");
}
SITUATION(swapped)
{
	f->registered_swap_kib = 300 << 10;
}
SITUATION(huge)
{
	f->registered_huge_kib = 300 << 10;
}
SITUATION(loss)
{
	V(GENERAL_PROFIT) = -(50 << 20);
}
SITUATION(limited)
{
	V(STABLE_DUPS) = 9000, V(STABLE_CHAINS) = 10;
}
SITUATION(nodes)
{
	f->nodes = 2, V(MERGE_ACROSS_NODES) = 0;
}
/* Each of two equal processes on a node of its own. */
SITUATION(all_apart)
{
	nodes(f);
	unequal(f);
}
SITUATION(read_only)
{
	f->write_error = -EROFS;
}

/* Many pages without a partner, a pass of 40 s, and somebody who came half a minute ago. */
SITUATION(late_twin)
{
	V(PAGES_UNSHARED) = 90000, V(PAGES_SKIPPED) = 500000;
	SET(PAGES_TO_SCAN, 50);
	f->before.value[KSM_PAGES_SCANNED] = V(PAGES_SCANNED) - 1250;
	f->youngest_ms = 30 * 1000;
}
SITUATION(swap_storm)
{
	f->vmstat_before.ksm_swpin_copy = 1000, f->vmstat.ksm_swpin_copy = 1100;
}
SITUATION(swap_storm_with_swap)
{
	swap_storm(f);
	swapped(f);
}
SITUATION(two_masters)
{
	other(f);
	V(ADVISOR_MODE) = KSM_ADVISOR_SCAN_TIME;
}
SITUATION(somebody_writes)
{
	f->before.value[KSM_SLEEP_MILLISECS] = 200;
}
SITUATION(tight)
{
	f->in_group.anon_kib = 1000 << 10;
}
SITUATION(tight_and_swaps)
{
	tight(f);
	f->in_group.swap_kib = 100 << 10;
}
SITUATION(lazy)
{
	f->registered_lazy_kib = 1024;
}
SITUATION(zeros)
{
	f->sample.zeros = 40;
}
SITUATION(two_users)
{
	f->sample.users = 2, f->sample.users_share_pages = 70, f->sample.user_two = 1000;
}
SITUATION(two_users_unseen)
{
	f->sample.users = 2, f->sample.users_share_pages = -1;
}

static void kernel(struct facts *f, const char *version)
{
	snprintf(f->version, sizeof(f->version), "%s", version);
}
SITUATION(faulty)
{
	kernel(f, "Linux version 6.12.43 (me@host) (gcc (Debian 14) 14.2.0) #1 SMP");
}
SITUATION(faulty_series)
{
	kernel(f, "Linux version 5.19.17 (me@host) #1 SMP");
}
SITUATION(faulty_debian)
{
	kernel(f, "Linux version 6.1.0-39-amd64 (d@d.org) #1 SMP PREEMPT_DYNAMIC Debian 6.1.148-1 "
		  "(2025-08-26)");
}
SITUATION(faulty_or_not)
{
	kernel(f, "Linux version 5.15.0-160-generic (b@h) #170-Ubuntu SMP");
}

/* And where they must hold their peace. */
SITUATION(mended)
{
	kernel(f, "Linux version 6.12.55 (me@host) #1 SMP");
}
SITUATION(mended_debian)
{
	kernel(f, "Linux version 6.1.0-42-amd64 (d@d.org) #1 SMP PREEMPT_DYNAMIC Debian 6.1.159-1 "
		  "(2025-12-30)");
}
SITUATION(older_than_fault)
{
	kernel(f, "Linux version 5.10.0-32-amd64 (d@d.org) #1 SMP Debian 5.10.223-1 (2024-08-10)");
}
SITUATION(odd_version)
{
	kernel(f, "Plan 9");
}
SITUATION(twin_in_time)
{
	late_twin(f);
	SET(SMART_SCAN, 0);
}
SITUATION(nobody_late)
{
	late_twin(f);
	f->youngest_ms = 3600 * 1000;
}
SITUATION(old_copies)
{
	f->vmstat_before.ksm_swpin_copy = f->vmstat.ksm_swpin_copy = 100000;
}
SITUATION(no_swpin_counter)
{
	f->vmstat_before.ksm_swpin_copy = f->vmstat.ksm_swpin_copy = -1;
}
SITUATION(service_writes)
{
	somebody_writes(f);
	strcpy(f->service_phase, "boost");
}
SITUATION(advisor_writes)
{
	V(ADVISOR_MODE) = f->before.value[KSM_ADVISOR_MODE] = KSM_ADVISOR_SCAN_TIME;
	f->before.value[KSM_PAGES_TO_SCAN] = 2000;
}
SITUATION(no_limit)
{
	tight(f);
	f->in_group.limit_kib = -1;
}
SITUATION(no_group)
{
	tight(f);
	*f->group = '\0';
}
SITUATION(parked)
{
	V(RUN) = 0;
	strcpy(f->service_phase, "parked");
	f->before = f->now;
	f->ksmd_cpu_ns = 0;
}
SITUATION(lazy_before_merging)
{
	lazy(f);
	V(PAGES_SHARING) = 0, V(PAGES_UNSHARED) = 0;
	parked(f);
}
SITUATION(few_zeros)
{
	f->sample.zeros = 5;
}
SITUATION(zeros_merge_to_zero)
{
	zeros(f);
	SET(USE_ZERO_PAGES, 1);
}
SITUATION(users_apart)
{
	f->sample.users = 2, f->sample.users_share_pages = 0;
}
SITUATION(not_sampled)
{
	f->sample = (struct facts_sample){ -1, -1, -1, -1, -1, -1, 0, 0 };
}
SITUATION(well)
{
	(void)f;
}
SITUATION(slow_service)
{
	slow(f);
	strcpy(f->service_phase, "steady");
}
SITUATION(nobody_seen)
{
	f->registered = 0, f->unseen = f->processes;
}
SITUATION(nobody_of_few_seen)
{
	f->registered = 0, f->unseen = f->processes / 2;
}
SITUATION(empty_proc)
{
	f->registered = f->processes = -1;
}
SITUATION(captured)
{
	f->captured = true, f->interval_ms = 0, f->ksmd_cpu_ns = -1, f->before = f->now;
}
SITUATION(long_sleep_between)
{
	V(SLEEP_MILLISECS) = 2000;
	V(PAGES_TO_SCAN) = 100000;
	f->before = f->now;
	f->ksmd_cpu_ns = 0;
}
SITUATION(some_change)
{
	V(PAGES_VOLATILE) = 20000;
}
SITUATION(few_chains)
{
	V(STABLE_DUPS) = 300, V(STABLE_CHAINS) = 100;
}
SITUATION(never_huge)
{
	f->registered_huge_kib = 300 << 10, f->max_ptes_shared = -1;
}
SITUATION(huge_left_alone)
{
	f->registered_huge_kib = 300 << 10, f->max_ptes_shared = 0;
}
SITUATION(two_nodes)
{
	f->nodes = 2;
}
SITUATION(some_swap)
{
	f->registered_swap_kib = 10 << 10;
}
SITUATION(old_kernel)
{
	const int only[] = { KSM_RUN, KSM_PAGES_TO_SCAN, KSM_SLEEP_MILLISECS, KSM_PAGES_SHARED,
		KSM_PAGES_SHARING, KSM_PAGES_UNSHARED, KSM_PAGES_VOLATILE, KSM_FULL_SCANS };

	for (int key = 0; key < KSM_KEYS; key++)
		f->now.error[key] = -ENOENT;
	for (size_t i = 0; i < sizeof(only) / sizeof(*only); i++)
		f->now.error[only[i]] = 0;
	f->before = f->now;
}
SITUATION(unreadable)
{
	for (int key = 0; key < KSM_KEYS; key++) {
		f->now.error[key] = f->before.error[key] = -EACCES;
		f->now.value[key] = f->before.value[key] = 0;
	}
	f->ksmd_cpu_ns = -1;
}

static const struct {
	void (*make)(struct facts *f);
	const char *first; /* finding, NULL for none */
	int severity;
} situations[] = {
	{ no_ksm, "no-ksm", FINDING_STOPS },
	{ no_sys, "no-sys", FINDING_STOPS },
	{ hidden, "no-sys", FINDING_STOPS },
	{ stopped, "run-off", FINDING_STOPS },
	{ unmerged, "run-off", FINDING_STOPS },
	{ held, "run-off", FINDING_STOPS },
	{ offline, "memory-offline", FINDING_STOPS },
	{ nobody, "nothing-registered", FINDING_STOPS },
	{ no_pages, "no-pages-to-scan", FINDING_STOPS },
	{ asleep, "ksmd-asleep", FINDING_STOPS },
	{ asleep_on_old_kernel, "ksmd-asleep", FINDING_STOPS },
	{ sleeps_long, "sleeps-long", FINDING_LIMITS },
	{ advisor, "advisor-stuck", FINDING_LIMITS },
	{ slow, "slow-pass", FINDING_LIMITS },
	{ early, "too-early", FINDING_LIMITS },
	{ changing, "pages-change", FINDING_LIMITS },
	{ changing_smart, "pages-change", FINDING_LIMITS },
	{ unequal_smart, "nothing-equal", FINDING_STOPS },
	{ unequal, "nothing-equal", FINDING_STOPS },
	{ other, "another-controller", FINDING_LIMITS },
	{ swapped, "swapped-out", FINDING_LIMITS },
	{ huge, "huge-pages", FINDING_LIMITS },
	{ loss, "profit-negative", FINDING_LIMITS },
	{ limited, "sharing-limited", FINDING_LIMITS },
	{ nodes, "nodes-apart", FINDING_LIMITS },
	{ all_apart, "nodes-apart", FINDING_LIMITS },
	{ read_only, "read-only", FINDING_RISK },
	{ late_twin, "smart-scan", FINDING_LIMITS },
	{ swap_storm, "swap-breaks", FINDING_LIMITS },
	{ swap_storm_with_swap, "swap-breaks", FINDING_LIMITS },
	{ two_masters, "advisor-fights", FINDING_LIMITS },
	{ somebody_writes, "another-controller", FINDING_LIMITS },
	{ tight, "group-limit", FINDING_LIMITS },
	{ tight_and_swaps, "group-limit", FINDING_LIMITS },
	{ lazy, "madv-free", FINDING_RISK },
	{ zeros, "zeros-apart", FINDING_ADVICE },
	{ two_users, "users-share", FINDING_ADVICE },
	{ two_users_unseen, "users-share", FINDING_ADVICE },
	{ faulty, "kernel-flags", FINDING_ADVICE },
	{ faulty_series, "kernel-flags", FINDING_ADVICE },
	{ faulty_debian, "kernel-flags", FINDING_ADVICE },
	{ faulty_or_not, "kernel-flags", FINDING_ADVICE },
	{ well, NULL, 0 },
	{ passed_over, NULL, 0 },
	{ mended, NULL, 0 },
	{ mended_debian, NULL, 0 },
	{ older_than_fault, NULL, 0 },
	{ odd_version, NULL, 0 },
	{ twin_in_time, NULL, 0 },
	{ nobody_late, NULL, 0 },
	{ old_copies, NULL, 0 },
	{ no_swpin_counter, NULL, 0 },
	{ service_writes, NULL, 0 },
	{ advisor_writes, NULL, 0 },
	{ no_limit, NULL, 0 },
	{ no_group, NULL, 0 },
	{ lazy_before_merging, NULL, 0 },
	{ few_zeros, NULL, 0 },
	{ zeros_merge_to_zero, NULL, 0 },
	{ users_apart, NULL, 0 },
	{ not_sampled, NULL, 0 },
	{ parked, NULL, 0 },
	{ slow_service, NULL, 0 },
	{ nobody_seen, NULL, 0 },
	{ nobody_of_few_seen, NULL, 0 },
	{ empty_proc, NULL, 0 },
	{ captured, NULL, 0 },
	{ long_sleep_between, NULL, 0 },
	{ some_change, NULL, 0 },
	{ few_chains, NULL, 0 },
	{ never_huge, NULL, 0 },
	{ huge_left_alone, NULL, 0 },
	{ two_nodes, NULL, 0 },
	{ some_swap, NULL, 0 },
	{ old_kernel, NULL, 0 },
	{ unreadable, NULL, 0 },
};
#define SITUATIONS (sizeof(situations) / sizeof(*situations))

START_TEST(speaks)
{
	struct facts f = healthy();
	struct finding findings[32];

	situations[_i].make(&f);
	size_t count = findings_of_machine(&f, findings, 32);
	if (!situations[_i].first) {
		ck_assert_msg(count == 0, "situation %d: %s", _i, count ? findings[0].id : "");
		return;
	}
	ck_assert_msg(count > 0, "situation %d: silent", _i);
	ck_assert_str_eq(findings[0].id, situations[_i].first);
	for (size_t i = 0; i < count; i++) {
		/* whole sentences that were not cut, and no more than a terminal takes */
		ck_assert_uint_gt(strlen(findings[i].title), 10);
		ck_assert_uint_lt(strlen(findings[i].title), sizeof(findings[i].title) - 1);
		ck_assert_uint_gt(strlen(findings[i].evidence), 0);
		ck_assert_uint_lt(strlen(findings[i].evidence), sizeof(findings[i].evidence) - 1);
		ck_assert_ptr_nonnull(findings[i].meaning);
		ck_assert_uint_gt(strlen(findings[i].remedy), 0);
		ck_assert_uint_lt(strlen(findings[i].remedy), sizeof(findings[i].remedy) - 1);
	}
	ck_assert_int_eq(findings[0].severity, situations[_i].severity);
}
END_TEST

/* What a distribution mended is not told by the number: then it is a "may". */
START_TEST(says_may)
{
	struct finding findings[32];
	struct facts f = healthy();

	faulty(&f);
	findings_of_machine(&f, findings, 32);
	ck_assert_str_eq(findings[0].title, "this kernel has a fault of MADV_UNMERGEABLE");
	faulty_or_not(&f);
	findings_of_machine(&f, findings, 32);
	ck_assert_str_eq(findings[0].title, "this kernel may have a fault of MADV_UNMERGEABLE");
	kernel(&f, "Linux version 6.12.54 (me@host) #1 SMP"); /* the last that may have it */
	findings_of_machine(&f, findings, 32);
	ck_assert_str_eq(findings[0].title, "this kernel may have a fault of MADV_UNMERGEABLE");
}
END_TEST

START_TEST(every_rule_has_its_situation)
{
	const char *id;

	for (size_t i = 0; (id = findings_id(i)); i++) {
		bool found = false;
		for (size_t k = 0; k < SITUATIONS; k++)
			found |= situations[k].first && !strcmp(situations[k].first, id);
		ck_assert_msg(found, "%s has no test", id);
	}
}
END_TEST

START_TEST(room_is_respected)
{
	struct facts f = healthy();
	struct finding findings[2];

	stopped(&f);
	nobody(&f);
	other(&f);
	memset(findings, 0, sizeof(findings));
	ck_assert_uint_eq(findings_of_machine(&f, findings, 1), 1);
	ck_assert_ptr_null(findings[1].id);
}
END_TEST

/* Whatever the kernel says, sense or not: no crash, no overflow. Meant for the sanitizers. */
START_TEST(odd_numbers)
{
	static const int64_t odd[] = { INT64_MIN, -1, 0, 1, 2, 255, INT32_MAX, INT64_MAX };
	struct finding findings[32];

	srandom(7);
	for (int n = 0; n < 20000; n++) {
		struct facts f = healthy();
		for (int k = 0; k < 4; k++) {
			int64_t value = odd[random() % 8];
			switch (random() % 3) {
			case 0:
				f.now.value[random() % KSM_KEYS] = value;
				break;
			case 1:
				f.before.value[random() % KSM_KEYS] = value;
				break;
			default:
				*(&f.processes + random() % 7) = value < 0 ? -1 : value;
			}
		}
		findings_of_machine(&f, findings, 32);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("doctor");
	TCase *t = tcase_create("doctor");

	tcase_add_loop_test(t, speaks, 0, SITUATIONS);
	tcase_add_test(t, says_may);
	tcase_add_test(t, every_rule_has_its_situation);
	tcase_add_test(t, room_is_respected);
	tcase_add_test(t, odd_numbers);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(suite());
}
