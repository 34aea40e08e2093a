/* ksmctl run: starts a program with all its memory open to merging. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ksmctl/ksmctl.h"
#include "libksmreg/ksmreg.h"
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

/* The file that execvp would execute. Returns false when there is none. */
static bool find_command(const char *name, char *path, size_t size)
{
	const char *folders = getenv("PATH");
	if (strchr(name, '/'))
		return snprintf(path, size, "%s", name) < (int)size && access(path, X_OK) == 0;
	if (!folders)
		folders = "/bin:/usr/bin";
	for (;;) {
		int len = (int)strcspn(folders, ":");
		int n = snprintf(path, size, "%.*s%s%s", len, folders, len ? "/" : "", name);
		if (n > 0 && (size_t)n < size && access(path, X_OK) == 0)
			return true;
		if (!folders[len])
			return false;
		folders += len + 1;
	}
}

/* Would it run with privileges of its own? */
static bool has_privileges(const char *path)
{
	struct stat file;
	if (stat(path, &file) == 0 && file.st_mode & (S_ISUID | S_ISGID))
		return true;
	cap_t caps = cap_get_file(path);
	cap_free(caps);
	return caps != NULL;
}

/* An ELF program without an interpreter: no preload reaches it. */
static bool is_static(const char *path)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	bool interpreted = false;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool elf = pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
		   !memcmp(header.e_ident, ELFMAG, SELFMAG) &&
		   header.e_ident[EI_CLASS] == ELFCLASS64;
	for (size_t i = 0; elf && i < header.e_phnum && !interpreted; i++) {
		off_t at = (off_t)(header.e_phoff + i * header.e_phentsize);
		interpreted =
			pread(fd, &segment, sizeof(segment), at) == (ssize_t)sizeof(segment) &&
			segment.p_type == PT_INTERP;
	}
	close(fd);
	return elf && !interpreted;
}

/* How the program is offered for merging. */
enum way { WAY_NONE, WAY_FLAG, WAY_PRELOAD };

static const char *describe(enum way way, const struct ksmreg_caps *caps)
{
	if (way == WAY_FLAG)
		return "by prctl: this kernel keeps it over exec, and areas join";
	if (caps->prctl)
		return "by preload: this kernel has no prctl for it";
	return caps->areas_merge == 0
		       ? "by preload: under the prctl of this kernel areas do not join"
		       : "by preload, which makes the prctl again: this kernel loses it over exec";
}

struct run_options {
	bool verbose, no_children, refuse_setuid;
};

/* Set up what the program inherits. Returns an exit code, or -1 to go on. */
static int prepare(const struct run_options *options, const char *command)
{
	struct ksmreg_caps caps = { .size = sizeof(caps) };
	char preload[PATH_MAX + 32], path[PATH_MAX] = "";
	enum way way = WAY_NONE;

	ksmreg_probe(&caps);
	find_command(command, path, sizeof(path));
	if (options->refuse_setuid && *path && has_privileges(path)) {
		ctl_error("'%s' runs with privileges of its own; without --refuse-setuid it is "
			  "started all the same",
			path);
		return RUN_CANNOT_EXECUTE;
	}
	bool unreached = *path && is_static(path);
	/* a static program is reached by the flag alone, whatever that does to its areas */
	bool flag = (caps.areas_merge != 0 || unreached) &&
		    prctl(PR_SET_MEMORY_MERGE, 1UL, 0UL, 0UL, 0UL) == 0;
	if (flag && exec_keeps_flag())
		way = WAY_FLAG;
	bool preloaded = (way != WAY_FLAG || options->no_children) &&
			 find_preload(preload, sizeof(preload)) && add_preload(preload);
	if (way != WAY_FLAG && preloaded)
		way = WAY_PRELOAD;
	if (options->no_children && (!preloaded || unreached))
		ctl_error("note: --no-children needs the preload, which %s",
			unreached ? "cannot reach a static program" : "was not found");
	if (way == WAY_NONE && !flag) {
		ctl_error("this kernel cannot open a whole process to merging (Linux 6.4 can), and "
			  "libksmreg-preload.so was not found in %s",
			KSM_LIBDIR);
		return CTL_NO_KSM;
	}
	if (way == WAY_NONE)
		ctl_error("note: libksmreg-preload.so was not found; before Linux 6.10 nothing "
			  "will merge");
	else if (way == WAY_PRELOAD && unreached)
		ctl_error("note: '%s' is a static program, which no preload reaches%s", path,
			flag ? "; before Linux 6.10 nothing will merge" : ": nothing will merge");
	else if (options->verbose)
		ctl_error("%s%s%s", describe(way, &caps), preloaded ? "; " : "",
			preloaded ? preload : "");
	return -1;
}

/* NAME=VALUE, for the program. Returns an exit code, or -1 to go on. */
static int set_environment(char *word)
{
	char *value = strchr(word, '=');
	if (!value || value == word)
		return ctl_usage("run", "'%s' is not NAME=VALUE", word);
	*value = '\0';
	int err = setenv(word, value + 1, 1);
	*value = '=';
	return err ? ctl_fail("cannot set", word, -errno) : -1;
}

int run_run(struct ctl *ctl, int argc, char **argv)
{
	static const struct option options[] = {
		{ "verbose", no_argument, NULL, 'v' },
		{ "setenv", required_argument, NULL, 'E' },
		{ "no-children", no_argument, NULL, 'n' },
		{ "refuse-setuid", no_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 },
	};
	struct run_options chosen = { 0 };
	int c, code = -1;
	(void)ctl;
	while (code < 0 && (c = getopt_long(argc, argv, "+:vE:", options, NULL)) != -1) {
		if (c == 'v')
			chosen.verbose = true;
		else if (c == 'E')
			code = set_environment(optarg);
		else if (c == 'n')
			chosen.no_children = setenv("KSMREG_CHILDREN", "0", 1) == 0;
		else if (c == 'r')
			chosen.refuse_setuid = true;
		else
			return ctl_bad_option("run", c, argv);
	}
	if (code < 0 && optind == argc)
		code = ctl_usage("run", "run needs a COMMAND");
	if (code < 0)
		code = prepare(&chosen, argv[optind]);
	if (code >= 0)
		return code;
	execvp(argv[optind], argv + optind);
	int err = errno;
	ctl_error("cannot run '%s': %s", argv[optind], strerror(err));
	return err == ENOENT ? RUN_NOT_FOUND : RUN_CANNOT_EXECUTE;
}
