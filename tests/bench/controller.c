/* The controllers under comparison: how each is started on the kernel's defaults, and stopped. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/controller.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/machine.h"
#include "tests/live/guard.h"

/* How long a controller may take to be ready, and to leave. */
#define PATIENCE_MS 10000

static const struct {
	enum ksm_key key;
	int64_t value;
} defaults[] = {
	/* The advisor first: setting it changes pages_to_scan, and it forbids writing there. */
	{ KSM_ADVISOR_MODE, KSM_ADVISOR_NONE },
	{ KSM_PAGES_TO_SCAN, 100 },
	{ KSM_SLEEP_MILLISECS, 20 },
	{ KSM_SMART_SCAN, 1 },
	{ KSM_USE_ZERO_PAGES, 0 },
	{ KSM_MAX_PAGE_SHARING, 256 },
};
#define DEFAULTS (sizeof(defaults) / sizeof(*defaults))

static int set(enum ksm_key key, int64_t value)
{
	int err = ksm_set(guard_ksm(), key, value);
	return err == -ENOENT ? 0 : err;
}

int controller_default_knobs(void)
{
	int64_t shared = 1;
	int err = set(KSM_RUN, KSM_RUN_UNMERGE);
	for (int i = 0; !err && i < 100; i++) {
		if (ksm_get(guard_ksm(), KSM_PAGES_SHARED, &shared) || shared == 0)
			break;
		usleep(50 * 1000);
	}
	if (!err)
		err = set(KSM_RUN, KSM_RUN_STOP);
	for (size_t i = 0; !err && i < DEFAULTS; i++)
		err = set(defaults[i].key, defaults[i].value);
	return err;
}

static bool knobs_are_default(void)
{
	int64_t value;
	for (size_t i = 0; i < DEFAULTS; i++) {
		int err = ksm_get(guard_ksm(), defaults[i].key, &value);
		if (err != -ENOENT && (err || value != defaults[i].value))
			return false;
	}
	return !ksm_get(guard_ksm(), KSM_RUN, &value) && value == KSM_RUN_STOP;
}

/* In a group of its own, dying with us, its output in the log. */
static pid_t spawn(const struct controller_setup *setup, char *const argv[], char *const env[])
{
	char log[PATH_MAX];
	snprintf(log, sizeof(log), "%s/log", setup->scratch);
	pid_t parent = getpid(), pid = fork();
	if (pid)
		return pid;
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd < 0 || getppid() != parent)
		_exit(127);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	for (; *env; env++)
		putenv(*env);
	execv(argv[0], argv);
	perror(argv[0]);
	_exit(127);
}

static const char *start_none(const struct controller_setup *setup, struct controller_run *run)
{
	(void)setup, (void)run;
	return NULL;
}

static const char *start_defaults(const struct controller_setup *setup, struct controller_run *run)
{
	(void)setup, (void)run;
	return set(KSM_RUN, KSM_RUN_MERGE) ? "run cannot be written" : NULL;
}

static const char *start_advisor(const struct controller_setup *setup, struct controller_run *run)
{
	(void)setup, (void)run;
	if (ksm_set(guard_ksm(), KSM_ADVISOR_MODE, KSM_ADVISOR_SCAN_TIME))
		return "this kernel has no advisor";
	return set(KSM_RUN, KSM_RUN_MERGE) ? "run cannot be written" : NULL;
}

/* Never sleeping; batches of some milliseconds, so that the lock is free now and then. */
static const char *start_wide_open(const struct controller_setup *setup, struct controller_run *run)
{
	(void)setup, (void)run;
	if (set(KSM_PAGES_TO_SCAN, 5000) || set(KSM_SLEEP_MILLISECS, 0) ||
		set(KSM_RUN, KSM_RUN_MERGE))
		return "the knobs cannot be written";
	return NULL;
}

/* Its thresholds by environment: free memory is always below the total, so it boosts each time. */
static const char *start_ksmtuned(const struct controller_setup *setup, struct controller_run *run)
{
	char path[PATH_MAX], pidfile[PATH_MAX];
	char coef[] = "KSM_THRES_COEF=100";
	snprintf(path, sizeof(path), "%s/bench/ksmtuned/usr/sbin/ksmtuned", setup->programs);
	snprintf(pidfile, sizeof(pidfile), "PIDFILE=%s/ksmtuned.pid", setup->scratch);
	if (access(path, R_OK))
		return "its package is not unpacked: tests/bench/fetch-ksmtuned does that";
	char shell[] = "/bin/bash";
	run->pid = spawn(setup, (char *[]){ shell, path, NULL }, (char *[]){ coef, pidfile, NULL });
	return run->pid < 0 ? "cannot fork" : NULL;
}

