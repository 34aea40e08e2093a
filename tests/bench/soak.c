/* The service through a long run of jobs that come and go: what it must hold all the time. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sysfs/file.h"
#include "tests/bench/machine.h"
#include "tests/bench/place.h"
#include "tests/bench/run.h"
#include "tests/live/guard.h"

#define LOAD "--mib 192 --equal 40 --zero 10 --unique 30 --volatile 20"
#define JOBS_LEAST 2
#define JOBS_MOST 6
/* Something comes or goes after so long, evenly spread; nothing does at the end. */
#define CHANGE_LEAST_S 8
#define CHANGE_MOST_S 40
#define REST_S 60

/* What it must hold. */
#define ARRIVAL_S 10 /* so long after a change 95 % of what is possible is saved, */
#define SAVED_PERCENT 95
#define BOOST_PERCENT 85 /* ksmd uses no more of a core over 10 s, the service's default, */
#define BOOST_SLACK_PERCENT 5
#define REST_PERCENT 2 /* and no more in the second half of the rest */
#define WARM_S 60      /* from then on the service does not grow by more than this: */
#define GROWTH_KIB 256
#define GROWTH_FDS 4

#define SAMPLE_S 0.1
#define SAMPLES_PER_LOOK 50 /* at the service itself, which costs more */
#define WINDOW 100	    /* samples */

static struct {
	double minutes;
	unsigned seed;
	const char *config;
} options = { .minutes = 20, .seed = 1 };

static struct soak {
	double start, change_s; /* when the last change was */
	int jobs, arrivals, departures;
	int samples, judged, low; /* of those judged so many saved too little */
	double low_s, longest_low_s, least_percent, saved_mib_s, possible_mib_s;
	double cpu_s[WINDOW]; /* of ksmd, at the last samples */
	double first_cpu_s, rest_cpu_s, rest_from_s, peak_percent;
	long warm_rss_kib, rss_kib, most_rss_kib;
	int warm_fds, fds, most_fds;
	int bad_knobs;
} soak;

/* How many descriptors a process has; -1 when that cannot be seen. */
static int count_fds(pid_t pid)
{
	char path[64];
	int count = -2; /* . and .. */
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *dir = opendir(path);
	if (!dir)
		return -1;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static long rss_kib(pid_t pid)
{
	char path[64], text[4096];
	uint64_t kib;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	ssize_t len = file_read(-1, path, text, sizeof(text));
	return len < 0 || file_find_u64(text, (size_t)len, "VmRSS:", &kib) ? -1 : (long)kib;
}

/* The knobs are never what no policy would set. */
static bool knobs_are_sane(void)
{
	int64_t run = -1, pages = 0, sleep_ms = -1;
	return !ksm_get(guard_ksm(), KSM_RUN, &run) && (run == 0 || run == 1) &&
	       !ksm_get(guard_ksm(), KSM_PAGES_TO_SCAN, &pages) && pages > 0 && pages <= 1000000 &&
	       !ksm_get(guard_ksm(), KSM_SLEEP_MILLISECS, &sleep_ms) && sleep_ms >= 0 &&
	       sleep_ms <= 3600 * 1000;
}

static void look_at_saving(double now)
{
	int64_t sharing = 0, zero = 0, possible = workload_possible_pages();
	ksm_get(guard_ksm(), KSM_PAGES_SHARING, &sharing);
	ksm_get(guard_ksm(), KSM_ZERO_PAGES, &zero);
	double mib = (double)sysconf(_SC_PAGESIZE) / 1048576;
	soak.saved_mib_s += (double)(sharing + zero) * mib * SAMPLE_S;
	soak.possible_mib_s += (double)possible * mib * SAMPLE_S;
	if (possible <= 0 || now < soak.change_s + ARRIVAL_S) {
		soak.low_s = 0;
		return;
	}
	double percent = 100.0 * (double)(sharing + zero) / (double)possible;
	soak.judged++;
	if (soak.judged == 1 || percent < soak.least_percent)
		soak.least_percent = percent;
	bool low = percent < SAVED_PERCENT;
	soak.low += low;
	soak.low_s = low ? soak.low_s + SAMPLE_S : 0;
	if (soak.low_s > soak.longest_low_s)
		soak.longest_low_s = soak.low_s;
}

static void look_at_cpu(const struct ksmd *ksmd, double now, double rest_s)
{
	uint64_t ns = 0;
	ksmd_cpu_ns(ksmd, &ns);
	double cpu_s = (double)ns / 1e9;
	double *oldest = &soak.cpu_s[soak.samples % WINDOW];
	if (!soak.samples)
		soak.first_cpu_s = cpu_s;
	if (soak.samples >= WINDOW) {
		double percent = 100 * (cpu_s - *oldest) / (WINDOW * SAMPLE_S);
		if (percent > soak.peak_percent)
			soak.peak_percent = percent;
	}
	*oldest = cpu_s;
	if (now < rest_s) {
		soak.rest_cpu_s = cpu_s;
		soak.rest_from_s = now;
	}
	soak.samples++;
}

static void look_at_service(pid_t pid, double now)
{
	soak.rss_kib = rss_kib(pid);
	soak.fds = count_fds(pid);
	if (now < WARM_S || !soak.warm_fds) {
		soak.warm_rss_kib = soak.rss_kib;
		soak.warm_fds = soak.fds;
	}
	if (soak.rss_kib > soak.most_rss_kib)
		soak.most_rss_kib = soak.rss_kib;
	if (soak.fds > soak.most_fds)
		soak.most_fds = soak.fds;
}

/* A job comes or goes. Returns NULL, or what went wrong. */
static const char *change(double now)
{
	static const struct workload_group job = { 0, 1, 0, LOAD };
	bool come = soak.jobs < JOBS_LEAST || (soak.jobs < JOBS_MOST && rand_r(&options.seed) % 2);
	soak.change_s = now;
	if (come && workload_start(&job))
		return "a job cannot be started";
	if (come)
		soak.arrivals++;
	else
		soak.departures++;
	if (!come)
		workload_end_oldest();
	soak.jobs += come ? 1 : -1;
	return NULL;
}

static const char *churn(const struct ksmd *ksmd, const struct controller_run *run)
{
	double seconds = options.minutes * 60, change_s = 0, rest_s = seconds - REST_S;
	soak.start = machine_now_s();
	for (int i = 0; (double)i * SAMPLE_S <= seconds; i++) {
		double wait = soak.start + (double)i * SAMPLE_S - machine_now_s();
		if (wait > 0)
			usleep((useconds_t)(wait * 1e6));
		double now = machine_now_s() - soak.start;
		const char *wrong = NULL;
		if (now >= change_s && now < rest_s) {
			wrong = change(now);
			change_s = now + CHANGE_LEAST_S +
				   (double)(rand_r(&options.seed) % 1000) / 1000 *
					   (CHANGE_MOST_S - CHANGE_LEAST_S);
		}
		look_at_saving(now);
		look_at_cpu(ksmd, now, rest_s + REST_S / 2.0);
		soak.bad_knobs += !knobs_are_sane();
		if (soak.samples % SAMPLES_PER_LOOK == 1)
			look_at_service(run->pid, now);
		if (!wrong && !workload_lives())
			wrong = "a job ended by itself";
		if (!wrong && !controller_lives(run))
			wrong = "the service died";
		if (!wrong && run_stop_signal)
			wrong = "interrupted";
		if (wrong)
			return wrong;
	}
	return workload_damaged() ? "a job read back wrong data" : NULL;
}

static const char *body(const struct ksmd *ksmd, struct controller_run *run, void *data)
{
	(void)data;
	if (workload_open(place_load))
		return "no memory for the reports";
	const char *wrong = churn(ksmd, run);
	uint64_t ns = 0;
	ksmd_cpu_ns(ksmd, &ns);
	soak.first_cpu_s = (double)ns / 1e9 - soak.first_cpu_s;
	soak.rest_cpu_s = (double)ns / 1e9 - soak.rest_cpu_s;
	workload_close();
	return wrong;
}

static int number, failed;

static void expect(bool good, const char *what)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++number, what);
	failed += !good;
}

