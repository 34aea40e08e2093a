/* The experiment of the farm: three jobs plain, registered, and scanned; or with huge pages and without. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/farm_jobs.h"
#include "tests/bench/machine.h"
#include "tests/bench/place.h"
#include "tests/bench/reg_stat.h"

static const char usage_text[] =
	"usage: farm_run [--rounds N] [--events N] [--quiet PERCENT] scan|long|huge FOLDER\n"
	"Runs three jobs in each way, N rounds in turns, and prints rows of medians.\n"
	"Runs beside which the machine did more else than PERCENT of a core (10) are\n"
	"tried again, as many times as there are runs; 0: never.\n"
	"FOLDER receives runs.csv, series.csv and classic.\n"
	"Exit code 1: a limit is missed; 2: usage, or something failed.\n";

#define ROUNDS_MAX 50
#define WAYS_MAX 8
/* Shared of all data, per cent; and time against jobs that nobody scans. */
#define LEAST_SHARED 36
#define MOST_TIME 1.01

/* The first way is the base of all ratios, the second the same once more, which shows the noise. */
static const struct farm_way scan_ways[] = {
	{ .name = "plain" },
	{ .name = "again" },
	{ .name = "unscanned", .registered = true },
	{ .name = "scanned", .registered = true, .scanned = true },
	{ .name = NULL },
};
/* For jobs so long that more ways would take hours. */
static const struct farm_way *const long_ways = &scan_ways[2];
static const struct farm_way huge_ways[] = {
	{ .name = "never", .registered = true, .thp = "never" },
	{ .name = "again", .registered = true, .thp = "never" },
	{ .name = "never+merging", .registered = true, .scanned = true, .thp = "never" },
	{ .name = "madvise", .registered = true, .huge = true, .thp = "madvise" },
	{ .name = "madvise+merging",
		.registered = true,
		.scanned = true,
		.huge = true,
		.thp = "madvise" },
	{ .name = "always", .registered = true, .thp = "always" },
	{ .name = "always+merging", .registered = true, .scanned = true, .thp = "always" },
	{ .name = NULL },
};

static struct {
	int rounds;
	unsigned long events;
	double quiet_percent;
	const char *folder;
} options = { .rounds = 6, .events = 12000, .quiet_percent = 10 };

static struct farm_run runs[WAYS_MAX][ROUNDS_MAX];

enum { REAL, CPU, LATE_REAL, LATE_CPU, TIMES };
static const struct {
	const char *what;
	size_t offset;
} times[TIMES] = {
	[REAL] = { "real", offsetof(struct farm_job, real_s) },
	[CPU] = { "user+sys", offsetof(struct farm_job, cpu_s) },
	[LATE_REAL] = { "real", offsetof(struct farm_job, late_real_ms) },
	[LATE_CPU] = { "user+sys", offsetof(struct farm_job, late_cpu_ms) },
};

static double of_job(const struct farm_run *run, int job, size_t offset)
{
	return *(const double *)(const void *)((const char *)&run->jobs[job] + offset);
}

static double per_job(const struct farm_run *run, size_t offset)
{
	double sum = 0;
	for (int i = 0; i < FARM_JOBS; i++)
		sum += of_job(run, i, offset);
	return sum / FARM_JOBS;
}

/* Rows for all jobs together, and for each. Whether a limit is missed. */
static bool ratios(
	const char *group, const struct farm_way *ways, int way, int base, int first, double most)
{
	bool missed = false;
	for (int job = -1; job < FARM_JOBS; job++) {
		for (int time = first; time < first + 2; time++) {
			double values[ROUNDS_MAX];
			size_t offset = times[time].offset;
			char name[64];
			struct row row = { .group = group,
				.name = name,
				.unit = "ratio",
				.what = times[time].what,
				.kind = most > 0 ? LIMIT_MOST : LIMIT_NONE,
				.limit = most };
			snprintf(name, sizeof(name), "%s: all jobs", ways[way].name);
			if (job >= 0)
				snprintf(name, sizeof(name), "%s: job %d", ways[way].name, job + 1);
			for (int i = 0; i < options.rounds; i++) {
				const struct farm_run *a = &runs[way][i], *b = &runs[base][i];
				values[i] =
					job < 0 ? per_job(a, offset) / per_job(b, offset)
						: of_job(a, job, offset) / of_job(b, job, offset);
			}
			reg_stat_row(&row, values, options.rounds);
			missed |= reg_stat_print(&row);
		}
	}
	return missed;
}

typedef double figure(const struct farm_run *run);

