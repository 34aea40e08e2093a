/* ksmctl enable, disable: opt running programs in to merging, or out of it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ksmctl/enable.h"
#include "ksmctl/privilege.h"
#include "libksmreg/ksmreg.h"
#include "sysfs/smaps.h"

enum {
	TIMEOUT_MS = 2000,
	TIMEOUT_MAX_S = 3600,
};

static const char *verb(const struct order *order)
{
	return order->on ? "enable" : "disable";
}

static void fail(struct order *order, int code)
{
	order->code = order->failed++ && order->code != code ? CTL_FAILED : code;
}

enum flag { FLAG_OFF, FLAG_ON, FLAG_UNKNOWN };

/* Is the flag of the process set? ksm_stat tells since 6.13. `areas`: else by what it does to them. */
static enum flag read_flag(const struct proc *proc, bool areas, const char **source)
{
	struct proc_ksm ksm;
	*source = "ksm_stat";
	if (!proc_read_ksm_stat(proc, &ksm) && ksm.present & PROC_KSM_MERGE_ANY)
		return ksm.merge_any ? FLAG_ON : FLAG_OFF;
	*source = "smaps";
	int marked = areas ? smaps_any_mergeable(proc) : -ENOSYS;
	return marked < 0 ? FLAG_UNKNOWN : marked ? FLAG_ON : FLAG_OFF;
}

/* As it was asked for already? Then nothing has to be stopped. */
static bool is_already(const struct order *order)
{
	const char *source;
	struct proc_ksm ksm;
	if (read_flag(order->proc, false, &source) != (order->on ? FLAG_ON : FLAG_OFF))
		return false;
	if (order->verbose || order->listed)
		SHOW(order, "merging is %s already", order->on ? "on" : "off");
	if (!order->on && !proc_read_ksm_stat(order->proc, &ksm) && ksm.mergeable)
		TELL(order, "offers some of its memory itself, by madvise(2), which cannot be "
			    "taken back from here");
	return true;
}

static void dry_run(struct order *order, const struct inject_report *report)
{
	if (report->result != INJECT_DONE)
		fail(order, enable_tell(order, report));
	else if (report->tid)
		SHOW(order, "would be %sd, by thread %d", verb(order), (int)report->tid);
	else
		SHOW(order, "would be %sd", verb(order));
}

/* One process, from the look at it to the proof. */
static void work_on(struct order *order)
{
	struct inject_options options = { order->timeout_ms, enable_tell_waiting, order };
	struct inject_report report = { .result = INJECT_DONE };
	const char *source;

	order->met++;
	if (is_already(order))
		return;
	if (order->dry_run) {
		if (!order->ctl->root.foreign)
			inject_look(order->proc, &report);
		dry_run(order, &report);
		return;
	}
	if (!order->on)
		enable_warn(order);
	inject_memory_merge(order->proc, order->on, &options, &report);
	order->signal = report.signal;
	if (report.result == INJECT_GONE && !order->listed)
		return; /* processes end; nobody asked for this one */
	if (report.result != INJECT_DONE) {
		fail(order, enable_tell(order, &report));
		return;
	}
	enum flag flag = read_flag(order->proc, true, &source);
	if (flag == (order->on ? FLAG_OFF : FLAG_ON)) {
		TELL(order, "the kernel took it, but %s still says %s", source,
			order->on ? "off" : "on");
		fail(order, CTL_FAILED);
	} else if (order->verbose) {
		enable_show(order, &report, flag == FLAG_UNKNOWN ? "the kernel" : source);
	}
}

static int visit(const struct proc *proc, const struct proc_stat *stat, void *data)
{
	struct order *order = data;
	/* Not for the whole system by accident: what init starts takes after it. */
	if (!stat || proc->pid == 1 || proc->pid == getpid() ||
		(strchr("ZXx", stat->state) && stat->threads <= 1))
		return 0;
	order->proc = proc;
	ctl_safe_name(order->comm, sizeof(order->comm), stat ? stat->comm : "?");
	work_on(order);
	return order->signal;
}

/* Those named by PID, one by one: for each that cannot be done it is said why. */
static void work_on_listed(struct order *order)
{
	const struct selection *selection = &order->selection;
	order->listed = true;
	for (size_t i = 0; i < selection->pid_count && !order->signal; i++) {
		struct proc proc;
		struct proc_stat stat;
		int err = proc_open(&proc, &order->ctl->root, selection->pids[i]);
		if (err) {
			ctl_error("%d: %s", (int)selection->pids[i],
				err == -ESRCH ? "no such process" : strerror(-err));
			order->met++;
			fail(order, CTL_FAILED);
			continue;
		}
		bool known = proc_read_stat(&proc, &stat) == 0;
		if (select_wanted(selection, &proc, known ? &stat : NULL)) {
			order->proc =
				&proc; /* cppcheck-suppress autoVariables ; for work_on alone */
			ctl_safe_name(order->comm, sizeof(order->comm), known ? stat.comm : "?");
			work_on(order);
			order->proc = NULL;
		}
		proc_close(&proc);
	}
}

