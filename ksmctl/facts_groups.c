/* Looks for memory control groups that are near their limit, for ksmctl doctor. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "ksmctl/doctor.h"
#include "sysfs/cgroup.h"

#define GROUPS_MAX (sizeof(((struct facts_groups *)0)->seen) / sizeof(uint64_t))

/* Each group once, and no more than there is room for: a machine has few, or many alike. */
static bool is_new(struct facts_groups *groups, const char *path, bool v1)
{
	uint64_t hash = XXH3_64bits_withSeed(path, strlen(path), v1);
	for (size_t i = 0; i < groups->count; i++) {
		if (groups->seen[i] == hash)
			return false;
	}
	if (groups->count == GROUPS_MAX)
		return false;
	groups->seen[groups->count++] = hash;
	return true;
}

static bool tighter(const struct memgroup *a, const struct memgroup *b)
{
	return (double)a->anon_kib * (double)b->limit_kib >
	       (double)b->anon_kib * (double)a->limit_kib;
}

static void look_at(struct facts *facts, const struct root *root, const char *path, bool v1)
{
	struct memgroup group;
	if (memgroup_read(root, path, v1, &group) || group.limit_kib <= 0 || group.anon_kib < 0)
		return;
	if (*facts->group && !tighter(&group, &facts->in_group))
		return;
	/* the end of a long path tells more */
	size_t len = strlen(path), room = sizeof(facts->group) - 1;
	ctl_safe_name(facts->group, sizeof(facts->group), len > room ? path + len - room : path);
	facts->in_group = group;
}

/* A limit holds for all below: what is above counts as well. */
void facts_groups_add(struct facts_groups *groups, struct facts *facts, const struct root *root,
	const struct proc *proc)
{
	char path[CGROUP_PATH_MAX];
	bool v1;
	ssize_t len = memgroup_read_path(proc, path, sizeof(path), &v1);
	/* "/.." is outside of what a container sees */
	if (len <= 0 || strstr(path, "/.."))
		return;
	for (char *slash; is_new(groups, path, v1);) {
		look_at(facts, root, path, v1);
		slash = strrchr(path, '/');
		if (!slash || !slash[1])
			return;
		slash[slash == path] = '\0';
	}
}
