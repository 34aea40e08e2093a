/* Files of a test's own: a directory that lives as long as the test program. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_UNIT_TEMP_H
#define TESTS_UNIT_TEMP_H

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sysfs/root.h"
#include "tests/tap.h"

/* Made before Check forks the first test, gone after the last one, however that ended. */
static char temp_path[PATH_MAX];
static int temp_fd = -1;

static inline void temp_setup(void)
{
	const char *parent = getenv("TMPDIR");

	snprintf(temp_path, sizeof(temp_path), "%s/ksm-unit.XXXXXX", parent ? parent : "/tmp");
	if (!mkdtemp(temp_path))
		abort();
	temp_fd = open(temp_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static inline int temp_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static inline void temp_teardown(void)
{
	close(temp_fd);
	nftw(temp_path, temp_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* mkdir -p of everything before the last slash of path. */
static inline void temp_parents(const char *path)
{
	char part[PATH_MAX];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		mkdirat(temp_fd, part, 0755);
	}
}

static inline void temp_write(const char *path, const char *text, size_t len)
{
	temp_parents(path);
	int fd = openat(temp_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ck_assert_int_ge(fd, 0);
	for (size_t done = 0; done < len;) {
		ssize_t n = write(fd, text + done, len - done);
		ck_assert_int_gt(n, 0);
		done += (size_t)n;
	}
	close(fd);
}

static inline void temp_put(const char *path, const char *text)
{
	temp_write(path, text, strlen(text));
}

/* The file must read so. */
static inline void temp_expect(const char *path, const char *text)
{
	char buf[256];
	int fd = openat(temp_fd, path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ssize_t len = read(fd, buf, sizeof(buf) - 1);
	ck_assert_int_ge(len, 0);
	buf[len] = '\0';
	close(fd);
	ck_assert_str_eq(buf, text);
}

/* A root below the directory. The caller closes it. */
static inline void temp_root(struct root *root, const char *path)
{
	char full[PATH_MAX * 2];

	snprintf(full, sizeof(full), "%s/%s", temp_path, path);
	ck_assert_int_eq(root_open(root, full), 0);
}

/* A test case that has the directory. */
static inline TCase *temp_case(Suite *suite, const char *name)
{
	TCase *tcase = tcase_create(name);

	tcase_add_unchecked_fixture(tcase, temp_setup, temp_teardown);
	tcase_set_timeout(tcase, 120);
	suite_add_tcase(suite, tcase);
	return tcase;
}

#endif
