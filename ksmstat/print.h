/* Prints rows of processes or of groups: table, JSON, raw, pairs, and the historic line. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_PRINT_H
#define KSMSTAT_PRINT_H

#include <stdbool.h>

#include "ksmstat/column.h"
#include "ksmstat/entry.h"

enum print_form { PRINT_TABLE, PRINT_JSON, PRINT_RAW, PRINT_PAIRS };

struct print_options {
	enum print_form form;
	struct column_choice columns;
	bool no_headings;
	bool bytes;   /* sizes as plain numbers; JSON has them always */
	bool total;   /* a last line with the totals of the columns that add up */
	char **text;  /* not NULL: a table goes there, to be freed, and not to stdout; */
	size_t width; /* for so many cells */
};

#define PRINT_TOP SIZE_MAX

/* Rows to print, and how their cells are asked for. What is not known is false or NULL. */
struct print_source {
	const char *name; /* of the array in JSON */
	const void *data;
	size_t count;
	bool (*number)(const void *data, size_t row, const struct column *column, int64_t *value);
	const char *(*text)(const void *data, size_t row, const struct column *column);
	bool (*total)(const void *data, const struct column *column, int64_t *value);
	/* NULL without a tree; else the parent of a row, further up, or PRINT_TOP. */
	size_t (*parent)(const void *data, size_t row);
	const struct column *label; /* where the tree is drawn */
};

/* Returns 0 or -errno. */
int print_table(const struct print_source *rows, const struct print_options *asked);

/*
 * Print entries in their order. Those that could not be read are left out of a table unless
 * show_unreadable is set, and have nulls in JSON. Returns 0 or -errno.
 */
int print_entries(
	const struct entry_list *list, const struct print_options *options, bool show_unreadable);

/* "name(pid) code:(p=.., s=..) data:(p=.., s=..) total=.." in kB, a line each. */
void print_classic(const struct entry_list *list);

#endif