static double data_kib(const struct farm_run *run)
{
	return per_job(run, offsetof(struct farm_job, data_p_kib)) +
	       per_job(run, offsetof(struct farm_job, data_s_kib));
}

static double shared_kib(const struct farm_run *run)
{
	return per_job(run, offsetof(struct farm_job, data_s_kib));
}

static double shared_percent(const struct farm_run *run)
{
	return 100 * shared_kib(run) / data_kib(run);
}

static double saved_mib(const struct farm_run *run)
{
	return FARM_JOBS * per_job(run, offsetof(struct farm_job, saved_kib)) / 1024;
}

static double huge_mib(const struct farm_run *run)
{
	return FARM_JOBS * per_job(run, offsetof(struct farm_job, huge_kib)) / 1024;
}

static double faults(const struct farm_run *run)
{
	return per_job(run, offsetof(struct farm_job, faults));
}

static double real_s(const struct farm_run *run)
{
	return per_job(run, offsetof(struct farm_job, real_s));
}

static double cpu_s(const struct farm_run *run)
{
	return per_job(run, offsetof(struct farm_job, cpu_s));
}

static double others(const struct farm_run *run)
{
	return run->others;
}

static double ksmd_s(const struct farm_run *run)
{
	return run->ksmd_s;
}

static double service_s(const struct farm_run *run)
{
	return run->service_s;
}

static bool figures(const struct farm_way *ways, const char *group, const char *unit, figure *f,
	bool scanned_only, double least)
{
	bool missed = false;
	for (int way = 0; ways[way].name; way++) {
		double values[ROUNDS_MAX];
		struct row row = {
			.group = group, .name = ways[way].name, .what = unit, .unit = unit
		};
		if (scanned_only && !ways[way].scanned)
			continue;
		if (least > 0 && ways[way].scanned)
			row.kind = LIMIT_LEAST, row.limit = least;
		for (int i = 0; i < options.rounds; i++)
			values[i] = f(&runs[way][i]);
		reg_stat_row(&row, values, options.rounds);
		missed |= reg_stat_print(&row);
	}
	return missed;
}

static bool print_rows(const struct farm_way *ways)
{
	bool huge = ways == huge_ways, missed = false;
	const char *base =
		huge ? "time, as a ratio to never without merging" : "time, as a ratio to plain";
	for (int way = 1; ways != long_ways && ways[way].name; way++)
		ratios(base, ways, way, 0, REAL, 0);
	if (!huge) {
		int unscanned = (int)(long_ways - ways), scanned = unscanned + 1;
		missed |= ratios(
			"time, as a ratio to unscanned", ways, scanned, unscanned, REAL, MOST_TIME);
		missed |= ratios("time of an event in the last quarter, as a ratio to unscanned",
			ways, scanned, unscanned, LATE_REAL, MOST_TIME);
	}
	figures(ways, "time of a job, real", "s", real_s, false, 0);
	figures(ways, "time of a job, user+sys", "s", cpu_s, false, 0);
	missed |= figures(ways, "shared part of a job's data", "%", shared_percent, false,
		huge ? 0 : LEAST_SHARED);
	figures(ways, "data of a job", "kB", data_kib, false, 0);
	figures(ways, "shared data of a job", "kB", shared_kib, false, 0);
	figures(ways, "saved, all jobs", "MiB", saved_mib, false, 0);
	figures(ways, "huge pages, all jobs", "MiB", huge_mib, false, 0);
	figures(ways, "minor faults of a job", "faults", faults, false, 0);
	figures(ways, "CPU of ksmd in a run", "s", ksmd_s, true, 0);
	figures(ways, "CPU of ksmctl daemon in a run", "s", service_s, true, 0);
	figures(ways, "CPU of the rest of the machine", "%", others, false, 0);
	return missed;
}

static void write_run(FILE *csv, const struct farm_way *way, int round, const struct farm_run *run)
{
	for (int i = 0; i < FARM_JOBS; i++) {
		const struct farm_job *job = &run->jobs[i];
		fprintf(csv, "%s,%d,%d,%.3f,%.3f,%.0f,%.0f,%.0f,%.0f,%.0f,%.3f,%.3f,%.1f,%s\n",
			way->name, round, i + 1, job->real_s, job->cpu_s, job->faults,
			job->data_p_kib, job->data_s_kib, job->saved_kib, job->huge_kib,
			run->ksmd_s, run->service_s, run->others, job->result);
	}
	fflush(csv);
}

static FILE *create(const char *name, const char *headings)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", options.folder, name);
	FILE *file = fopen(path, "we");
	if (!file) {
		perror(path);
		exit(2);
	}
	fputs(headings, file);
	return file;
}

