/* ksmctl/config: every key, its limits and words, and what is refused in a file. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>

#include "ksmctl/config.h"
#include "tests/unit/temp.h"

static struct config config;
static char message[512];

/* Read this text as a file, over the defaults. */
static int read_text(const char *text)
{
	char path[PATH_MAX * 2];

	temp_put("conf", text);
	snprintf(path, sizeof(path), "%s/conf", temp_path);
	config_defaults(&config);
	message[0] = '\0';
	return config_read(&config, path, message, sizeof(message));
}

static int read_line(const char *key, const char *value)
{
	char text[512];

	snprintf(text, sizeof(text), "%s = %s\n", key, value);
	return read_text(text);
}

static bool same(const struct config *a, const struct config *b)
{
	const struct policy_config *p = &a->policy, *q = &b->policy;
	return p->boost_cpu_ppm == q->boost_cpu_ppm && p->steady_cpu_ppm == q->steady_cpu_ppm &&
	       p->pressure_cpu_ppm == q->pressure_cpu_ppm && p->batch_us == q->batch_us &&
	       p->interval_ms == q->interval_ms && p->rest_interval_ms == q->rest_interval_ms &&
	       p->pass_s == q->pass_s && p->converged_ppm == q->converged_ppm &&
	       p->pressure_psi_centi == q->pressure_psi_centi &&
	       p->pressure_available_permille == q->pressure_available_permille &&
	       p->cpu_psi_centi == q->cpu_psi_centi && p->foreign_retry_s == q->foreign_retry_s &&
	       p->smart_scan == q->smart_scan && p->use_zero_pages == q->use_zero_pages &&
	       a->ksmd_nice == b->ksmd_nice && !strcmp(a->state_dir, b->state_dir);
}

#define FIELD(field) offsetof(struct config, policy.field)

/* Each number: the lowest and highest text and value, and texts just beyond. */
static const struct number {
	const char *key;
	size_t offset;
	const char *low, *high, *below, *above;
	uint32_t low_value, high_value;
} numbers[] = {
	{ "boost-cpu", FIELD(boost_cpu_ppm), "0.1", "96", "0.0999", "96.0001", 1000, 960000 },
	{ "steady-cpu", FIELD(steady_cpu_ppm), "0.001", "50", "0.0009", "50.0001", 10, 500000 },
	{ "pressure-cpu", FIELD(pressure_cpu_ppm), "0.1", "96", "0", "97", 1000, 960000 },
	{ "batch", FIELD(batch_us), "100", "25000", "99", "25001", 100, 25000 },
	{ "interval", FIELD(interval_ms), "20", "10000", "19", "10001", 20, 10000 },
	{ "rest-interval", FIELD(rest_interval_ms), "100", "60000", "99", "60001", 100, 60000 },
	{ "pass-time", FIELD(pass_s), "0", "86400", "-1", "86401", 0, 86400 },
	{ "converged", FIELD(converged_ppm), "0.0001", "50", "0", "50.0001", 1, 500000 },
	{ "pressure-psi", FIELD(pressure_psi_centi), "0.01", "100", "0", "100.01", 1, 10000 },
	{ "pressure-available", FIELD(pressure_available_permille), "0", "100", "-1", "100.1", 0,
		1000 },
	{ "cpu-psi", FIELD(cpu_psi_centi), "0.01", "100", "0", "101", 1, 10000 },
	{ "foreign-retry", FIELD(foreign_retry_s), "1", "86400", "0", "86401", 1, 86400 },
};

static uint32_t value_of(const struct number *number)
{
	uint32_t value;

	memcpy(&value, (const char *)&config + number->offset, sizeof(value));
	return value;
}

START_TEST(number_limits)
{
	const struct number *number = &numbers[_i];
	struct config defaults;

	config_defaults(&defaults);
	ck_assert_int_eq(read_line(number->key, number->low), 0);
	ck_assert_uint_eq(value_of(number), number->low_value);
	ck_assert_int_eq(read_line(number->key, number->high), 0);
	ck_assert_uint_eq(value_of(number), number->high_value);
	const char *const bad[] = { number->below, number->above, "", "x", "1x", "0x10", "1e2",
		"1 0", "+1", "--1", ".", "9223372036854775808", "-9223372036854775809",
		"4294967396", "184467440737095516160" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		ck_assert_msg(read_line(number->key, bad[i]) == 1, "%s = %s", number->key, bad[i]);
		ck_assert_msg(strstr(message, number->key) == message, "%s", message);
		ck_assert(strstr(message, number->low) && strstr(message, number->high));
		ck_assert(same(&config, &defaults));
	}
}
END_TEST

