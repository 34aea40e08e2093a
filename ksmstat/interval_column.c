/* The columns of lines by the interval: one table that feeds output, JSON and help. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/interval_column.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "ksmstat/text.h"

const struct interval_column interval_columns[RATES_KEYS] = {
	[RATES_TIME] = { "TIME", "TIME", "time", INTERVAL_TIME, 0, "time of day at its end" },
	[RATES_SECONDS] = { "SECONDS", "SECONDS", "seconds", INTERVAL_MILLI, 2,
		"length of the interval, as measured" },
	[RATES_RUN] = { "RUN", "RUN", "run", INTERVAL_COUNT, 0, "what run says: 1 is to merge" },
	[RATES_PROCS] = { "PROCS", "PROCS", "processes", INTERVAL_COUNT, 0, "processes meant" },
	[RATES_UNREADABLE] = { "UNREADABLE", "UNREAD", "unreadable", INTERVAL_COUNT, 0,
		"of these, processes that could not be read" },
	[RATES_KSM] = { "KSM", "KSM", "ksm", INTERVAL_BYTES, 0, "mapped merged pages" },
	[RATES_SHARED] = { "SHARED", "SHARED", "shared", INTERVAL_BYTES, 0,
		"memory that merged pages take" },
	[RATES_SHARING] = { "SHARING", "SHARING", "sharing", INTERVAL_BYTES, 0,
		"memory that mapping them more than once saves" },
	[RATES_ZERO] = { "ZERO", "ZERO", "zero", INTERVAL_BYTES, 0, "zero pages merged away" },
	[RATES_SAVING] = { "SAVING", "SAVING", "saving", INTERVAL_BYTES, 0,
		"SHARING and ZERO; of processes SAVED and ZERO" },
	[RATES_DELTA] = { "DELTA", "DELTA", "delta", INTERVAL_BYTES, 0, "change of SAVING" },
	[RATES_PROFIT] = { "PROFIT", "PROFIT", "profit", INTERVAL_BYTES, 0,
		"the kernel's: SAVING less its bookkeeping" },
	[RATES_MERGED] = { "MERGED", "MERGED/s", "merged_per_s", INTERVAL_MILLI, 0,
		"pages merged a second, at least" },
	[RATES_BROKEN] = { "BROKEN", "BROKEN/s", "broken_per_s", INTERVAL_MILLI, 0,
		"merged pages copied a second, for a write mostly" },
	[RATES_SCANNED] = { "SCANNED", "SCANNED/s", "scanned_per_s", INTERVAL_MILLI, 0,
		"pages that ksmd looked at a second" },
	[RATES_SKIPPED] = { "SKIPPED", "SKIPPED/s", "skipped_per_s", INTERVAL_MILLI, 0,
		"pages that smart_scan passed over a second" },
	[RATES_PASSES] = { "PASSES", "PASSES", "passes", INTERVAL_COUNT, 0,
		"passes over all memory that ended" },
	[RATES_FULL_SCANS] = { "FULL_SCANS", "SCANS", "full_scans", INTERVAL_COUNT, 0,
		"passes since the machine started, or run=2" },
	[RATES_KSMD] = { "KSMD", "KSMD%", "ksmd_percent", INTERVAL_MILLI, 1,
		"CPU time of ksmd in percent of one CPU" },
};

static void add(struct interval_choice *choice, enum rates_key key)
{
	for (size_t i = 0; i < choice->count; i++) {
		if (choice->key[i] == key)
			return;
	}
	choice->key[choice->count++] = key;
}

void interval_default(struct interval_choice *choice, bool of_processes)
{
	static const enum rates_key machine[] = { RATES_SHARED, RATES_SHARING, RATES_SAVING,
		RATES_DELTA, RATES_PROFIT, RATES_MERGED, RATES_BROKEN, RATES_SCANNED, RATES_PASSES,
		RATES_KSMD };
	static const enum rates_key processes[] = { RATES_PROCS, RATES_KSM, RATES_ZERO,
		RATES_SAVING, RATES_DELTA, RATES_MERGED, RATES_SCANNED, RATES_PASSES, RATES_KSMD };
	const enum rates_key *keys = of_processes ? processes : machine;
	size_t count = of_processes ? sizeof(processes) / sizeof(*processes)
				    : sizeof(machine) / sizeof(*machine);

	choice->count = 0;
	for (size_t i = 0; i < count; i++)
		add(choice, keys[i]);
}

void interval_all(struct interval_choice *choice)
{
	choice->count = 0;
	for (int key = 0; key < RATES_KEYS; key++)
		add(choice, (enum rates_key)key);
}

void interval_add_time(struct interval_choice *choice)
{
	struct interval_choice out = { .key = { RATES_TIME }, .count = 1 };
	for (size_t i = 0; i < choice->count; i++)
		add(&out, choice->key[i]);
	*choice = out;
}

static int find(const char *name, size_t len)
{
	for (int key = 0; key < RATES_KEYS; key++) {
		if (strlen(interval_columns[key].name) == len &&
			!strncasecmp(interval_columns[key].name, name, len))
			return key;
	}
	return -1;
}

int interval_parse(struct interval_choice *choice, const char *list, bool of_processes,
	const char **bad, size_t *bad_len)
{
	struct interval_choice out = { .count = 0 };

	if (!strcasecmp(list, "all")) {
		interval_all(choice);
		return 0;
	}
	if (*list == '+') {
		interval_default(&out, of_processes);
		list++;
	}
	for (;;) {
		size_t len = strcspn(list, ",");
		int key = find(list, len);
		if (key < 0) {
			*bad = list;
			*bad_len = len;
			return -EINVAL;
		}
		add(&out, (enum rates_key)key);
		if (!list[len])
			break;
		list += len + 1;
	}
	*choice = out;
	return 0;
}

/* "2026-12-01T05:11:18.123Z", or the time of day as the clock on the wall has it. */
static const char *time_cell(int64_t epoch_ms, bool exact, char buf[INTERVAL_CELL_MAX])
{
	time_t seconds = (time_t)(epoch_ms / 1000);
	struct tm tm;
	size_t len;

	if (!(exact ? gmtime_r(&seconds, &tm) : localtime_r(&seconds, &tm)))
		return NULL;
	len = strftime(buf, INTERVAL_CELL_MAX, exact ? "%Y-%m-%dT%H:%M:%S" : "%H:%M:%S", &tm);
	if (exact)
		snprintf(buf + len, INTERVAL_CELL_MAX - len, ".%03dZ", (int)(epoch_ms % 1000));
	return buf;
}

