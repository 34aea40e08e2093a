/* Whether a controller slows short-lived processes: the same series of them with it and without. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_BENCH_SHORT_H
#define TESTS_BENCH_SHORT_H

#include "tests/bench/run.h"

/* Without and with the controller. */
struct short_figures {
	double total_s[2];   /* of all processes in a row */
	double median_ms[2]; /* of one process, from fork to its end */
	double cpu_ms[2];    /* CPU time of one process, mean */
	double noise;	     /* longest by shortest series without the controller */
	double ksmd_s;	     /* CPU of ksmd with the controller, per series */
	double others;	     /* CPU used by the rest of the machine, percent of a core */
};

extern const char short_what[];

/*
 * Series without, with, with, without, and so on, so that a drift of the machine's speed cancels
 * out: 2 * repeat of each.
 */
struct outcome short_compare(const struct controller *controller, const char *config, int repeat,
	struct short_figures *figures);

#endif
