/* ksmctl run: starts a program with all its memory open to merging. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "ksmctl/ksmctl.h"
#include "sysfs/proc.h"

#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#endif
#ifndef KSM_LIBDIR
#define KSM_LIBDIR "/usr/local/lib"
#endif

/* Shells use these for a command that cannot be executed, or found. */
enum { RUN_CANNOT_EXECUTE = 126, RUN_NOT_FOUND = 127 };

/*
 * The flag survives exec, and works there, on kernels since 6.10. Which of these we are on can be
 * seen only where ksm_stat tells it (since 6.13); elsewhere the preload sets it again after exec.
 */
static bool exec_keeps_flag(void)
{
	struct root root;
	struct proc self;
	struct proc_ksm ksm = { 0 };
	if (root_open(&root, NULL))
		return false;
	if (!proc_open(&self, &root, getpid())) {
		if (proc_read_ksm_stat(&self, &ksm))
			ksm.present = 0;
		proc_close(&self);
	}
	root_close(&root);
	return ksm.present & PROC_KSM_MERGE_ANY && ksm.merge_any;
}

/* The preload lies beside the program in the build tree, else in the library folder. */
static bool find_preload(char *path, size_t size)
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len > 0) {
		self[len] = '\0';
		char *slash = strrchr(self, '/');
		if (slash) {
			*slash = '\0';
			int n = snprintf(path, size, "%s/libksmreg-preload.so", self);
			if (n > 0 && (size_t)n < size && access(path, R_OK) == 0)
				return true;
		}
	}
	snprintf(path, size, "%s/libksmreg-preload.so", KSM_LIBDIR);
	return access(path, R_OK) == 0;
}

static bool add_preload(const char *path)
{
	const char *old = getenv("LD_PRELOAD");
	char *value;
	if (asprintf(&value, "%s%s%s", path, old && *old ? ":" : "", old ? old : "") < 0)
		return false;
	bool ok = setenv("LD_PRELOAD", value, 1) == 0;
	free(value);
	return ok;
}

int run_run(struct ctl *ctl, int argc, char **argv)
{
	static const struct option options[] = {
		{ "verbose", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	char preload[PATH_MAX + 32];
	bool verbose = false;
	int c;
	(void)ctl;
	while ((c = getopt_long(argc, argv, "+:v", options, NULL)) != -1) {
		if (c != 'v')
			return ctl_bad_option("run", c, argv);
		verbose = true;
	}
	if (optind == argc)
		return ctl_usage("run", "run needs a COMMAND");

	bool flag = prctl(PR_SET_MEMORY_MERGE, 1UL, 0UL, 0UL, 0UL) == 0;
	if (flag && exec_keeps_flag()) {
		if (verbose)
			ctl_error("merging is on for the whole process (prctl)");
	} else if (find_preload(preload, sizeof(preload)) && add_preload(preload)) {
		if (verbose)
			ctl_error("merging is turned on inside the program by %s", preload);
	} else if (flag) {
		ctl_error("note: libksmreg-preload.so was not found; before Linux 6.10 nothing "
			  "will merge");
	} else {
		ctl_error("this kernel cannot open a whole process to merging (Linux 6.4 can), and "
			  "libksmreg-preload.so was not found in %s",
			KSM_LIBDIR);
		return CTL_NO_KSM;
	}
	execvp(argv[optind], argv + optind);
	int err = errno;
	ctl_error("cannot run '%s': %s", argv[optind], strerror(err));
	return err == ENOENT ? RUN_NOT_FOUND : RUN_CANNOT_EXECUTE;
}
