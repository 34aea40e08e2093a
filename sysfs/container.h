/* Containers and guests, by the names that their runtimes give to control groups. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SYSFS_CONTAINER_H
#define SYSFS_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>

struct container {
	/* "docker", "podman", "containerd", "crio", "lxc", "nspawn", "machine", "libvirt", ...; "oci" where
	 * the path has nothing but an ID, "pod" for a process of a pod that is in no container of it. */
	const char *runtime;
	char name[256]; /* an ID in hexadecimal, or a name: raw bytes, escape before showing */
	bool is_id;
};

/*
 * Find the outermost container of a path: what this machine runs, not what is nested in there. What
 * only watches over a container (conmon, lxc.monitor, the supervisor of systemd-nspawn) is outside.
 * Returns 0, or -ENOENT with *container untouched.
 */
int container_find(const char *path, struct container *container);

/* UUIDs of pods have 36 characters, those of static pods 32. */
#define CONTAINER_POD_MAX 40

/* The UID of the Kubernetes pod of a path. Returns 0, or -ENOENT with `pod` untouched. */
int container_pod(const char *path, char pod[CONTAINER_POD_MAX]);

/* "docker:0123456789ab", IDs cut as their runtimes show them; raw bytes. Returns buf. */
const char *container_label(const struct container *container, char *buf, size_t size);

#endif