static int tell(const struct controller_run *run)
{
	double seconds = options.minutes * 60, rest = seconds - soak.rest_from_s;
	double rest_percent = rest > 0 ? 100 * soak.rest_cpu_s / rest : 0;
	printf("# %.0f s, %d jobs came and %d went, each of 192 MiB\n", seconds, soak.arrivals,
		soak.departures);
	printf("# saved %.1f %% of what was possible over all; least %.1f %% from %d s after a "
	       "change on\n",
		100 * soak.saved_mib_s / soak.possible_mib_s, soak.least_percent, ARRIVAL_S);
	printf("# ksmd: %.1f s of CPU, %.2f %% of a core; at most %.1f %% over 10 s, %.2f %% at "
	       "rest\n",
		soak.first_cpu_s, 100 * soak.first_cpu_s / seconds, soak.peak_percent,
		rest_percent);
	printf("# service: %ld KiB resident when warm, %ld at the end, %ld at most; %d, %d and %d "
	       "descriptors; %.2f s of CPU\n",
		soak.warm_rss_kib, soak.rss_kib, soak.most_rss_kib, soak.warm_fds, soak.fds,
		soak.most_fds, run->cpu_s);
	printf("# too little saved in %d of %d samples, %.1f s in one piece\n", soak.low,
		soak.judged, soak.longest_low_s);
	expect(soak.judged && !soak.low, "95 % of the possible is saved 10 s after each change");
	expect(soak.peak_percent <= BOOST_PERCENT + BOOST_SLACK_PERCENT,
		"ksmd stays within its budget");
	expect(rest_percent <= REST_PERCENT, "and comes to rest");
	expect(soak.warm_rss_kib > 0 && soak.rss_kib <= soak.warm_rss_kib + GROWTH_KIB,
		"the service does not grow");
	expect(soak.warm_fds > 0 && soak.fds <= soak.warm_fds + GROWTH_FDS,
		"nor do its descriptors");
	expect(!soak.bad_knobs, "the knobs are sane all the time");
	printf("1..%d\n", number);
	return failed != 0;
}

static _Noreturn void usage(void)
{
	fputs("usage: soak [--minutes N] [--seed N] [--config 'key=value;...']\n", stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{ "minutes", required_argument, NULL, 'm' },
		{ "seed", required_argument, NULL, 's' },
		{ "config", required_argument, NULL, 'o' },
		{ NULL, 0, NULL, 0 },
	};
	int c;
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 'm')
			options.minutes = strtod(optarg, NULL);
		else if (c == 's')
			options.seed = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'o')
			options.config = optarg;
		else
			usage();
	}
	if (optind < argc || !(options.minutes >= 3 && options.minutes <= 24 * 60))
		usage();
	struct controller_run run;
	if (place_find()) {
		perror("soak: /proc/self/exe");
		return 1;
	}
	run_prepare();
	struct outcome outcome =
		run_guarded(controller_find("ours"), options.config, &run, body, NULL);
	if (outcome.wrong) {
		char line[512];
		fprintf(stderr, "soak: %s (log in %s, its last line: %s)\n", outcome.wrong,
			place_scratch, place_log_end(line, sizeof(line)));
		return run_stop_signal ? 128 + run_stop_signal : 1;
	}
	place_remove_scratch();
	return tell(&run);
}
