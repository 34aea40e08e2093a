/* ksmctl status, why and boost: what the service does now, did last, and a nudge for it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <libsmartcols.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ksmctl/config.h"
#include "ksmctl/journal.h"
#include "ksmctl/ksmctl.h"
#include "ksmctl/state.h"
#include "sysfs/file.h"

/* Find the folder: by the configuration file, like the daemon. Returns an exit code. */
static int open_state(struct state_dir *dir, const char *config_path, bool given)
{
	struct config config;
	int code = ctl_read_config(&config, config_path, given);
	if (code)
		return code;
	int err = state_open(dir, config.state_dir, false);
	if (err && err != -ENOENT)
		return ctl_fail("cannot open", config.state_dir, err);
	return CTL_OK;
}

static int not_running(void)
{
	ctl_error("no daemon is running; 'systemctl start ksmctl' or 'ksmctl daemon' starts one");
	return CTL_FAILED;
}

/* The options that the three verbs share. Returns an exit code. */
static int parse(int argc, char **argv, bool *json, int64_t *count, struct state_dir *dir)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "json", no_argument, NULL, 'J' },
		{ "lines", required_argument, NULL, 'n' },
		{ NULL, 0, NULL, 0 },
	};
	const char *path = CONFIG_FILE;
	bool given = false;
	int c;
	dir->fd = dir->lock_fd = -1;
	while ((c = getopt_long(argc, argv,
			count  ? "+:c:n:"
			: json ? "+:c:J"
			       : "+:c:",
			options, NULL)) != -1) {
		if (c == 'c') {
			path = optarg;
			given = true;
		} else if (c == 'J' && json) {
			*json = true;
		} else if (c == 'n' && count) {
			if (file_parse_i64(optarg, strlen(optarg), count) || *count < 1)
				return ctl_usage(argv[0], "'%s' is not a number of lines", optarg);
		} else {
			return ctl_bad_option(argv[0], c, argv);
		}
	}
	if (optind < argc)
		return ctl_usage(argv[0], "%s takes no arguments", argv[0]);
	return open_state(dir, path, given);
}

/* The value of a key=value line in text, in place; "" when it is not there. */
static const char *field(const char *text, const char *key, char *buf, size_t size)
{
	size_t key_len = strlen(key);
	*buf = '\0';
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, key_len) == 0 && line[key_len] == '=') {
			const char *value = line + key_len + 1;
			snprintf(buf, size, "%.*s", (int)strcspn(value, "\n"), value);
			break;
		}
	}
	return buf;
}

static int64_t number(const char *text, const char *key)
{
	char buf[32];
	int64_t value = -1;
	field(text, key, buf, sizeof(buf));
	file_parse_i64(buf, strlen(buf), &value);
	return value;
}

static void print_status(const char *text)
{
	char a[128], b[256];
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now); /* nobody sets this one meanwhile */
	int64_t since_s = now.tv_sec - number(text, "since_monotonic_ms") / 1000;
	printf("State       %s for %" PRId64 " s: %s\n", field(text, "phase", a, sizeof(a)),
		since_s, field(text, "reason", b, sizeof(b)));
	if (number(text, "run") == 1)
		printf("Scanner     %" PRId64 " pages every %" PRId64
		       " ms, budget %.2f %% of a core",
			number(text, "pages_to_scan"), number(text, "sleep_millisecs"),
			(double)number(text, "budget_ppm") / 10000);
	else
		printf("Scanner     stopped");
	if (number(text, "ksmd_cpu_ppm") >= 0)
		printf("; uses %.2f %%", (double)number(text, "ksmd_cpu_ppm") / 10000);
	printf("\nSaved       %.1f MiB\n", (double)number(text, "saved_bytes") / (1 << 20));
	if (number(text, "registered_processes") >= 0)
		printf("Registered  %" PRId64 " processes with %.1f MiB\n",
			number(text, "registered_processes"),
			(double)number(text, "registered_bytes") / (1 << 20));
	else
		puts("Registered  not known: processes cannot be read");
	printf("Cost        %.2f s CPU of ksmd since boot, %" PRId64 " ns per page\n",
		(double)number(text, "ksmd_cpu_ns") / 1e9, number(text, "ns_per_page"));
}

/* Whether the file is one that the service wrote: as JSON its words that are numbers go out unquoted. */
static bool is_status(const char *text)
{
	static const char *const words[] = { "phase=", "reason=" };
	for (const char *line = text; *line;) {
		const char *end = strchrnul(line, '\n'),
			   *value = memchr(line, '=', (size_t)(end - line));
		bool word = false;
		int64_t number;
		for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
			word |= !strncmp(line, words[i], strlen(words[i]));
		if (!*end || !value ||
			(!word && file_parse_i64(value + 1, (size_t)(end - value - 1), &number)))
			return false;
		line = end + 1;
	}
	return *text;
}

