/* ksmctl doctor: says why nothing, or little, merges, and what to do about it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <libsmartcols.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "ksmctl/doctor.h"
#include "sysfs/file.h"

#define FINDINGS_MAX 64
#define PIDS_MAX 16

static const char *const severities[] = {
	[FINDING_STOPS] = "stops merging",
	[FINDING_LIMITS] = "limits merging",
	[FINDING_RISK] = "note",
	[FINDING_ADVICE] = "advice",
};

static void print_findings(const struct finding *findings, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct finding *f = &findings[i];
		printf("%s%zu. %s (%s)\n   seen  %s\n   why   %s\n   do    %s\n", i ? "\n" : "",
			i + 1, f->title, severities[f->severity], f->evidence, f->meaning,
			f->remedy);
	}
}

static int print_json(const struct finding *findings, size_t count)
{
	static const char *const names[] = { "id", "severity", "title", "evidence", "meaning",
		"remedy" };
	struct libscols_table *table = scols_new_table();
	if (!table)
		return -ENOMEM;
	scols_table_enable_json(table, 1);
	scols_table_set_name(table, "findings");
	int err = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !err; i++)
		err = scols_table_new_column(table, names[i], 0, 0) ? 0 : -ENOMEM;
	for (size_t i = 0; i < count && !err; i++) {
		const struct finding *f = &findings[i];
		const char *const cells[] = { f->id, severities[f->severity], f->title, f->evidence,
			f->meaning, f->remedy };
		struct libscols_line *line = scols_table_new_line(table, NULL);
		err = line ? 0 : -ENOMEM;
		for (size_t k = 0; !err && k < sizeof(cells) / sizeof(*cells); k++)
			err = scols_line_set_data(line, k, cells[k]);
	}
	if (!err)
		err = ctl_print_table(table);
	scols_unref_table(table);
	return err;
}

/*
 * Two processes are compared with each other; of one, or of more than two, each with another of its
 * name. Returns how many findings there are now.
 */
static size_t look_at_processes(const struct ctl *ctl, const struct facts *machine,
	const pid_t *pids, size_t count, struct finding *findings, size_t found)
{
	for (size_t i = 0; i < count; i++) {
		struct process_facts process;
		facts_collect_process(&process, ctl, pids[i], count == 2 ? pids[1 - i] : 0);
		found += findings_of_process(
			machine, &process, findings + found, FINDINGS_MAX - found);
	}
	return found;
}

/* Where all is well there is nothing to read. Returns how many are left. */
static size_t without_advice(struct finding *findings, size_t count)
{
	size_t left = 0;
	for (size_t i = 0; i < count; i++) {
		if (findings[i].severity != FINDING_ADVICE)
			findings[left++] = findings[i];
	}
	return left;
}

static int parse_pids(char **words, size_t count, pid_t *pids)
{
	for (size_t i = 0; i < count; i++) {
		int64_t pid;
		if (file_parse_i64(words[i], strlen(words[i]), &pid) || pid < 1 || pid > INT_MAX)
			return ctl_usage("doctor", "'%s' is not a process ID", words[i]);
		pids[i] = (pid_t)pid;
	}
	return CTL_OK;
}

int doctor_run(struct ctl *ctl, int argc, char **argv)
{
	static const struct option options[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "json", no_argument, NULL, 'J' },
		{ NULL, 0, NULL, 0 },
	};
	struct finding findings[FINDINGS_MAX];
	struct facts facts;
	pid_t pids[PIDS_MAX] = { 0 };
	bool all = false, json = false, wrong = false;
	int c;
	while ((c = getopt_long(argc, argv, "+:aJ", options, NULL)) != -1) {
		if (c != 'a' && c != 'J')
			return ctl_bad_option("doctor", c, argv);
		*(c == 'a' ? &all : &json) = true;
	}
	size_t pid_count = (size_t)(argc - optind);
	if (pid_count > PIDS_MAX)
		return ctl_usage("doctor", "doctor takes at most %d processes", PIDS_MAX);
	int err = parse_pids(argv + optind, pid_count, pids);
	if (err)
		return err;
	err = root_open(&ctl->root, ctl->prefix);
	if (err)
		return ctl_fail("cannot open", ctl->prefix ? ctl->prefix : "/", err);
	facts_collect(&facts, ctl, all);
	size_t count = findings_of_machine(&facts, findings, FINDINGS_MAX);
	count = look_at_processes(ctl, &facts, pids, pid_count, findings, count);
	if (!all)
		count = without_advice(findings, count);
	for (size_t i = 0; i < count; i++)
		wrong |= findings[i].severity < FINDING_RISK;
	if (json && print_json(findings, count))
		return ctl_fail("cannot make", "the table", -ENOMEM);
	if (!json)
		print_findings(findings, count);
	if (facts.unseen > 0)
		ctl_error("%" PRId64 " of %" PRId64
			  " processes could not be asked; as root more can be",
			facts.unseen, facts.processes);
	return wrong ? CTL_FAILED : CTL_OK;
}
