/* ksmctl enable, disable: what is said about a process, and what can be done about it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ksmctl/enable.h"
#include "sysfs/file.h"

enum {
	UNMERGE_US_PER_MIB = 50, /* of address space, whether merged or not */
	UNMERGE_WARN_MS = 1000,
};

static int tell_denied(const struct order *order)
{
	char text[16];
	int64_t scope = 0;
	ssize_t len = file_read(
		order->ctl->root.fd, "proc/sys/kernel/yama/ptrace_scope", text, sizeof(text));
	if (len < 0 || file_parse_i64(text, (size_t)len, &scope))
		scope = 0;
	if (scope >= 3)
		TELL(order, "nobody may trace here (kernel.yama.ptrace_scope is 3); start it with "
			    "'ksmctl run'");
	else if (geteuid() == 0)
		TELL(order, "may not be traced, even by root: a security module or another user "
			    "namespace forbids it; start it with 'ksmctl run'");
	else if (scope >= 1)
		TELL(order,
			"may not be traced: only children may be (kernel.yama.ptrace_scope is "
			"%d); run it as root",
			(int)scope);
	else
		TELL(order, "may not be traced: it is another user's, runs set-user-ID or hides "
			    "its memory; run it as root");
	return CTL_DENIED;
}

static int tell_timeout(const struct order *order, const struct inject_report *report)
{
	const char *why = report->state == 'D' ? "it waits for a device, or for a child of vfork(2)"
			  : report->call >= 0  ? "it waits inside the kernel, or is frozen"
					       : "it gets no CPU time, or is frozen";
	TELL(order,
		"thread %d did not stop within %d ms: %s; it was left as it was; try again, or "
		"with a longer --timeout",
		(int)report->tid, order->timeout_ms, why);
	return CTL_FAILED;
}

static int tell_call(const struct order *order, int err)
{
	if (err == -EINVAL) {
		TELL(order, "the kernel does not take it (PR_SET_MEMORY_MERGE, Linux 6.4)");
		return CTL_NO_KSM;
	}
	TELL(order, "the kernel refuses: %s%s", strerror(-err),
		err == -ENOMEM ? "; unmerging needs more memory than there is" : "");
	return CTL_FAILED;
}

int enable_tell(const struct order *order, const struct inject_report *report)
{
	const char *text = NULL;
	switch (report->result) {
	case INJECT_DENIED:
		return tell_denied(order);
	case INJECT_TIMEOUT:
		return tell_timeout(order, report);
	case INJECT_CALL:
		return tell_call(order, report->err);
	case INJECT_TRACED:
		TELL(order, "is traced by process %d, and cannot be by two: end that first",
			(int)report->tracer);
		return CTL_FAILED;
	case INJECT_SECCOMP:
		TELL(order, "has a system call filter that could kill it; only root "
			    "(CAP_SYS_ADMIN) can suspend it: run it as root");
		return CTL_REFUSED;
	case INJECT_FAILED:
		TELL(order, "cannot trace it: %s", strerror(-report->err));
		return CTL_FAILED;
	case INJECT_GONE:
		text = "has ended, or executes another program just now";
		break;
	case INJECT_SELF:
		text = "is ksmctl itself";
		break;
	case INJECT_KERNEL_THREAD:
		text = "is a kernel thread, without memory of its own";
		break;
	case INJECT_ZOMBIE:
		text = "has ended, and waits for its parent to notice (a zombie)";
		break;
	case INJECT_FOREIGN:
		text = "is a program for another kind of machine (32-bit, x32), into which this "
		       "ksmctl cannot reach; start it with 'ksmctl run'";
		break;
	case INJECT_ARCH:
		text = "reaching into a running program is known for x86-64 and arm64 only; start "
		       "it with 'ksmctl run'";
		break;
	case INJECT_NO_CALL:
		text = "no system call instruction found in it; start it with 'ksmctl run'";
		break;
	case INJECT_CANCELLED:
		text = "interrupted: its flag is as it was";
		break;
	case INJECT_DONE:
		return CTL_OK;
	}
	TELL(order, "%s", text);
	return CTL_FAILED;
}

void enable_tell_waiting(void *data)
{
	const struct order *order = data;
	if (order->on)
		TELL(order, "still waits for the program's memory map, and cannot be left now");
	else
		TELL(order, "still unmerging, which must not be left half way; an interrupt "
			    "(Ctrl-C) ends it and leaves merging on");
}

/* The thread stands still while all of the address space is gone through, and faults of others too. */
void enable_warn(const struct order *order)
{
	char text[128];
	uint64_t pages;
	ssize_t len = file_read(order->proc->fd, "statm", text, sizeof(text));
	if (len <= 0 || sscanf(text, "%" SCNu64, &pages) != 1)
		return;
	uint64_t mib = pages / ((1 << 20) / (uint64_t)ctl_page_bytes());
	uint64_t ms = mib * UNMERGE_US_PER_MIB / 1000;
	if (ms > UNMERGE_WARN_MS)
		TELL(order,
			"unmerging %" PRIu64 " GiB of addresses can hold it up for %" PRIu64 " s",
			mib >> 10, (ms + 999) / 1000);
}

void enable_show(const struct order *order, const struct inject_report *report, const char *source)
{
	char doing[48] = "of unknown doing";
	if (report->call == INJECT_RUNNING)
		snprintf(doing, sizeof(doing), "running");
	else if (report->call == INJECT_IN_NONE)
		snprintf(doing, sizeof(doing), "in no system call");
	else if (report->call >= 0)
		snprintf(doing, sizeof(doing), "in system call %ld", report->call);
	SHOW(order,
		"merging is %s now, as %s says; thread %d, %s, was held up for at most %" PRId64
		" us",
		order->on ? "on" : "off", source, (int)report->tid, doing, report->stops_us);
}
