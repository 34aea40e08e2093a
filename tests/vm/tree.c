/* Reads of whole kernel files, and where they go. */
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