/* Thousandths, to so many decimals. There are no negative ones. */
static const char *milli_cell(int64_t milli, int decimals, char buf[INTERVAL_CELL_MAX])
{
	static const int64_t units[] = { 1000, 100, 10, 1 };
	int64_t unit = units[decimals], per_one = 1000 / unit;
	int64_t rounded = milli / unit + (milli % unit * 2 >= unit);

	if (!decimals)
		snprintf(buf, INTERVAL_CELL_MAX, "%" PRId64, rounded);
	else
		snprintf(buf, INTERVAL_CELL_MAX, "%" PRId64 ".%0*" PRId64, rounded / per_one,
			decimals, rounded % per_one);
	return buf;
}

const char *interval_cell(const struct rates *rates, enum rates_key key, enum interval_style style,
	char buf[INTERVAL_CELL_MAX])
{
	const struct interval_column *column = &interval_columns[key];
	int64_t value = rates->value[key];

	if (!rates->known[key])
		return NULL;
	if (column->kind == INTERVAL_TIME)
		return time_cell(value, style == INTERVAL_EXACT, buf);
	if (column->kind == INTERVAL_MILLI)
		return milli_cell(value, style == INTERVAL_EXACT ? 3 : column->decimals, buf);
	if (column->kind == INTERVAL_BYTES && style == INTERVAL_SHORT)
		return text_size(value, buf, INTERVAL_CELL_MAX);
	snprintf(buf, INTERVAL_CELL_MAX, "%" PRId64, value);
	return buf;
}

int interval_width(enum rates_key key, bool bytes)
{
	/* -1023M; with -b what a terabyte needs, and a sign. */
	static const int short_width = 6, bytes_width = 14, time_width = 8;
	const struct interval_column *column = &interval_columns[key];
	int heading = (int)strlen(column->heading);
	int width = column->kind == INTERVAL_TIME    ? time_width
		    : column->kind != INTERVAL_BYTES ? heading
		    : bytes			     ? bytes_width
						     : short_width;
	return width > heading ? width : heading;
}
