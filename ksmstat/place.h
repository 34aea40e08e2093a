/* Where processes are: control group, unit and container, each text made once for all in it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_PLACE_H
#define KSMSTAT_PLACE_H

#include <pthread.h>

#include "sysfs/proc.h"

/* Texts are fit to be shown (text_safe); NULL where there is no such thing. */
struct place {
	const char *path; /* of the group; raw bytes */
	const char *cgroup, *unit, *container, *pod;
};

struct places {
	pthread_mutex_t lock;
	void *tree; /* of tsearch(3) */
};

void places_init(struct places *places);
void places_free(struct places *places);

/*
 * The place of a process; lives as long as *places. NULL when it could not be read, or there is
 * no memory for it. Safe to call from several threads.
 */
const struct place *place_read(struct places *places, const struct proc *proc);

/* The same for a path. */
const struct place *place_find(struct places *places, const char *path);

#endif
