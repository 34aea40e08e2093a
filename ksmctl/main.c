/* ksmctl: controls the kernel's samepage merging, by hand and as a service. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "ksmctl/ksmctl.h"

/* What the help of a verb says of its options. Completion reads it. */
#define JSON_OPTION "  -J, --json               JSON\n"
#define CONFIG_OPTION "  -c, --config FILE        this configuration file, not /etc/ksmctl.conf\n"
#define FORCE_OPTION \
	"  -f, --force              do not compare what it needs with the memory there is\n"
#define ENABLE_OPTIONS \
	"      --comm NAME          processes of this name; may be repeated\n" \
	"      --user USER          processes of this user; may be repeated\n" \
	"      --cgroup PATH        processes in this control group, or below it\n" \
	"  -n, --dry-run            show which processes, and do nothing\n" \
	"      --timeout SECONDS    wait so long for a thread to stop (2)\n" \
	"  -v, --verbose            tell what was done to each process\n"

static const struct ctl_verb verbs[] = {
	{ "info", "[--json]", "show tunables, counters, saving and cost", JSON_OPTION, info_run },
	{ "start", "[PAGES [SLEEP_MS]]", "let ksmd merge; PAGES per batch, SLEEP_MS in between", "",
		start_run },
	{ "stop", "", "stop ksmd; what is merged stays merged", "", stop_run },
	{ "unmerge", "[--force]", "stop ksmd and give every merged page back its own copy",
		FORCE_OPTION, unmerge_run },
	{ "set", "[--unmerge-first] [--force] KEY=VALUE...", "set tunables, checked and read back",
		"      --unmerge-first      where a key needs it: unmerge all "
		"before\n" FORCE_OPTION,
		set_run },
	{ "daemon", "[-v] [-c FILE] [--check | --print-config | --restore]",
		"the adaptive service, in the foreground",
		CONFIG_OPTION
		"      --check              check the configuration, and do nothing else\n"
		"      --print-config       print the configuration, and do nothing else\n"
		"      --restore            put back what a killed service found first\n"
		"      --root DIR           as in front of the verb\n"
		"  -v, --verbose            tell each decision\n",
		daemon_run },
	{ "status", "[--json] [-c FILE]", "what the service does now", JSON_OPTION CONFIG_OPTION,
		status_run },
	{ "why", "[-n LINES] [-c FILE]", "its last decisions, with reasons",
		"  -n, --lines LINES        so many (20)\n" CONFIG_OPTION, why_run },
	{ "boost", "[-c FILE]", "let it merge at full speed now", CONFIG_OPTION, boost_run },
	{ "doctor", "[-a] [--json] [PID...]", "say why nothing, or little, merges, and what to do",
		"  -a, --all                also advice where nothing is wrong\n" JSON_OPTION,
		doctor_run },
	{ "run", "[-v] [-E NAME=VALUE]... [--no-children] [--refuse-setuid]\n      [--] COMMAND...",
		"start a program with all its memory open to merging",
		"  -v, --verbose            tell which way was taken, and why\n"
		"  -E, --setenv NAME=VALUE  a variable for its environment; may be repeated\n"
		"      --no-children        not for what it executes in other processes\n"
		"      --refuse-setuid      not a program with privileges of its own\n",
		run_run },
	{ "enable", "[OPTION...] [PID...]", "open running programs' memory to merging",
		ENABLE_OPTIONS, enable_run },
	{ "disable", "[OPTION...] [PID...]", "take that back, and unmerge their memory",
		ENABLE_OPTIONS, disable_run },
};
#define VERBS (sizeof(verbs) / sizeof(*verbs))

static void print_help(FILE *out)
{
	fputs("Usage: ksmctl [--root DIR] VERB [ARGUMENT...]\n\n"
	      "Controls the kernel's samepage merging (KSM).\n\nVerbs:\n",
		out);
	for (size_t i = 0; i < VERBS; i++)
		fprintf(out, "  %s%s%s\n      %s\n", verbs[i].name, *verbs[i].args ? " " : "",
			verbs[i].args, verbs[i].help);
	fputs("\nOptions:\n"
	      "      --root DIR  use /sys and /proc below DIR instead of the running system's\n"
	      "  -h, --help      this help\n"
	      "  -V, --version   the version\n\n"
	      "Exit codes: 0 done, 1 failed, 2 wrong arguments, 3 no KSM in this kernel,\n"
	      "4 no permission or read-only /sys, 5 refused because it would be dangerous.\n"
	      "`run` exits with the code of COMMAND, or 126 or 127 where it cannot be run.\n"
	      "More in ksmctl(8).\n",
		out);
}

static int finish_output(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	if (errno != EPIPE)
		ctl_error("cannot write the output: %s", strerror(errno));
	return code ? code : CTL_FAILED;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "root", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	struct ctl ctl = { .root = { .fd = -1 }, .ksm = { .fd = -1 } };
	int c;
	opterr = 0; /* ctl_bad_option says it */
	while ((c = getopt_long(argc, argv, "+:hV", options, NULL)) != -1) {
		switch (c) {
		case 'r':
			ctl.prefix = optarg;
			break;
		case 'h':
			print_help(stdout);
			return finish_output(CTL_OK);
		case 'V':
			puts("ksmctl " KSM_VERSION);
			return finish_output(CTL_OK);
		default:
			return ctl_bad_option(NULL, c, argv);
		}
	}
	if (optind == argc) {
		print_help(stderr);
		return CTL_USAGE;
	}
	const char *name = argv[optind];
	for (size_t i = 0; i < VERBS; i++) {
		if (strcmp(verbs[i].name, name) != 0)
			continue;
		argc -= optind;
		argv += optind;
		optind = 0; /* the verb parses its own options, from the start */
		if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
			printf("Usage: ksmctl %s%s%s\n\n%s\n%s%s", name, *verbs[i].args ? " " : "",
				verbs[i].args, verbs[i].help, *verbs[i].options ? "\n" : "",
				verbs[i].options);
			return finish_output(CTL_OK);
		}
		int code = verbs[i].run(&ctl, argc, argv);
		ksm_close(&ctl.ksm);
		root_close(&ctl.root);
		return finish_output(code);
	}
	return ctl_usage(NULL, "unknown verb '%s'", name);
}
