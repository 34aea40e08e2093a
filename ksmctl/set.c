/* ksmctl set: tunables, all checked before the first write, in a safe order, undone on failure. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ksmctl/ksmctl.h"

/* What was asked for: value[k] where wanted[k]. */
struct request {
	bool wanted[KSM_TUNABLES];
	int64_t value[KSM_TUNABLES];
	bool unmerge_first, force;
};

/* The two tunables that the kernel takes only while nothing is merged. */
static bool needs_unmerged(enum ksm_key key)
{
	return key == KSM_MERGE_ACROSS_NODES || key == KSM_MAX_PAGE_SHARING;
}

static int parse_assignment(char *text, struct request *request)
{
	char *equals = strchr(text, '=');
	if (!equals)
		return ctl_usage("set", "'%s' is not KEY=VALUE", text);
	*equals = '\0';
	int key = ksm_find(text);
	if (key < 0)
		return ctl_usage("set", "unknown key '%s'; 'ksmctl info' lists the keys", text);
	if (key >= KSM_TUNABLES)
		return ctl_usage("set", "%s is a counter and cannot be set", text);
	const char *value = equals + 1;
	const struct ksm_key_info *info = &ksm_keys[key];
	if (strpbrk(value, "[]\n") || /* only the kernel writes these */
		ksm_parse((enum ksm_key)key, value, strlen(value), &request->value[key]) ||
		request->value[key] < info->min || request->value[key] > info->max) {
		if (key == KSM_ADVISOR_MODE)
			return ctl_usage(
				"set", "%s must be none or scan-time, not '%s'", text, value);
		return ctl_usage("set", "%s must be a whole number from %lld to %lld, not '%s'",
			text, (long long)info->min, (long long)info->max, value);
	}
	request->wanted[key] = true;
	return CTL_OK;
}

/* Everything that can be seen to fail is refused here, before the first write. */
static int check(const struct request *request, const struct ksm_state *state)
{
	for (int key = 0; key < KSM_TUNABLES; key++) {
		if (request->wanted[key] && state->error[key] == -ENOENT) {
			ctl_error("cannot write %s: this kernel does not have it",
				ksm_keys[key].name);
			return CTL_FAILED;
		}
		if (request->wanted[key] && state->error[key])
			return ctl_fail("cannot read", ksm_keys[key].name, state->error[key]);
	}
	int64_t advisor = request->wanted[KSM_ADVISOR_MODE] ? request->value[KSM_ADVISOR_MODE]
							    : state->value[KSM_ADVISOR_MODE];
	if (request->wanted[KSM_PAGES_TO_SCAN] && advisor != KSM_ADVISOR_NONE) {
		ctl_error(
			"refused: the kernel's advisor sets pages_to_scan; add advisor_mode=none");
		return CTL_REFUSED;
	}
	for (int key = 0; key < KSM_TUNABLES; key++) {
		if (!request->wanted[key] || !needs_unmerged((enum ksm_key)key) ||
			request->value[key] == state->value[key] || request->unmerge_first)
			continue;
		if (ksm_has(state, KSM_PAGES_SHARED) && state->value[KSM_PAGES_SHARED] > 0) {
			ctl_error("refused: %s can change only while nothing is merged; "
				  "--unmerge-first unmerges everything before",
				ksm_keys[key].name);
			return CTL_REFUSED;
		}
	}
	return CTL_OK;
}

/*
 * Write a tunable that wants nothing merged. ksmd is stopped and everything unmerged; pages of
 * exiting processes can still count for a moment, so EBUSY is tried again, for at most 5 s.
 */
static int set_unmerged(struct ctl *ctl, enum ksm_key key, int64_t value)
{
	int err = -EBUSY;
	for (int tries = 0; tries < 50 && err == -EBUSY; tries++) {
		err = ksm_set(&ctl->ksm, key, value);
		if (err != -EBUSY || ctl_signal_waits())
			break;
		usleep(100 * 1000);
	}
	return err ? ctl_fail("cannot write", ksm_keys[key].name, err) : CTL_OK;
}

static int apply_unmerged(
	struct ctl *ctl, const struct request *request, const struct ksm_state *before)
{
	bool change = false;
	for (int key = 0; key < KSM_TUNABLES; key++)
		change |= request->wanted[key] && needs_unmerged((enum ksm_key)key) &&
			  request->value[key] != before->value[key];
	if (!change)
		return CTL_OK;
	/* Stopped first: changing merge_across_nodes during a scan is not safe on every kernel. */
	int code = request->unmerge_first && before->value[KSM_PAGES_SHARED] > 0
			   ? unmerge_all(ctl, request->force)
			   : ctl_set(ctl, KSM_RUN, KSM_RUN_STOP);
	for (int key = 0; key < KSM_TUNABLES && !code; key++) {
		if (request->wanted[key] && needs_unmerged((enum ksm_key)key))
			code = set_unmerged(ctl, (enum ksm_key)key, request->value[key]);
	}
	if (!code && !request->wanted[KSM_RUN])
		code = ctl_set(ctl, KSM_RUN, before->value[KSM_RUN]);
	return code;
}

static int apply(struct ctl *ctl, const struct request *request, const struct ksm_state *before)
{
	/* pages_to_scan is refused under an advisor, and changing the advisor resets it. */
	static const enum ksm_key order[] = { KSM_ADVISOR_MODE, KSM_ADVISOR_MAX_CPU,
		KSM_ADVISOR_MIN_PAGES, KSM_ADVISOR_MAX_PAGES, KSM_ADVISOR_TARGET_SCAN_TIME,
		KSM_PAGES_TO_SCAN, KSM_SLEEP_MILLISECS, KSM_SMART_SCAN, KSM_USE_ZERO_PAGES,
		KSM_CHAINS_PRUNE_MILLISECS };
	int code = apply_unmerged(ctl, request, before);
	for (size_t i = 0; i < sizeof(order) / sizeof(*order) && !code; i++) {
		if (request->wanted[order[i]])
			code = ctl_set(ctl, order[i], request->value[order[i]]);
	}
	if (code || !request->wanted[KSM_RUN])
		return code;
	if (request->value[KSM_RUN] == KSM_RUN_UNMERGE)
		return unmerge_all(ctl, request->force);
	return ctl_set(ctl, KSM_RUN, request->value[KSM_RUN]);
}

int set_run(struct ctl *ctl, int argc, char **argv)
{
	static const struct option options[] = {
		{ "unmerge-first", no_argument, NULL, 'u' },
		{ "force", no_argument, NULL, 'f' },
		{ NULL, 0, NULL, 0 },
	};
	struct request request = { 0 };
	struct ksm_state before;
	int c;
	while ((c = getopt_long(argc, argv, "+:f", options, NULL)) != -1) {
		if (c == 'u')
			request.unmerge_first = true;
		else if (c == 'f')
			request.force = true;
		else
			return ctl_bad_option("set", c, argv);
	}
	if (optind == argc)
		return ctl_usage("set", "set needs at least one KEY=VALUE");
	for (int i = optind; i < argc; i++) {
		int code = parse_assignment(argv[i], &request);
		if (code)
			return code;
	}
	int code = ctl_open(ctl);
	if (code)
		return code;
	ksm_read(&ctl->ksm, &before);
	code = check(&request, &before);
	if (!code)
		code = ctl_read_before(ctl, &before);
	if (code)
		return code;
	ctl_hold_signals();
	code = apply(ctl, &request, &before);
	if (code)
		ctl_put_back(ctl, &before);
	ctl_let_signals();
	return code;
}
