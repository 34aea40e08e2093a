/* The kernel thread that merges: where it is and how much CPU time it has used. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SYSFS_KSMD_H
#define SYSFS_KSMD_H

#include <stdint.h>
#include <sys/types.h>

#include "sysfs/root.h"

struct ksmd {
	pid_t pid;
	int fd; /* /proc/PID; -1 when closed */
};

/* Find the kernel thread named ksmd. Returns 0, -ESRCH (none visible, as in a PID namespace) or -errno. */
int ksmd_open(struct ksmd *ksmd, const struct root *root);
void ksmd_close(struct ksmd *ksmd);

/* CPU time used since boot, in ns (schedstat; where that is absent from stat, in clock ticks). 0 or -errno. */
int ksmd_cpu_ns(const struct ksmd *ksmd, uint64_t *cpu_ns);

#endif
