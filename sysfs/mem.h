/* Memory of the whole machine: meminfo, pressure stall information, vmstat. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SYSFS_MEM_H
#define SYSFS_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sysfs/root.h"

struct mem_info {
	uint64_t total_kib;
	uint64_t available_kib; /* estimated from free and page cache on kernels before 3.14 */
	uint64_t free_kib;
	uint64_t swap_total_kib;
	uint64_t swap_free_kib;
};

/* Parse /proc/meminfo. Returns 0 or -EINVAL when a needed line is missing; *info untouched then. */
int mem_parse_info(const char *text, size_t len, struct mem_info *info);
int mem_read_info(const struct root *root, struct mem_info *info);

/* One resource of /proc/pressure. "full" is absent for cpu before 5.13. */
struct mem_pressure {
	bool has_full;
	uint32_t some_avg10_centi; /* percent x 100 */
	uint32_t full_avg10_centi;
	uint64_t some_total_us;
	uint64_t full_total_us;
};

int mem_parse_pressure(const char *text, size_t len, struct mem_pressure *pressure);
/* resource is "memory", "cpu" or "io". -ENOENT without CONFIG_PSI, -EOPNOTSUPP with psi=0. */
int mem_read_pressure(const struct root *root, const char *resource, struct mem_pressure *pressure);

/* Event counters of /proc/vmstat; -1 where this kernel has none. */
struct mem_vmstat {
	int64_t cow_ksm;
	int64_t ksm_swpin_copy;
	int64_t thp_split_page;
	int64_t thp_collapse_alloc;
};

int mem_parse_vmstat(const char *text, size_t len, struct mem_vmstat *vmstat);
int mem_read_vmstat(const struct root *root, struct mem_vmstat *vmstat);

#endif
