/* The controllers under comparison: how each is started on the kernel's defaults, and stopped. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_BENCH_CONTROLLER_H
#define TESTS_BENCH_CONTROLLER_H

#include <stdbool.h>
#include <sys/types.h>

struct controller_setup {
	const char *programs;	  /* folder of ksmctl; bench/ksmtuned lies below it */
	const char *extra_config; /* "key=value;..." for ours, or NULL */
	const char *scratch;	  /* temporary folder for state, configuration and log */
};

/* A controller at work; knob settings alone have no process. */
struct controller_run {
	pid_t pid;     /* leader of its own process group, 0 without */
	double cpu_s;  /* its own and its children's, after the stop */
	long peak_kib; /* of one process, after the stop */
	bool ours;
};

struct controller {
	const char *name;
	const char *what;
	/* Returns NULL, or why it cannot run here (static text). The knobs are at the defaults. */
	const char *(*start)(const struct controller_setup *setup, struct controller_run *run);
};

extern const struct controller controllers[];
const struct controller *controller_find(const char *name);

/* Every knob as the kernel boots with it, nothing merged, ksmd stopped. 0 or -errno. */
int controller_default_knobs(void);

/* False when it died while it should have run. */
bool controller_lives(const struct controller_run *run);

/* SIGTERM, its use of CPU and memory. Returns NULL, or what it did wrong (static text). */
const char *controller_stop(struct controller_run *run);

#endif
