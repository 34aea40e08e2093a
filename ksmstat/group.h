/* Groups of processes: by program, user, control group, unit, container, pod, or all of the system. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_GROUP_H
#define KSMSTAT_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ksmstat/column.h"
#include "ksmstat/entry.h"
#include "ksmstat/print.h"

enum group_by {
	GROUP_NONE,
	GROUP_PROGRAM,
	GROUP_USER,
	GROUP_CGROUP,
	GROUP_UNIT,
	GROUP_CONTAINER,
	GROUP_POD,
	GROUP_SYSTEM,
};

/* All there are, for the help. */
#define GROUP_WORDS "program, user, cgroup, unit, container, pod, system"

/* Find "program" and so on. Returns GROUP_NONE when it is none of them. */
enum group_by group_parse(const char *word);
/* The other way round. */
const char *group_word(enum group_by by);

/* Why a column cannot be shown or sorted by, to be put behind its name; NULL when it can. */
const char *group_refusal(enum group_by by, const struct column *column);

/*
 * Parse a list of columns as column_parse does, with the default of groups; NULL is the default.
 * "all" is all that groups can show; whether those named can is up to group_refusal.
 */
int group_columns(enum group_by by, struct column_choice *choice, const char *list,
	const char **bad, size_t *bad_len);

/* Sums over processes. Bit i of `known`: sum[i] holds what is known of columns[i]. */
struct group {
	const char *key;  /* the text that its processes have in common; NULL: none, or not known */
	const char *path; /* raw, of path_len bytes: in a tree */
	size_t path_len;
	size_t parent;	      /* in a tree: index, or PRINT_TOP */
	const char *saved_by; /* as the column says: exact where that of all its processes is */
	char *name;	      /* what key points to, where the group owns it */
	uint64_t known;
	int64_t sum[COLUMN_CHOICE_MAX];
};

struct group_list {
	struct group *groups;
	size_t count, room;
	struct group total;
};

struct group_order {
	const struct column *column; /* NULL: by key alone */
	bool reverse;
};

/*
 * Make groups of the entries, ordered. *list may be anything; its keys live as long as the
 * entries. Returns 0 or -ENOMEM; free with group_free in any case.
 */
int group_make(struct group_list *list, enum group_by by, const struct entry_list *entries,
	const struct group_order *order);
/* The same for the tree of control groups: each has what is in those below it, too. */
int group_make_tree(struct group_list *list, const struct entry_list *entries,
	const struct group_order *order, bool full_names);
void group_free(struct group_list *list);

/* Put what the kernel itself counts into the one group of the whole system. */
void group_add_machine(struct group *group, const struct root *root);

/* Print them. Returns 0 or -errno. */
int group_print(const struct group_list *list, enum group_by by, bool tree,
	const struct print_options *options);

/* For group_tree.c: one more group at the end, empty, or NULL; the sum of two; which comes first. */
struct group *group_append(struct group_list *list);
void group_add_entry(struct group *group, const struct entry *entry);
void group_add(struct group *group, const struct group *other);
int group_compare(const struct group_order *order, const struct group *a, const struct group *b);

#endif
