/* ksmctl info: tunables, counters, saving and cost, for people and as JSON. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <libsmartcols.h>
#include <stdio.h>
#include <string.h>

#include "ksmctl/ksmctl.h"
#include "sysfs/ksmd.h"

struct info {
	struct ksm_state state;
	int64_t page_bytes;
	int64_t ksmd_pid;    /* -1: not visible */
	int64_t ksmd_cpu_ns; /* -1: not known */
};

static void collect(struct ctl *ctl, struct info *info)
{
	struct ksmd ksmd;
	uint64_t cpu_ns;

	ksm_read(&ctl->ksm, &info->state);
	info->page_bytes = ctl_page_bytes();
	info->ksmd_pid = info->ksmd_cpu_ns = -1;
	if (ksmd_open(&ksmd, &ctl->root))
		return;
	info->ksmd_pid = ksmd.pid;
	if (!ksmd_cpu_ns(&ksmd, &cpu_ns))
		info->ksmd_cpu_ns = (int64_t)cpu_ns;
	ksmd_close(&ksmd);
}

static const char *run_words(int64_t run)
{
	switch (run) {
	case KSM_RUN_STOP:
		return "stopped";
	case KSM_RUN_MERGE:
		return "merging";
	case KSM_RUN_UNMERGE:
		return "stopped, everything unmerged";
	default:
		return "stopped while memory goes offline";
	}
}

/* "188.2 MiB" */
static const char *mib(const struct info *info, int64_t pages, char *buf, size_t size)
{
	snprintf(buf, size, "%.1f MiB", (double)pages * (double)info->page_bytes / (1 << 20));
	return buf;
}

static void print_summary(const struct info *info)
{
	const struct ksm_state *s = &info->state;
	char a[32], b[32], c[32];
	int64_t saved;

	if (ksm_has(s, KSM_RUN))
		printf("State    %s (run=%" PRId64 ")", run_words(s->value[KSM_RUN]),
			s->value[KSM_RUN]);
	if (ksm_has(s, KSM_PAGES_TO_SCAN) && ksm_has(s, KSM_SLEEP_MILLISECS))
		printf(", %" PRId64 " pages every %" PRId64 " ms", s->value[KSM_PAGES_TO_SCAN],
			s->value[KSM_SLEEP_MILLISECS]);
	if (ksm_has(s, KSM_ADVISOR_MODE) && s->value[KSM_ADVISOR_MODE] != KSM_ADVISOR_NONE)
		printf(", rate set by the kernel's advisor");
	putchar('\n');
	if (ksm_saved_pages(s, &saved)) {
		printf("Saved    %s", mib(info, saved, a, sizeof(a)));
		if (ksm_has(s, KSM_ZERO_PAGES) && s->value[KSM_ZERO_PAGES] > 0)
			printf(", of which zero pages %s",
				mib(info, s->value[KSM_ZERO_PAGES], b, sizeof(b)));
		putchar('\n');
	}
	if (ksm_has(s, KSM_PAGES_SHARED))
		printf("Shared   %s in merged pages",
			mib(info, s->value[KSM_PAGES_SHARED], a, sizeof(a)));
	if (ksm_has(s, KSM_PAGES_UNSHARED) && ksm_has(s, KSM_PAGES_VOLATILE))
		printf("; %s unique, %s changing too fast",
			mib(info, s->value[KSM_PAGES_UNSHARED], b, sizeof(b)),
			mib(info, s->value[KSM_PAGES_VOLATILE], c, sizeof(c)));
	putchar('\n');
	if (ksm_has(s, KSM_GENERAL_PROFIT))
		printf("Profit   %.1f MiB, the saving less the kernel's bookkeeping\n",
			(double)s->value[KSM_GENERAL_PROFIT] / (1 << 20));
	if (info->ksmd_cpu_ns >= 0)
		printf("Cost     %.2f s of CPU used by ksmd since boot (PID %" PRId64 ")\n",
			(double)info->ksmd_cpu_ns / 1e9, info->ksmd_pid);
	else
		puts("Cost     unknown: ksmd cannot be seen from here");
	putchar('\n');
}

static int add(struct libscols_table *table, const char *name, int flags, int json_type)
{
	struct libscols_column *column = scols_table_new_column(table, name, 0, flags);
	return column ? scols_column_set_json_type(column, json_type) : -ENOMEM;
}

