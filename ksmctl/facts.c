/* Looks at the machine for ksmctl doctor: the kernel's files twice, half a second apart, and every process. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ksmctl/config.h"
#include "ksmctl/doctor.h"
#include "ksmctl/state.h"
#include "sysfs/file.h"
#include "sysfs/ksmd.h"
#include "sysfs/smaps.h"

/* Long enough for many batches of ksmd at any sensible sleep, short for a person who waits. */
#define INTERVAL_MS 500

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Programs that are known to write to the tunables. The kernel cuts names at 15 bytes. */
static bool is_controller(const char *comm)
{
	static const char *const names[] = { "ksmtuned", "uksmd", "uksmdctl", "momd",
		"ksm-control-da", "ksmtunedd" };
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(comm, names[i]))
			return true;
	}
	return false;
}

static bool any(const struct proc_ksm *ksm)
{
	return (ksm->present & PROC_KSM_MERGE_ANY && ksm->merge_any) ||
	       (ksm->present & PROC_KSM_MERGEABLE && ksm->mergeable) ||
	       (ksm->present & PROC_KSM_RMAP_ITEMS && ksm->rmap_items > 0);
}

/* What the walk over all processes carries along. */
struct look {
	struct facts *facts;
	const struct root *root;
	struct facts_groups groups;
	struct facts_sampler *sampler; /* or NULL */
	int64_t uptime_ms;	       /* -1 not known */
};

struct sums {
	struct smaps_sum sum;
	int64_t lazy_kib;
	struct facts_sampler *sampler; /* or NULL */
};

static int visit(const struct smaps_area *area, void *data)
{
	struct sums *sums = data;
	if (area->bits & SMAPS_MERGEABLE)
		sums->lazy_kib += (int64_t)area->kib[SMAPS_LAZY_FREE];
	if (sums->sampler)
		facts_sampler_area(sums->sampler, area);
	return smaps_add(area, &sums->sum);
}

static void add_registered(struct look *look, const struct proc *proc, const struct proc_stat *stat,
	const struct sums *sums)
{
	struct facts *facts = look->facts;
	facts->registered++;
	facts->registered_kib += (int64_t)sums->sum.anonymous_kib;
	facts->registered_swap_kib += (int64_t)sums->sum.swap_kib;
	facts->registered_huge_kib += (int64_t)sums->sum.huge_kib;
	facts->registered_lazy_kib += sums->lazy_kib;
	int64_t started_ms = (int64_t)stat->start_ticks * 1000 / sysconf(_SC_CLK_TCK);
	int64_t age_ms = look->uptime_ms - started_ms;
	if (look->uptime_ms >= 0 && age_ms >= 0 &&
		(facts->youngest_ms < 0 || age_ms < facts->youngest_ms))
		facts->youngest_ms = age_ms;
	facts_groups_add(&look->groups, facts, look->root, proc);
	if (look->sampler)
		facts_sampler_add(look->sampler, proc);
}

/* Before 6.13 only the areas themselves tell whether a process opted in. */
static void add_process(struct look *look, const struct proc *proc)
{
	struct facts *facts = look->facts;
	struct proc_stat stat;
	struct proc_ksm ksm;
	struct sums sums = { .sampler = look->sampler };
	const unsigned tells = PROC_KSM_MERGE_ANY | PROC_KSM_MERGEABLE;

	if (proc_read_stat(proc, &stat) || stat.kernel_thread)
		return;
	facts->processes++;
	if (is_controller(stat.comm))
		snprintf(facts->controller, sizeof(facts->controller), "%s", stat.comm);
	int err = proc_read_ksm_stat(proc, &ksm);
	bool registered = !err && any(&ksm);
	if (!registered && !err && ksm.present & tells)
		return;
	if (look->sampler)
		facts_sampler_begin(look->sampler);
	int smaps_err = smaps_read(proc, visit, &sums);
	if (smaps_err == -ESRCH && !facts->captured) { /* in a captured tree it could not be read */
		facts->processes--;
		return;
	}
	if (smaps_err && !registered)
		facts->unseen++;
	if (smaps_err || (!registered && !sums.sum.mergeable_areas)) {
		facts->registered += registered;
		return;
	}
	add_registered(look, proc, &stat, &sums);
}

