/* One measured run: one controller, one workload, on the kernel's defaults, all put back at the end. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_BENCH_RUN_H
#define TESTS_BENCH_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "sysfs/ksmd.h"
#include "tests/bench/controller.h"
#include "tests/bench/series.h"
#include "tests/bench/workload.h"

/* `wrong` is NULL when all went well, else why there are no figures. */
struct outcome {
	const char *wrong;
	bool skipped; /* the controller cannot be had here, which is no failure */
};

/* Set by a signal during a run: leave soon and in order. */
extern volatile sig_atomic_t run_stop_signal;

/* Once, before the first run. */
void run_prepare(void);

/* Takes the guard for its duration. `config` is extra configuration for ours, or NULL. */
struct outcome run_workload(const struct workload *workload, const struct controller *controller,
	const char *config, double seconds, struct series *series, struct figures *figures);

/*
 * The frame of every run: guard, default knobs, controller; then `body`, which returns NULL or
 * what went wrong; then everything back. *run is filled for the caller.
 */
typedef const char *run_body(const struct ksmd *ksmd, struct controller_run *run, void *data);
struct outcome run_guarded(const struct controller *controller, const char *config,
	struct controller_run *run, run_body *body, void *data);

#endif