START_TEST(percent_texts)
{
	static const struct {
		const char *text;
		uint32_t ppm; /* 0: refused */
	} texts[] = {
		{ "5", 50000 },
		{ "5%", 50000 },
		{ "5.0", 50000 },
		{ "5.25", 52500 },
		{ "5.2500%", 52500 },
		{ "05", 50000 },
		{ "0.1234", 1234 },
		{ "5.", 0 },
		{ "5.%", 0 },
		{ ".5", 0 },
		{ "5.00000", 0 },
		{ "5.1.1", 0 },
		{ "5%%", 0 },
		{ "5%1", 0 },
		{ "%", 0 },
		{ "5 %", 0 },
		{ "5.-1", 0 },
		{ "5,5", 0 },
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		int err = read_line("boost-cpu", texts[i].text);
		ck_assert_msg(err == !texts[i].ppm, "%s: %d", texts[i].text, err);
		if (texts[i].ppm)
			ck_assert_uint_eq(config.policy.boost_cpu_ppm, texts[i].ppm);
	}
	/* More digits than the unit can hold are refused, unless they are zeros. */
	ck_assert_int_eq(read_line("pressure-available", "7.5"), 0);
	ck_assert_uint_eq(config.policy.pressure_available_permille, 75);
	ck_assert_int_eq(read_line("pressure-available", "7.5000"), 0);
	ck_assert_int_eq(read_line("pressure-available", "7.55"), 1);
	ck_assert_int_eq(read_line("cpu-psi", "7.551"), 1);
}
END_TEST

START_TEST(words)
{
	static const struct {
		const char *key, *word;
		int value;
	} all[] = {
		{ "smart-scan", "auto", 2 },
		{ "smart-scan", "on", 1 },
		{ "smart-scan", "off", 0 },
		{ "smart-scan", "keep", -1 },
		{ "zero-pages", "on", 1 },
		{ "zero-pages", "off", 0 },
		{ "zero-pages", "keep", -1 },
		{ "ksmd-nice", "keep", CONFIG_NICE_KEEP },
		{ "ksmd-nice", "0", 0 },
		{ "ksmd-nice", "19", 19 },
	};
	static const char *const bad[][2] = {
		{ "smart-scan", "ON" },
		{ "smart-scan", "1" },
		{ "smart-scan", "" },
		{ "zero-pages", "auto" },
		{ "zero-pages", "yes" },
		{ "ksmd-nice", "-1" },
		{ "ksmd-nice", "20" },
		{ "ksmd-nice", "100" }, /* what stands for keep inside */
		{ "ksmd-nice", "Keep" },
	};
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		ck_assert_int_eq(read_line(all[i].key, all[i].word), 0);
		int value = *all[i].key == 's'	 ? config.policy.smart_scan
			    : *all[i].key == 'z' ? config.policy.use_zero_pages
						 : config.ksmd_nice;
		ck_assert_msg(value == all[i].value, "%s = %s: %d", all[i].key, all[i].word, value);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_msg(
			read_line(bad[i][0], bad[i][1]) == 1, "%s = %s", bad[i][0], bad[i][1]);
}
END_TEST

START_TEST(paths)
{
	ck_assert_int_eq(read_line("state-dir", "/run/elsewhere"), 0);
	ck_assert_str_eq(config.state_dir, "/run/elsewhere");
	ck_assert_int_eq(read_line("state-dir", "/a b"), 0);
	ck_assert_str_eq(config.state_dir, "/a b");
	ck_assert_int_eq(read_line("state-dir", "run"), 1);
	ck_assert_int_eq(read_line("state-dir", ""), 1);
	ck_assert_str_eq(config.state_dir, "/run/ksmctl");
	char path[300] = "/";
	memset(path + 1, 'x', sizeof(path) - 2);
	path[sizeof(path) - 1] = '\0';
	ck_assert_int_eq(read_line("state-dir", path), 1);
	path[150] = '\0';
	ck_assert_int_eq(read_line("state-dir", path), 0);
	ck_assert_str_eq(config.state_dir, path);
}
END_TEST

