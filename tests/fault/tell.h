/* What the tests of faults print: TAP, with the problem of a test that failed. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_FAULT_TELL_H
#define TESTS_FAULT_TELL_H

#include <stdbool.h>

#include "tests/fault/run.h"

/* The first problem of a test counts; later ones are not kept. Always false. */
bool tell_problem(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, with the fault and what the program said. */
bool tell_problem_of(const struct run *run, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Whether there was one since the last verdict. */
bool tell_has_problem(void);

/* Print "ok" or "not ok" and forget the problem. */
void tell_verdict(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tell_skip(const char *name, const char *reason);
/* Print the plan. Returns an exit code. */
int tell_end(void);

#endif
