/* The tree of control groups, each with the sums of all that is below it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ksmstat/group.h"
#include "ksmstat/text.h"

/*
 * Levels that are drawn, the root among them. Whoever may make control groups can nest them a
 * thousand deep, which would be more than parsers of JSON take: below this, a group hangs on its
 * ancestor of the last level, with the rest of its path as its name.
 */
#define LEVELS 64

/* The nodes from the root to the one made last. */
struct chain {
	size_t node[LEVELS];
	size_t depth;
};

/* Parents before their children, and all of a subtree together: '/' comes before any other byte. */
static int compare_paths(const char *a, const char *b)
{
	for (; *a && *a == *b; a++, b++)
		continue;
	unsigned x = *a == '/' ? 1 : *a ? (unsigned char)*a + 1u : 0;
	unsigned y = *b == '/' ? 1 : *b ? (unsigned char)*b + 1u : 0;
	return (x > y) - (x < y);
}

static int compare_places(const void *a, const void *b)
{
	const struct entry *const *x = a, *const *y = b;
	const struct place *p = (*x)->place, *q = (*y)->place;
	if (!p || !q)
		return (p == NULL) - (q == NULL);
	return compare_paths(p->path, q->path);
}

static bool is_above(const struct group *group, const char *path)
{
	size_t len = group->path_len;
	return len == 1 || (!strncmp(group->path, path, len) && (path[len] == '/' || !path[len]));
}

static int push(struct group_list *list, struct chain *chain, const char *path, size_t len)
{
	struct group *group = group_append(list);
	if (!group)
		return -ENOMEM;
	group->path = path;
	group->path_len = len;
	group->parent = chain->depth ? chain->node[chain->depth - 1] : PRINT_TOP;
	chain->node[chain->depth++] = list->count - 1;
	return 0;
}

/* Make the node of a path and those above it that are missing. Paths come in the order of above. */
static int open_path(struct group_list *list, struct chain *chain, const char *path)
{
	int err = 0;
	while (chain->depth && !is_above(&list->groups[chain->node[chain->depth - 1]], path))
		chain->depth--;
	if (!chain->depth)
		err = push(list, chain, path, 1);
	while (!err) {
		size_t len = list->groups[chain->node[chain->depth - 1]].path_len;
		size_t start = len == 1 ? 1 : len + 1, end;
		if (!path[len])
			return 0;
		const char *slash = strchr(path + start, '/');
		end = slash && chain->depth < LEVELS - 1 ? (size_t)(slash - path) : strlen(path);
		if (chain->depth == LEVELS)
			chain->depth--; /* a sibling of the last, though it is below it */
		err = push(list, chain, path, end);
	}
	return err;
}

/* Node by node, in the order of paths; those of an unknown place last, beside the root. */
static int make_nodes(struct group_list *list, const struct entry **all, size_t count)
{
	struct chain chain = { .depth = 0 };
	bool unknown = false;

	for (size_t i = 0; i < count; i++) {
		const struct place *place = all[i]->place;
		int err = 0;
		if (place)
			err = open_path(list, &chain, place->path);
		else if (!unknown)
			err = group_append(list) ? 0 : -ENOMEM;
		if (err)
			return err;
		unknown = !place;
		group_add_entry(place ? &list->groups[chain.node[chain.depth - 1]]
				      : &list->groups[list->count - 1],
			all[i]);
		group_add_entry(&list->total, all[i]);
	}
	return 0;
}

/* Keys, of which the table shows only what is behind the parent's. */
static int make_names(struct group_list *list, bool full_names)
{
	for (size_t i = 0; i < list->count; i++) {
		struct group *group = &list->groups[i];
		if (!group->path)
			continue;
		size_t above = 0;
		if (!full_names && group->parent != PRINT_TOP) {
			above = list->groups[group->parent].path_len;
			above += above > 1;
		}
		char *raw = strndup(group->path + above, group->path_len - above);
		group->name = malloc(4 * group->path_len + 1);
		if (raw && group->name)
			group->key = text_safe(raw, group->name, 4 * group->path_len + 1);
		free(raw);
		if (!group->key)
			return -ENOMEM;
	}
	return 0;
}

static const struct group_list *qsort_list; /* qsort has no argument of its own to pass */
static const struct group_order *qsort_order;

static int compare_nodes(const void *a, const void *b)
{
	const size_t *x = a, *y = b;
	const struct group *groups = qsort_list->groups;
	int order = group_compare(qsort_order, &groups[*x], &groups[*y]);
	return order ? order : (*x > *y) - (*x < *y);
}

/* Bring siblings into order and keep parents in front of their children. */
static int order_nodes(struct group_list *list, const struct group_order *order)
{
	size_t count = list->count, kept = 0, at;
	/* For each node its first child and its next sibling; the tops are children of one more. */
	size_t *nodes = calloc(4 * (count + 1), sizeof(*nodes));
	struct group *groups = calloc(count + 1, sizeof(*groups));
	if (!nodes || !groups) {
		free(nodes);
		free(groups);
		return -ENOMEM;
	}
	size_t *child = nodes + (count + 1), *sibling = child + (count + 1);
	size_t *where = sibling + (count + 1);
	for (size_t i = 0; i <= count; i++) {
		nodes[i] = i;
		child[i] = sibling[i] = PRINT_TOP;
	}
	qsort_list = list;
	qsort_order = order;
	qsort(nodes, count, sizeof(*nodes), compare_nodes);
	for (size_t i = count; i-- > 0;) {
		size_t parent = list->groups[nodes[i]].parent;
		parent = parent == PRINT_TOP ? count : parent;
		sibling[nodes[i]] = child[parent];
		child[parent] = nodes[i];
	}
	for (at = child[count]; at != PRINT_TOP;) {
		where[at] = kept;
		groups[kept] = list->groups[at];
		if (groups[kept].parent != PRINT_TOP)
			groups[kept].parent = where[groups[kept].parent];
		kept++;
		if (child[at] != PRINT_TOP) {
			at = child[at];
			continue;
		}
		/* Up to the first that has a sibling to come. */
		while (at != PRINT_TOP && sibling[at] == PRINT_TOP)
			at = list->groups[at].parent;
		if (at != PRINT_TOP)
			at = sibling[at];
	}
	free(nodes);
	free(list->groups);
	list->groups = groups;
	list->room = count + 1;
	return 0;
}

int group_make_tree(struct group_list *list, const struct entry_list *entries,
	const struct group_order *order, bool full_names)
{
	const struct entry **all = calloc(entries->count + 1, sizeof(const struct entry *));

	*list = (struct group_list){ 0 };
	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < entries->count; i++)
		all[i] = &entries->entries[i];
	qsort(all, entries->count, sizeof(const struct entry *), compare_places);
	int err = make_nodes(list, all, entries->count);
	free(all);
	for (size_t i = list->count; i-- > 0 && !err;) {
		const struct group *group = &list->groups[i];
		if (group->parent != PRINT_TOP)
			group_add(&list->groups[group->parent], group);
	}
	if (!err)
		err = make_names(list, full_names);
	if (!err)
		err = order_nodes(list, order);
	return err;
}
