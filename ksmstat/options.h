/* The options of ksmstat: one table that feeds the parser and the help. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_OPTIONS_H
#define KSMSTAT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ksmstat/column.h"
#include "ksmstat/group.h"
#include "ksmstat/interval_column.h"
#include "ksmstat/print.h"
#include "sysfs/select.h"

/* Exit codes, as the manual page documents them; the last two as in util-linux. */
enum {
	STAT_OK = 0,
	STAT_FAILED = 1,
	STAT_USAGE = 2,
	STAT_CROSSES = 3, /* --audit: merged pages are shared across a boundary */
	STAT_NONE_FOUND = 32,
	STAT_SOME_FOUND = 64,
	STAT_INTERRUPTED = 130, /* by a SIGINT: the result so far is there */
};

/* What is done; without one of the others it is the report. */
enum mode {
	MODE_REPORT,
	MODE_CLASSIC,
	MODE_ESTIMATE,
	MODE_AUDIT,
	MODE_PROM,
	MODE_INTERVAL,
	MODE_WATCH,
	MODE_CAPTURE
};

struct options {
	enum mode mode;
	const char *prefix; /* of /proc and /sys; NULL for the running system */
	struct print_options print;
	const struct column *sort;
	bool sort_reverse;
	struct selection selection;
	enum group_by by; /* GROUP_NONE: a row for each process */
	bool tree;
	const char *columns;	/* as asked for, NULL for the default: print.columns has them */
	bool gentle;		/* read memory in small steps */
	uint64_t max_rss_bytes; /* leave out larger processes; 0: none */
	unsigned settle_ms;	/* --estimate: between its two looks; 0 for one look */
	size_t top_pages;	/* --estimate: contents to show */
	const char *capture;	/* --capture: the folder to make */
	bool anonymise;		/* --capture: without names */

	/* of --prom */
	unsigned by_all; /* bits of all that was asked for with --by */
	bool per_process;
	const char *output_file; /* NULL for standard output */

	/* of DELAY and COUNT */
	uint64_t delay_ns; /* DELAY and COUNT: a line after each, so many; 0: without end */
	uint64_t lines;
	struct interval_choice interval; /* their columns */
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
