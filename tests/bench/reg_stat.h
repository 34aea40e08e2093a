/* Rows of the library's benchmark: a median with its spread, held against a limit. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_BENCH_REG_STAT_H
#define TESTS_BENCH_REG_STAT_H

#include <stdbool.h>

enum limit { LIMIT_NONE, LIMIT_MOST, LIMIT_LEAST };

struct row {
	const char *group, *name, *what, *unit;
	enum limit kind;
	double limit;
	/* filled by reg_stat_row: low and high hold the true median with 95 % */
	double median, low, high, quartile1, quartile3;
	int n;
};

/* Sorts values. n > 0. */
void reg_stat_row(struct row *row, double *values, int n);

/* The median is on the wrong side of the limit. */
bool reg_stat_beyond(const struct row *row);

/* And so is all of the interval, or the interval is so narrow that the median counts. */
bool reg_stat_missed(const struct row *row);

/*
 * One line of fields with tabs between: group, name, what, unit, median, low, high, quartiles, n,
 * limit, verdict. The verdict is ok, info (no limit), MISSED (beyond, and more than chance) or
 * unclear (beyond, perhaps by chance). Returns whether it is MISSED.
 */
bool reg_stat_print(const struct row *row);

#endif
