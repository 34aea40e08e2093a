/* The trees captured from kernels, and what is known of the processes in them. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_UNIT_FIXTURE_H
#define TESTS_UNIT_FIXTURE_H

#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "sysfs/root.h"
#include "tests/tap.h"

#define FIXTURE_PATTERN "tests/fixtures/linux-*"

/* Call `check` with the path of every tree. Without a tree the test fails: it would prove nothing. */
static inline void fixture_each(void (*check)(const char *tree))
{
	glob_t found = { 0 };

	ck_assert_msg(!glob(FIXTURE_PATTERN, GLOB_ONLYDIR, NULL, &found) && found.gl_pathc,
		"no " FIXTURE_PATTERN ": run from the top of the tree");
	for (size_t i = 0; i < found.gl_pathc; i++)
		check(found.gl_pathv[i]);
	globfree(&found);
}

static inline void fixture_root(const char *tree, struct root *root)
{
	ck_assert_msg(!root_open(root, tree), "%s", tree);
	ck_assert(root->foreign);
}

/* The text behind `key` in the tree's `expected`; false when there is no such line. */
static inline bool fixture_text(const char *tree, const char *key, char *text, size_t size)
{
	char path[PATH_MAX], line[512];
	size_t key_len = strlen(key);
	bool found = false;

	snprintf(path, sizeof(path), "%s/expected", tree);
	FILE *file = fopen(path, "re");
	ck_assert_msg(file != NULL, "no %s", path);
	while (!found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		found = !strncmp(line, key, key_len) && line[key_len] == ' ';
		if (found) {
			ck_assert_uint_lt(strlen(line + key_len + 1), size);
			memcpy(text, line + key_len + 1, strlen(line + key_len + 1) + 1);
		}
	}
	fclose(file);
	return found;
}

/* The number behind "role.what"; a missing one fails the test. */
static inline long long fixture_number(const char *tree, const char *role, const char *what)
{
	char key[128], text[64] = "";

	snprintf(key, sizeof(key), "%s%s%s", role, *role ? "." : "", what);
	ck_assert_msg(fixture_text(tree, key, text, sizeof(text)), "%s: no %s", tree, key);
	return atoll(text);
}

/* The tree's kernel is at least major.minor. Only to say what must be there, as the code never asks. */
static inline bool fixture_since(const char *tree, int major, int minor)
{
	char text[64];
	int have_major = 0, have_minor = 0;

	ck_assert(fixture_text(tree, "kernel", text, sizeof(text)));
	ck_assert_int_eq(sscanf(text, "%d.%d", &have_major, &have_minor), 2);
	return have_major > major || (have_major == major && have_minor >= minor);
}

static inline bool fixture_has(const char *tree, const char *path)
{
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s/%s", tree, path);
	return !access(full, F_OK);
}

#endif
