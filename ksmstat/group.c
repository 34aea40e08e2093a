/* Groups of processes: by program, user, control group, unit, container, pod, or all of the system. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "sysfs/ksm.h"
#include "sysfs/ksmd.h"

static const struct {
	const char *word, *key; /* the column that all processes of a group have in common */
} kinds[] = {
	[GROUP_PROGRAM] = { "program", "COMMAND" },
	[GROUP_USER] = { "user", "USER" },
	[GROUP_CGROUP] = { "cgroup", "CGROUP" },
	[GROUP_UNIT] = { "unit", "UNIT" },
	[GROUP_CONTAINER] = { "container", "CONTAINER" },
	[GROUP_POD] = { "pod", "POD" },
	[GROUP_SYSTEM] = { "system", NULL },
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

#define SAVED_BY "SAVED_BY"

static const struct column *find(const char *name)
{
	return column_find(name, strlen(name));
}

static const struct column *key_column(enum group_by by)
{
	return kinds[by].key ? find(kinds[by].key) : NULL;
}

enum group_by group_parse(const char *word)
{
	for (size_t i = 1; i < KINDS; i++) {
		if (!strcasecmp(word, kinds[i].word))
			return (enum group_by)i;
	}
	return GROUP_NONE;
}

const char *group_word(enum group_by by)
{
	return kinds[by].word;
}

const char *group_refusal(enum group_by by, const struct column *column)
{
	if (column_is_of_machine(column))
		return by == GROUP_SYSTEM ? NULL : "is of the whole machine: it needs --by system";
	if (by == GROUP_NONE || column->adds_up || column == key_column(by) ||
		column == find(SAVED_BY))
		return NULL;
	return column->number ? "does not add up over the processes of a group"
			      : "is not the same for all processes of a group";
}

static int add_column(struct column_choice *choice, const struct column *column)
{
	if (choice->count == COLUMN_CHOICE_MAX)
		return -E2BIG;
	choice->column[choice->count++] = column;
	return 0;
}

int group_columns(enum group_by by, struct column_choice *choice, const char *list,
	const char **bad, size_t *bad_len)
{
	struct column_choice out = { .count = 0 }, more = { .count = 0 };
	int err = 0;
	if (!list || *list == '+') {
		column_parse(&out, "PROCS,UNREADABLE,CODE_P,DATA_P,PSS,ZERO,SAVED", bad, bad_len);
		for (size_t i = 0; i < columns_count && by == GROUP_SYSTEM; i++) {
			if (column_is_of_machine(&columns[i]))
				add_column(&out, &columns[i]);
		}
		if (key_column(by))
			add_column(&out, key_column(by));
	}
	if (list && !strcasecmp(list, "all")) {
		for (size_t i = 0; i < columns_count; i++) {
			if (!group_refusal(by, &columns[i]))
				add_column(&out, &columns[i]);
		}
	} else if (list) {
		err = column_parse(&more, *list == '+' ? list + 1 : list, bad, bad_len);
	}
	for (size_t i = 0; i < more.count && !err; i++)
		err = add_column(&out, more.column[i]);
	if (!err)
		*choice = out;
	return err;
}

struct group *group_append(struct group_list *list)
{
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 64;
		struct group *groups = reallocarray(list->groups, room, sizeof(*groups));
		if (!groups)
			return NULL;
		list->groups = groups;
		list->room = room;
	}
	struct group *group = &list->groups[list->count++];
	memset(group, 0, sizeof(*group));
	group->parent = PRINT_TOP;
	return group;
}

/* One that is estimated makes the sum an estimate. */
static void add_saved_by(struct group *group, const char *how)
{
	if (how && (!group->saved_by || strcmp(how, "exact") != 0))
		group->saved_by = how;
}

void group_add_entry(struct group *group, const struct entry *entry)
{
	int64_t value;
	add_saved_by(group, find(SAVED_BY)->text(entry));
	for (size_t i = 0; i < columns_count; i++) {
		if (!columns[i].adds_up || !columns[i].number(entry, &value))
			continue;
		group->sum[i] = column_add(group->sum[i], value);
		group->known |= UINT64_C(1) << i;
	}
}

void group_add(struct group *group, const struct group *other)
{
	for (size_t i = 0; i < columns_count; i++)
		group->sum[i] = column_add(group->sum[i], other->sum[i]);
	group->known |= other->known;
	add_saved_by(group, other->saved_by);
}

static const int64_t *number(const struct group *group, const struct column *column)
{
	size_t i = (size_t)(column - columns);
	return group->known >> i & 1 ? &group->sum[i] : NULL;
}

int group_compare(const struct group_order *order, const struct group *a, const struct group *b)
{
	const struct column *column = order->column;
	bool by_how = column && column == find(SAVED_BY);
	bool by_key = !by_how && (!column || column->text);
	int result = 0;
	if (by_how)
		result = column_compare_texts(order->reverse, a->saved_by, b->saved_by);
	else if (!by_key)
		result = column_compare_numbers(
			order->reverse, number(a, column), number(b, column));
	return result ? result : column_compare_texts(by_key && order->reverse, a->key, b->key);
}

