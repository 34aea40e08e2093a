/* Puts the processes of an estimate into groups. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ksmstat/estimate.h"
#include "ksmstat/text.h"

/* Four characters for each byte of a name, and a PID. */
#define NAME_SIZE (4 * PROC_COMM_MAX + 32)

/* All of one program: then its processes are what differs. */
static bool one_program(const struct plan *plan)
{
	for (size_t i = 1; i < plan->process_count; i++) {
		if (strcmp(plan->processes[i].comm, plan->processes[0].comm) != 0)
			return false;
	}
	return true;
}

static const char *name_user(uid_t uid, char *buf, size_t size)
{
	const struct passwd *user = getpwuid(uid);
	if (user)
		return text_safe(user->pw_name, buf, size);
	snprintf(buf, size, "%u", (unsigned)uid);
	return buf;
}

static const char *name_process(const struct plan_process *process, char *buf, size_t size)
{
	size_t len = strlen(text_safe(process->comm, buf, size));
	snprintf(buf + len, size - len, "(%d)", (int)process->pid);
	return buf;
}

/* The name of the group that a process belongs to; NULL when it is in no such thing. */
static const char *name_group(
	const struct plan_process *process, enum group_by by, char *buf, size_t size)
{
	const struct place *place = process->place;
	switch (by) {
	case GROUP_NONE:
		return name_process(process, buf, size);
	case GROUP_PROGRAM:
		return text_safe(process->comm, buf, size);
	case GROUP_USER:
		return process->uid == (uid_t)-1 ? NULL : name_user(process->uid, buf, size);
	case GROUP_CGROUP:
		return place ? place->cgroup : NULL;
	case GROUP_UNIT:
		return place ? place->unit : NULL;
	case GROUP_CONTAINER:
		return place ? place->container : NULL;
	case GROUP_POD:
		return place ? place->pod : NULL;
	case GROUP_SYSTEM:
		return "all";
	}
	return NULL;
}

static const char *word_of(enum group_by by)
{
	static const char *const words[] = {
		[GROUP_NONE] = "process",
		[GROUP_PROGRAM] = "program",
		[GROUP_USER] = "user",
		[GROUP_CGROUP] = "cgroup",
		[GROUP_UNIT] = "unit",
		[GROUP_CONTAINER] = "container",
		[GROUP_POD] = "pod",
		[GROUP_SYSTEM] = "system",
	};
	return words[by];
}

/* The group of that name, or the first that is free. */
static size_t find_group(const struct estimate *estimate, const char *name)
{
	for (size_t g = 0; g < estimate->group_count; g++) {
		const char *known = estimate->groups[g].name;
		if (known && !strcmp(known, name))
			return g;
	}
	return estimate->group_count;
}

int estimate_group(struct estimate *estimate, enum group_by by)
{
	struct plan *plan = &estimate->plan;
	if (by == GROUP_NONE && !one_program(plan))
		by = GROUP_PROGRAM;
	estimate->group_word = word_of(by);
	estimate->groups = calloc(plan->process_count + 1, sizeof(*estimate->groups));
	if (!estimate->groups)
		return -ENOMEM;
	for (size_t i = 0; i < plan->process_count; i++) {
		char buf[NAME_SIZE];
		const char *name = name_group(&plan->processes[i], by, buf, sizeof(buf));
		name = name ? name : "-";
		/* No two processes are the same. */
		size_t g = by == GROUP_NONE ? estimate->group_count : find_group(estimate, name);
		if (g == estimate->group_count) {
			estimate->groups[g].name = strdup(name);
			if (!estimate->groups[g].name)
				return -ENOMEM;
			estimate->group_count++;
		}
		estimate->groups[g].processes++;
		plan->processes[i].group = (uint32_t)g;
	}
	return 0;
}

void estimate_group_free(struct estimate *estimate)
{
	for (size_t i = 0; i < estimate->group_count; i++)
		free(estimate->groups[i].name);
	free(estimate->groups);
}
