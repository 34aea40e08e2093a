/* Replays the corpus of a fuzz target, or the files that are named, without a fuzzer: a test of its own. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: TARGET [FILE...]
 *
 * Without files it is those of tests/fuzz/corpus/TARGET. One that breaks a promise ends the program
 * before its plan; the line above tells which it was.
 */
#include <errno.h>
#include <glob.h>
#include <limits.h>

#include "tests/fuzz/fuzz.h"

#define INPUT_MAX (1 << 20)

static bool replay(const char *path)
{
	static uint8_t input[INPUT_MAX];
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	size_t len = fread(input, 1, sizeof(input), file);
	bool whole = !ferror(file) && feof(file);
	fclose(file);
	return whole && LLVMFuzzerTestOneInput(input, len) == 0;
}

int main(int argc, char **argv)
{
	FILE *tap = stdout; /* a target may silence what it tries */
	const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	char pattern[PATH_MAX];
	glob_t found = { .gl_offs = 0 };
	int failed = 0;
	size_t count = (size_t)argc - 1;
	char **paths = argv + 1;

	setvbuf(tap, NULL, _IONBF, 0);
	if (!count) {
		snprintf(pattern, sizeof(pattern), "tests/fuzz/corpus/%s/*", name);
		glob(pattern, 0, NULL, &found);
		count = found.gl_pathc;
		paths = found.gl_pathv;
	}
	if (!count) {
		fprintf(tap, "not ok 1 - no %s: run from the top of the tree\n1..1\n", pattern);
		return 1;
	}
	for (size_t i = 0; i < count; i++) {
		fprintf(tap, "# %s\n", paths[i]);
		bool ok = replay(paths[i]);
		failed += !ok;
		fprintf(tap, "%sok %zu - %s\n", ok ? "" : "not ", i + 1, paths[i]);
	}
	fprintf(tap, "1..%zu\n", count);
	globfree(&found);
	return failed ? 1 : 0;
}