static const struct column *qsort_key; /* qsort has no argument of its own to pass */
static const struct group_order *qsort_order;

static int compare_entries(const void *a, const void *b)
{
	const struct entry *const *x = a, *const *y = b;
	return column_compare(qsort_key, false, *x, *y);
}

static int compare_groups(const void *a, const void *b)
{
	return group_compare(qsort_order, a, b);
}

/* Entries in the order of a key, so that those of a group are neighbours. NULL without memory. */
static const struct entry **sorted(const struct entry_list *entries, const struct column *key)
{
	const struct entry **all = calloc(entries->count + 1, sizeof(const struct entry *));
	for (size_t i = 0; all && i < entries->count; i++)
		all[i] = &entries->entries[i];
	qsort_key = key;
	if (all && key)
		qsort(all, entries->count, sizeof(const struct entry *), compare_entries);
	return all;
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

int group_make(struct group_list *list, enum group_by by, const struct entry_list *entries,
	const struct group_order *order)
{
	const struct column *key = key_column(by);
	const struct entry **all = sorted(entries, key);
	/* The whole system is there even when it has no process to show. */
	struct group *group = NULL;

	*list = (struct group_list){ 0 };
	if (!all)
		return -ENOMEM;
	if (by == GROUP_SYSTEM)
		group = group_append(list);
	for (size_t i = 0; i < entries->count; i++) {
		const char *text = key ? key->text(all[i]) : NULL;
		if (!group || !same(group->key, text)) {
			group = group_append(list);
			if (!group)
				break;
			group->key = text;
		}
		group_add_entry(group, all[i]);
		group_add_entry(&list->total, all[i]);
	}
	free(all);
	if (!group && entries->count)
		return -ENOMEM;
	qsort_order = order;
	if (list->count)
		qsort(list->groups, list->count, sizeof(*list->groups), compare_groups);
	return 0;
}

void group_free(struct group_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->groups[i].name);
	free(list->groups);
	memset(list, 0, sizeof(*list));
}

static void put(struct group *group, const char *name, int64_t value)
{
	size_t i = (size_t)(find(name) - columns);
	group->sum[i] = value;
	group->known |= UINT64_C(1) << i;
}

/* What no machine has is not known either. */
static void put_pages(struct group *group, const char *name, int64_t pages)
{
	int64_t bytes;
	if (!__builtin_mul_overflow(pages, (int64_t)sysconf(_SC_PAGESIZE), &bytes))
		put(group, name, bytes);
}

void group_add_machine(struct group *group, const struct root *root)
{
	int64_t value;
	uint64_t cpu_ns;
	struct ksm ksm;
	struct ksmd ksmd;

	if (!ksm_open(&ksm, root)) {
		if (!ksm_get(&ksm, KSM_PAGES_SHARING, &value))
			put_pages(group, "KERNEL_SAVED", value);
		if (!ksm_get(&ksm, KSM_ZERO_PAGES, &value))
			put_pages(group, "KERNEL_ZERO", value);
		if (!ksm_get(&ksm, KSM_GENERAL_PROFIT, &value))
			put(group, "KERNEL_PROFIT", value);
		ksm_close(&ksm);
	}
	if (!ksmd_open(&ksmd, root)) {
		if (!ksmd_cpu_ns(&ksmd, &cpu_ns))
			put(group, "KSMD_MS", (int64_t)(cpu_ns / 1000000));
		ksmd_close(&ksmd);
	}
}

static bool source_number(const void *data, size_t row, const struct column *column, int64_t *value)
{
	const struct group_list *list = data;
	const int64_t *known = number(&list->groups[row], column);
	if (known)
		*value = *known;
	return known;
}

static const char *source_text(const void *data, size_t row, const struct column *column)
{
	const struct group_list *list = data;
	const struct group *group = &list->groups[row];
	return column == find(SAVED_BY) ? group->saved_by : group->key;
}

static bool source_total(const void *data, const struct column *column, int64_t *value)
{
	const struct group_list *list = data;
	const int64_t *known = number(&list->total, column);
	*value = known ? *known : 0;
	return known || list->count == 0;
}

static size_t source_parent(const void *data, size_t row)
{
	const struct group_list *list = data;
	return list->groups[row].parent;
}

int group_print(const struct group_list *list, enum group_by by, bool tree,
	const struct print_options *options)
{
	const struct print_source source = { .name = "groups",
		.data = list,
		.count = list->count,
		.number = source_number,
		.text = source_text,
		.total = source_total,
		.parent = tree ? source_parent : NULL,
		.label = key_column(by) };
	return print_table(&source, options);
}