/* The status file as one JSON object: -1 is null. */
static int print_status_json(char *text)
{
	struct libscols_table *table = scols_new_table();
	struct libscols_line *cells = table ? scols_new_line() : NULL;
	char *rest = text, *line;
	size_t at = 0;
	while (cells && (line = strsep(&rest, "\n"))) {
		char *value = strchr(line, '=');
		if (!value)
			continue;
		*value++ = '\0';
		bool word = !strcmp(line, "phase") || !strcmp(line, "reason");
		bool flag = !strcmp(line, "writing") || !strcmp(line, "connector");
		struct libscols_column *column = scols_table_new_column(table, line, 0, 0);
		if (!column || scols_line_alloc_cells(cells, at + 1))
			break;
		scols_column_set_json_type(column, word	  ? SCOLS_JSON_STRING
						   : flag ? SCOLS_JSON_BOOLEAN
							  : SCOLS_JSON_NUMBER);
		if ((word || strcmp(value, "-1") != 0) && scols_line_set_data(cells, at, value))
			break;
		at++;
	}
	int err = cells && !rest ? 0 : -ENOMEM;
	if (!err) {
		scols_table_enable_json(table, 1);
		if (scols_table_set_name(table, "status") || scols_table_add_line(table, cells))
			err = -ENOMEM;
		else
			err = ctl_print_table(table);
	}
	scols_unref_line(cells);
	scols_unref_table(table);
	return err ? ctl_fail("cannot make", "the JSON", err) : CTL_OK;
}

int status_run(struct ctl *ctl, int argc, char **argv)
{
	struct state_dir dir;
	char text[4096];
	bool json = false;
	(void)ctl;
	int code = parse(argc, argv, &json, NULL, &dir);
	if (code)
		return code;
	ssize_t len = dir.fd < 0 ? -ENOENT : state_read(&dir, JOURNAL_STATUS, text, sizeof(text));
	pid_t holder = dir.fd < 0 ? -ESRCH : state_holder(&dir);
	state_close(&dir);
	/* The lock is root's to ask; a signal that is not sent tells too. */
	if (len >= 0 && holder == -EACCES)
		holder = kill((pid_t)number(text, "pid"), 0) < 0 && errno == ESRCH ? -ESRCH : 0;
	if (len == -ENOENT || holder == -ESRCH)
		return not_running();
	if (len >= 0 && !is_status(text))
		len = -EINVAL;
	if (len < 0)
		return ctl_fail("cannot read", "the status", (int)len);
	if (json)
		return print_status_json(text);
	print_status(text);
	return CTL_OK;
}

static void print_decision(char *line)
{
	char *fields[7] = { NULL };
	for (size_t i = 0; i < 7; i++)
		fields[i] = strsep(&line, "\t");
	if (!fields[6])
		return;
	time_t when = (time_t)(strtoll(fields[0], NULL, 10) / 1000);
	struct tm tm;
	char clock[32] = "?";
	if (localtime_r(&when, &tm))
		strftime(clock, sizeof(clock), "%F %T", &tm);
	printf("%s  %-8s  %6.2f %%  %8.1f MiB saved  %s\n", clock, fields[1],
		(double)strtoll(fields[2], NULL, 10) / 10000,
		(double)strtoll(fields[5], NULL, 10) / (1 << 20), fields[6]);
}

int why_run(struct ctl *ctl, int argc, char **argv)
{
	static char text[128 * 1024];
	struct state_dir dir;
	int64_t count = 20;
	(void)ctl;
	int code = parse(argc, argv, NULL, &count, &dir);
	if (code)
		return code;
	ssize_t len =
		dir.fd < 0 ? -ENOENT : state_read(&dir, JOURNAL_DECISIONS, text, sizeof(text));
	state_close(&dir);
	if (len == -ENOENT)
		return not_running();
	if (len < 0)
		return ctl_fail("cannot read", "the decisions", (int)len);
	/* The last `count` lines: go back over as many ends of line. */
	char *start = text + len;
	for (int64_t lines = 0; start > text; start--) {
		if (start[-1] == '\n' && start < text + len && ++lines == count)
			break;
	}
	char *line;
	while ((line = strsep(&start, "\n")))
		print_decision(line);
	return CTL_OK;
}

int boost_run(struct ctl *ctl, int argc, char **argv)
{
	struct state_dir dir;
	(void)ctl;
	int code = parse(argc, argv, NULL, NULL, &dir);
	if (code)
		return code;
	pid_t holder = dir.fd < 0 ? -ESRCH : state_holder(&dir);
	state_close(&dir);
	if (holder == -ESRCH || holder == 0)
		return not_running();
	if (holder == -EACCES)
		return ctl_fail("cannot signal", "the daemon", holder);
	if (holder < 0)
		return ctl_fail("cannot read", "the lock", holder);
	return kill(holder, SIGUSR1) < 0 ? ctl_fail("cannot signal", "the daemon", -errno) : CTL_OK;
}
