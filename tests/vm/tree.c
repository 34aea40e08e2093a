/* Copies what the kernel says of itself and of chosen processes into a tree of files. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void die(const char *format, ...)
{
	va_list args;

	fputs("capture: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

char *tree_read(const char *path, size_t *len)
{
	size_t room = 1 << 16, used = 0;
	char *text = malloc(room);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	while (text && fd >= 0 && (n = read(fd, text + used, room - used - 1)) > 0) {
		used += (size_t)n;
		if (room - used == 1) {
			char *more = realloc(text, room *= 2);
			if (!more)
				free(text);
			text = more;
		}
	}
	if (fd >= 0)
		close(fd);
	if (n < 0 || !text) {
		free(text);
		return NULL;
	}
	text[used] = 0;
	if (len)
		*len = used;
	return text;
}

void tree_make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(path, 0755);
		*slash = '/';
	}
}

/* Copies an absolute path to the same path below dir. What cannot be read is left out. */
static void __attribute__((format(printf, 2, 3))) copy(const char *dir, const char *format, ...)
{
	char from[PATH_MAX], to[2 * PATH_MAX], *text;
	size_t len;
	va_list args;
	FILE *file;

	va_start(args, format);
	vsnprintf(from, sizeof(from), format, args);
	va_end(args);
	text = tree_read(from, &len);
	if (!text)
		return;
	snprintf(to, sizeof(to), "%s%s", dir, from);
	tree_make_parents(to);
	file = fopen(to, "w");
	if (!file || fwrite(text, 1, len, file) != len || fclose(file))
		die("%s: %s", to, strerror(errno));
	free(text);
}

static void copy_task(const char *dir, const char *process)
{
	static const char *const files[] = { "stat", "status", "comm", "cmdline", "cgroup", "smaps",
		"smaps_rollup", "ksm_stat", "ksm_merging_pages", "schedstat", "maps", "statm" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		copy(dir, "%s/%s", process, files[i]);
}

void tree_copy_process(const char *dir, pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	copy_task(dir, path);
}

void tree_copy_system(const char *dir)
{
	static const char *const files[] = { "/proc/meminfo", "/proc/vmstat", "/proc/uptime",
		"/proc/pressure/memory", "/proc/pressure/cpu", "/proc/pressure/io",
		"/proc/sys/vm/max_map_count", "/sys/kernel/mm/transparent_hugepage/enabled" };
	struct dirent *entry;
	DIR *stream = opendir(KSM);

	while (stream && (entry = readdir(stream)))
		if (entry->d_name[0] != '.')
			copy(dir, KSM "%s", entry->d_name);
	if (stream)
		closedir(stream);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		copy(dir, "%s", files[i]);
}

void tree_copy_threads(const char *dir, pid_t pid)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *stream;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	stream = opendir(path);
	while (stream && (entry = readdir(stream))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s", pid, entry->d_name);
		copy_task(dir, path);
	}
	if (stream)
		closedir(stream);
}

pid_t tree_kernel_thread(const char *name)
{
	struct dirent *entry;
	pid_t found = 0;
	DIR *stream = opendir("/proc");

	while (stream && !found && (entry = readdir(stream))) {
		pid_t pid = atoi(entry->d_name);
		char path[PATH_MAX], want[64], *text;
		size_t len;

		snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
		text = pid ? tree_read(path, &len) : NULL;
		if (text && !len) {
			free(text);
			snprintf(path, sizeof(path), "/proc/%d/comm", pid);
			snprintf(want, sizeof(want), "%s\n", name);
			text = tree_read(path, NULL);
			if (text && !strcmp(text, want))
				found = pid;
		}
		free(text);
	}
	if (stream)
		closedir(stream);
	return found;
}
