/* What the tests of faults print: TAP, with the problem of a test that failed. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/fault/tell.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char problem[2000];
static int count, failed;

bool tell_has_problem(void)
{
	return *problem;
}

static void keep(const char *format, va_list args)
{
	vsnprintf(problem, sizeof(problem), format, args);
	strncat(problem, "\n", sizeof(problem) - strlen(problem) - 1);
}

bool tell_problem(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	if (!*problem)
		keep(format, args);
	va_end(args);
	return false;
}

bool tell_problem_of(const struct run *run, const char *format, ...)
{
	va_list args;
	if (*problem)
		return false;
	va_start(args, format);
	keep(format, args);
	va_end(args);
	size_t at = strlen(problem);
	snprintf(problem + at, sizeof(problem) - at, "fault: %.200s\nclock: %.60s\nsaid: %.900s\n",
		run_was_hit(run) ? run_text(run->log_fd) : "none", run->clock ? run->clock : "-",
		run_text(run->err_fd));
	return false;
}

void tell_verdict(const char *format, ...)
{
	va_list args;
	printf("%s %d - ", *problem ? "not ok" : "ok", ++count);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	for (char *line = problem, *end; *line && (end = strchr(line, '\n')); line = end + 1)
		printf("# %.*s\n", (int)(end - line), line);
	failed += *problem != '\0';
	*problem = '\0';
	fflush(stdout);
}

void tell_skip(const char *name, const char *reason)
{
	printf("ok %d - %s # SKIP %s\n", ++count, name, reason);
	fflush(stdout);
}

int tell_end(void)
{
	printf("1..%d\n", count);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
