/* Runs a small workload on the real kernel and records what its counters say over time. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/real.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sysfs/ksm.h"
#include "sysfs/ksmd.h"
#include "tests/live/guard.h"

enum { REAL_PAGE = 4096 };

struct real_child {
	pid_t pid;
	int go, done; /* our ends of the pipes */
};

static int64_t real_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void real_sleep_until(int64_t ms)
{
	struct timespec at = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* Different in every 8 bytes from pages of another seed. */
static void real_fill(char *page, uint64_t seed)
{
	uint64_t *words = (uint64_t *)page;

	for (int i = 0; i < REAL_PAGE / 8; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		words[i] = seed ^ (seed >> 29);
	}
}

static char *real_fill_all(const struct real_process *process, uint32_t number, size_t *size)
{
	uint64_t own = (uint64_t)(number + 1) << 40;
	char *memory, *page;

	*size = ((size_t)process->equal + process->zero + process->unique + process->volatiles) *
		REAL_PAGE;
	memory = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		_exit(1);
	madvise(memory, *size, MADV_NOHUGEPAGE);
	page = memory;
	for (uint32_t i = 0; i < process->equal; i++, page += REAL_PAGE)
		real_fill(page, i + 1);
	for (uint32_t i = 0; i < process->zero; i++, page += REAL_PAGE)
		*(volatile char *)page = 0;
	for (uint32_t i = 0; i < process->unique + process->volatiles; i++, page += REAL_PAGE)
		real_fill(page, own + i);
	return memory;
}

/* The process of the workload: fill, wait, opt in, say so, and rewrite until killed. */
static void real_live(const struct real_workload *workload, uint32_t number, int go, int done)
{
	const struct real_process *process = &workload->process[number];
	size_t size, fixed = (size_t)process->equal + process->zero + process->unique;
	char *memory = real_fill_all(process, number, &size);
	int64_t next;
	char byte = 0;

	if (write(done, &byte, 1) != 1 || read(go, &byte, 1) != 1)
		_exit(1);
	if (madvise(memory, size, MADV_MERGEABLE) < 0 || write(done, &byte, 1) != 1)
		_exit(1);
	next = real_now_ms();
	for (uint64_t round = 1; process->volatiles; round++) {
		next += workload->period_ms;
		real_sleep_until(next);
		for (uint32_t i = 0; i < process->volatiles; i++)
			*(volatile uint64_t *)(memory + (fixed + i) * REAL_PAGE) =
				round << 32 | number << 24 | i;
	}
	for (;;)
		pause();
}

static bool real_used(const struct real_process *process)
{
	return process->equal || process->zero || process->unique || process->volatiles;
}

static int real_spawn(
	const struct real_workload *workload, uint32_t number, struct real_child *child)
{
	int go[2], done[2];
	char byte;

	if (!real_used(&workload->process[number]))
		return 0;
	if (pipe(go) < 0 || pipe(done) < 0)
		return -errno;
	child->pid = fork();
	if (child->pid < 0)
		return -errno;
	if (child->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		close(done[0]);
		real_live(workload, number, go[0], done[1]);
	}
	close(go[0]);
	close(done[1]);
	child->go = go[1];
	child->done = done[0];
	return read(child->done, &byte, 1) == 1 ? 0 : -EIO;
}

static int real_opt_in(struct real_child *child)
{
	char byte = 0;

	if (!child->pid)
		return 0;
	if (write(child->go, &byte, 1) != 1 || read(child->done, &byte, 1) != 1)
		return -EIO;
	return 0;
}

static void real_end(struct real_child *child)
{
	if (child->pid <= 0)
		return;
	kill(child->pid, SIGKILL);
	while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(child->go);
	close(child->done);
}

/* How long ksmd has been waiting for a core: the second field of schedstat. */
static int64_t real_waited_ns(const struct ksmd *ksmd)
{
	char text[128] = "";
	long long cpu_ns, waited_ns = 0;
	int fd = openat(ksmd->fd, "schedstat", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof text - 1) <= 0 ||
		sscanf(text, "%lld %lld", &cpu_ns, &waited_ns) != 2)
		waited_ns = 0;
	close(fd);
	return waited_ns;
}

static void real_point(struct real_record *record, int64_t at_ms, const struct ksmd *ksmd)
{
	struct ksm_state state;
	uint64_t cpu_ns = 0;
	uint32_t n = record->points;

	if (n == REAL_POINTS)
		return;
	ksm_read(guard_ksm(), &state);
	ksmd_cpu_ns(ksmd, &cpu_ns);
	record->at_ms[n] = at_ms;
	record->saved_pages[n] = 0;
	ksm_saved_pages(&state, &record->saved_pages[n]);
	record->scanned_pages[n] = state.value[KSM_PAGES_SCANNED];
	record->skipped_pages[n] = state.value[KSM_PAGES_SKIPPED];
	record->full_scans[n] = state.value[KSM_FULL_SCANS];
	record->cpu_ns[n] = (int64_t)cpu_ns;
	record->points++;
}

