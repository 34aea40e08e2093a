/* What was measured lately, and how it is drawn with letters. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_WATCH_HISTORY_H
#define KSMSTAT_WATCH_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than a terminal has columns. */
#define WATCH_HISTORY_MAX 1024

/* The newest values; start with a zeroed one. -1 is not known, and no value is negative. */
struct watch_history {
	int64_t values[WATCH_HISTORY_MAX];
	size_t next, count;
};

/* Add one; what is negative is not known. */
void watch_history_add(struct watch_history *history, int64_t value);

/* The largest of the newest `width` values; 0 where none is known. */
int64_t watch_history_max(const struct watch_history *history, size_t width);

/*
 * One row of a graph of `rows` rows, row 0 on top, the newest value rightmost, from 0 to the largest
 * shown. Into buf comes text of exactly `width` cells, in blocks of UTF-8 or in ASCII; what is not
 * known is blank, and what is not 0 is not blank. Takes 3 * width + 1 bytes at most; cut to fit.
 */
void watch_history_row(const struct watch_history *history, size_t width, size_t rows, size_t row,
	bool utf8, char *buf, size_t size);

#endif
