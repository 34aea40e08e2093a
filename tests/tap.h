/* Runs a Check suite and prints TAP, the one language of all tests here. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/* Say, inside a test, that it cannot be done here; return from the test afterwards. */
#define tap_skip(...) (printf("# SKIP " __VA_ARGS__), putchar('\n'), fflush(stdout))

/* The exit code for main(): 0 when all passed. */
static inline int tap_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	srunner_set_tap(runner, "-");
	srunner_run_all(runner, CK_SILENT);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
