/* ksmctl start and stop: the scanner by hand. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <string.h>

#include "ksmctl/ksmctl.h"

/* Returns false after saying what is wrong. */
static bool parse_argument(enum ksm_key key, const char *text, int64_t *value)
{
	if (!ksm_parse(key, text, strlen(text), value) && *value >= ksm_keys[key].min &&
		*value <= ksm_keys[key].max)
		return true;
	ctl_usage("start", "%s must be a whole number from %lld to %lld, not '%s'",
		ksm_keys[key].name, (long long)ksm_keys[key].min, (long long)ksm_keys[key].max,
		text);
	return false;
}

int start_run(struct ctl *ctl, int argc, char **argv)
{
	static const enum ksm_key keys[] = { KSM_PAGES_TO_SCAN, KSM_SLEEP_MILLISECS };
	int64_t values[2], advisor;

	if (argc > 3)
		return ctl_usage("start", "start takes at most PAGES and SLEEP_MS");
	for (int i = 1; i < argc; i++) {
		if (!parse_argument(keys[i - 1], argv[i], &values[i - 1]))
			return CTL_USAGE;
	}
	int code = ctl_open(ctl);
	if (code)
		return code;
	if (argc > 1 && !ksm_get(&ctl->ksm, KSM_ADVISOR_MODE, &advisor) &&
		advisor != KSM_ADVISOR_NONE) {
		ctl_error("refused: the kernel's advisor sets pages_to_scan now; "
			  "turn it off with 'ksmctl set advisor_mode=none'");
		return CTL_REFUSED;
	}
	struct ksm_state before;
	code = ctl_read_before(ctl, &before);
	if (code)
		return code;
	ctl_hold_signals();
	for (int i = 1; i < argc && !code; i++)
		code = ctl_set(ctl, keys[i - 1], values[i - 1]);
	if (!code)
		code = ctl_set(ctl, KSM_RUN, KSM_RUN_MERGE);
	if (code)
		ctl_put_back(ctl, &before);
	ctl_let_signals();
	if (!code && !ksm_get(&ctl->ksm, KSM_PAGES_TO_SCAN, &values[0]) && values[0] == 0)
		ctl_error(
			"note: pages_to_scan is 0, so nothing is scanned; try 'ksmctl start 1000'");
	return code;
}

int stop_run(struct ctl *ctl, int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return ctl_usage("stop", "stop takes no arguments");
	int code = ctl_open(ctl);
	return code ? code : ctl_set(ctl, KSM_RUN, KSM_RUN_STOP);
}
