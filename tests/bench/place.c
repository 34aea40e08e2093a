/* Where the programs under test lie, and a temporary folder for each run. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/place.h"

#include <errno.h>
#include <ftw.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char place_programs[PATH_MAX];
char place_load[PATH_MAX + 32];
char place_scratch[PATH_MAX + 32];

int place_find(void)
{
	ssize_t len = readlink("/proc/self/exe", place_programs, sizeof(place_programs) - 1);
	if (len < 0)
		return -errno;
	dirname(dirname(dirname(place_programs)));
	snprintf(place_load, sizeof(place_load), "%s/tests/bench/load", place_programs);
	return 0;
}

int place_make_scratch(void)
{
	const char *base = getenv("TMPDIR");
	snprintf(place_scratch, sizeof(place_scratch), "%s/ksm-bench-XXXXXX",
		base && *base ? base : "/tmp");
	return mkdtemp(place_scratch) ? 0 : -errno;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st, (void)type, (void)where;
	return remove(path);
}

void place_remove_scratch(void)
{
	nftw(place_scratch, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *place_log_end(char *buf, int size)
{
	char path[PATH_MAX + 64];
	snprintf(path, sizeof(path), "%s/log", place_scratch);
	FILE *file = fopen(path, "re");
	buf[0] = '\0';
	while (file && fgets(buf, size, file))
		;
	if (file)
		fclose(file);
	buf[strcspn(buf, "\n")] = '\0';
	return buf;
}
