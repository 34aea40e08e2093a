/* The adaptive service, started for a demonstration with a folder of its own. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_DEMO_SERVICE_H
#define TESTS_DEMO_SERVICE_H

#include <stddef.h>
#include <sys/types.h>

struct service {
	pid_t pid; /* 0 when it does not run */
	char dir[64], config[96];
};

/*
 * Start `ksmctl daemon` from the folder `programs`. It ends with its starter, and shares lock_fd:
 * a lock on that is free only when the service, too, is done. Returns 0 or -errno.
 */
int service_start(struct service *service, const char *programs, int lock_fd);

/* The phase it is in, such as "boost"; "" while that is not known. Returns buf. */
const char *service_phase(const struct service *service, char *buf, size_t size);

/* Stop it, wait until it has restored the kernel, remove its folder. Returns its wait status. */
int service_stop(struct service *service);

#endif
