/* Replaces a file as a whole: its readers see the old one or the new one. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Names that may be taken before it is given up. */
#define TRIES 16

/* Opens the folder of path. Returns a descriptor or -errno. */
static int open_folder(const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];
	size_t len = slash ? (size_t)(slash - path) + 1 : 0;

	*name = path + len;
	if (len >= sizeof(folder) || strlen(*name) > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(folder, path, len);
	folder[len] = '\0';
	int fd = open(len ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* What stands there already must be something that a file may take the place of. */
static int check(int folder, const char *name)
{
	struct stat st;
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return -EINVAL;
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) ? 0 : -EINVAL;
}

/* A new file with a name that nobody can foresee. Returns a descriptor or -errno. */
static int make(int folder, char *name, size_t size)
{
	for (int i = 0; i < TRIES; i++) {
		uint64_t number;
		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -EIO;
		snprintf(name, size, ".ksmstat.%016llx.tmp", (unsigned long long)number);
		int fd = openat(
			folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd < 0 ? -errno : fd;
	}
	return -EEXIST;
}

static int fill(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t written = write(fd, text, len);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written < 0 ? -errno : -EIO;
		text += written;
		len -= (size_t)written;
	}
	return fchmod(fd, 0644) < 0 || fsync(fd) < 0 ? -errno : 0;
}

int outfile_write(const char *path, const char *text, size_t len)
{
	const char *name;
	char temporary[64];
	int folder = open_folder(path, &name);
	if (folder < 0)
		return folder;
	int err = check(folder, name);
	int fd = err ? err : make(folder, temporary, sizeof(temporary));
	if (fd < 0) {
		close(folder);
		return fd;
	}
	err = fill(fd, text, len);
	if (close(fd) < 0 && !err)
		err = -errno;
	if (!err && renameat(folder, temporary, folder, name) < 0)
		err = -errno;
	if (err)
		unlinkat(folder, temporary, 0);
	else
		fsync(folder); /* some file systems cannot, and the file is there all the same */
	close(folder);
	return err;
}