static int work_on_all(struct order *order)
{
	size_t missing;
	if (order->selection.pid_count) {
		work_on_listed(order);
	} else {
		int err = select_each(&order->selection, &order->ctl->root, visit, order, &missing);
		if (err < 0)
			return ctl_fail("cannot read", "/proc", err);
	}
	if (!order->met) {
		ctl_error("no process fits");
		return CTL_FAILED;
	}
	return order->failed ? order->code : CTL_OK;
}

/* Ask this kernel, on ourselves. Returns an exit code. */
static int check_kernel(const struct order *order)
{
	struct ksmreg_caps caps = { .size = sizeof(caps) };
	int err = ksmreg_probe(&caps);
	if (!err)
		err = caps.prctl;
	if (err) {
		ctl_error("this kernel cannot open a whole process to merging: %s (Linux 6.4 can)",
			strerror(-err));
		return CTL_NO_KSM;
	}
	if (order->on && caps.areas_merge == 0)
		ctl_error("note: on this kernel neighbouring areas of such a program do not join "
			  "any more; one that maps memory in many pieces can reach "
			  "vm.max_map_count (fixed in Linux 6.17)");
	return CTL_OK;
}

static int parse_timeout(const char *text, int *ms)
{
	char *end = NULL;
	double seconds = text ? strtod(text, &end) : 0;
	if (end == text || *end || !(seconds >= 0.001 && seconds <= TIMEOUT_MAX_S))
		return -EINVAL;
	*ms = (int)(seconds * 1000);
	return 0;
}

enum { OPT_COMM = 256, OPT_USER, OPT_CGROUP, OPT_TIMEOUT };

/* Returns CTL_OK or CTL_USAGE. */
static int parse_option(struct order *order, int c, char **argv)
{
	struct selection *selection = &order->selection;
	const char *bad = optarg, *what = "";
	size_t len = optarg ? strlen(optarg) : 0;
	int err = 0;
	switch (c) {
	case 'v':
		order->verbose = true;
		break;
	case 'n':
		order->dry_run = true;
		break;
	case OPT_COMM:
		what = "name";
		err = select_add_comms(selection, optarg, &bad, &len);
		break;
	case OPT_USER:
		what = "user";
		err = select_add_users(selection, optarg, &bad, &len);
		break;
	case OPT_CGROUP:
		what = "control group";
		err = select_add_cgroup(selection, optarg);
		break;
	case OPT_TIMEOUT:
		what = "number of seconds";
		err = parse_timeout(optarg, &order->timeout_ms);
		break;
	default:
		return ctl_bad_option(verb(order), c, argv);
	}
	return err ? ctl_usage(verb(order), "'%.*s' is no %s", (int)len, bad, what) : CTL_OK;
}

static int parse(struct order *order, int argc, char **argv)
{
	static const struct option options[] = {
		{ "comm", required_argument, NULL, OPT_COMM },
		{ "user", required_argument, NULL, OPT_USER },
		{ "cgroup", required_argument, NULL, OPT_CGROUP },
		{ "timeout", required_argument, NULL, OPT_TIMEOUT },
		{ "dry-run", no_argument, NULL, 'n' },
		{ "verbose", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	const char *bad;
	size_t len;
	int c;
	while ((c = getopt_long(argc, argv, ":nv", options, NULL)) != -1) {
		int code = parse_option(order, c, argv);
		if (code)
			return code;
	}
	for (; optind < argc; optind++) {
		if (select_add_pids(&order->selection, argv[optind], &bad, &len))
			return ctl_usage(verb(order), "'%.*s' is no process ID", (int)len, bad);
	}
	if (!select_any(&order->selection))
		return ctl_usage(
			verb(order), "%s needs a PID, --comm, --user or --cgroup", verb(order));
	if (order->ctl->prefix && *order->ctl->prefix && !order->dry_run)
		return ctl_usage(
			verb(order), "below --root there is nothing running: --dry-run only");
	return CTL_OK;
}

static int run(struct ctl *ctl, int argc, char **argv, bool on)
{
	struct order order = { .ctl = ctl, .on = on, .timeout_ms = TIMEOUT_MS };
	int err, code = parse(&order, argc, argv);
	if (!code && !order.dry_run)
		code = check_kernel(&order);
	if (!code) {
		err = root_open(&ctl->root, ctl->prefix);
		if (err)
			code = ctl_fail("cannot open", ctl->prefix ? ctl->prefix : "/", err);
	}
	if (!code) {
		err = privilege_inject();
		if (err)
			code = ctl_fail("cannot give up", "privileges", err);
	}
	if (!code)
		code = work_on_all(&order);
	select_free(&order.selection);
	if (order.signal) {
		/* What was to end us still does, now that nobody is held up. */
		fflush(stdout);
		signal(order.signal, SIG_DFL);
		raise(order.signal);
	}
	return code;
}

int enable_run(struct ctl *ctl, int argc, char **argv)
{
	return run(ctl, argc, argv, true);
}

int disable_run(struct ctl *ctl, int argc, char **argv)
{
	return run(ctl, argc, argv, false);
}
