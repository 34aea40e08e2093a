/* Control groups of processes: where one is, and what unit or container that is. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/cgroup.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "sysfs/file.h"

/* As many hierarchies as a kernel can have, each with the longest path. */
#define CGROUP_TEXT_MAX (16 * (CGROUP_PATH_MAX + 64))

/* How much a hierarchy says about where a process belongs; controllers are "a,b" between colons. */
enum { RANK_NONE, RANK_OTHER, RANK_MEMORY, RANK_SYSTEMD, RANK_UNIFIED, RANKS };

static bool has_controller(const char *list, size_t len, const char *name)
{
	size_t name_len = strlen(name);
	for (const char *end = list + len; list < end;) {
		const char *comma = memchr(list, ',', (size_t)(end - list));
		size_t word = (size_t)((comma ? comma : end) - list);
		if (word == name_len && !memcmp(list, name, word))
			return true;
		list += word + 1;
	}
	return false;
}

/* The rank of a line "ID:CONTROLLERS:/PATH", and its path. The path is all behind the second colon. */
static int parse_line(const char *line, size_t len, const char **path, size_t *path_len)
{
	const char *end = line + len;
	const char *list = memchr(line, ':', len);
	const char *slash = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;
	if (!slash || slash + 1 == end || slash[1] != '/' || memchr(line, '\0', len))
		return RANK_NONE;
	*path = slash + 1;
	*path_len = (size_t)(end - *path);
	size_t list_len = (size_t)(slash - ++list);
	if (list_len == 0)
		return RANK_UNIFIED;
	/* A named hierarchy's name may hold a colon: "1:name=a:b:/path" cannot be told apart, and is rare. */
	if (has_controller(list, list_len, "name=systemd"))
		return RANK_SYSTEMD;
	return has_controller(list, list_len, "memory") ? RANK_MEMORY : RANK_OTHER;
}

ssize_t cgroup_parse(const char *text, size_t len, char *path, size_t size)
{
	const char *best = NULL, *end = text + len;
	size_t best_len = 0;
	int best_rank = RANK_NONE;

	while (text < end) {
		const char *eol = memchr(text, '\n', (size_t)(end - text)), *found;
		size_t found_len;
		if (!eol)
			eol = end;
		int rank = parse_line(text, (size_t)(eol - text), &found, &found_len);
		/* The root says nothing: any other hierarchy says more. */
		if (rank != RANK_NONE && found_len > 1)
			rank += RANKS;
		if (rank > best_rank) {
			best = found;
			best_len = found_len;
			best_rank = rank;
		}
		text = eol + 1;
	}
	if (!best)
		return -EINVAL;
	while (best_len > 1 && best[best_len - 1] == '/')
		best_len--;
	if (best_len >= size)
		return -ENAMETOOLONG;
	memcpy(path, best, best_len);
	path[best_len] = '\0';
	return (ssize_t)best_len;
}

ssize_t cgroup_read(const struct proc *proc, char *path, size_t size)
{
	char text[CGROUP_TEXT_MAX];
	ssize_t len = file_read(proc->fd, "cgroup", text, sizeof(text));
	return len < 0 ? len : cgroup_parse(text, (size_t)len, path, size);
}

size_t cgroup_path_length(const char *path)
{
	static const char gone[] = " (deleted)"; /* the kernel's word behind a removed one */
	size_t len = strlen(path), gone_len = sizeof(gone) - 1;
	return len > gone_len && !strcmp(path + len - gone_len, gone) ? len - gone_len : len;
}

const char *cgroup_part(const char **next, size_t *left, size_t *len)
{
	for (;;) {
		while (*left && **next == '/') {
			++*next;
			--*left;
		}
		if (!*left)
			return NULL;
		const char *part = *next, *slash = memchr(part, '/', *left);
		*len = slash ? (size_t)(slash - part) : *left;
		*next += *len;
		*left -= *len;
		if (*len != 2 || memcmp(part, "..", 2) != 0)
			return part;
	}
}

static bool ends_with(const char *part, size_t len, const char *suffix)
{
	size_t suffix_len = strlen(suffix);
	return len > suffix_len && !memcmp(part + len - suffix_len, suffix, suffix_len);
}

/* Names are made of these, so that they can be shown as they are: systemd, unit_name_is_valid(). */
static bool is_unit(const char *part, size_t len)
{
	static const char *const types[] = { ".service", ".scope", ".slice", ".mount", ".socket",
		".swap" };
	if (len >= CGROUP_UNIT_MAX / 2)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)part[i]) && !strchr(":-_.\\@", part[i]))
			return false;
	}
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		if (ends_with(part, len, types[i]))
			return true;
	}
	return false;
}

/*
 * The first part that is no slice, and the last slice in front of it. A name that could be taken
 * for a file of the kernel has an underscore in front (cg_escape()).
 */
static const char *skip_slices(
	const char **next, size_t *left, size_t *len, const char **slice, size_t *slice_len)
{
	const char *part;
	while ((part = cgroup_part(next, left, len))) {
		if (*len > 1 && *part == '_') {
			part++;
			--*len;
		}
		if (!is_unit(part, *len) || !ends_with(part, *len, ".slice"))
			break;
		*slice = part;
		*slice_len = *len;
	}
	return part;
}

int cgroup_unit(const char *path, char unit[CGROUP_UNIT_MAX])
{
	size_t left = cgroup_path_length(path), len, slice_len = 0, inner_len;
	const char *slice = NULL;
	const char *part = skip_slices(&path, &left, &len, &slice, &slice_len);

	if (!part || !is_unit(part, len)) {
		if (!slice)
			return -ENOENT;
		snprintf(unit, CGROUP_UNIT_MAX, "%.*s", (int)slice_len, slice);
		return 0;
	}
	const char *inner = NULL;
	if (len > 5 && !memcmp(part, "user@", 5) && ends_with(part, len, ".service"))
		inner = skip_slices(&path, &left, &inner_len, &slice, &slice_len);
	if (inner && is_unit(inner, inner_len))
		snprintf(unit, CGROUP_UNIT_MAX, "%.*s/%.*s", (int)len, part, (int)inner_len, inner);
	else
		snprintf(unit, CGROUP_UNIT_MAX, "%.*s", (int)len, part);
	return 0;
}
