/* The handle below which every kernel file is found: "/" or a captured tree. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/root.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int root_open(struct root *root, const char *prefix)
{
	if (!prefix || !*prefix)
		prefix = "/";
	root->fd = open(prefix, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root->fd < 0)
		return -errno;
	root->foreign = strcmp(prefix, "/") != 0;
	return 0;
}

void root_close(struct root *root)
{
	if (root->fd >= 0)
		close(root->fd);
	root->fd = -1;
}

int root_opendir(const struct root *root, const char *path)
{
	int fd = openat(root->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