/* Returns 0 or an error. */
static int set_number(struct libscols_line *line, size_t column, bool known, int64_t value)
{
	char buf[32];
	if (!known)
		return 0; /* an empty cell is null in JSON */
	snprintf(buf, sizeof(buf), "%" PRId64, value);
	return scols_line_set_data(line, column, buf);
}

static int print_table(const struct info *info)
{
	struct libscols_table *table = scols_new_table();
	if (!table || add(table, "NAME", 0, SCOLS_JSON_STRING) ||
		add(table, "VALUE", SCOLS_FL_RIGHT, SCOLS_JSON_STRING) ||
		add(table, "UNIT", 0, SCOLS_JSON_STRING) ||
		add(table, "MEANING", SCOLS_FL_TRUNC, SCOLS_JSON_STRING)) {
		scols_unref_table(table);
		return -ENOMEM;
	}
	int err = 0;
	for (int key = 0; key < KSM_KEYS && !err; key++) {
		char value[32];
		struct libscols_line *line = scols_table_new_line(table, NULL);
		if (ksm_has(&info->state, (enum ksm_key)key))
			ksm_format((enum ksm_key)key, info->state.value[key], value, sizeof(value));
		else
			snprintf(value, sizeof(value), "%s",
				info->state.error[key] == -ENOENT ? "absent" : "unreadable");
		if (!line || scols_line_set_data(line, 0, ksm_keys[key].name) ||
			scols_line_set_data(line, 1, value) ||
			scols_line_set_data(line, 2, ksm_keys[key].unit) ||
			scols_line_set_data(line, 3, ksm_keys[key].meaning))
			err = -ENOMEM;
	}
	if (!err)
		err = ctl_print_table(table);
	scols_unref_table(table);
	return err;
}

/* One object, named as the kernel's files; what this kernel lacks is null. */
static int print_json(const struct info *info)
{
	struct libscols_table *table = scols_new_table();
	if (!table)
		return -ENOMEM;
	scols_table_enable_json(table, 1);
	scols_table_set_name(table, "ksm");
	int err = 0;
	for (int key = 0; key < KSM_KEYS && !err; key++)
		err = add(table, ksm_keys[key].name, 0,
			key == KSM_ADVISOR_MODE ? SCOLS_JSON_STRING : SCOLS_JSON_NUMBER);
	static const char *const more[] = { "saved_bytes", "page_bytes", "ksmd_pid",
		"ksmd_cpu_ns" };
	for (size_t i = 0; i < sizeof(more) / sizeof(*more) && !err; i++)
		err = add(table, more[i], 0, SCOLS_JSON_NUMBER);
	struct libscols_line *line = err ? NULL : scols_table_new_line(table, NULL);
	if (!line) {
		scols_unref_table(table);
		return -ENOMEM;
	}
	for (int key = 0; key < KSM_KEYS && !err; key++) {
		char value[32];
		if (ksm_has(&info->state, (enum ksm_key)key))
			err = scols_line_set_data(line, (size_t)key,
				ksm_format((enum ksm_key)key, info->state.value[key], value,
					sizeof(value)));
	}
	int64_t saved = 0;
	bool known = ksm_saved_pages(&info->state, &saved);
	if (err || set_number(line, KSM_KEYS, known, saved * info->page_bytes) ||
		set_number(line, KSM_KEYS + 1, true, info->page_bytes) ||
		set_number(line, KSM_KEYS + 2, info->ksmd_pid >= 0, info->ksmd_pid) ||
		set_number(line, KSM_KEYS + 3, info->ksmd_cpu_ns >= 0, info->ksmd_cpu_ns))
		err = -ENOMEM;
	else
		err = ctl_print_table(table);
	scols_unref_table(table);
	return err;
}

int info_run(struct ctl *ctl, int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'J' },
		{ NULL, 0, NULL, 0 },
	};
	struct info info;
	bool json = false;
	int c;
	while ((c = getopt_long(argc, argv, "+:J", options, NULL)) != -1) {
		if (c != 'J')
			return ctl_bad_option("info", c, argv);
		json = true;
	}
	if (optind < argc)
		return ctl_usage("info", "info takes no arguments");
	int code = ctl_open(ctl);
	if (code)
		return code;
	collect(ctl, &info);
	int err;
	if (json) {
		err = print_json(&info);
	} else {
		print_summary(&info);
		err = print_table(&info);
	}
	return err ? ctl_fail("cannot make", "the table", err) : CTL_OK;
}
