/* The workloads: which processes start when, and what merging could save of their memory. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/workload.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/load.h"
#include "tests/bench/machine.h"

#define MAIN_LOAD "--mib 256 --equal 40 --zero 10 --unique 30 --volatile 20"

const struct workload workloads[] = {
	{ "main",
		"4 x 256 MiB (40 % equal, 10 % zero, 30 % unique, 20 % volatile), 2 more at half "
		"time",
		{ { 0, 4, 0, MAIN_LOAD }, { 50, 2, 0, MAIN_LOAD } } },
	{ "growing", "4 heaps that grow by 4 MiB/s to 128 MiB, 60 % equal",
		{ { 0, 4, 0,
			"--mib 128 --equal 60 --zero 0 --unique 40 --volatile 0 --grow-mib-s "
			"4" } } },
	{ "prefork",
		"a server of 128 MiB; 8 children rewrite half of it with equal content, 8 more at "
		"half time",
		{ { 0, 1, 8,
			  "--mib 128 --equal 0 --zero 0 --unique 100 --volatile 0 --children 8 "
			  "--rewrite 50" },
			{ 50, 1, 8,
				"--mib 128 --equal 0 --zero 0 --unique 100 --volatile 0 --children "
				"8 --rewrite 50" } } },
	{ "unmergeable", "4 x 256 MiB, all unique",
		{ { 0, 4, 0, "--mib 256 --equal 0 --zero 0 --unique 100 --volatile 0" } } },
	{ "volatile", "4 x 256 MiB, all of it rewritten each second",
		{ { 0, 4, 0, "--mib 256 --equal 0 --zero 0 --unique 0 --volatile 100" } } },
	{ "busy", "the main workload on a machine with two busy loops",
		{ { 0, 2, 0, "--busy" }, { 0, 4, 0, MAIN_LOAD }, { 50, 2, 0, MAIN_LOAD } } },
	{ NULL, NULL, { { 0 } } },
};

static struct {
	const char *program;
	int fd, count;
	struct process {
		pid_t pid;
		int slot, slots; /* where it and its children report */
	} processes[LOAD_SLOTS]; /* oldest first */
	struct load_report *reports;
} set = { .fd = -1 };

const struct workload *workload_find(const char *name)
{
	for (const struct workload *w = workloads; w->name; w++) {
		if (!strcmp(w->name, name))
			return w;
	}
	return NULL;
}

int workload_open(const char *load_program)
{
	size_t bytes = LOAD_SLOTS * sizeof(*set.reports);
	set.program = load_program;
	set.count = 0;
	set.fd = memfd_create("load reports", 0);
	if (set.fd < 0 || ftruncate(set.fd, (off_t)bytes) < 0)
		return -errno;
	set.reports = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, set.fd, 0);
	return set.reports == MAP_FAILED ? -errno : 0;
}

static _Noreturn void exec_load(const char *arguments, int slot)
{
	char text[256], numbers[3][16], program[] = "load";
	char seed[] = "--seed", fd[] = "--report-fd", at[] = "--slot", *argv[32], *save;
	int argc = 0;
	argv[argc++] = program;
	snprintf(text, sizeof(text), "%s", arguments);
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	snprintf(numbers[0], sizeof(numbers[0]), "%d", slot);
	snprintf(numbers[1], sizeof(numbers[1]), "%d", set.fd);
	snprintf(numbers[2], sizeof(numbers[2]), "%d", slot);
	argv[argc++] = seed, argv[argc++] = numbers[0];
	argv[argc++] = fd, argv[argc++] = numbers[1];
	argv[argc++] = at, argv[argc++] = numbers[2];
	argv[argc] = NULL;
	execv(set.program, argv);
	perror(set.program);
	_exit(127);
}

/* The first of `want` slots in a row that nobody reports to; LOAD_SLOTS and more: there are none. */
static int free_slots(int want)
{
	int slot = 0;
	for (int i = 0; i < set.count; i++) {
		const struct process *process = &set.processes[i];
		if (process->slot < slot + want && slot < process->slot + process->slots) {
			slot = process->slot + process->slots;
			i = -1; /* it may lie in another one's now */
		}
	}
	return slot + want <= LOAD_SLOTS ? slot : LOAD_SLOTS;
}

int workload_start(const struct workload_group *group)
{
	for (int i = 0; i < group->count; i++) {
		int slots = 1 + group->children, slot = free_slots(slots);
		if (slot == LOAD_SLOTS)
			return -ENOSPC;
		pid_t pid = fork();
		if (pid < 0)
			return -errno;
		if (pid == 0)
			exec_load(group->arguments, slot);
		set.processes[set.count++] = (struct process){ pid, slot, slots };
	}
	return 0;
}

/* Returns the CPU seconds that it used. */
static double end_process(const struct process *process)
{
	struct rusage usage = { 0 };
	kill(process->pid, SIGKILL);
	while (wait4(process->pid, NULL, 0, &usage) < 0 && errno == EINTR)
		;
	return machine_rusage_s(&usage);
}

void workload_end_oldest(void)
{
	const struct process oldest = set.processes[0];
	end_process(&oldest);
	memset(set.reports + oldest.slot, 0, (size_t)oldest.slots * sizeof(*set.reports));
	set.count--;
	memmove(set.processes, set.processes + 1, (size_t)set.count * sizeof(oldest));
}

bool workload_lives(void)
{
	for (int i = 0; i < set.count; i++) {
		siginfo_t info = { 0 };
		if (waitid(P_PID, (id_t)set.processes[i].pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
			info.si_pid)
			return false;
	}
	return true;
}

int workload_processes(void)
{
	int slots = 0;
	for (int i = 0; i < set.count; i++)
		slots += set.processes[i].slots;
	return slots;
}

int64_t workload_possible_pages(void)
{
	int64_t equal = 0, most = 0, zero = 0;
	for (int i = 0; i < LOAD_SLOTS; i++) {
		int64_t mine = (int64_t)atomic_load(&set.reports[i].equal_pages);
		equal += mine;
		if (mine > most)
			most = mine;
		zero += (int64_t)atomic_load(&set.reports[i].zero_pages);
	}
	return equal - most + zero;
}

uint64_t workload_work(void)
{
	uint64_t sum = 0;
	for (int i = 0; i < LOAD_SLOTS; i++) {
		if (!atomic_load(&set.reports[i].volatile_pages))
			sum += atomic_load(&set.reports[i].work);
	}
	return sum;
}

uint64_t workload_damaged(void)
{
	uint64_t sum = 0;
	for (int i = 0; i < LOAD_SLOTS; i++)
		sum += atomic_load(&set.reports[i].damaged);
	return sum;
}

double workload_close(void)
{
	double cpu_s = 0;
	for (int i = 0; i < set.count; i++)
		cpu_s += end_process(&set.processes[i]);
	set.count = 0;
	if (set.reports && set.reports != MAP_FAILED)
		munmap(set.reports, LOAD_SLOTS * sizeof(*set.reports));
	if (set.fd >= 0)
		close(set.fd);
	set.fd = -1;
	set.reports = NULL;
	return cpu_s;
}
