/* Between policy and kernel: makes samples, carries out decisions, restores what was found first. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/governor.h"

#include <errno.h>
#include <sys/resource.h>

#include "ksmctl/math64.h"
#include "sysfs/mem.h"

#define STALL_WINDOW_MS 500
#define MACHINE_EVERY_MS 150
#define WATCH_LEAST_MS 200
#define WAKE_AFTER_MS 1000

static int64_t value_or(const struct ksm_state *state, enum ksm_key key, int64_t missing)
{
	return ksm_has(state, key) ? state->value[key] : missing;
}

/*
 * The share of time that tasks waited for a CPU, in percent x 100, since half a second ago or a
 * little more. The kernel's shortest average, over ten seconds, would tell a start long after it.
 */
static int64_t cpu_stall_centi(struct governor *governor, uint64_t total_us, int64_t now_ms)
{
	int64_t elapsed_ms = now_ms - governor->stall_since_ms;
	if (!governor->stall_since_ms || total_us < governor->stall_total_us) {
		governor->stall_centi = 0;
	} else if (elapsed_ms < STALL_WINDOW_MS) {
		return governor->stall_centi;
	} else {
		int64_t stalled_us = (int64_t)(total_us - governor->stall_total_us);
		governor->stall_centi = stalled_us * 10 / elapsed_ms;
	}
	governor->stall_total_us = total_us;
	governor->stall_since_ms = now_ms;
	return governor->stall_centi;
}

/* What the policy looks at; the other files are not read at every look. */
static const enum ksm_key looked_at[] = { KSM_RUN, KSM_PAGES_TO_SCAN, KSM_SLEEP_MILLISECS,
	KSM_SMART_SCAN, KSM_USE_ZERO_PAGES, KSM_ADVISOR_MODE, KSM_PAGES_SHARED, KSM_PAGES_SHARING,
	KSM_ZERO_PAGES, KSM_PAGES_UNSHARED, KSM_PAGES_VOLATILE, KSM_PAGES_SCANNED, KSM_FULL_SCANS,
	KSM_GENERAL_PROFIT };

/* The knobs that the service writes. What was not there at first could not be put back, and is left alone. */
static const enum ksm_key written[] = { KSM_RUN, KSM_PAGES_TO_SCAN, KSM_SLEEP_MILLISECS,
	KSM_SMART_SCAN, KSM_USE_ZERO_PAGES, KSM_ADVISOR_MODE };
#define WRITTEN (sizeof(written) / sizeof(*written))

static void sample_ksm(const struct governor *governor, struct policy_sample *sample)
{
	struct ksm_state ksm;
	uint64_t cpu_ns;

	for (int key = 0; key < KSM_KEYS; key++)
		ksm.error[key] = -ENODATA;
	for (size_t i = 0; i < sizeof(looked_at) / sizeof(*looked_at); i++)
		ksm.error[looked_at[i]] =
			ksm_get(governor->ksm, looked_at[i], &ksm.value[looked_at[i]]);
	for (size_t i = 0; i < WRITTEN; i++) {
		if (!ksm_has(&governor->first, written[i]))
			ksm.error[written[i]] = -ENODATA;
	}
	sample->stale = !ksm_has(&ksm, KSM_RUN) || !ksm_has(&ksm, KSM_PAGES_SHARING) ||
			!ksm_has(&ksm, KSM_FULL_SCANS);
	sample->run = value_or(&ksm, KSM_RUN, -1);
	if (sample->run > 0)
		sample->run &= ~(int64_t)KSM_RUN_OFFLINE;
	sample->pages_to_scan = value_or(&ksm, KSM_PAGES_TO_SCAN, -1);
	sample->sleep_ms = value_or(&ksm, KSM_SLEEP_MILLISECS, -1);
	sample->smart_scan = value_or(&ksm, KSM_SMART_SCAN, -1);
	sample->use_zero_pages = value_or(&ksm, KSM_USE_ZERO_PAGES, -1);
	sample->advisor = value_or(&ksm, KSM_ADVISOR_MODE, -1);
	sample->pages_shared = value_or(&ksm, KSM_PAGES_SHARED, -1);
	sample->pages_sharing = value_or(&ksm, KSM_PAGES_SHARING, -1);
	sample->zero_pages = value_or(&ksm, KSM_ZERO_PAGES, -1);
	sample->pages_unshared = value_or(&ksm, KSM_PAGES_UNSHARED, -1);
	sample->pages_volatile = value_or(&ksm, KSM_PAGES_VOLATILE, -1);
	sample->pages_scanned = value_or(&ksm, KSM_PAGES_SCANNED, -1);
	sample->full_scans = value_or(&ksm, KSM_FULL_SCANS, -1);
	sample->profit_bytes = value_or(&ksm, KSM_GENERAL_PROFIT, INT64_MIN);
	sample->ksmd_cpu_ns = -1;
	if (governor->ksmd.fd >= 0 && !ksmd_cpu_ns(&governor->ksmd, &cpu_ns))
		sample->ksmd_cpu_ns = (int64_t)cpu_ns;
}

