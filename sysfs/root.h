/* The handle below which every kernel file is found: "/" or a captured tree. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SYSFS_ROOT_H
#define SYSFS_ROOT_H

struct root {
	int fd;	     /* directory; -1 when closed */
	int foreign; /* 1 below a prefix: a captured tree, not the running kernel */
};

/* Open `prefix` (NULL or "" means "/"). Returns 0 or -errno. */
int root_open(struct root *root, const char *prefix);
void root_close(struct root *root);

/* Open the directory `path` ("proc", "sys/kernel/mm/ksm") below the root. Returns an fd or -errno. */
int root_opendir(const struct root *root, const char *path);

#endif
