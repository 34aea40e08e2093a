/* Fuzz target: the command line of ksmstat, an argument to each line. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <getopt.h>

#include "ksmstat/options.h"
#include "tests/fuzz/fuzz.h"

#define ARGS_MAX 64

static void check(const struct options *options)
{
	FUZZ_MUST(options->sort != NULL);
	FUZZ_MUST(options->print.columns.count > 0);
	FUZZ_MUST(options->print.columns.count <= COLUMN_CHOICE_MAX);
	FUZZ_MUST(options->max_rss_bytes <= INT64_MAX);
	FUZZ_MUST(options->settle_ms <= 86400u * 1000);
	FUZZ_MUST(options->top_pages <= 1000);
	for (size_t i = 0; i < options->selection.pid_count; i++)
		FUZZ_MUST(options->selection.pids[i] > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_string(data, size), *rest = text, *argv[ARGS_MAX + 2];
	char name[] = "ksmstat";
	struct options options = { 0 };
	int argc = 1;

	fuzz_silence();
	argv[0] = name;
	while (argc <= ARGS_MAX && rest && *rest)
		argv[argc++] = strsep(&rest, "\n");
	argv[argc] = NULL;
	optind = 0;
	int code = options_parse(&options, argc, argv);
	FUZZ_MUST(code == -1 || code == STAT_OK || code == STAT_USAGE);
	if (code < 0)
		check(&options);
	options_free(&options);
	FUZZ_MUST(!select_any(&options.selection));
	free(text);
	return 0;
}
