/* The clock, and what the rest of the machine does meanwhile. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/machine.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "sysfs/proc.h"

double machine_now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double machine_cpu_s(void)
{
	unsigned long long user, nice_, sys, idle, io, irq, soft, sum = 0;
	FILE *file = fopen("/proc/stat", "re");
	if (!file)
		return 0;
	if (fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice_, &sys, &idle, &io,
		    &irq, &soft) == 7)
		sum = user + nice_ + sys + irq + soft;
	fclose(file);
	return (double)sum / (double)sysconf(_SC_CLK_TCK);
}

double machine_forks(void)
{
	char line[4096];
	double forks = 0;
	FILE *file = fopen("/proc/stat", "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "processes %lf", &forks) == 1)
			break;
	}
	if (file)
		fclose(file);
	return forks;
}

int machine_registered(void)
{
	struct root root;
	struct proc_walk walk;
	struct proc proc;
	struct proc_ksm ksm;
	int count = -1;
	if (root_open(&root, NULL))
		return -1;
	if (!proc_walk_open(&walk, &root)) {
		while (proc_walk_next(&walk, &proc) == 1) {
			if (!proc_read_ksm_stat(&proc, &ksm) &&
				(ksm.present & PROC_KSM_MERGEABLE)) {
				/* Any process that answers, with no: 0 is known then. */
				count = (count < 0 ? 0 : count) + ksm.mergeable;
			}
			proc_close(&proc);
		}
		proc_walk_close(&walk);
	}
	root_close(&root);
	return count;
}

double machine_rusage_s(const struct rusage *usage)
{
	return (double)usage->ru_utime.tv_sec + (double)usage->ru_stime.tv_sec +
	       (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}
