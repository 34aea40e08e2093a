/* Prints the list of processes: table, JSON, raw, pairs, and the historic line. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/print.h"

#include <errno.h>
#include <inttypes.h>
#include <libsmartcols.h>
#include <stdio.h>
#include <string.h>

#include "ksmstat/text.h"

static int add_columns(struct libscols_table *table, const struct print_options *options)
{
	for (size_t i = 0; i < options->columns.count; i++) {
		const struct column *column = options->columns.column[i];
		bool last = i + 1 == options->columns.count;
		int flags = column->number ? SCOLS_FL_RIGHT : last ? SCOLS_FL_TRUNC : 0;
		struct libscols_column *added =
			scols_table_new_column(table, column->name, 0, flags);
		if (!added)
			return -ENOMEM;
		scols_column_set_json_type(
			added, column->number ? SCOLS_JSON_NUMBER : SCOLS_JSON_STRING);
	}
	return 0;
}

/* Returns 0 or -ENOMEM. */
static int set_number(struct libscols_line *line, size_t at, const struct print_options *options,
	const struct column *column, int64_t value)
{
	char buf[32];
	if (column->kind == COLUMN_BYTES && !options->bytes && options->form != PRINT_JSON)
		text_size(value, buf, sizeof(buf));
	else
		snprintf(buf, sizeof(buf), "%" PRId64, value);
	return scols_line_set_data(line, at, buf);
}

static int set_cell(struct libscols_line *line, size_t at, const struct print_options *options,
	const struct entry *entry)
{
	const struct column *column = options->columns.column[at];
	char safe[4 * PROC_COMM_MAX];
	int64_t value;
	const char *text = column->text ? column->text(entry) : NULL;

	if (column->number && column->number(entry, &value))
		return set_number(line, at, options, column, value);
	if (text)
		return scols_line_set_data(line, at, text_safe(text, safe, sizeof(safe)));
	/* Not known: null in JSON is an empty cell, and elsewhere a dash, never 0. */
	return options->form == PRINT_JSON ? 0 : scols_line_set_data(line, at, "-");
}

static bool is_shown(
	const struct entry *entry, const struct print_options *options, bool show_unreadable)
{
	return !entry->smaps_error || show_unreadable || options->form == PRINT_JSON;
}

static int add_total(struct libscols_table *table, const struct entry_list *list,
	bool show_unreadable, const struct print_options *options)
{
	struct libscols_line *line = scols_table_new_line(table, NULL);
	if (!line)
		return -ENOMEM;
	for (size_t i = 0; i < options->columns.count; i++) {
		const struct column *column = options->columns.column[i];
		int64_t total = 0, value;
		if (i == 0)
			scols_line_set_data(line, i, "total");
		if (i == 0 || !column->adds_up)
			continue;
		for (size_t n = 0; n < list->count; n++) {
			const struct entry *entry = &list->entries[n];
			if (is_shown(entry, options, show_unreadable) &&
				column->number(entry, &value))
				total += value;
		}
		int err = set_number(line, i, options, column, total);
		if (err)
			return err;
	}
	return 0;
}

static int fill(struct libscols_table *table, const struct entry_list *list,
	const struct print_options *options, bool show_unreadable)
{
	int err = add_columns(table, options);
	for (size_t n = 0; n < list->count && !err; n++) {
		const struct entry *entry = &list->entries[n];
		if (!is_shown(entry, options, show_unreadable))
			continue;
		struct libscols_line *line = scols_table_new_line(table, NULL);
		if (!line)
			return -ENOMEM;
		for (size_t i = 0; i < options->columns.count && !err; i++)
			err = set_cell(line, i, options, entry);
	}
	if (!err && options->total && options->form != PRINT_JSON)
		err = add_total(table, list, show_unreadable, options);
	return err;
}

/* An object has each key once. */
static struct column_choice without_repeats(const struct column_choice *all)
{
	struct column_choice once = { .count = 0 };
	for (size_t i = 0; i < all->count; i++) {
		bool known = false;
		for (size_t k = 0; k < once.count; k++)
			known |= once.column[k] == all->column[i];
		if (!known)
			once.column[once.count++] = all->column[i];
	}
	return once;
}

int print_entries(
	const struct entry_list *list, const struct print_options *asked, bool show_unreadable)
{
	struct print_options options = *asked;
	struct libscols_table *table = scols_new_table();
	if (!table)
		return -ENOMEM;
	if (options.form == PRINT_JSON)
		options.columns = without_repeats(&asked->columns);
	scols_table_set_name(table, "processes");
	scols_table_enable_json(table, options.form == PRINT_JSON);
	scols_table_enable_raw(table, options.form == PRINT_RAW);
	scols_table_enable_export(table, options.form == PRINT_PAIRS);
	scols_table_enable_noheadings(table, options.no_headings);
	int err = fill(table, list, &options, show_unreadable);
	if (!err)
		err = scols_print_table(table);
	scols_unref_table(table);
	return err;
}

void print_classic(const struct entry_list *list)
{
	for (size_t n = 0; n < list->count; n++) {
		const struct entry *entry = &list->entries[n];
		const struct smaps_sum *sum = &entry->sum;
		char safe[4 * PROC_COMM_MAX];
		if (entry->smaps_error)
			continue;
		printf("%s(%d) code:(p=%" PRIu64 ", s=%" PRIu64 ") data:(p=%" PRIu64 ", s=%" PRIu64
		       ") total=%" PRIu64 "\n",
			text_safe(entry->stat.comm, safe, sizeof(safe)), (int)entry->pid,
			sum->code_private_kib, sum->code_shared_kib, sum->data_private_kib,
			sum->data_shared_kib,
			sum->code_private_kib + sum->code_shared_kib + sum->data_private_kib +
				sum->data_shared_kib);
	}
}
