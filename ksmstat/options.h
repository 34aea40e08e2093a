/* The options of ksmstat: one table that feeds the parser and the help. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_OPTIONS_H
#define KSMSTAT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "ksmstat/column.h"
#include "ksmstat/print.h"

/* Exit codes, as the manual page documents them; the last two as in util-linux. */
enum {
	STAT_OK = 0,
	STAT_FAILED = 1,
	STAT_USAGE = 2,
	STAT_NONE_FOUND = 32,
	STAT_SOME_FOUND = 64,
};

/* What is done; without one of the others it is the report. */
enum mode { MODE_REPORT, MODE_CLASSIC, MODE_ESTIMATE };

struct options {
	enum mode mode;
	const char *prefix; /* of /proc and /sys; NULL for the running system */
	struct print_options print;
	const struct column *sort;
	bool sort_reverse;
	pid_t *pids;
	size_t pid_count;
};

/*
 * Parse the command line into *options, which is freed with options_free in any case.
 * Returns -1 to go on, else an exit code: what was wrong, or the help that was asked for, is printed.
 */
int options_parse(struct options *options, int argc, char **argv);
void options_free(struct options *options);

/* "ksmstat: ..." on stderr, a line. */
void error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
