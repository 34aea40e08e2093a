/* Three identical jobs of a farm, run to their end in one of several ways. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/farm_jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/machine.h"
#include "tests/bench/place.h"
#include "tests/demo/job.h"
#include "tests/live/guard.h"

#define THP "/sys/kernel/mm/transparent_hugepage/enabled"
#define SAMPLE_MS 250
#define LOOK_PERCENT 85

struct farm {
	const struct farm_way *way;
	int round;
	unsigned long events;
	FILE *classic, *series;
	struct farm_run *run;

	int reports_fd, output;
	struct job_report *reports;
	pid_t pids[FARM_JOBS]; /* 0: has ended */
	struct pollfd fds[FARM_JOBS];
	struct progress {
		uint64_t events, cpu_ns, wall_ns;
	} marks[FARM_JOBS]; /* of each job where its last quarter begins; 0 before */
	double began_s;
	bool looked;
};

static const char *set_thp(const char *mode)
{
	int fd = open(THP, O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, mode, strlen(mode)) == (ssize_t)strlen(mode);
	if (fd >= 0)
		close(fd);
	return written ? NULL : "transparent huge pages cannot be switched here";
}

static _Noreturn void exec_job(const struct farm *farm, int number)
{
	char path[PATH_MAX + 32], numbers[3][24];
	snprintf(path, sizeof(path), "%s/tests/job", place_programs);
	snprintf(numbers[0], sizeof(numbers[0]), "%d", number);
	snprintf(numbers[1], sizeof(numbers[1]), "%d", farm->reports_fd);
	snprintf(numbers[2], sizeof(numbers[2]), "%lu", farm->events);
	setenv("KSMREG", farm->way->registered ? "on" : "off", 1);
	dup2(farm->output, STDOUT_FILENO);
	execl(path, "job", numbers[0], numbers[1], numbers[2], farm->way->huge ? "huge" : NULL,
		(char *)NULL);
	perror(path);
	_exit(127);
}

static const char *start(struct farm *farm)
{
	size_t bytes = FARM_JOBS * sizeof(*farm->reports);
	farm->reports_fd = memfd_create("job reports", 0);
	farm->output = memfd_create("job results", MFD_CLOEXEC);
	if (farm->reports_fd < 0 || farm->output < 0 || ftruncate(farm->reports_fd, (off_t)bytes))
		return "no memory for the reports";
	fcntl(farm->output, F_SETFL, O_APPEND);
	farm->reports = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, farm->reports_fd, 0);
	if (farm->reports == MAP_FAILED)
		return "no memory for the reports";
	farm->began_s = machine_now_s();
	for (int i = 0; i < FARM_JOBS; i++) {
		farm->pids[i] = fork();
		if (farm->pids[i] == 0)
			exec_job(farm, i);
		if (farm->pids[i] < 0)
			return "the jobs cannot be started";
		int fd = (int)syscall(SYS_pidfd_open, farm->pids[i], 0);
		farm->fds[i] = (struct pollfd){ fd, POLLIN, 0 };
	}
	return NULL;
}

static FILE *ksmstat(const struct farm *farm, const char *options)
{
	char command[PATH_MAX + 256];
	snprintf(command, sizeof(command), "'%s/ksmstat' %s -p %d,%d,%d", place_programs, options,
		(int)farm->pids[0], (int)farm->pids[1], (int)farm->pids[2]);
	return popen(command, "re");
}

/* What ksmstat says of the jobs at this moment. */
static const char *look(struct farm *farm)
{
	char line[256];
	int lines = 0;
	FILE *out = ksmstat(farm, "-n -r -b -o DATA_P,DATA_S,SAVED,HUGE");
	for (int i = 0; out && i < FARM_JOBS; i++) {
		struct farm_job *job = &farm->run->jobs[i];
		if (fgets(line, sizeof(line), out) &&
			sscanf(line, "%lf %lf %lf %lf", &job->data_p_kib, &job->data_s_kib,
				&job->saved_kib, &job->huge_kib) == 4)
			lines++;
		job->data_p_kib /= 1024, job->data_s_kib /= 1024;
		job->saved_kib /= 1024, job->huge_kib /= 1024;
	}
	if (!out || pclose(out) || lines != FARM_JOBS)
		return "ksmstat did not tell of all jobs";
	out = ksmstat(farm, "--classic");
	while (out && fgets(line, sizeof(line), out))
		fprintf(farm->classic, "%s,%d,%s", farm->way->name, farm->round, line);
	if (!out || pclose(out))
		return "ksmstat --classic failed";
	farm->looked = true;
	return NULL;
}

static void sample(const struct farm *farm, const struct ksmd *ksmd, uint64_t ksmd_ns)
{
	int64_t sharing = 0, zero = 0;
	uint64_t now_ns = ksmd_ns;
	ksm_get(guard_ksm(), KSM_PAGES_SHARING, &sharing);
	ksm_get(guard_ksm(), KSM_ZERO_PAGES, &zero);
	ksmd_cpu_ns(ksmd, &now_ns);
	double mib = (double)(sharing + zero) * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
	fprintf(farm->series, "%s,%d,%.2f,%.2f,%.4f\n", farm->way->name, farm->round,
		machine_now_s() - farm->began_s, mib, (double)(now_ns - ksmd_ns) / 1e9);
}

static struct progress progress_of(struct job_report *report)
{
	return (struct progress){ atomic_load(&report->events), atomic_load(&report->event_cpu_ns),
		atomic_load(&report->event_wall_ns) };
}

