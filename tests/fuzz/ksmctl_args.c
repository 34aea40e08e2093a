/* Fuzz target: the command lines of the verbs of ksmctl, an argument to each line. None gets to a kernel. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <getopt.h>

#include "ksmctl/ksmctl.h"
#include "tests/fuzz/fuzz.h"

#define ARGS_MAX 64

/* Verbs that have arguments of their own and begin nothing by themselves, as `run` and `daemon` do. */
static const struct {
	const char *name;
	int (*run)(struct ctl *ctl, int argc, char **argv);
} verbs[] = {
	{ "info", info_run },
	{ "start", start_run },
	{ "stop", stop_run },
	{ "unmerge", unmerge_run },
	{ "set", set_run },
	{ "enable", enable_run },
	{ "disable", disable_run },
	{ "doctor", doctor_run },
};

int __wrap_ctl_open(struct ctl *ctl);
int __wrap_root_open(struct root *root, const char *prefix);

/* Arguments are all right. This is as far as it goes. */
int __wrap_ctl_open(struct ctl *ctl)
{
	(void)ctl;
	return CTL_NO_KSM;
}

int __wrap_root_open(struct root *root, const char *prefix)
{
	(void)root, (void)prefix;
	return -ENOENT;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_string(data, size), *rest = text, *argv[ARGS_MAX + 2];
	struct ctl ctl = { .prefix = "/nowhere", .root = { .fd = -1 }, .ksm = { .fd = -1 } };
	int argc = 0;

	fuzz_silence();
	while (argc <= ARGS_MAX && rest && *rest)
		argv[argc++] = strsep(&rest, "\n");
	argv[argc] = NULL;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs) && argc; i++) {
		if (strcmp(verbs[i].name, argv[0]) != 0)
			continue;
		optind = 0;
		int code = verbs[i].run(&ctl, argc, argv);
		FUZZ_MUST(code == CTL_USAGE || code == CTL_NO_KSM || code == CTL_FAILED);
	}
	free(text);
	return 0;
}
