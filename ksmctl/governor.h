/* Between policy and kernel: makes samples, carries out decisions, restores what was found first. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_GOVERNOR_H
#define KSMCTL_GOVERNOR_H

#include <stdbool.h>

#include "ksmctl/config.h"
#include "ksmctl/policy.h"
#include "ksmctl/state.h"
#include "ksmctl/watch.h"
#include "sysfs/ksm.h"
#include "sysfs/ksmd.h"

struct governor {
	const struct root *root;
	const struct ksm *ksm;
	struct state_dir *dir;
	struct config config;
	struct ksmd ksmd; /* fd is -1 where it cannot be seen */
	struct watch watch;
	struct policy_state policy;
	struct policy_sample sample;	 /* the last one */
	struct policy_decision decision; /* and what came of it */
	struct ksm_state first;
	int first_nice;
	bool first_known;    /* first and first_nice hold */
	int64_t look_due_ms; /* the next look that is one, at rest */
	int64_t machine_due_ms;
	uint64_t stall_total_us; /* PSI of the CPU when its share was last taken */
	int64_t stall_since_ms, stall_centi;
	int64_t awake_work, awake_ms; /* when ksmd was last seen to have done something */
	bool look_now;
	int write_error; /* the last write's -errno, so that a failure is told once */
	enum ksm_key write_failed;
};

/*
 * Get ready: find ksmd, save the first values (or take over those that a killed service left), take
 * the kernel's advisor off. Returns 0, or -errno with what failed in *what.
 */
int governor_open(struct governor *governor, int64_t now_ms, const char **what);

/* Look, decide, act. Returns after how many ms to look again. */
int64_t governor_step(struct governor *governor, int64_t now_ms);

/*
 * Put the first values back, unless another controller holds the kernel now. Returns 0 or -errno
 * with the key in *failed.
 */
int governor_restore(struct governor *governor, enum ksm_key *failed);
void governor_close(struct governor *governor);

/* Apply ksmd's niceness from the configuration. Returns 0 or -errno. */
int governor_set_nice(struct governor *governor);

#endif
