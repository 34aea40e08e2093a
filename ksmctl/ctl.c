/* What the verbs share: opening the kernel, telling failures. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <libsmartcols.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ksmctl/ksmctl.h"

static void print_error(const char *format, va_list args)
{
	fflush(stdout);
	fputs("ksmctl: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void ctl_error(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	print_error(format, args);
	va_end(args);
}

int ctl_usage(const char *verb, const char *format, ...)
{
	if (format) {
		va_list args;
		va_start(args, format);
		print_error(format, args);
		va_end(args);
	}
	fprintf(stderr, "Try 'ksmctl %s%s--help'.\n", verb ? verb : "", verb ? " " : "");
	return CTL_USAGE;
}

int ctl_bad_option(const char *verb, int result, char **argv)
{
	/* A long option is told whole; of short ones getopt names the letter. */
	const char *last = argv[optind - 1];
	char letter[3] = { '-', (char)optopt, '\0' };
	bool is_long = last && !strncmp(last, "--", 2);
	const char *option = is_long ? last : letter;
	if (result == ':')
		return ctl_usage(verb, "option '%s' requires an argument", option);
	return ctl_usage(verb, "unrecognized option '%s'", option);
}

void ctl_put_back(struct ctl *ctl, const struct ksm_state *before)
{
	enum ksm_key failed = KSM_RUN;
	int err = ksm_restore(&ctl->ksm, before, &failed);
	if (err)
		ctl_error(
			"and %s could not be put back: %s", ksm_keys[failed].name, strerror(-err));
}

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
static sigset_t mask_before;
static bool holding;

void ctl_hold_signals(void)
{
	/* All but those of a fault of our own, which do not wait. */
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
	sigset_t held;
	sigfillset(&held);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		sigdelset(&held, faults[i]);
	holding = sigprocmask(SIG_BLOCK, &held, &mask_before) == 0;
}

bool ctl_signal_waits(void)
{
	sigset_t waiting;
	sigemptyset(&waiting);
	sigpending(&waiting);
	for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++) {
		if (sigismember(&waiting, ending[i]))
			return true;
	}
	return false;
}

void ctl_let_signals(void)
{
	if (holding)
		sigprocmask(SIG_SETMASK, &mask_before, NULL);
	holding = false;
}

int ctl_read_before(struct ctl *ctl, struct ksm_state *before)
{
	ksm_read(&ctl->ksm, before);
	for (int key = 0; key < KSM_TUNABLES; key++) {
		bool always =
			key == KSM_RUN || key == KSM_PAGES_TO_SCAN || key == KSM_SLEEP_MILLISECS;
		if (before->error[key] && (always || before->error[key] != -ENOENT))
			return ctl_fail("cannot read", ksm_keys[key].name, before->error[key]);
	}
	return CTL_OK;
}

int ctl_print_table(struct libscols_table *table)
{
	char *text = NULL;
	int err = scols_print_table_to_string(table, &text);
	if (!err && (!text || !*text))
		err = -ENOMEM;
	if (!err) {
		fputs(text, stdout);
		/* of tables the library leaves out the last one */
		if (text[strlen(text) - 1] != '\n')
			putchar('\n');
	}
	free(text);
	return err;
}

int ctl_fail(const char *doing, const char *what, int err)
{
	static const char as_root[] = "run it as root";
	static const struct {
		int err;
		int code;
		bool run; /* it is about unmerging by a write of run, and of nothing else */
		const char *advice;
	} known[] = {
		{ -EACCES, CTL_DENIED, false, as_root },
		{ -EPERM, CTL_DENIED, false, as_root },
		{ -EROFS, CTL_DENIED, false,
			"/sys is read-only here, as in a container: run it on the host" },
		{ -EBUSY, CTL_FAILED, false, "pages are still merged: 'ksmctl unmerge' first" },
		{ -EBADE, CTL_FAILED, false,
			"the kernel took the value but shows another; is a second controller "
			"running?" },
		{ -ENOMEM, CTL_FAILED, true,
			"memory ran out on the way: part of it is still merged" },
		{ -EINTR, CTL_FAILED, true, "interrupted: part of the memory may still be merged" },
	};
	const char *reason = err == -EBADE ? "value not kept" : strerror(-err), *advice = NULL;
	int code = CTL_FAILED;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (known[i].err == err &&
			(!known[i].run || !strcmp(what, ksm_keys[KSM_RUN].name))) {
			advice = known[i].advice;
			code = known[i].code;
		}
	}
	if (advice == as_root && geteuid() == 0)
		advice = NULL;
	if (advice)
		ctl_error("%s %s: %s (%s)", doing, what, reason, advice);
	else
		ctl_error("%s %s: %s", doing, what, reason);
	return code;
}

int ctl_open(struct ctl *ctl)
{
	int err = root_open(&ctl->root, ctl->prefix);
	if (err)
		return ctl_fail("cannot open", ctl->prefix ? ctl->prefix : "/", err);
	err = ksm_open(&ctl->ksm, &ctl->root);
	if (err == -ENOENT || err == -ENOTDIR) {
		ctl_error("no KSM: /sys/kernel/mm/ksm does not exist (a kernel without CONFIG_KSM, "
			  "or /sys is hidden as in a container)");
		return CTL_NO_KSM;
	}
	return err ? ctl_fail("cannot open", "/sys/kernel/mm/ksm", err) : CTL_OK;
}

int ctl_read_config(struct config *config, const char *path, bool given)
{
	char message[512];
	config_defaults(config);
	int err = config_read(config, path, message, sizeof(message));
	if (!err || (err == -ENOENT && !given))
		return CTL_OK;
	if (err < 0)
		ctl_error("cannot read %s: %s", path, strerror(-err));
	else
		ctl_error("%s:%d: %s", path, err, message);
	return CTL_USAGE;
}

int ctl_set(struct ctl *ctl, enum ksm_key key, int64_t value)
{
	int err = ksm_set(&ctl->ksm, key, value);
	if (err == -ENOENT) {
		ctl_error("cannot write %s: this kernel does not have it", ksm_keys[key].name);
		return CTL_FAILED;
	}
	return err ? ctl_fail("cannot write", ksm_keys[key].name, err) : CTL_OK;
}

int64_t ctl_page_bytes(void)
{
	return sysconf(_SC_PAGESIZE);
}

void ctl_safe_name(char *to, size_t size, const char *raw)
{
	size_t i = 0;
	for (; i < size - 1 && raw[i]; i++)
		to[i] = isascii((unsigned char)raw[i]) && isprint((unsigned char)raw[i]) ? raw[i]
											 : '?';
	to[i] = '\0';
}
