/* Memory of the whole machine: meminfo, pressure stall information, vmstat. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/mem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sysfs/file.h"

int mem_parse_info(const char *text, size_t len, struct mem_info *info)
{
	struct mem_info out = { 0 };
	uint64_t cached = 0;
	if (file_find_u64(text, len, "MemTotal:", &out.total_kib) ||
		file_find_u64(text, len, "MemFree:", &out.free_kib))
		return -EINVAL;
	if (file_find_u64(text, len, "MemAvailable:", &out.available_kib)) {
		/* Before 3.14. Half of the page cache is a cautious guess of what can be dropped. */
		file_find_u64(text, len, "Cached:", &cached);
		out.available_kib = out.free_kib + cached / 2;
	}
	/* Absent without CONFIG_SWAP: none is right then. */
	file_find_u64(text, len, "SwapTotal:", &out.swap_total_kib);
	file_find_u64(text, len, "SwapFree:", &out.swap_free_kib);
	*info = out;
	return 0;
}

int mem_read_info(const struct root *root, struct mem_info *info)
{
	char buf[8192];
	ssize_t len = file_read(root->fd, "proc/meminfo", buf, sizeof(buf));
	return len < 0 ? (int)len : mem_parse_info(buf, (size_t)len, info);
}

/* "some avg10=1.23 avg60=... avg300=... total=456". Returns 0 or -EINVAL. */
static int parse_pressure_line(const char *line, uint32_t *avg10_centi, uint64_t *total_us)
{
	unsigned whole, hundredths;
	int end = 0;
	if (sscanf(line, "%*s avg10=%3u.%2u avg60=%*s avg300=%*s %n", &whole, &hundredths, &end) !=
			2 ||
		end == 0 || whole > 100)
		return -EINVAL;
	if (file_find_u64(line + end, strlen(line + end), "total=", total_us))
		return -EINVAL;
	*avg10_centi = whole * 100 + hundredths;
	return 0;
}

int mem_parse_pressure(const char *text, size_t len, struct mem_pressure *pressure)
{
	struct mem_pressure out = { 0 };
	char buf[512];
	if (len >= sizeof(buf))
		return -EINVAL;
	memcpy(buf, text, len);
	buf[len] = '\0';

	const char *some = strstr(buf, "some "), *full = strstr(buf, "full ");
	if (!some || parse_pressure_line(some, &out.some_avg10_centi, &out.some_total_us))
		return -EINVAL;
	if (full) {
		if (parse_pressure_line(full, &out.full_avg10_centi, &out.full_total_us))
			return -EINVAL;
		out.has_full = true;
	}
	*pressure = out;
	return 0;
}

int mem_read_pressure(const struct root *root, const char *resource, struct mem_pressure *pressure)
{
	char path[64], buf[512];
	snprintf(path, sizeof(path), "proc/pressure/%s", resource);
	ssize_t len = file_read(root->fd, path, buf, sizeof(buf));
	return len < 0 ? (int)len : mem_parse_pressure(buf, (size_t)len, pressure);
}

int mem_parse_vmstat(const char *text, size_t len, struct mem_vmstat *vmstat)
{
	const struct {
		const char *key;
		int64_t *value;
	} fields[] = {
		{ "cow_ksm ", &vmstat->cow_ksm },
		{ "ksm_swpin_copy ", &vmstat->ksm_swpin_copy },
		{ "thp_split_page ", &vmstat->thp_split_page },
		{ "thp_collapse_alloc ", &vmstat->thp_collapse_alloc },
	};
	uint64_t value;
	if (file_find_u64(text, len, "nr_free_pages ", &value))
		return -EINVAL;
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		bool ok = !file_find_u64(text, len, fields[i].key, &value) && value <= INT64_MAX;
		*fields[i].value = ok ? (int64_t)value : -1;
	}
	return 0;
}

int mem_read_vmstat(const struct root *root, struct mem_vmstat *vmstat)
{
	char buf[32768];
	ssize_t len = file_read(root->fd, "proc/vmstat", buf, sizeof(buf));
	return len < 0 ? (int)len : mem_parse_vmstat(buf, (size_t)len, vmstat);
}
