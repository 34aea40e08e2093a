/* Where processes are: control group, unit and container, each text made once for all in it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/place.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "ksmstat/text.h"
#include "sysfs/cgroup.h"
#include "sysfs/container.h"

/* Behind each struct place its texts follow in the same piece of memory. */
static char *take(char **room, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = memcpy(*room, text, size);
	*room += size;
	return copy;
}

static struct place *make(const char *path)
{
	char safe[4 * CGROUP_PATH_MAX], unit[CGROUP_UNIT_MAX], pod[CONTAINER_POD_MAX];
	struct container container;
	char label[sizeof(container.name) + 32], label_safe[4 * sizeof(label)];

	bool has_unit = !cgroup_unit(path, unit), has_pod = !container_pod(path, pod);
	bool has_container = !container_find(path, &container);
	text_safe(path, safe, sizeof(safe));
	if (has_container)
		text_safe(container_label(&container, label, sizeof(label)), label_safe,
			sizeof(label_safe));
	size_t size = sizeof(struct place) + strlen(path) + 1 + strlen(safe) + 1 +
		      (has_unit ? strlen(unit) + 1 : 0) + (has_pod ? strlen(pod) + 1 : 0) +
		      (has_container ? strlen(label_safe) + 1 : 0);
	struct place *place = malloc(size);
	if (!place)
		return NULL;
	char *room = (char *)(place + 1);
	place->path = take(&room, path);
	place->cgroup = take(&room, safe);
	place->unit = has_unit ? take(&room, unit) : NULL;
	place->container = has_container ? take(&room, label_safe) : NULL;
	place->pod = has_pod ? take(&room, pod) : NULL;
	return place;
}

static int compare(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	return strcmp(x->path, y->path);
}

void places_init(struct places *places)
{
	pthread_mutex_init(&places->lock, NULL);
	places->tree = NULL;
}

void places_free(struct places *places)
{
	tdestroy(places->tree, free);
	places->tree = NULL;
	pthread_mutex_destroy(&places->lock);
}

const struct place *place_find(struct places *places, const char *path)
{
	const struct place key = { .path = path };
	struct place *place = NULL;

	pthread_mutex_lock(&places->lock);
	struct place **found = tfind(&key, &places->tree, compare);
	if (found) {
		place = *found;
	} else if ((place = make(path)) && !tsearch(place, &places->tree, compare)) {
		free(place);
		place = NULL;
	}
	pthread_mutex_unlock(&places->lock);
	return place;
}

const struct place *place_read(struct places *places, const struct proc *proc)
{
	char path[CGROUP_PATH_MAX];
	return cgroup_read(proc, path, sizeof(path)) < 0 ? NULL : place_find(places, path);
}