/* Whether ksmd knows of more pages than the workload has, or somebody has stopped it. */
static bool real_disturbed(const struct real_workload *workload)
{
	struct ksm_state state;
	int64_t known, own = 0;

	for (int i = 0; i < REAL_PROCESSES; i++)
		own += (int64_t)workload->process[i].equal + workload->process[i].zero +
		       workload->process[i].unique + workload->process[i].volatiles;
	ksm_read(guard_ksm(), &state);
	known = state.value[KSM_PAGES_SHARED] + state.value[KSM_PAGES_SHARING] +
		state.value[KSM_PAGES_UNSHARED] + state.value[KSM_PAGES_VOLATILE];
	return known > own + own / 100 || state.value[KSM_RUN] != KSM_RUN_MERGE ||
	       state.value[KSM_PAGES_TO_SCAN] != workload->pages_to_scan ||
	       state.value[KSM_SLEEP_MILLISECS] != workload->sleep_ms;
}

/* Cumulative counters start at 0 here, whatever happened before. */
static void real_rebase(struct real_record *record)
{
	int64_t scanned = record->scanned_pages[0], skipped = record->skipped_pages[0];
	int64_t cpu_ns = record->cpu_ns[0];

	for (uint32_t i = 0; i < record->points; i++) {
		record->scanned_pages[i] -= scanned;
		record->skipped_pages[i] -= skipped;
		record->cpu_ns[i] -= cpu_ns;
	}
}

static int real_knobs(const struct real_workload *workload)
{
	const struct {
		enum ksm_key key;
		int64_t value;
	} knobs[] = {
		{ KSM_RUN, KSM_RUN_UNMERGE }, /* puts the cursor to the pass boundary, too */
		{ KSM_RUN, KSM_RUN_STOP },
		{ KSM_ADVISOR_MODE, KSM_ADVISOR_NONE },
		{ KSM_PAGES_TO_SCAN, workload->pages_to_scan },
		{ KSM_SLEEP_MILLISECS, workload->sleep_ms },
		{ KSM_SMART_SCAN, workload->smart_scan },
		{ KSM_USE_ZERO_PAGES, workload->use_zero_pages },
	};

	for (size_t i = 0; i < sizeof knobs / sizeof *knobs; i++) {
		int err = ksm_set(guard_ksm(), knobs[i].key, knobs[i].value);

		if (err && !(err == -ENOENT && knobs[i].key == KSM_ADVISOR_MODE))
			return err;
	}
	return 0;
}

static int real_watch(const struct real_workload *workload, struct real_child *child,
	struct real_record *record, const struct ksmd *ksmd)
{
	int64_t start = real_now_ms();
	uint32_t next = 0;
	int err;

	record->waited_ns = -real_waited_ns(ksmd);
	real_point(record, 0, ksmd);
	err = ksm_set(guard_ksm(), KSM_RUN, KSM_RUN_MERGE);
	for (int64_t at = REAL_STEP_MS; !err && at <= workload->end_ms; at += REAL_STEP_MS) {
		while (next < REAL_PROCESSES && !workload->process[next].start_ms)
			next++;
		if (next < REAL_PROCESSES && at > workload->process[next].start_ms) {
			real_sleep_until(start + workload->process[next].start_ms);
			err = real_opt_in(&child[next++]);
		}
		real_sleep_until(start + at);
		real_point(record, real_now_ms() - start, ksmd);
		record->disturbed |= real_disturbed(workload);
	}
	record->waited_ns += real_waited_ns(ksmd);
	return err;
}

int real_run(const struct real_workload *workload, struct real_record *record)
{
	struct real_child child[REAL_PROCESSES] = { 0 };
	struct root root;
	struct ksmd ksmd;
	int err = root_open(&root, NULL);

	memset(record, 0, sizeof *record);
	if (err)
		return err;
	err = ksmd_open(&ksmd, &root);
	root_close(&root);
	if (err)
		return err;
	err = real_knobs(workload);
	for (uint32_t i = 0; !err && i < REAL_PROCESSES; i++)
		err = real_spawn(workload, i, &child[i]);
	for (uint32_t i = 0; !err && i < REAL_PROCESSES; i++)
		if (!workload->process[i].start_ms)
			err = real_opt_in(&child[i]);
	if (!err)
		err = real_watch(workload, child, record, &ksmd);
	ksm_set(guard_ksm(), KSM_RUN, KSM_RUN_STOP);
	for (uint32_t i = 0; i < REAL_PROCESSES; i++)
		real_end(&child[i]);
	ksmd_close(&ksmd);
	real_rebase(record);
	return err;
}
