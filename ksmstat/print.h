/* Prints the list of processes: table, JSON, raw, pairs, and the historic line. */
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
	bool bytes; /* sizes as plain numbers; JSON has them always */
	bool total; /* a last line with the totals of the columns that add up */
};

/*
 * Print entries in their order. Those that could not be read are left out of a table unless
 * show_unreadable is set, and have nulls in JSON. Returns 0 or -errno.
 */
int print_entries(
	const struct entry_list *list, const struct print_options *asked, bool show_unreadable);

/* "name(pid) code:(p=.., s=..) data:(p=.., s=..) total=.." in kB, a line each. */
void print_classic(const struct entry_list *list);

#endif
