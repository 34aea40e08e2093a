/* Prints rows of processes or of groups: table, JSON, raw, pairs, and the historic line. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/print.h"

#include <errno.h>
#include <inttypes.h>
#include <libsmartcols.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ksmstat/text.h"

static int add_columns(struct libscols_table *table, const struct print_source *source,
	const struct print_options *options)
{
	for (size_t i = 0; i < options->columns.count; i++) {
		const struct column *column = options->columns.column[i];
		bool last = i + 1 == options->columns.count;
		int flags = column->number ? SCOLS_FL_RIGHT : last ? SCOLS_FL_TRUNC : 0;
		if (source->parent && column == source->label)
			flags |= SCOLS_FL_TREE;
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

/* Not known: null in JSON is an empty cell, and elsewhere a dash, never 0. */
static int set_unknown(struct libscols_line *line, size_t at, const struct print_options *options)
{
	return options->form == PRINT_JSON ? 0 : scols_line_set_data(line, at, "-");
}

static int set_cell(struct libscols_line *line, size_t at, const struct print_options *options,
	const struct print_source *source, size_t row)
{
	const struct column *column = options->columns.column[at];
	char safe[4 * PROC_COMM_MAX];
	int64_t value;

	if (column->number)
		return source->number(source->data, row, column, &value)
			       ? set_number(line, at, options, column, value)
			       : set_unknown(line, at, options);
	const char *text = source->text(source->data, row, column);
	if (!text)
		return set_unknown(line, at, options);
	if (column->kind != COLUMN_PLACE)
		text = text_safe(text, safe, sizeof(safe));
	return scols_line_set_data(line, at, text);
}

static int add_total(struct libscols_table *table, const struct print_source *source,
	const struct print_options *options)
{
	struct libscols_line *line = scols_table_new_line(table, NULL);
	bool named = false;
	if (!line)
		return -ENOMEM;
	for (size_t i = 0; i < options->columns.count; i++) {
		const struct column *column = options->columns.column[i];
		int64_t total;
		int err = 0;
		if (column->adds_up)
			err = source->total(source->data, column, &total)
				      ? set_number(line, i, options, column, total)
				      : set_unknown(line, i, options);
		else if (!named)
			err = scols_line_set_data(line, i, "total");
		named |= !column->adds_up;
		if (err)
			return err;
	}
	return 0;
}

static int fill(struct libscols_table *table, const struct print_source *source,
	const struct print_options *options)
{
	struct libscols_line **lines = calloc(source->count + 1, sizeof(struct libscols_line *));
	int err = lines ? add_columns(table, source, options) : -ENOMEM;
	for (size_t row = 0; row < source->count && !err; row++) {
		size_t parent = source->parent ? source->parent(source->data, row) : PRINT_TOP;
		lines[row] =
			scols_table_new_line(table, parent == PRINT_TOP ? NULL : lines[parent]);
		if (!lines[row])
			err = -ENOMEM;
		for (size_t i = 0; i < options->columns.count && !err; i++)
			err = set_cell(lines[row], i, options, source, row);
	}
	if (!err && options->total && options->form != PRINT_JSON)
		err = add_total(table, source, options);
	free(lines);
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

/* All of it, or nothing: half a table, or half of JSON, would be taken for all. */
static int print_whole(struct libscols_table *table)
{
	char *text = NULL;
	int err = scols_print_table_to_string(table, &text);
	if (!err && !text)
		err = -ENOMEM;
	size_t len = err ? 0 : strlen(text);
	if (!err)
		fputs(text, stdout);
	if (len && text[len - 1] != '\n') /* of tables the library leaves out the last one */
		putchar('\n');
	free(text);
	return err;
}

int print_table(const struct print_source *rows, const struct print_options *asked)
{
	struct print_options options = *asked;
	struct print_source source = *rows;
	struct libscols_table *table = scols_new_table();
	if (!table)
		return -ENOMEM;
	if (options.form == PRINT_JSON)
		options.columns = without_repeats(&asked->columns);
	else if (options.form != PRINT_TABLE)
		source.parent = NULL; /* lines for programs: nothing is drawn into them */
	scols_table_set_name(table, source.name);
	scols_table_enable_json(table, options.form == PRINT_JSON);
	scols_table_enable_raw(table, options.form == PRINT_RAW);
	scols_table_enable_export(table, options.form == PRINT_PAIRS);
	scols_table_enable_noheadings(table, options.no_headings);
	/* Texts are safe already, and escaping the escapes makes them unreadable. But where a
	 * character is a byte, some of the bytes of UTF-8 are control characters: there it is left on. */
	scols_table_enable_noencoding(table, options.form == PRINT_TABLE && MB_CUR_MAX > 1);
	int err = fill(table, &source, &options);
	if (!err && options.text) {
		scols_table_set_termforce(table, SCOLS_TERMFORCE_ALWAYS);
		scols_table_set_termwidth(table, options.width);
		err = scols_print_table_to_string(table, options.text);
	} else if (!err) {
		err = print_whole(table);
	}
	scols_unref_table(table);
	return err;
}

/* The entries that are shown, for a source. */
struct shown {
	const struct entry **entries;
	size_t count;
};

static bool entry_number(const void *data, size_t row, const struct column *column, int64_t *value)
{
	const struct shown *shown = data;
	return column->number(shown->entries[row], value);
}

static const char *entry_text(const void *data, size_t row, const struct column *column)
{
	const struct shown *shown = data;
	return column->text(shown->entries[row]);
}

static bool entry_total(const void *data, const struct column *column, int64_t *value)
{
	const struct shown *shown = data;
	bool known = shown->count == 0;
	int64_t one;
	*value = 0;
	for (size_t i = 0; i < shown->count; i++) {
		if (column->number(shown->entries[i], &one)) {
			*value = column_add(*value, one);
			known = true;
		}
	}
	return known;
}

int print_entries(
	const struct entry_list *list, const struct print_options *options, bool show_unreadable)
{
	struct shown shown = { .entries = calloc(list->count + 1, sizeof(const struct entry *)) };
	if (!shown.entries)
		return -ENOMEM;
	for (size_t i = 0; i < list->count; i++) {
		const struct entry *entry = &list->entries[i];
		if (!entry->smaps_error || show_unreadable || options->form == PRINT_JSON)
			shown.entries[shown.count++] = entry;
	}
	const struct print_source source = { .name = "processes",
		.data = &shown,
		.count = shown.count,
		.number = entry_number,
		.text = entry_text,
		.total = entry_total };
	int err = print_table(&source, options);
	free(shown.entries);
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
