/* The columns of lines by the interval: one table that feeds output, JSON and help. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_INTERVAL_COLUMN_H
#define KSMSTAT_INTERVAL_COLUMN_H

#include <stdbool.h>
#include <stddef.h>

#include "ksmstat/rates.h"

enum interval_kind { INTERVAL_TIME, INTERVAL_COUNT, INTERVAL_BYTES, INTERVAL_MILLI };

struct interval_column {
	const char *name;    /* for -o */
	const char *heading; /* of tables */
	const char *key;     /* of JSON */
	enum interval_kind kind;
	int decimals; /* of a table; INTERVAL_MILLI */
	const char *help;
};

extern const struct interval_column interval_columns[RATES_KEYS];

struct interval_choice {
	enum rates_key key[RATES_KEYS];
	size_t count;
};

/* The default: of the machine or of processes. */
void interval_default(struct interval_choice *choice, bool of_processes);
/* All there are. */
void interval_all(struct interval_choice *choice);
/* Put the time in front where it was not chosen. */
void interval_add_time(struct interval_choice *choice);

/*
 * Parse "SAVING,DELTA" (these), "+TIME" (the default and these) or "all". One that is named twice is
 * there once. Returns 0, or -EINVAL with the offending word in *bad.
 */
int interval_parse(struct interval_choice *choice, const char *list, bool of_processes,
	const char **bad, size_t *bad_len);

/* How a cell is written. */
enum interval_style {
	INTERVAL_SHORT, /* for people: 1.5G, 12:34:56 */
	INTERVAL_FULL,	/* for people with -b: sizes in bytes */
	INTERVAL_EXACT, /* for programs: bytes, thousandths, ISO 8601 */
};

#define INTERVAL_CELL_MAX 32

/* Returns buf, or NULL where it is not known. */
const char *interval_cell(const struct rates *rates, enum rates_key key, enum interval_style style,
	char buf[INTERVAL_CELL_MAX]);

/* Columns that a cell takes in a table. */
int interval_width(enum rates_key key, bool bytes);

#endif
