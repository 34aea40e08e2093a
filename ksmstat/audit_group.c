/* Puts the processes of an audit into groups, and on the sides of users, control groups and containers. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ksmstat/audit.h"
#include "ksmstat/text.h"

const char *const audit_words[AUDIT_BOUNDARIES] = {
	[AUDIT_USER] = "user", [AUDIT_CGROUP] = "cgroup", [AUDIT_CONTAINER] = "container"
};
const char *const audit_plurals[AUDIT_BOUNDARIES] = {
	[AUDIT_USER] = "users", [AUDIT_CGROUP] = "control groups", [AUDIT_CONTAINER] = "containers"
};

static const char *side_of(const struct entry *entry, unsigned boundary)
{
	switch (boundary) {
	case AUDIT_USER:
		return entry->user;
	case AUDIT_CGROUP:
		return entry->place ? entry->place->cgroup : NULL;
	default:
		return entry->place ? entry->place->container : NULL;
	}
}

static const char *name_of(const struct entry *entry, enum group_by by)
{
	switch (by) {
	case GROUP_USER:
		return entry->user;
	case GROUP_CGROUP:
		return side_of(entry, AUDIT_CGROUP);
	case GROUP_CONTAINER:
		return side_of(entry, AUDIT_CONTAINER);
	case GROUP_UNIT:
		return entry->place ? entry->place->unit : NULL;
	case GROUP_POD:
		return entry->place ? entry->place->pod : NULL;
	default:
		return entry->stat.comm;
	}
}

static enum group_by sort_by; /* qsort has no argument of its own to pass */

/* By group, then by all that tells cells apart. */
static int compare(const void *a, const void *b)
{
	const struct entry *x = *(const struct entry *const *)a;
	const struct entry *y = *(const struct entry *const *)b;
	int order = column_compare_texts(false, name_of(x, sort_by), name_of(y, sort_by));
	for (unsigned i = 0; i < AUDIT_BOUNDARIES && !order; i++)
		order = column_compare_texts(false, side_of(x, i), side_of(y, i));
	return order ? order : y->selected - x->selected;
}

static bool same_group(const struct entry *a, const struct entry *b, enum group_by by)
{
	return !column_compare_texts(false, name_of(a, by), name_of(b, by)) &&
	       (by != GROUP_NONE || !column_compare_texts(false, a->user, b->user));
}

/* The number of this name. There is room for one more. */
static uint32_t find_side(struct audit *audit, unsigned boundary, const char *name)
{
	const char **names = audit->sides[boundary];
	size_t *count = &audit->side_count[boundary];
	/* Mostly it is the one that was met last. */
	for (size_t i = *count; i-- > 0;) {
		if (!column_compare_texts(false, names[i], name))
			return (uint32_t)i;
	}
	names[*count] = name;
	return (uint32_t)(*count)++;
}

static int make_room(struct audit *audit)
{
	size_t count = audit->list.count + 1;
	bool failed = false;
	audit->order = calloc(count, sizeof(const struct entry *));
	audit->cells = calloc(count, sizeof(*audit->cells));
	audit->cell_of = calloc(count, sizeof(*audit->cell_of));
	audit->groups = calloc(count, sizeof(*audit->groups));
	for (unsigned i = 0; i < AUDIT_BOUNDARIES; i++) {
		audit->sides[i] = calloc(count, sizeof(const char *));
		failed |= !audit->sides[i];
	}
	return failed || !audit->order || !audit->cells || !audit->cell_of || !audit->groups
		       ? -ENOMEM
		       : 0;
}

int audit_group(struct audit *audit)
{
	const struct entry_list *list = &audit->list;
	int err = make_room(audit);
	if (err)
		return err;
	for (size_t i = 0; i < list->count; i++)
		audit->order[i] = &list->entries[i];
	sort_by = audit->by;
	qsort(audit->order, list->count, sizeof(const struct entry *), compare);
	for (size_t i = 0; i < list->count; i++) {
		const struct entry *entry = audit->order[i];
		const struct entry *last = i ? audit->order[i - 1] : NULL;
		if (!last || !same_group(last, entry, audit->by))
			audit->groups[audit->group_count++] =
				(struct audit_group){ .name = name_of(entry, audit->by),
					.user = audit->by == GROUP_NONE ? entry->user : NULL,
					.first = i };
		audit->groups[audit->group_count - 1].count++;
		if (!last || compare(&last, &entry)) {
			struct audit_cell *cell = &audit->cells[audit->cell_count++];
			cell->group = (uint32_t)audit->group_count - 1;
			cell->selected = entry->selected;
			for (unsigned k = 0; k < AUDIT_BOUNDARIES; k++)
				cell->side[k] = find_side(audit, k, side_of(entry, k));
		}
		audit->cell_of[i] = (uint32_t)audit->cell_count - 1;
	}
	return 0;
}

const char *audit_side(
	const struct audit *audit, unsigned boundary, uint32_t side, char buf[AUDIT_TEXT_MAX])
{
	const char *name = audit->sides[boundary][side];
	return name && boundary == AUDIT_USER ? text_safe(name, buf, AUDIT_TEXT_MAX) : name;
}

const char *audit_name(
	const struct audit *audit, const struct audit_group *group, char buf[AUDIT_TEXT_MAX])
{
	bool raw = audit->by <= GROUP_USER; /* what comes from control groups is safe */
	return group->name && raw ? text_safe(group->name, buf, AUDIT_TEXT_MAX) : group->name;
}
