/* ksmstat: what processes share and own, what merging saved, and what it would save. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "ksmstat/audit.h"
#include "ksmstat/capture.h"
#include "ksmstat/estimate.h"
#include "ksmstat/interval.h"
#include "ksmstat/options.h"
#include "ksmstat/privilege.h"
#include "ksmstat/prom.h"
#include "ksmstat/report.h"
#include "ksmstat/watch.h"
#include "sysfs/root.h"

static int run(const struct options *options, const struct root *root, int capture_dir)
{
	if (capture_is_incomplete(root))
		error("note: %s is a capture that was not completed", options->prefix);
	switch (options->mode) {
	case MODE_AUDIT:
		return audit_run(options, root);
	case MODE_CAPTURE:
		return capture(options, root, capture_dir);
	case MODE_ESTIMATE:
		return estimate(options, root);
	case MODE_PROM:
		return prom(options, root);
	case MODE_INTERVAL:
		return interval(options, root);
	case MODE_WATCH:
		return watch(options, root);
	default:
		return report(options, root);
	}
}

int main(int argc, char **argv)
{
	struct options options = { 0 };
	struct root root;
	int capture_dir = -1;

	setlocale(LC_CTYPE, "");
	int code = options_parse(&options, argc, argv);
	if (code < 0 && options.capture && (capture_dir = capture_begin(options.capture)) < 0)
		code = STAT_FAILED;
	if (code < 0) {
		privilege_drop(options.mode != MODE_CLASSIC);
		int err = root_open(&root, options.prefix);
		if (err) {
			error("cannot open %s: %s", options.prefix ? options.prefix : "/",
				strerror(-err));
			if (capture_dir >= 0)
				capture_give_up(options.capture, capture_dir);
			code = STAT_FAILED;
		} else {
			code = run(&options, &root, capture_dir);
			root_close(&root);
		}
	}
	options_free(&options);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		if (errno != EPIPE)
			error("cannot write the output: %s", strerror(errno));
		return STAT_FAILED;
	}
	return code;
}