static void sample_machine(struct governor *governor, struct policy_sample *sample, int64_t now_ms)
{
	struct mem_info mem;
	struct mem_pressure memory, cpu;

	sample->mem_total_kib = sample->mem_available_kib = -1;
	sample->memory_psi_centi = sample->cpu_psi_centi = -1;
	if (!mem_read_info(governor->root, &mem)) {
		sample->mem_total_kib = (int64_t)mem.total_kib;
		sample->mem_available_kib = (int64_t)mem.available_kib;
	}
	if (!mem_read_pressure(governor->root, "memory", &memory))
		sample->memory_psi_centi = memory.some_avg10_centi;
	if (!mem_read_pressure(governor->root, "cpu", &cpu))
		sample->cpu_psi_centi = cpu_stall_centi(governor, cpu.some_total_us, now_ms);
	/* Processes that cannot be counted for want of memory are counted at the next look. */
	watch_update(&governor->watch, now_ms);
	sample->registered_processes = governor->watch.processes;
	sample->registered_kib = governor->watch.kib;
	sample->news = governor->watch.news;
}

/* Some looks come quickly, to catch the end of a pass: the machine need not be looked at in each. */
static void make_sample(struct governor *governor, int64_t now_ms)
{
	struct policy_sample *sample = &governor->sample;
	if (governor->machine_due_ms <= now_ms || governor->look_now) {
		sample_machine(governor, sample, now_ms);
		governor->machine_due_ms = now_ms + MACHINE_EVERY_MS;
	}
	sample_ksm(governor, sample);
	sample->now_ms = now_ms;
	sample->look_now = governor->look_now;
}

/* Write what differs. `run` goes last, so that ksmd never works at a rate meant for another phase. */
static int carry_out(struct governor *governor)
{
	const struct policy_decision *decision = &governor->decision;
	const struct policy_sample *found = &governor->sample;
	const struct {
		enum ksm_key key;
		int64_t wanted, found;
	} writes[] = {
		{ KSM_SMART_SCAN, decision->smart_scan, found->smart_scan },
		{ KSM_USE_ZERO_PAGES, decision->use_zero_pages, found->use_zero_pages },
		{ KSM_SLEEP_MILLISECS, decision->sleep_ms, found->sleep_ms },
		{ KSM_PAGES_TO_SCAN, decision->pages_to_scan, found->pages_to_scan },
		{ KSM_RUN, decision->run, found->run },
	};
	for (size_t i = 0; i < sizeof(writes) / sizeof(*writes); i++) {
		/*
		 * A knob that is there and could not be read just now is written all the same: the policy
		 * takes it for written, and would else take its old value for the work of somebody else.
		 */
		bool there = writes[i].found >= 0 || ksm_has(&governor->first, writes[i].key);
		if (writes[i].wanted < 0 || !there || writes[i].wanted == writes[i].found)
			continue;
		int err = ksm_set(governor->ksm, writes[i].key, writes[i].wanted);
		if (err) {
			governor->write_failed = writes[i].key;
			return err;
		}
	}
	return 0;
}

/*
 * A race in the kernel can leave ksmd asleep although run=1 and memory is registered. Writing 1
 * again, which changes nothing, wakes it.
 */
static void wake_ksmd(struct governor *governor, int64_t now_ms)
{
	const struct policy_sample *sample = &governor->sample;
	int64_t work = sample->ksmd_cpu_ns + sample->pages_scanned;
	if (sample->ksmd_cpu_ns < 0 && sample->pages_scanned < 0)
		return; /* whether it sleeps cannot be seen */
	if (governor->decision.run != KSM_RUN_MERGE || governor->decision.phase == POLICY_IDLE ||
		work != governor->awake_work) {
		governor->awake_work = work;
		governor->awake_ms = now_ms;
	} else if (now_ms - governor->awake_ms > WAKE_AFTER_MS + 2 * governor->decision.sleep_ms) {
		ksm_set(governor->ksm, KSM_RUN, KSM_RUN_MERGE);
		governor->awake_ms = now_ms;
	}
}

/* Young processes are looked at when it is their turn, which finds memory soon after a start. */
static int64_t until_watch(const struct governor *governor, int64_t now_ms)
{
	return max64(governor->watch.due_ms - now_ms, WATCH_LEAST_MS);
}

/*
 * At rest, processes that come and go wake the service more often than it has to look at the
 * machine. Whether any of them brought memory is all that matters then.
 */
static bool nothing_new(struct governor *governor, int64_t now_ms)
{
	const struct watch *watch = &governor->watch;
	enum policy_phase phase = governor->decision.phase;
	if (governor->look_now || now_ms >= governor->look_due_ms ||
		(phase != POLICY_PARKED && phase != POLICY_IDLE))
		return false;
	int64_t news = watch->news, kib = watch->kib;
	return watch_update(&governor->watch, now_ms) == 0 && watch->news == news &&
	       watch->kib == kib;
}

