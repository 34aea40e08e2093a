/* The settings in the environment, and the report at exit that one of them asks for. */
/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "ksmreg.h"
#include "kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int ksmreg_parse(const char *text, size_t *value)
{
	size_t n = 0;

	if (!*text)
		return 0;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || n > (SIZE_MAX - 9) / 10)
			return 0;
		n = n * 10 + (*text - '0');
	}
	*value = n;
	return 1;
}

int ksmreg_read_environment(struct ksmreg_environment *env)
{
	const char *text;

	if (!environ)
		return 0;
	text = secure_getenv("KSMREG");
	env->off = text && !strcmp(text, "off");
	text = secure_getenv("KSMREG_NOHUGEPAGE");
	env->nohugepage = text && !strcmp(text, "1");
	text = secure_getenv("KSMREG_MIN");
	if (text)
		ksmreg_parse(text, &env->min_bytes);
	return 1;
}

/*
 * Where the report goes. The program may close that descriptor and get the same number for a file of
 * its own, so what it is at start-up is noted, and compared before anything is written to it.
 */
static struct {
	int wanted;
	int fd;
	dev_t device;
	ino_t inode;
} target;

__attribute__((constructor)) static void note_target(void)
{
	const char *text = environ ? secure_getenv("KSMREG_STATS") : NULL;
	struct stat file;
	size_t fd;
	int saved = errno;

	if (text && ksmreg_parse(text, &fd) && fd <= INT32_MAX && fstat((int)fd, &file) == 0) {
		target.fd = (int)fd;
		target.device = file.st_dev;
		target.inode = file.st_ino;
		target.wanted = 1;
	}
	errno = saved;
}

__attribute__((destructor)) static void report(void)
{
	static const char *const states[] = {
		[KSMREG_ON] = "on",
		[KSMREG_OFF_ENVIRONMENT] = "off",
		[KSMREG_OFF_CALLER] = "off-by-caller",
		[KSMREG_OFF_KERNEL] = "off-by-kernel",
	};
	struct ksmreg_stats stats = { .size = sizeof(stats) };
	struct stat file;
	char line[320];
	int n;

	if (!target.wanted || fstat(target.fd, &file) || file.st_dev != target.device ||
		file.st_ino != target.inode || ksmreg_get_stats(&stats))
		return;
	n = snprintf(line, sizeof(line),
		"ksmreg pid=%ld state=%s process=%s registered=%llu registered_bytes=%llu "
		"skipped=%llu refused=%llu failed=%llu last_error=%d\n",
		(long)getpid(), states[stats.state],
		call(SYS_prctl, GET_MEMORY_MERGE, 0, 0, 0, 0, 0) == 1 ? "on" : "off",
		(unsigned long long)stats.registered, (unsigned long long)stats.registered_bytes,
		(unsigned long long)stats.skipped, (unsigned long long)stats.refused,
		(unsigned long long)stats.failed, stats.last_error);
	call(SYS_write, target.fd, (long)line, n, 0, 0, 0);
}
