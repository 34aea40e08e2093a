/* Fuzz target: /proc/PID/cgroup, and the unit, container and pod that a path is taken for. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/cgroup.h"

#include <ctype.h>
#include <errno.h>
#include <sys/types.h>

#include "ksmstat/place.h"
#include "sysfs/container.h"
#include "sysfs/select.h"
#include "tests/fuzz/show.h"

static void check_container(const char *path)
{
	struct container container;
	char label[sizeof(container.name) + 32], pod[CONTAINER_POD_MAX];

	if (!container_find(path, &container)) {
		FUZZ_MUST(
			container.runtime && memchr(container.name, '\0', sizeof(container.name)));
		container_label(&container, label, sizeof(label));
		FUZZ_MUST(!strncmp(label, container.runtime, strlen(container.runtime)));
	}
	if (!container_pod(path, pod)) {
		FUZZ_MUST(memchr(pod, '\0', sizeof(pod)));
		FUZZ_MUST(pod[strspn(pod, "0123456789abcdefABCDEF-")] == '\0');
	}
}

static void check_path(const char *path)
{
	char unit[CGROUP_UNIT_MAX];
	struct places places;

	if (!cgroup_unit(path, unit)) {
		FUZZ_MUST(memchr(unit, '\0', sizeof(unit)) && *unit);
		for (const char *c = unit; *c; c++)
			FUZZ_MUST(isalnum((unsigned char)*c) || strchr(":-_.\\@/", *c));
	}
	check_container(path);
	FUZZ_MUST(select_cgroup_fits("/", path));
	FUZZ_MUST(select_cgroup_fits(path, path));
	places_init(&places);
	const struct place *place = place_find(&places, path);
	FUZZ_MUST(place && !strcmp(place->path, path));
	const char *const texts[] = { place->cgroup, place->unit, place->container, place->pod };
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (texts[i])
			show_printable(texts[i]);
	}
	places_free(&places);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size);
	char path[CGROUP_PATH_MAX], cut[16] = "as it was";
	ssize_t len = cgroup_parse(text, size, path, sizeof(path));

	FUZZ_MUST(len > 0 || len == -EINVAL || len == -ENAMETOOLONG);
	if (len > 0) {
		FUZZ_MUST((size_t)len < sizeof(path) && strlen(path) == (size_t)len);
		FUZZ_MUST(path[0] == '/');
		check_path(path);
	}
	ssize_t short_len = cgroup_parse(text, size, cut, sizeof(cut));
	if (len >= (ssize_t)sizeof(cut))
		FUZZ_MUST(short_len == -ENAMETOOLONG && !strcmp(cut, "as it was"));
	free(text);
	return 0;
}
