/* The columns of ksmstat: one table that feeds output, JSON, sorting and help. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_COLUMN_H
#define KSMSTAT_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ksmstat/entry.h"

/* COLUMN_PLACE: a text that comes from the control group, and is fit to be shown as it is. */
enum column_kind { COLUMN_TEXT, COLUMN_PLACE, COLUMN_COUNT, COLUMN_BYTES };

struct column {
	const char *name;
	enum column_kind kind;
	bool adds_up; /* a total over processes means something */
	const char *help;
	/* Exactly one of the two is set. They return false or NULL where the value is not known. */
	bool (*number)(const struct entry *entry, int64_t *value); /* COLUMN_BYTES: bytes */
	const char *(*text)(const struct entry *entry);
	unsigned needs; /* ENTRY_NEEDS_... */
};

extern const struct column columns[];
extern const size_t columns_count;

/* Find a column by name, in any case. Returns NULL when there is none. */
const struct column *column_find(const char *name, size_t len);

/* Columns that no process has, but the machine as a whole: they are there with --by system only. */
bool column_is_of_machine(const struct column *column);

/* Most columns that one output may have. */
#define COLUMN_CHOICE_MAX 64

struct column_choice {
	const struct column *column[COLUMN_CHOICE_MAX];
	size_t count;
};

/* The columns of the default table. */
void column_default(struct column_choice *choice);

/*
 * Parse "PID,RSS" (these), "+RSS,PSS" (the default and these) or "all" (that
 * processes have).
 * Returns 0, or -EINVAL with the offending word in *bad, -E2BIG when there are too many.
 */
int column_parse(struct column_choice *choice, const char *list, const char **bad, size_t *bad_len);

/* a + b, or the largest or smallest number there is. */
int64_t column_add(int64_t a, int64_t b);

/* Compare by a column: unknown values last; numbers large first, texts in order; `reverse` turns it. */
int column_compare(
	const struct column *column, bool reverse, const struct entry *a, const struct entry *b);
/* The same for two values; NULL is not known. */
int column_compare_texts(bool reverse, const char *a, const char *b);
int column_compare_numbers(bool reverse, const int64_t *a, const int64_t *b);

#endif
