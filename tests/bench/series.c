/* One run's samples over time, and the figures computed from them. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REACHED 0.95

static double mib(double pages)
{
	return pages * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

/* The last sample at or before t_s. */
static int at(const struct series *series, double t_s)
{
	int i = series->count - 1;
	while (i > 0 && series->samples[i].t_s > t_s)
		i--;
	return i;
}

static double share(const struct series *series, int from, int to)
{
	const struct sample *a = &series->samples[from], *b = &series->samples[to];
	return b->t_s > a->t_s ? (double)(b->ksmd_ns - a->ksmd_ns) / 1e7 / (b->t_s - a->t_s) : NAN;
}

double series_ksmd_percent(const struct series *series, int i, double window_s)
{
	int from = i;
	while (from > 0 && series->samples[i].t_s - series->samples[from].t_s < window_s)
		from--;
	return share(series, from, i);
}

double series_steady_window_s(double seconds)
{
	double quarter = seconds / 8;
	return quarter > 20 ? quarter : 20;
}

static double first_reaching(const struct series *series, int from, int end, double pages)
{
	for (int i = from; i < end; i++) {
		if ((double)series->samples[i].saved_pages >= pages)
			return series->samples[i].t_s;
	}
	return INFINITY;
}

/*
 * The joiners have merged when the saving grew by 95 % of what they added to the possible. It grows
 * from what was saved when they came; where that was less than 95 % of the possible, the rest
 * is not counted for them.
 */
static void times(const struct series *series, struct figures *figures)
{
	int end = series->join_s > 0 ? at(series, series->join_s) : series->count - 1;
	double possible = (double)series->samples[end].possible_pages;
	double last = (double)series->samples[series->count - 1].possible_pages;

	figures->t95_first_s = figures->t95_join_s = NAN;
	if (possible > 0)
		figures->t95_first_s = first_reaching(series, 0, end + 1, possible * REACHED);
	if (series->join_s <= 0 || last <= possible)
		return;
	double base = (double)series->samples[end].saved_pages;
	if (base < possible * REACHED || base > possible)
		base = possible;
	figures->t95_join_s =
		first_reaching(series, end, series->count, base + (last - possible) * REACHED) -
		series->join_s;
}

static void totals(const struct series *series, struct figures *figures)
{
	const struct sample *s = series->samples, *last = &s[series->count - 1];
	double possible = 0;
	figures->mib_s = figures->peak_ksmd = 0;
	for (int i = 1; i < series->count; i++) {
		double dt = s[i].t_s - s[i - 1].t_s, percent = series_ksmd_percent(series, i, 2);
		figures->mib_s += mib((double)s[i].saved_pages) * dt;
		possible += mib((double)s[i].possible_pages) * dt;
		if (s[i].t_s >= 2 && percent > figures->peak_ksmd)
			figures->peak_ksmd = percent;
	}
	figures->ksmd_s = (double)(last->ksmd_ns - s[0].ksmd_ns) / 1e9;
	figures->mib_s_per_cpu_s = figures->ksmd_s > 0 ? figures->mib_s / figures->ksmd_s : NAN;
	figures->saved_end_mib = mib((double)last->saved_pages);
	figures->saved_mean = possible > 0 ? 100 * figures->mib_s / possible : NAN;
	figures->saved_end = last->possible_pages > 0 ? 100 * (double)last->saved_pages /
								(double)last->possible_pages
						      : NAN;
	figures->scanned_mib = mib((double)(last->scanned_pages - s[0].scanned_pages));
}

/* How much slower the busy loops ran while the first processes were merged than at the first half's end. */
static double slowdown(const struct series *series)
{
	const struct sample *s = series->samples;
	double end = series->join_s > 0 ? series->join_s : series->seconds;
	int a = at(series, 1), b = at(series, 11), c = at(series, end - 10), d = at(series, end);
	if (!s[d].work || b <= a || d <= c || s[b].work == s[a].work)
		return NAN;
	double boost = (double)(s[b].work - s[a].work) / (s[b].t_s - s[a].t_s);
	double rest = (double)(s[d].work - s[c].work) / (s[d].t_s - s[c].t_s);
	return rest / boost;
}

void series_figures(const struct series *series, struct figures *figures)
{
	double window = series_steady_window_s(series->seconds);
	int last = series->count - 1, join = at(series, series->join_s);
	times(series, figures);
	totals(series, figures);
	figures->steady_first = NAN;
	if (series->join_s > window)
		figures->steady_first = share(series, at(series, series->join_s - window), join);
	figures->steady_last = share(series, at(series, series->samples[last].t_s - window), last);
	figures->busy_slowdown = slowdown(series);
}

void series_csv(const struct series *series, const char *workload, const char *controller, int run,
	FILE *file)
{
	for (int i = 0; i < series->count; i++) {
		const struct sample *s = &series->samples[i];
		double percent = series_ksmd_percent(series, i, 1);
		fprintf(file, "%s,%s,%d,%.2f,%.3f,%.3f,%.6f,%.3f\n", workload, controller, run,
			s->t_s, mib((double)s->saved_pages), mib((double)s->possible_pages),
			(double)(s->ksmd_ns - series->samples[0].ksmd_ns) / 1e9,
			isnan(percent) ? 0 : percent);
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	if (isnan(x) || isnan(y))
		return isnan(x) - isnan(y);
	return (x > y) - (x < y);
}

/* All fields are doubles: the struct is taken as an array of them. */
void figures_median(const struct figures *runs, int count, struct figures *median)
{
	double values[16], table[16][sizeof(*runs) / sizeof(double)];
	memcpy(table, runs, (size_t)count * sizeof(*runs));
	for (size_t field = 0; field < sizeof(*runs) / sizeof(double); field++) {
		for (int i = 0; i < count; i++)
			values[i] = table[i][field];
		qsort(values, (size_t)count, sizeof(*values), compare);
		double low = values[(count - 1) / 2], high = values[count / 2];
		/* Of two, one of them never: the median is never, not their mean. */
		((double *)(void *)median)[field] = (low + high) / 2;
	}
}
