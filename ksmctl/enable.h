/* ksmctl enable, disable: what was asked for, and what is said about it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_ENABLE_H
#define KSMCTL_ENABLE_H

#include "ksmctl/inject.h"
#include "ksmctl/ksmctl.h"
#include "sysfs/select.h"

/* What is asked for, and how it goes. */
struct order {
	struct ctl *ctl;
	bool on, verbose, dry_run;
	bool listed; /* the process in hand was named by its PID */
	int timeout_ms;
	struct selection selection;
	size_t met, failed;
	int code;   /* CTL_OK, or that of the failures where they agree */
	int signal; /* that ended it */
	/* the process in hand */
	const struct proc *proc;
	char comm[PROC_COMM_MAX];
};

/* Say what went wrong with the process in hand, and what to do. Returns the exit code for it. */
int enable_tell(const struct order *order, const struct inject_report *report);

/* Say that its call takes long. `data` is the order. */
void enable_tell_waiting(void *data);

/* Say so before where unmerging will take long. */
void enable_warn(const struct order *order);

/* Show what was done, and who says that it was. */
void enable_show(const struct order *order, const struct inject_report *report, const char *source);

#define TELL(order, format, ...) \
	ctl_error("%d (%s): " format, (int)(order)->proc->pid, (order)->comm, ##__VA_ARGS__)
#define SHOW(order, format, ...) \
	printf("%d (%s): " format "\n", (int)(order)->proc->pid, (order)->comm, ##__VA_ARGS__)

#endif