int64_t governor_step(struct governor *governor, int64_t now_ms)
{
	if (nothing_new(governor, now_ms))
		return min64(governor->look_due_ms - now_ms, until_watch(governor, now_ms));
	make_sample(governor, now_ms);
	policy_step(&governor->config.policy, &governor->policy, &governor->sample,
		&governor->decision);
	governor->look_now = false;
	governor->look_due_ms = now_ms + governor->decision.next_look_ms;
	governor->write_error = governor->decision.write ? carry_out(governor) : 0;
	if (governor->write_error) {
		/* The kernel shows something else than decided, and that is nobody's doing. */
		policy_forget_written(&governor->policy);
		return governor->config.policy.rest_interval_ms;
	}
	if (governor->decision.write)
		wake_ksmd(governor, now_ms);
	return min64(governor->decision.next_look_ms, until_watch(governor, now_ms));
}

static int get_nice(pid_t pid, int *nice)
{
	errno = 0;
	*nice = getpriority(PRIO_PROCESS, (id_t)pid);
	return errno ? -errno : 0;
}

int governor_set_nice(struct governor *governor)
{
	int wanted = governor->config.ksmd_nice;
	if (wanted == CONFIG_NICE_KEEP || governor->ksmd.fd < 0 || governor->root->foreign)
		return 0; /* the PID of a captured ksmd is somebody else's here */
	return setpriority(PRIO_PROCESS, (id_t)governor->ksmd.pid, wanted) < 0 ? -errno : 0;
}

/*
 * What the service writes is its to restore, and nothing else: others are the administrator's. Returns 0,
 * or -errno where a knob is there and cannot be read: it must not be written then.
 */
static int read_first(struct governor *governor)
{
	for (int key = 0; key < KSM_KEYS; key++)
		governor->first.error[key] = -ENODATA;
	for (size_t i = 0; i < WRITTEN; i++) {
		int err = ksm_get(governor->ksm, written[i], &governor->first.value[written[i]]);
		governor->first.error[written[i]] = err;
		if (err && (err != -ENOENT || written[i] == KSM_RUN))
			return err;
	}
	/* run=2 is a command rather than a state: to repeat it unasked could cost the machine. */
	governor->first.value[KSM_RUN] &= ~(int64_t)KSM_RUN_OFFLINE;
	if (governor->first.value[KSM_RUN] == KSM_RUN_UNMERGE)
		governor->first.value[KSM_RUN] = KSM_RUN_STOP;
	return 0;
}

int governor_open(struct governor *governor, int64_t now_ms, const char **what)
{
	*what = "ksmd";
	if (ksmd_open(&governor->ksmd, governor->root))
		governor->ksmd.fd = -1;
	governor->first_nice = CONFIG_NICE_KEEP;
	if (governor->ksmd.fd >= 0 && !governor->root->foreign &&
		get_nice(governor->ksmd.pid, &governor->first_nice))
		governor->first_nice = CONFIG_NICE_KEEP;

	*what = "the first values";
	int err = state_load_first(governor->dir, &governor->first, &governor->first_nice);
	if (err == -ENOENT) {
		err = read_first(governor);
		if (!err)
			err = state_save_first(
				governor->dir, &governor->first, governor->first_nice);
	}
	if (err)
		return err;
	governor->first_known = true;
	*what = "advisor_mode";
	int64_t advisor = KSM_ADVISOR_NONE;
	err = ksm_get(governor->ksm, KSM_ADVISOR_MODE, &advisor);
	if (err && err != -ENOENT)
		return err;
	if (advisor == KSM_ADVISOR_OTHER)
		return -EOPNOTSUPP; /* taken off, it could not be put back */
	err = advisor == KSM_ADVISOR_NONE
		      ? 0
		      : ksm_set(governor->ksm, KSM_ADVISOR_MODE, KSM_ADVISOR_NONE);
	if (err)
		return err;
	*what = "the processes";
	policy_init(&governor->policy);
	return watch_open(&governor->watch, governor->root, !governor->root->foreign, now_ms);
}

int governor_restore(struct governor *governor, enum ksm_key *failed)
{
	if (!governor->first_known || governor->policy.foreign)
		return 0;
	if (governor->first_nice != CONFIG_NICE_KEEP && governor->ksmd.fd >= 0 &&
		!governor->root->foreign) {
		int nice;
		if (!get_nice(governor->ksmd.pid, &nice) && nice != governor->first_nice)
			setpriority(PRIO_PROCESS, (id_t)governor->ksmd.pid, governor->first_nice);
	}
	return ksm_restore(governor->ksm, &governor->first, failed);
}

void governor_close(struct governor *governor)
{
	watch_close(&governor->watch);
	ksmd_close(&governor->ksmd);
}
