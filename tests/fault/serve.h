/* A service on a copy of a captured kernel, as the tests of faults start, watch and end it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_FAULT_SERVE_H
#define TESTS_FAULT_SERVE_H

#include <limits.h>

#include "tests/fault/run.h"
#include "tests/fault/tree.h"

struct serve {
	struct tree tree;
	char build[PATH_MAX], program[PATH_MAX + 16];
	char config_path[160], state_path[160], first_path[200];
	bool exhaustive; /* $FAULTS is "all" */
	bool live;	 /* no --root: what is below / is that tree, or partly */
};
extern struct serve serve;

/* Make all of it. Ends the program where that fails. */
void serve_setup(void);

/* What this test and its children mount is theirs alone from here on. False: no right to. */
bool serve_own_mounts(void);

/* As before the first start. */
void serve_reset(void);
/* Start it under run->fault, run->clock and run->files; mode is "--restore" or NULL. */
void serve_begin(struct run *run, const char *mode);
/* Wait until it is there and ready. False: it has ended, or never is. */
bool serve_becomes_ready(struct run *run);
/* Ask it to end, and wait. Returns its exit code, or -1. */
int serve_end(struct run *run);
/* Run --restore, or a service from start to end. Returns its exit code, or -1. */
int serve_again(const char *mode);

/* Whether the kernel is as it was found, and no first values are kept. */
bool serve_as_found(void);
/* How many failures it told, or -1 where a line is odd. That there are no events below --root is none. */
int serve_failures(const struct run *run);

/* A number of the file of its status; -1 where there is none. */
int64_t serve_status(const char *key);
/* Wait for that long until the status has this line. */
bool serve_shows(const char *line, int ms);

#endif