/* The number of the first wrong line comes back, and nothing of the file is taken. */
START_TEST(wrong_lines)
{
	static const struct {
		const char *text;
		int line;
		const char *says;
	} texts[] = {
		{ "interval = 50\nintervall = 60\n", 2, "unknown key 'intervall'" },
		{ "# c\n\n; c\ninterval = 5\nbatch = 1\n", 4, "interval must be from 20 to 10000" },
		{ "interval\n", 1, "not a line of the form key = value" },
		{ "interval = 50\n[policy]\nbatch = 200\n", 2, "section" },
		{ "[policy]\n", 1, "section" },
		{ "interval = 50\n  60\n", 2, "blank" },
		{ "interval = 50\n\tbatch = 200\n", 2, "blank" },
		{ "= 5\n", 1, "unknown key ''" },
		{ "interval = 50\nINTERVAL = 50\n", 2, "unknown key 'INTERVAL'" },
	};
	struct config defaults;
	config_defaults(&defaults);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		int line = read_text(texts[i].text);
		ck_assert_msg(line == texts[i].line, "%s: line %d", texts[i].text, line);
		ck_assert_msg(strstr(message, texts[i].says) != NULL, "%s", message);
		ck_assert(same(&config, &defaults));
	}
}
END_TEST

START_TEST(good_files)
{
	ck_assert_int_eq(read_text(""), 0);
	ck_assert_int_eq(read_text("\n\n# only\n; comments\n  # indented\n"), 0);
	ck_assert_int_eq(read_text("interval=50"), 0); /* no end of line */
	ck_assert_uint_eq(config.policy.interval_ms, 50);
	ck_assert_int_eq(read_text("interval = 50 ; of ms\r\nbatch : 300\r\n"), 0);
	ck_assert_uint_eq(config.policy.interval_ms, 50);
	ck_assert_uint_eq(config.policy.batch_us, 300);
	ck_assert_int_eq(read_text("interval = 50\ninterval = 60\n"), 0); /* the last one counts */
	ck_assert_uint_eq(config.policy.interval_ms, 60);
	ck_assert_int_eq(read_text("\xef\xbb\xbfinterval = 70\n"), 0); /* a byte order mark */
	ck_assert_uint_eq(config.policy.interval_ms, 70);
}
END_TEST

/* Around the longest line of the parser, no rest of a line may count as a line. */
START_TEST(long_lines)
{
	char text[2048];
	for (int blanks = 100; blanks < 500; blanks++) {
		snprintf(text, sizeof(text), "#%*sinterval = 50\n", blanks, "");
		ck_assert_msg(
			read_text(text) == 0, "a comment with %d blanks: %s", blanks, message);
		ck_assert_uint_eq(config.policy.interval_ms, 200);
		snprintf(text, sizeof(text), "interval = %*s\nbatch = 300\n", blanks, "50");
		int line = read_text(text);
		ck_assert_msg(line == 0 || line == 1, "%d blanks: %d", blanks, line);
		ck_assert_uint_eq(config.policy.interval_ms, line ? 200 : 50);
		snprintf(text, sizeof(text), "interval = 50%*s0\nbatch = 300\n", blanks, "");
		ck_assert_msg(read_text(text) == 1, "%d blanks inside", blanks);
	}
}
END_TEST

START_TEST(unreadable)
{
	char path[PATH_MAX * 2];
	config_defaults(&config);
	snprintf(path, sizeof(path), "%s/none", temp_path);
	ck_assert_int_eq(config_read(&config, path, message, sizeof(message)), -ENOENT);
	ck_assert_int_eq(config_read(&config, temp_path, message, sizeof(message)), -EISDIR);
}
END_TEST

/* What is printed reads back as it was, at the defaults and at both ends of every number. */
START_TEST(printed_reads_back)
{
	for (int end = 0; end < 3; end++) {
		char text[8192] = "", *printed = NULL;
		size_t size = 0;
		for (size_t i = 0; end && i < sizeof(numbers) / sizeof(*numbers); i++) {
			size_t at = strlen(text);
			snprintf(text + at, sizeof(text) - at, "%s = %s\n", numbers[i].key,
				end == 1 ? numbers[i].low : numbers[i].high);
		}
		if (end)
			strcat(text, "smart-scan = keep\nzero-pages = keep\nksmd-nice = 0\n");
		ck_assert_int_eq(read_text(text), 0);
		struct config before = config;
		FILE *out = open_memstream(&printed, &size);
		config_print(&config, out);
		ck_assert_int_eq(fclose(out), 0);
		ck_assert_int_eq(read_text(printed), 0);
		ck_assert(same(&before, &config));
		free(printed);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("config");
	TCase *tcase = temp_case(suite, "config");

	tcase_add_loop_test(tcase, number_limits, 0, sizeof(numbers) / sizeof(*numbers));
	tcase_add_test(tcase, percent_texts);
	tcase_add_test(tcase, words);
	tcase_add_test(tcase, paths);
	tcase_add_test(tcase, wrong_lines);
	tcase_add_test(tcase, good_files);
	tcase_add_test(tcase, long_lines);
	tcase_add_test(tcase, unreadable);
	tcase_add_test(tcase, printed_reads_back);
	return tap_run(suite);
}