static bool write_config(const struct controller_setup *setup, const char *path)
{
	FILE *file = fopen(path, "w");
	if (!file)
		return false;
	fprintf(file, "state-dir = %s/state\n", setup->scratch);
	for (const char *p = setup->extra_config ? setup->extra_config : ""; *p; p++)
		fputc(*p == ';' ? '\n' : *p, file);
	fputc('\n', file);
	return fclose(file) == 0;
}

static const char *start_ours(const struct controller_setup *setup, struct controller_run *run)
{
	char program[PATH_MAX], config[PATH_MAX], status[PATH_MAX];
	snprintf(program, sizeof(program), "%s/ksmctl", setup->programs);
	snprintf(config, sizeof(config), "%s/conf", setup->scratch);
	snprintf(status, sizeof(status), "%s/state/status", setup->scratch);
	if (!write_config(setup, config))
		return "its configuration cannot be written";
	char verb[] = "daemon", verbose[] = "-v", option[] = "-c";
	run->pid = spawn(setup, (char *[]){ program, verb, verbose, option, config, NULL },
		(char *[]){ NULL });
	if (run->pid < 0)
		return "cannot fork";
	run->ours = true;
	for (int ms = 0; ms < PATIENCE_MS && controller_lives(run); ms += 20) {
		if (!access(status, R_OK))
			return NULL;
		usleep(20 * 1000);
	}
	return "it did not start, see its log";
}

const struct controller controllers[] = {
	{ "ours", "ksmctl daemon", start_ours },
	{ "defaults", "run=1 and all else as the kernel boots", start_defaults },
	{ "advisor", "advisor_mode=scan-time, run=1", start_advisor },
	{ "ksmtuned", "ksmtuned, told to be always under pressure", start_ksmtuned },
	{ "wide-open", "5000 pages to scan, no sleep", start_wide_open },
	{ "none", "run=0", start_none },
	{ NULL, NULL, NULL },
};

const struct controller *controller_find(const char *name)
{
	for (const struct controller *c = controllers; c->name; c++) {
		if (!strcmp(c->name, name))
			return c;
	}
	return NULL;
}

bool controller_lives(const struct controller_run *run)
{
	siginfo_t info = { 0 };
	if (run->pid <= 0 || !run->ours)
		return true;
	return !waitid(P_PID, (id_t)run->pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
	       info.si_pid == 0;
}

/* Since its exec: what getrusage says begins with the size of the process that forked it. */
static long peak_kib(pid_t pid)
{
	char path[64], line[256];
	long kib = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "VmHWM: %ld", &kib) == 1)
			break;
	}
	if (file)
		fclose(file);
	return kib;
}

const char *controller_stop(struct controller_run *run)
{
	struct rusage usage;
	const char *wrong = NULL;
	int status;
	pid_t pid = 0;
	if (run->pid <= 0)
		return NULL;
	if (!controller_lives(run))
		wrong = "it died";
	run->peak_kib = peak_kib(run->pid);
	kill(-run->pid, SIGTERM);
	for (int ms = 0; ms < PATIENCE_MS; ms += 5) {
		while ((pid = wait4(-run->pid, &status, WNOHANG, &usage)) > 0) {
			run->cpu_s += machine_rusage_s(&usage);
			if (pid == run->pid && run->ours && status && !wrong)
				wrong = "it ended with an error";
			if (pid != run->pid && usage.ru_maxrss > run->peak_kib)
				run->peak_kib = usage.ru_maxrss;
		}
		if (pid < 0)
			break;
		usleep(5 * 1000);
	}
	if (pid == 0) {
		kill(-run->pid, SIGKILL);
		while (waitpid(-run->pid, NULL, 0) > 0)
			;
		wrong = "it did not end by SIGTERM";
	}
	run->pid = 0;
	if (run->ours && !wrong && !knobs_are_default())
		wrong = "it did not restore the knobs";
	return wrong;
}