/* What a job computes depends on nothing but its number. */
static bool same_results(const struct farm_run *a, const struct farm_run *b)
{
	for (int i = 0; i < FARM_JOBS; i++) {
		if (strcmp(a->jobs[i].result, b->jobs[i].result) != 0)
			return false;
	}
	return true;
}

/* Ten minutes at most, while the machine is busy with something else; the lock is not held. */
static void wait_for_quiet(void)
{
	for (int s = 0; options.quiet_percent > 0 && s < 600 && !run_stop_signal; s += 3) {
		double cpu_s = machine_cpu_s(), began_s = machine_now_s();
		sleep(3);
		if (100 * (machine_cpu_s() - cpu_s) <
			options.quiet_percent * (machine_now_s() - began_s))
			return;
	}
}

static struct {
	FILE *classic, *series, *runs;
	int again; /* how many runs may still be repeated */
} out;

/* Forget what a run wrote that is to be repeated. */
static void cut(FILE *file, long length)
{
	if (fflush(file) || ftruncate(fileno(file), length) || fseek(file, length, SEEK_SET))
		perror("farm_run");
}

/* One run, again while something else disturbs it. Returns NULL or what went wrong. */
static const char *run_once(const struct farm_way *way, int round, struct farm_run *run)
{
	for (;;) {
		long classic = ftell(out.classic), series = ftell(out.series);
		wait_for_quiet();
		if (run_stop_signal)
			return "interrupted";
		if (isatty(STDERR_FILENO))
			fprintf(stderr, "(round %d of %d: %-16s)\r", round + 1, options.rounds,
				way->name);
		struct outcome outcome =
			farm_jobs_run(way, round, options.events, out.classic, out.series, run);
		if (outcome.wrong)
			return outcome.wrong;
		place_remove_scratch();
		if (run->others <= options.quiet_percent || out.again <= 0)
			break;
		out.again--;
		cut(out.classic, classic);
		cut(out.series, series);
	}
	if (!same_results(run, &runs[0][0]))
		return "a job computed something else than before";
	if (run->strangers > 0)
		fprintf(stderr, "farm_run: %s: %d processes of others may be merged too\n",
			way->name, run->strangers);
	write_run(out.runs, way, round, run);
	return NULL;
}

/* Each round begins with another way, so that none is always the one after an idle time. */
static int run_all(const struct farm_way *ways)
{
	int count = 0;
	out.classic = create("classic", "");
	out.series = create("series.csv", "way,round,seconds,saved_mib,ksmd_s\n");
	out.runs = create("runs.csv", "way,round,job,real_s,cpu_s,faults,data_p_kib,data_s_kib,"
				      "saved_kib,huge_kib,ksmd_s,service_s,others,result\n");
	while (ways[count].name)
		count++;
	out.again = options.quiet_percent > 0 ? options.rounds * count : 0;
	for (int n = 0; n < options.rounds * count; n++) {
		int round = n / count, way = (round + n) % count;
		const char *wrong = run_once(&ways[way], round, &runs[way][round]);
		if (wrong) {
			fprintf(stderr, "farm_run: %s: %s\n", ways[way].name, wrong);
			return run_stop_signal ? 128 + run_stop_signal : 2;
		}
	}
	return fclose(out.classic) || fclose(out.series) || fclose(out.runs) ? 2 : 0;
}

static const struct farm_way *parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "events", required_argument, NULL, 'e' },
		{ "quiet", required_argument, NULL, 'q' },
		{ NULL, 0, NULL, 0 },
	};
	int c;
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 'r')
			options.rounds = atoi(optarg);
		else if (c == 'e')
			options.events = strtoul(optarg, NULL, 10);
		else if (c == 'q')
			options.quiet_percent = strtod(optarg, NULL);
		else
			return NULL;
	}
	if (argc - optind != 2 || options.rounds < 1 || options.rounds > ROUNDS_MAX ||
		!options.events)
		return NULL;
	options.folder = argv[optind + 1];
	if (!strcmp(argv[optind], "scan"))
		return scan_ways;
	if (!strcmp(argv[optind], "long"))
		return long_ways;
	return strcmp(argv[optind], "huge") ? NULL : huge_ways;
}

int main(int argc, char **argv)
{
	const struct farm_way *ways = parse(argc, argv);
	if (!ways) {
		fputs(usage_text, stderr);
		return 2;
	}
	if (place_find()) {
		fputs("farm_run: the programs cannot be found\n", stderr);
		return 2;
	}
	run_prepare();
	int code = run_all(ways);
	return code ? code : print_rows(ways);
}
