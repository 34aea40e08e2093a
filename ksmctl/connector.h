/* The kernel's process connector: fork, exec and exit as they happen, by libmnl. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_CONNECTOR_H
#define KSMCTL_CONNECTOR_H

#include <sys/types.h>

struct connector {
	struct mnl_socket *socket;
	int fd; /* -1 when closed */
};

/*
 * Subscribe. Returns 0 or -errno: -EPERM without CAP_NET_ADMIN, -EPROTONOSUPPORT or -ECONNREFUSED
 * where the kernel has no connector, as in most containers.
 */
int connector_open(struct connector *connector);
void connector_close(struct connector *connector);

/*
 * Hand over every event that waits: alive for a new process or an exec, not alive for an exit.
 * Threads are left out. Returns how many, or -errno when events were lost (-ENOBUFS: there were too many);
 * those that were not have been handed over: whoever looks at all processes then sees what is newer.
 */
int connector_read(
	struct connector *connector, void (*event)(pid_t pid, int alive, void *data), void *data);

#endif
