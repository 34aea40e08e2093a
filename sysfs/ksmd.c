/* The kernel thread that merges: where it is and how much CPU time it has used. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/ksmd.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "sysfs/file.h"
#include "sysfs/proc.h"

int ksmd_open(struct ksmd *ksmd, const struct root *root)
{
	struct proc_walk walk;
	struct proc proc;
	struct proc_stat stat;

	ksmd->fd = -1;
	int err = proc_walk_open(&walk, root);
	if (err)
		return err;
	while ((err = proc_walk_next(&walk, &proc)) > 0) {
		if (!proc_read_stat(&proc, &stat) && stat.kernel_thread &&
			!strcmp(stat.comm, "ksmd")) {
			ksmd->pid = proc.pid;
			ksmd->fd = proc.fd;
			break;
		}
		proc_close(&proc);
	}
	proc_walk_close(&walk);
	if (err < 0)
		return err;
	return ksmd->fd >= 0 ? 0 : -ESRCH;
}

void ksmd_close(struct ksmd *ksmd)
{
	if (ksmd->fd >= 0)
		close(ksmd->fd);
	ksmd->fd = -1;
}

int ksmd_cpu_ns(const struct ksmd *ksmd, uint64_t *cpu_ns)
{
	char buf[128];
	/* Absent, or all zeros, where the kernel keeps no such statistics. */
	ssize_t len = file_read(ksmd->fd, "schedstat", buf, sizeof(buf));
	uint64_t ns = 0;
	if (len >= 0)
		file_find_u64(buf, (size_t)len, "", &ns);
	if (ns > 0) {
		*cpu_ns = ns;
		return 0;
	}

	struct proc proc = { .pid = ksmd->pid, .fd = ksmd->fd };
	struct proc_stat stat;
	int err = proc_read_stat(&proc, &stat);
	if (!err)
		*cpu_ns = (stat.utime_ticks + stat.stime_ticks) *
			  (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
	return err;
}
