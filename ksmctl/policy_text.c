/* The words for phases and reasons of the policy. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/policy.h"

const char *policy_phase_name(enum policy_phase phase)
{
	static const char *const names[POLICY_PHASES] = { "idle", "boost", "settle", "steady",
		"parked", "pressure", "hold" };
	return (unsigned)phase < POLICY_PHASES ? names[phase] : "unknown";
}

const char *policy_reason_text(enum policy_reason reason)
{
	static const char *const texts[POLICY_R_COUNT] = {
		[POLICY_R_NOTHING_REGISTERED] = "no process has memory that may be merged",
		[POLICY_R_FIRST_LOOK] = "first look at the memory that is registered",
		[POLICY_R_NEW_PROCESS] = "a new process brought memory that may be merged",
		[POLICY_R_GROWTH] = "processes grew",
		[POLICY_R_ASKED] = "a boost was asked for",
		[POLICY_R_GAINING] = "passes still gain",
		[POLICY_R_LATE_TWINS] =
			"this pass looks at old pages too, for late twins of new ones",
		[POLICY_R_CONVERGED] = "everything equal is merged",
		[POLICY_R_NO_GAIN] = "scanning gained nothing, so the next boost waits longer",
		[POLICY_R_PASS_DUE] = "a steady pass is due",
		[POLICY_R_CHANGED] = "much memory changed since the last pass, so another follows",
		[POLICY_R_DRIFT] = "memory changed in place and became equal",
		[POLICY_R_BLIND] = "processes cannot be seen, so a slow scan looks for new memory",
		[POLICY_R_MEMORY_PRESSURE] = "memory is short",
		[POLICY_R_FOREIGN] = "another controller wrote to the kernel, so hands off",
		[POLICY_R_STALE] = "the kernel could not be read, so the last settings stay",
		[POLICY_R_COUNTER_RESET] = "everything was unmerged, so it starts afresh",
		[POLICY_R_NO_PROFIT] =
			"merging costs more memory than it saves, so passes are rarer",
	};
	return (unsigned)reason < POLICY_R_COUNT ? texts[reason] : "unknown";
}
