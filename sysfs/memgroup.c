/* Memory control groups: what limits one, and how much of that anonymous memory takes. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/memgroup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sysfs/cgroup.h"
#include "sysfs/file.h"

/* As many hierarchies as a kernel can have, each with the longest path. */
#define TEXT_MAX (16 * (CGROUP_PATH_MAX + 64))

static const char mount_v1[] = "sys/fs/cgroup/memory", mount_v2[] = "sys/fs/cgroup";

/* Is "memory" in the list "a,b" of a line "ID:a,b:/path"? */
static bool lists_memory(const char *list, size_t len)
{
	static const char name[] = "memory";
	size_t name_len = sizeof(name) - 1;
	for (const char *end = list + len; list < end;) {
		const char *comma = memchr(list, ',', (size_t)(end - list));
		size_t word = (size_t)((comma ? comma : end) - list);
		if (word == name_len && !memcmp(list, name, word))
			return true;
		list += word + 1;
	}
	return false;
}

ssize_t memgroup_parse_path(const char *text, size_t len, char *path, size_t size, bool *v1)
{
	const char *best = NULL, *end = text + len;
	size_t best_len = 0;
	bool best_v1 = false;
	for (const char *eol; text < end && !best_v1; text = eol + 1) {
		eol = memchr(text, '\n', (size_t)(end - text));
		if (!eol)
			eol = end;
		const char *list = memchr(text, ':', (size_t)(eol - text));
		const char *at = list ? memchr(list + 1, ':', (size_t)(eol - list - 1)) : NULL;
		if (!at || at + 1 == eol || at[1] != '/')
			continue;
		size_t list_len = (size_t)(at - ++list);
		if (list_len && !lists_memory(list, list_len))
			continue;
		best = at + 1;
		best_len = (size_t)(eol - best);
		best_v1 = list_len > 0;
	}
	if (!best)
		return -EINVAL;
	if (best_len >= size)
		return -ENAMETOOLONG;
	memcpy(path, best, best_len);
	path[best_len] = '\0';
	*v1 = best_v1;
	return (ssize_t)best_len;
}

ssize_t memgroup_read_path(const struct proc *proc, char *path, size_t size, bool *v1)
{
	char text[TEXT_MAX];
	ssize_t len = file_read(proc->fd, "cgroup", text, sizeof(text));
	return len < 0 ? len : memgroup_parse_path(text, (size_t)len, path, size, v1);
}

int memgroup_parse_limit(const char *text, size_t len, int64_t *bytes)
{
	int64_t number;
	if (len && text[len - 1] == '\n')
		len--;
	if (len == 3 && !memcmp(text, "max", 3)) {
		*bytes = INT64_MAX;
		return 0;
	}
	int err = file_parse_i64(text, len, &number);
	if (err)
		return err;
	/* version 1 has no word for it: the greatest number of whole pages, of whatever size */
	*bytes = number > INT64_MAX - (1 << 20) ? INT64_MAX : number;
	return 0;
}

/* The lower of *bytes and what that file holds; a file that is not there holds nothing. */
static void lower(int fd, const char *name, int64_t *bytes)
{
	char buf[64];
	int64_t limit;
	ssize_t len = file_read(fd, name, buf, sizeof(buf));
	if (len > 0 && !memgroup_parse_limit(buf, (size_t)len, &limit) && limit < *bytes)
		*bytes = limit;
}

static int64_t kib_of(const char *text, size_t len, const char *key)
{
	uint64_t bytes;
	return file_find_u64(text, len, key, &bytes) ? -1 : (int64_t)(bytes / 1024);
}

int memgroup_read(const struct root *root, const char *path, bool v1, struct memgroup *group)
{
	char text[16 * 1024], dir[sizeof(mount_v1) + CGROUP_PATH_MAX];
	int64_t limit = INT64_MAX, swap;
	snprintf(dir, sizeof(dir), "%s%s", v1 ? mount_v1 : mount_v2, path);
	int fd = root_opendir(root, dir);
	if (fd < 0)
		return fd;
	ssize_t len = file_read(fd, "memory.stat", text, sizeof(text));
	if (len >= 0 && v1) {
		lower(fd, "memory.limit_in_bytes", &limit);
		group->anon_kib = kib_of(text, (size_t)len, "total_rss ");
		group->swap_kib = kib_of(text, (size_t)len, "total_swap ");
	} else if (len >= 0) {
		lower(fd, "memory.max", &limit);
		lower(fd, "memory.high", &limit);
		group->anon_kib = kib_of(text, (size_t)len, "anon ");
		group->swap_kib =
			file_read_i64(fd, "memory.swap.current", &swap) ? -1 : swap / 1024;
	}
	close(fd);
	if (len < 0)
		return (int)len;
	group->limit_kib = limit == INT64_MAX ? -1 : limit / 1024;
	return 0;
}
