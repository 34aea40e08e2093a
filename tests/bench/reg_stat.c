/* Medians, their intervals, and the verdict on a limit. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/reg_stat.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Of a ratio: a limit of one part in a hundred can be told with this. */
#define NARROW 0.01

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(const double *sorted, int n, double q)
{
	double place = q * (n - 1);
	int i = (int)place;

	return i + 1 < n ? sorted[i] + (place - i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

void reg_stat_row(struct row *row, double *values, int n)
{
	/* ranks that hold the median with 95 %, whatever the distribution */
	int reach = (int)ceil(0.98 * sqrt(n)), low = (n + 1) / 2 - reach, high = n / 2 + 1 + reach;

	qsort(values, n, sizeof(*values), ascending);
	row->n = n;
	row->median = quantile(values, n, 0.5);
	row->quartile1 = quantile(values, n, 0.25);
	row->quartile3 = quantile(values, n, 0.75);
	row->low = values[low < 1 ? 0 : low - 1];
	row->high = values[high > n ? n - 1 : high - 1];
}

bool reg_stat_beyond(const struct row *row)
{
	return (row->kind == LIMIT_MOST && row->median > row->limit) ||
	       (row->kind == LIMIT_LEAST && row->median < row->limit);
}

bool reg_stat_missed(const struct row *row)
{
	/* all of so few values hold the median with less than 95 %; one alone is no sample but a count */
	if (row->n > 1 && row->n < 6)
		return false;
	if (row->high - row->low < NARROW)
		return reg_stat_beyond(row);
	return (row->kind == LIMIT_MOST && row->low > row->limit) ||
	       (row->kind == LIMIT_LEAST && row->high < row->limit);
}

bool reg_stat_print(const struct row *row)
{
	bool missed = reg_stat_missed(row);

	printf("%s\t%s\t%s\t%s\t%.4f\t%.4f\t%.4f\t%.4f\t%.4f\t%d\t", row->group, row->name,
		row->what, row->unit, row->median, row->low, row->high, row->quartile1,
		row->quartile3, row->n);
	if (row->kind == LIMIT_NONE)
		puts("-\tinfo");
	else
		printf("%s %.2f\t%s\n", row->kind == LIMIT_MOST ? "<=" : ">=", row->limit,
			missed		       ? "MISSED"
			: reg_stat_beyond(row) ? "unclear"
					       : "ok");
	fflush(stdout);
	return missed;
}