/* From here on what was merged at the beginning is no burden any more. */
static void mark_late(struct farm *farm)
{
	for (int i = 0; i < FARM_JOBS; i++) {
		struct progress now = progress_of(&farm->reports[i]);
		if (!farm->marks[i].events && now.events * 4 >= farm->events * 3)
			farm->marks[i] = now;
	}
}

static const char *ended(struct farm *farm, int i)
{
	struct farm_job *job = &farm->run->jobs[i];
	struct progress end = progress_of(&farm->reports[i]), mark = farm->marks[i];
	struct rusage usage;
	int status;
	if (wait4(farm->pids[i], &status, 0, &usage) < 0)
		return "a job cannot be waited for";
	farm->pids[i] = 0;
	close(farm->fds[i].fd);
	farm->fds[i].fd = -1;
	job->real_s = machine_now_s() - farm->began_s;
	job->cpu_s = machine_rusage_s(&usage);
	double events = (double)(end.events - mark.events) * 1e6;
	job->late_real_ms = (double)(end.wall_ns - mark.wall_ns) / events;
	job->late_cpu_ms = (double)(end.cpu_ns - mark.cpu_ns) / events;
	job->faults = (double)usage.ru_minflt;
	if (status)
		return "a job ended with an error";
	if (atomic_load(&farm->reports[i].damaged))
		return "a job read back something else than was written";
	return NULL;
}

static const char *watch(struct farm *farm, const struct ksmd *ksmd,
	const struct controller_run *controller, uint64_t ksmd_ns)
{
	const char *wrong = NULL;
	for (int left = FARM_JOBS; left && !wrong;) {
		int n = poll(farm->fds, FARM_JOBS, SAMPLE_MS);
		for (int i = 0; n > 0 && i < FARM_JOBS && !wrong; i++) {
			if (farm->fds[i].fd >= 0 && farm->fds[i].revents) {
				wrong = ended(farm, i);
				left--;
			}
		}
		if (run_stop_signal)
			return "interrupted";
		if (wrong || !left)
			break;
		sample(farm, ksmd, ksmd_ns);
		mark_late(farm);
		if (!controller_lives(controller))
			wrong = "the service died";
		for (int i = 0; !wrong && !farm->looked && i < FARM_JOBS; i++) {
			if (atomic_load(&farm->reports[i].events) * 100 >=
				farm->events * LOOK_PERCENT)
				wrong = look(farm);
		}
	}
	return wrong ? wrong : farm->looked ? NULL : "the jobs were too short to be looked at";
}

static const char *read_results(const struct farm *farm)
{
	char text[256] = "";
	int found = 0;
	if (pread(farm->output, text, sizeof(text) - 1, 0) < 0)
		return "the jobs' results cannot be read";
	for (char *line = text; (line = strstr(line, "job ")); line++) {
		int number;
		char result[32];
		if (sscanf(line, "job %d result %31s", &number, result) == 2 && number >= 0 &&
			number < FARM_JOBS) {
			strcpy(farm->run->jobs[number].result, result);
			found++;
		}
	}
	return found == FARM_JOBS ? NULL : "not all jobs have a result";
}

static void end(struct farm *farm)
{
	for (int i = 0; i < FARM_JOBS; i++) {
		if (farm->pids[i] <= 0)
			continue;
		kill(farm->pids[i], SIGKILL);
		while (waitpid(farm->pids[i], NULL, 0) < 0 && errno == EINTR)
			;
		close(farm->fds[i].fd);
	}
	if (farm->reports && farm->reports != MAP_FAILED)
		munmap(farm->reports, FARM_JOBS * sizeof(*farm->reports));
	close(farm->reports_fd);
	close(farm->output);
}

static const char *body(const struct ksmd *ksmd, struct controller_run *controller, void *data)
{
	struct farm *farm = data;
	uint64_t before_ns = 0, after_ns = 0;
	farm->run->strangers = machine_registered();
	const char *wrong = farm->way->thp ? set_thp(farm->way->thp) : NULL;
	ksmd_cpu_ns(ksmd, &before_ns);
	double machine_s = machine_cpu_s(), began_s = machine_now_s();
	if (!wrong)
		wrong = start(farm);
	if (!wrong)
		wrong = watch(farm, ksmd, controller, before_ns);
	ksmd_cpu_ns(ksmd, &after_ns);
	farm->run->ksmd_s = (double)(after_ns - before_ns) / 1e9;
	machine_s = machine_cpu_s() - machine_s - farm->run->ksmd_s;
	for (int i = 0; i < FARM_JOBS; i++)
		machine_s -= farm->run->jobs[i].cpu_s;
	farm->run->others = 100 * machine_s / (machine_now_s() - began_s);
	if (!wrong)
		wrong = read_results(farm);
	end(farm);
	return wrong;
}

struct outcome farm_jobs_run(const struct farm_way *way, int round, unsigned long events,
	FILE *classic, FILE *series, struct farm_run *run)
{
	struct controller_run controller;
	struct farm farm = { .way = way,
		.round = round,
		.events = events,
		.classic = classic,
		.series = series,
		.run = run,
		.reports_fd = -1,
		.output = -1 };
	for (int i = 0; i < FARM_JOBS; i++)
		farm.fds[i].fd = -1;
	*run = (struct farm_run){ 0 };
	struct outcome outcome = run_guarded(
		controller_find(way->scanned ? "ours" : "none"), NULL, &controller, body, &farm);
	run->service_s = controller.cpu_s;
	return outcome;
}