static int64_t uptime_ms(const struct facts *facts)
{
	struct timespec now;
	if (facts->captured || clock_gettime(CLOCK_BOOTTIME, &now))
		return -1;
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void walk(struct facts *facts, const struct root *root, struct facts_sampler *sampler)
{
	struct look look = {
		.facts = facts, .root = root, .sampler = sampler, .uptime_ms = uptime_ms(facts)
	};
	struct proc_walk walk;
	struct proc proc;
	if (proc_walk_open(&walk, root)) {
		facts->processes = facts->registered = -1;
		return;
	}
	while (proc_walk_next(&walk, &proc) > 0) {
		add_process(&look, &proc);
		proc_close(&proc);
	}
	proc_walk_close(&walk);
}

/* "0-1,4": how many. -1 where the kernel does not say. */
static int64_t count_nodes(const struct root *root)
{
	char buf[256];
	int64_t nodes = 0;
	int fd = root_opendir(root, "sys/devices/system/node");
	ssize_t len = fd < 0 ? fd : file_read(fd, "has_memory", buf, sizeof(buf));
	if (fd >= 0)
		close(fd);
	if (len <= 0)
		return -1;
	for (char *p = buf, *save = NULL; (p = strtok_r(p, ",\n", &save)); p = NULL) {
		int first, last;
		int got = sscanf(p, "%d-%d", &first, &last);
		nodes += got == 2 ? last - first + 1 : got == 1;
	}
	return nodes;
}

/* How much of a huge page khugepaged lets be shared before it leaves it alone; -1 where it is off. */
static int64_t khugepaged_shared(const struct root *root)
{
	char buf[128];
	int64_t pages = -1;
	int fd = root_opendir(root, "sys/kernel/mm/transparent_hugepage");
	if (fd < 0)
		return -1;
	if (file_read(fd, "enabled", buf, sizeof(buf)) > 0 && !strstr(buf, "[never]"))
		file_read_i64(fd, "khugepaged/max_ptes_shared", &pages);
	close(fd);
	return pages;
}

/* What our own service last wrote of itself. */
static void read_service(struct facts *facts)
{
	struct state_dir dir = { .fd = -1, .lock_fd = -1 };
	struct config config;
	char buf[4096];
	if (ctl_read_config(&config, CONFIG_FILE, false) ||
		state_open(&dir, config.state_dir, false))
		return;
	if (state_holder(&dir) > 0) {
		snprintf(facts->service_phase, sizeof(facts->service_phase), "running");
		if (state_read(&dir, "status", buf, sizeof(buf)) > 0) {
			const char *phase = strstr(buf, "phase=");
			if (phase)
				snprintf(facts->service_phase, sizeof(facts->service_phase), "%.*s",
					(int)strcspn(phase + 6, "\n"), phase + 6);
		}
	}
	state_close(&dir);
}

static int64_t cpu_ns(const struct root *root)
{
	struct ksmd ksmd;
	uint64_t ns = 0;
	if (ksmd_open(&ksmd, root))
		return -1;
	int err = ksmd_cpu_ns(&ksmd, &ns);
	ksmd_close(&ksmd);
	return err ? -1 : (int64_t)ns;
}

static void read_vmstat(const struct root *root, struct mem_vmstat *vmstat)
{
	if (mem_read_vmstat(root, vmstat))
		*vmstat = (struct mem_vmstat){ -1, -1, -1, -1 };
}

static void read_version(struct facts *facts, const struct root *root)
{
	char buf[1024];
	int fd = root_opendir(root, "proc");
	if (fd < 0)
		return;
	if (file_read(fd, "version", buf, sizeof(buf)) > 0) {
		buf[strcspn(buf, "\n")] = '\0';
		ctl_safe_name(facts->version, sizeof(facts->version), buf);
	}
	close(fd);
}

/* The second look; the first began at start. */
static void look_again(struct facts *facts, const struct ctl *ctl, struct ksm *ksm, int64_t start,
	int64_t cpu_before)
{
	int64_t left = INTERVAL_MS - (now_ms() - start);
	if (!facts->captured && left > 0)
		nanosleep(&(struct timespec){ .tv_nsec = left * 1000000 }, NULL);
	ksm_read(ksm, &facts->now);
	read_vmstat(&ctl->root, &facts->vmstat);
	facts->interval_ms = facts->captured ? 0 : now_ms() - start;
	int64_t cpu_after = cpu_ns(&ctl->root);
	if (cpu_before >= 0 && cpu_after >= 0 && !facts->captured)
		facts->ksmd_cpu_ns = cpu_after - cpu_before;
	ksm_close(ksm);
}

void facts_collect(struct facts *facts, const struct ctl *ctl, bool all)
{
	memset(facts, 0, sizeof(*facts));
	facts->captured = ctl->root.foreign != 0;
	facts->page_bytes = ctl_page_bytes();
	facts->ksmd_cpu_ns = facts->youngest_ms = -1;
	facts->sample = (struct facts_sample){ -1, -1, -1, -1, -1, -1, 0, 0 };
	int fd = root_opendir(&ctl->root, "sys/kernel");
	facts->sys_mounted = fd >= 0;
	if (fd >= 0)
		close(fd);
	facts->nodes = count_nodes(&ctl->root);
	facts->max_ptes_shared = khugepaged_shared(&ctl->root);
	read_version(facts, &ctl->root);
	if (!facts->captured)
		read_service(facts);

	struct ksm ksm;
	facts->ksm_error = ksm_open(&ksm, &ctl->root);
	if (!facts->ksm_error) {
		facts->write_error = faccessat(ksm.fd, "run", W_OK, AT_EACCESS) ? -errno : 0;
		ksm_read(&ksm, &facts->before);
	}
	int64_t cpu_before = cpu_ns(&ctl->root), start = now_ms();
	read_vmstat(&ctl->root, &facts->vmstat_before);
	struct facts_sampler *sampler = facts->captured ? NULL : facts_sampler_new(&ctl->root, all);
	walk(facts, &ctl->root, sampler);
	if (!facts->ksm_error)
		look_again(facts, ctl, &ksm, start, cpu_before);
	if (sampler)
		facts_sampler_finish(sampler, &ctl->root, &facts->sample);
}
