/* What the verbs of ksmctl share: the opened kernel, exit codes, and how failures are told. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_KSMCTL_H
#define KSMCTL_KSMCTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ksmctl/config.h"
#include "sysfs/ksm.h"
#include "sysfs/root.h"

/* Exit codes, as the manual page documents them. */
enum {
	CTL_OK = 0,
	CTL_FAILED = 1,	 /* the kernel refused, or something could not be read */
	CTL_USAGE = 2,	 /* wrong arguments; nothing was touched */
	CTL_NO_KSM = 3,	 /* this kernel has no KSM, or hides it */
	CTL_DENIED = 4,	 /* no permission, or /sys is read-only */
	CTL_REFUSED = 5, /* dangerous as things are; the message names the option that insists */
};

/* Options in front of the verb. */
struct ctl {
	const char *prefix; /* --root */
	struct root root;
	struct ksm ksm; /* opened by ctl_open */
};

struct ctl_verb {
	const char *name;
	const char *args;    /* as the help shows them */
	const char *help;    /* one line */
	const char *options; /* the same of each option, "" when it has none */
	int (*run)(struct ctl *ctl, int argc,
		char **argv); /* argv[0] is the verb; returns an exit code */
};

/* Print "ksmctl: ..." on stderr. */
void ctl_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Say that `doing` ("cannot write") failed on `what` with -errno `err`, why, and what to do.
 * Returns the exit code for it.
 */
int ctl_fail(const char *doing, const char *what, int err);

/* Say that the arguments are wrong, and how to get help. Returns CTL_USAGE. */
int ctl_usage(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Say which option getopt_long did not take (its result was '?' or ':'; opterr is 0). verb is NULL
 * in front of the verb. Returns CTL_USAGE.
 */
int ctl_bad_option(const char *verb, int result, char **argv);

/*
 * Read what a failure must put back, before the first write. A tunable that is there and cannot be read
 * could not be: that is told. Returns an exit code.
 */
int ctl_read_before(struct ctl *ctl, struct ksm_state *before);

/*
 * From the first write to the last, or to the end of putting back, signals wait: half of what was asked for is
 * nobody's wish. They come when they are let; then it may end by one.
 */
void ctl_hold_signals(void);
void ctl_let_signals(void);
/* Whether one waits that asks for an end. */
bool ctl_signal_waits(void);

/* Print all of a table, or nothing of it. Returns 0 or -errno. */
struct libscols_table;
int ctl_print_table(struct libscols_table *table);

/* Put all tunables back to `before` after a failure; says so where that fails too. */
void ctl_put_back(struct ctl *ctl, const struct ksm_state *before);

/* Open the root and the KSM directory. Returns an exit code; what failed has been said. */
int ctl_open(struct ctl *ctl);

/*
 * Read the configuration file over the defaults, telling a failure. Where `given` is not set a
 * missing file is none. Returns CTL_OK or CTL_USAGE; *config is always usable.
 */
int ctl_read_config(struct config *config, const char *path, bool given);

/* Set one tunable, telling a failure. Returns an exit code. */
int ctl_set(struct ctl *ctl, enum ksm_key key, int64_t value);

/*
 * Copy the name of a process, cut to fit, with '?' for all but letters, digits and signs of ASCII: it is
 * whatever its owner wrote, and goes to a terminal.
 */
void ctl_safe_name(char *to, size_t size, const char *raw);

/* Bytes in one page, from the running kernel. */
int64_t ctl_page_bytes(void);

/* The verbs, one file each. */
int info_run(struct ctl *ctl, int argc, char **argv);
int start_run(struct ctl *ctl, int argc, char **argv);
int stop_run(struct ctl *ctl, int argc, char **argv);
int unmerge_run(struct ctl *ctl, int argc, char **argv);
int set_run(struct ctl *ctl, int argc, char **argv);
int daemon_run(struct ctl *ctl, int argc, char **argv);
int status_run(struct ctl *ctl, int argc, char **argv);
int why_run(struct ctl *ctl, int argc, char **argv);
int boost_run(struct ctl *ctl, int argc, char **argv);
int doctor_run(struct ctl *ctl, int argc, char **argv);
int run_run(struct ctl *ctl, int argc, char **argv);
int enable_run(struct ctl *ctl, int argc, char **argv);
int disable_run(struct ctl *ctl, int argc, char **argv);

/*
 * Unmerge all pages. Without `force` it is refused when that would not fit into MemAvailable.
 * Leaves run=2. Returns an exit code; a failure has been told.
 */
int unmerge_all(struct ctl *ctl, bool force);

#endif
