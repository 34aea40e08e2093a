/* Prints an audit for people: what crosses which boundary in words, then a table of who shares with whom. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <libsmartcols.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ksmstat/audit.h"
#include "ksmstat/text.h"

/* Rows of the table, sets of sides of a boundary, and names in a set; JSON has all. */
enum { ROWS_MAX = 20, SETS_MAX = 5, NAMES_MAX = 6 };
#define SIZE_TEXT 32

/* A size for people, or in bytes where they asked for that. Returns buf. */
static const char *size(const struct audit *audit, const struct options *options, uint64_t pages,
	char buf[SIZE_TEXT])
{
	int64_t bytes = (int64_t)pages * audit->page_bytes;
	if (!options->print.bytes)
		return text_size(bytes, buf, SIZE_TEXT);
	snprintf(buf, SIZE_TEXT, "%" PRId64, bytes);
	return buf;
}

/* What a process is in that is in no container. */
static const char *none(unsigned boundary)
{
	return boundary == AUDIT_CONTAINER ? "(no container)" : "(not known)";
}

static void print_set(const struct audit *audit, unsigned boundary, const struct together_set *set)
{
	const uint32_t *ids = audit->sums.sides[boundary].ids + set->first;
	for (size_t i = 0; i < set->count && i < NAMES_MAX; i++) {
		char text[AUDIT_TEXT_MAX];
		const char *name = audit_side(audit, boundary, ids[i], text);
		printf("%s%s", i ? ", " : "", name ? name : none(boundary));
	}
	if (set->count > NAMES_MAX)
		printf(" and %zu more", set->count - NAMES_MAX);
	putchar('\n');
}

static void print_boundary(
	const struct audit *audit, const struct options *options, unsigned boundary)
{
	const struct together *sets = &audit->sums.sides[boundary];
	uint64_t pages = audit->sums.crossing_pages[boundary];
	char buf[SIZE_TEXT];

	printf("Crosses %s: %s\n", audit_plurals[boundary],
		pages ? size(audit, options, pages, buf) : "nothing");
	for (size_t i = 0; i < sets->count && i < SETS_MAX; i++) {
		printf("  %8s  ", size(audit, options, (uint64_t)sets->sets[i].saved_pages, buf));
		print_set(audit, boundary, &sets->sets[i]);
	}
	if (sets->count > SETS_MAX)
		printf("            and %zu more sets of %s\n", sets->count - SETS_MAX,
			audit_plurals[boundary]);
}

static void print_summary(const struct audit *audit, const struct options *options)
{
	const struct audit_sums *sums = &audit->sums;
	char all[SIZE_TEXT], shared[SIZE_TEXT], other[SIZE_TEXT];

	printf("Merged pages: %s, of which %s are shared between processes\n",
		size(audit, options, sums->pages, all),
		size(audit, options, sums->shared_pages, shared));
	for (unsigned i = 0; i < AUDIT_BOUNDARIES; i++)
		print_boundary(audit, options, i);
	if (sums->alone_pages)
		printf("In one process alone: %s\n",
			size(audit, options, sums->alone_pages, other));
	if (audit->zero_pages)
		printf("Zeros, not counted above: %s; they tell nothing of anybody\n",
			size(audit, options, audit->zero_pages, other));
}

static void name_crossing(unsigned crosses, char *buf, size_t len)
{
	size_t at = 0;
	snprintf(buf, len, "-");
	for (unsigned i = 0; i < AUDIT_BOUNDARIES; i++) {
		if (crosses >> i & 1)
			at += (size_t)snprintf(
				buf + at, len - at, "%s%s", at ? "," : "", audit_words[i]);
	}
}

/* "job(123)", or "12 job" of so many processes; groups of other kinds by their names. */
static void name_group(
	const struct audit *audit, const struct audit_group *group, char *buf, size_t len)
{
	char text[AUDIT_TEXT_MAX];
	const char *name = audit_name(audit, group, text);
	if (!name)
		name = none(audit->by == GROUP_CONTAINER ? AUDIT_CONTAINER : AUDIT_USER);
	if (audit->by > GROUP_PROGRAM)
		snprintf(buf, len, "%s", name);
	else if (group->count == 1)
		snprintf(buf, len, "%s(%d)", name, (int)audit->order[group->first]->pid);
	else
		snprintf(buf, len, "%zu %s", group->count, name);
}

/* The cells of one of the two, from column `at` on. */
static int set_group(const struct audit *audit, struct libscols_line *line, size_t at,
	const struct audit_group *group)
{
	/* A path of a control group can be as long as this. */
	size_t len = AUDIT_TEXT_MAX + (group->name ? strlen(group->name) : 0);
	char text[AUDIT_TEXT_MAX], *buf = malloc(len);
	if (!buf)
		return -ENOMEM;
	name_group(audit, group, buf, len);
	int err = scols_line_set_data(line, at, buf);
	if (!err && audit->by == GROUP_NONE)
		err = scols_line_set_data(line, at + 1,
			group->user ? text_safe(group->user, text, sizeof(text)) : "-");
	free(buf);
	return err;
}

static int add_pair(const struct audit *audit, const struct options *options,
	struct libscols_table *table, const struct audit_pair *pair)
{
	struct libscols_line *line = scols_table_new_line(table, NULL);
	size_t second = audit->by == GROUP_NONE ? 4 : 3;
	char buf[64];
	if (!line)
		return -ENOMEM;
	int err = scols_line_set_data(line, 0, size(audit, options, pair->pages, buf));
	name_crossing(pair->crosses, buf, sizeof(buf));
	err = err ? err : scols_line_set_data(line, 1, buf);
	err = err ? err : set_group(audit, line, 2, &audit->groups[pair->a]);
	if (err || pair->a != pair->b)
		return err ? err : set_group(audit, line, second, &audit->groups[pair->b]);
	return scols_line_set_data(line, second, "each other");
}

static struct libscols_table *new_table(const struct audit *audit, const struct options *options)
{
	static const char *const with_users[] = { "SHARED", "CROSSES", "A", "A_USER", "B",
		"B_USER" };
	static const char *const names[] = { "SHARED", "CROSSES", "A", "B" };
	bool users = audit->by == GROUP_NONE;
	size_t count =
		users ? sizeof(with_users) / sizeof(*with_users) : sizeof(names) / sizeof(*names);
	struct libscols_table *table = scols_new_table();

	scols_table_enable_noheadings(table, options->print.no_headings);
	for (size_t i = 0; table && i < count; i++) {
		int flags = i == 0 ? SCOLS_FL_RIGHT : i >= 2 ? SCOLS_FL_TRUNC : 0;
		if (!scols_table_new_column(table, users ? with_users[i] : names[i], 0, flags)) {
			scols_unref_table(table);
			return NULL;
		}
	}
	return table;
}

int audit_print(const struct audit *audit, const struct options *options)
{
	size_t count = audit->sums.pair_count;
	int err = 0;

	print_summary(audit, options);
	if (!count)
		return 0;
	struct libscols_table *table = new_table(audit, options);
	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < count && i < ROWS_MAX && !err; i++)
		err = add_pair(audit, options, table, &audit->sums.pairs[i]);
	if (!err) {
		putchar('\n');
		fflush(stdout);
		err = scols_print_table(table);
		if (count > ROWS_MAX)
			printf("and %zu more; -J has all\n", count - ROWS_MAX);
	}
	scols_unref_table(table);
	return err;
}
