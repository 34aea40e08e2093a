/* The table that people read and the JSON that programs read, from one list of columns. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/report.h"

#include <math.h>
#include <stddef.h>
#include <sys/utsname.h>
#include <unistd.h>

static const struct column {
	const char *title; /* NULL: in the JSON alone */
	const char *key;
	int width, digits;
	size_t offset;
} columns[] = {
#define COLUMN(title, width, digits, name) \
	{ \
		title, #name, width, digits, offsetof(struct figures, name) \
	}
	COLUMN("t95 first s", 11, 1, t95_first_s),
	COLUMN("t95 join s", 10, 1, t95_join_s),
	COLUMN("steady1 %", 9, 2, steady_first),
	COLUMN("steady2 %", 9, 2, steady_last),
	COLUMN("peak %", 6, 0, peak_ksmd),
	COLUMN("ksmd CPU s", 10, 2, ksmd_s),
	COLUMN("MiB*s/CPU s", 11, 0, mib_s_per_cpu_s),
	COLUMN(NULL, 0, 0, saved_end_mib),
	COLUMN("saved %", 7, 1, saved_end),
	COLUMN("mean %", 6, 1, saved_mean),
	COLUMN(NULL, 0, 0, mib_s),
	COLUMN(NULL, 0, 0, scanned_mib),
	COLUMN("busy x", 6, 2, busy_slowdown),
	COLUMN("own CPU s", 9, 3, controller_s),
	COLUMN("own MiB", 7, 1, controller_mib),
	COLUMN("others %", 8, 0, others),
	COLUMN("strangers", 9, 0, strangers),
#undef COLUMN
};
#define COLUMNS (sizeof(columns) / sizeof(*columns))

static void json_number(FILE *json, const char *key, double value)
{
	/* What does not apply, and what was never reached, is null. */
	if (isfinite(value))
		fprintf(json, ", \"%s\": %.4f", key, value);
	else
		fprintf(json, ", \"%s\": null", key);
}

static void json_row(struct report *report, const char *controller, const char *kind)
{
	fprintf(report->json, "%s\n  {\"controller\": \"%s\", \"kind\": \"%s\"",
		report->first_row ? "" : ",", controller, kind);
	report->first_row = false;
}

static void row(struct report *report, const char *label, const char *controller, const char *kind,
	const struct figures *f)
{
	printf("%-12s", label);
	report->strangers |= f->strangers > 0;
	if (report->json)
		json_row(report, controller, kind);
	for (size_t i = 0; i < COLUMNS; i++) {
		const struct column *column = &columns[i];
		double v = *(const double *)(const void *)((const char *)f + column->offset);
		if (report->json)
			json_number(report->json, column->key, v);
		if (!column->title)
			continue;
		if (isfinite(v))
			printf("  %*.*f", column->width, column->digits, v);
		else
			printf("  %*s", column->width, isnan(v) ? "-" : "never");
	}
	putchar('\n');
	fflush(stdout);
	if (report->json)
		fputc('}', report->json);
}

int report_open(struct report *report, const char *json_path, double seconds, int repeat)
{
	struct utsname name = { .release = "" };
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uname(&name);
	*report = (struct report){ .first_workload = true };
	printf("Linux %s, %ld CPUs, %.0f s per run, median of %d\n", name.release, cpus, seconds,
		repeat);
	if (!json_path)
		return 0;
	report->json = fopen(json_path, "we");
	if (!report->json) {
		perror(json_path);
		return -1;
	}
	fprintf(report->json,
		"{\"kernel\": \"%s\", \"cpus\": %ld, \"seconds\": %.0f, \"repeat\": %d, "
		"\"workloads\": [",
		name.release, cpus, seconds, repeat);
	return 0;
}

int report_close(struct report *report)
{
	if (!report->json)
		return 0;
	fputs("]}\n", report->json);
	if (fclose(report->json)) {
		perror("control: JSON");
		return -1;
	}
	return 0;
}

static void json_begin(struct report *report, const char *workload)
{
	if (report->json)
		fprintf(report->json, "%s\n{\"workload\": \"%s\", \"rows\": [",
			report->first_workload ? "" : ",", workload);
	report->first_workload = report->strangers = false;
	report->first_row = true;
}

void report_begin(struct report *report, const char *workload, const char *what, double window_s)
{
	printf("\n%s: %s\n(steady: ksmd's share in the last %.0f s of each half)\n%-12s", workload,
		what, window_s, "controller");
	for (size_t i = 0; i < COLUMNS; i++) {
		if (columns[i].title)
			printf("  %*s", columns[i].width, columns[i].title);
	}
	putchar('\n');
	fflush(stdout);
	json_begin(report, workload);
}

void report_run(struct report *report, const char *controller, int run, const struct figures *f)
{
	char label[32];
	snprintf(label, sizeof(label), "  run %d", run + 1);
	row(report, label, controller, "run", f);
}

void report_median(struct report *report, const char *controller, const struct figures *f)
{
	row(report, controller, controller, "median", f);
}

void report_begin_short(struct report *report, const char *workload, const char *what)
{
	printf("\n%s: %s\n%-12s  %9s  %7s  %6s  %10s  %7s  %6s  %9s  %7s  %6s  %6s  %10s  %8s\n",
		workload, what, "controller", "total s", "with", "ratio", "median ms", "with",
		"ratio", "CPU ms", "with", "ratio", "noise", "ksmd CPU s", "others %");
	fflush(stdout);
	json_begin(report, workload);
}

void report_short(struct report *report, const char *controller, const struct short_figures *f)
{
	double total = f->total_s[1] / f->total_s[0], median = f->median_ms[1] / f->median_ms[0];
	double cpu = f->cpu_ms[1] / f->cpu_ms[0];
	printf("%-12s  %9.2f  %7.2f  %6.3f  %10.1f  %7.1f  %6.3f  %9.1f  %7.1f  %6.3f  %6.3f  "
	       "%10.2f  %8.0f\n",
		controller, f->total_s[0], f->total_s[1], total, f->median_ms[0], f->median_ms[1],
		median, f->cpu_ms[0], f->cpu_ms[1], cpu, f->noise, f->ksmd_s, f->others);
	fflush(stdout);
	if (!report->json)
		return;
	json_row(report, controller, "short");
	json_number(report->json, "total_s_without", f->total_s[0]);
	json_number(report->json, "total_s_with", f->total_s[1]);
	json_number(report->json, "total_ratio", total);
	json_number(report->json, "median_ratio", median);
	json_number(report->json, "cpu_ratio", cpu);
	json_number(report->json, "noise", f->noise);
	json_number(report->json, "ksmd_s", f->ksmd_s);
	json_number(report->json, "others", f->others);
	fputc('}', report->json);
}

void report_missing(struct report *report, const char *controller, const char *reason, bool skipped)
{
	printf("%-12s  %s %s\n", controller, skipped ? "SKIP" : "FAIL", reason);
	fflush(stdout);
	if (!report->json)
		return;
	json_row(report, controller, skipped ? "skipped" : "failed");
	fprintf(report->json, ", \"reason\": \"%s\"}", reason);
}

void report_end(struct report *report)
{
	if (report->strangers)
		puts("Not clean: processes of others (strangers) had mergeable memory at the same "
		     "time, which counts as saved too.");
	fflush(stdout);
	if (report->json)
		fputs("]}", report->json);
}
