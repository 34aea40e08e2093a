/* The service's configuration: one table of keys for the file, its checks and its printing. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/config.h"

#include <errno.h>
#include <inttypes.h>
#include <ini.h>
#include <stddef.h>
#include <string.h>

#include "sysfs/file.h"

/* How a value is written in the file, and kept: a number of `scale` units, or a word. */
enum kind {
	KIND_PERCENT, /* up to four decimals; kept in parts of scale / 100 per percent */
	KIND_NUMBER,
	KIND_WORD, /* kept as values[i] of words[i] */
	KIND_PATH,
};

struct key {
	const char *name;
	const char *help;
	enum kind kind;
	size_t offset, width; /* in struct config */
	int64_t scale;	      /* kept units in one percent */
	int64_t min, max;     /* kept units */
	const char *words[4];
	int values[4];
};

#define POLICY(field) \
	offsetof(struct config, policy.field), sizeof(((struct config *)0)->policy.field)
#define CONFIG(field) offsetof(struct config, field), sizeof(((struct config *)0)->field)

static const struct key keys[] = {
	{ "boost-cpu", "CPU that ksmd may use while it merges new memory, in percent of one core",
		KIND_PERCENT, POLICY(boost_cpu_ppm), 10000, 1000, 960000, { 0 }, { 0 } },
	{ "steady-cpu",
		"CPU that ksmd may use on average when nothing changes, in percent of one core",
		KIND_PERCENT, POLICY(steady_cpu_ppm), 10000, 10, 500000, { 0 }, { 0 } },
	{ "pressure-cpu", "CPU that ksmd may use while memory is short, in percent of one core",
		KIND_PERCENT, POLICY(pressure_cpu_ppm), 10000, 1000, 960000, { 0 }, { 0 } },
	{ "batch", "longest batch of ksmd, in microseconds", KIND_NUMBER, POLICY(batch_us), 1, 100,
		25000, { 0 }, { 0 } },
	{ "interval", "time between looks while ksmd works, in milliseconds", KIND_NUMBER,
		POLICY(interval_ms), 1, 20, 10000, { 0 }, { 0 } },
	{ "rest-interval", "time between looks while ksmd rests, in milliseconds", KIND_NUMBER,
		POLICY(rest_interval_ms), 1, 100, 60000, { 0 }, { 0 } },
	{ "pass-time", "shortest time between passes at rest, in seconds", KIND_NUMBER,
		POLICY(pass_s), 1, 0, 86400, { 0 }, { 0 } },
	{ "converged",
		"a pass that merges less than this of what it scanned gained nothing, in percent",
		KIND_PERCENT, POLICY(converged_ppm), 10000, 1, 500000, { 0 }, { 0 } },
	{ "pressure-psi", "memory stall (PSI some avg10) that counts as pressure, in percent",
		KIND_PERCENT, POLICY(pressure_psi_centi), 100, 1, 10000, { 0 }, { 0 } },
	{ "pressure-available",
		"MemAvailable below this counts as pressure too, in percent of MemTotal",
		KIND_PERCENT, POLICY(pressure_available_permille), 10, 0, 1000, { 0 }, { 0 } },
	{ "cpu-psi",
		"CPU stall (PSI some) that halves a boost, and at twice as much again, in percent",
		KIND_PERCENT, POLICY(cpu_psi_centi), 100, 1, 10000, { 0 }, { 0 } },
	{ "foreign-retry",
		"how long to leave the kernel to another controller at first, in seconds",
		KIND_NUMBER, POLICY(foreign_retry_s), 1, 1, 86400, { 0 }, { 0 } },
	{ "smart-scan", "smart_scan: auto, on, off, or keep (as found)", KIND_WORD,
		POLICY(smart_scan), 1, 0, 0, { "auto", "on", "off", "keep" }, { 2, 1, 0, -1 } },
	{ "zero-pages", "use_zero_pages: on, off, or keep (as found)", KIND_WORD,
		POLICY(use_zero_pages), 1, 0, 0, { "on", "off", "keep", NULL }, { 1, 0, -1, 0 } },
	{ "ksmd-nice", "niceness of ksmd, 0 to 19, or keep (as found)", KIND_NUMBER,
		CONFIG(ksmd_nice), 1, 0, 19, { "keep", NULL, NULL, NULL },
		{ CONFIG_NICE_KEEP, 0, 0, 0 } },
	{ "state-dir", "folder for lock, status and first values", KIND_PATH, CONFIG(state_dir), 1,
		0, 0, { 0 }, { 0 } },
};
#define KEYS (sizeof(keys) / sizeof(*keys))

void config_defaults(struct config *config)
{
	memset(config, 0, sizeof(*config));
	policy_defaults(&config->policy);
	config->ksmd_nice = CONFIG_NICE_KEEP;
	strcpy(config->state_dir,
		"/run/ksmctl"); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): fits */
}

static void store(struct config *config, const struct key *key, int64_t value)
{
	char *at = (char *)config + key->offset;
	if (key->width == sizeof(int8_t))
		*(int8_t *)at = (int8_t)value;
	else
		*(int32_t *)(void *)at = (int32_t)value;
}

static int64_t load(const struct config *config, const struct key *key)
{
	const char *at = (const char *)config + key->offset;
	return key->width == sizeof(int8_t) ? *(const int8_t *)at
					    : *(const int32_t *)(const void *)at;
}

/* "0.25" or "80%" with scale units to the percent. Returns 0 or -EINVAL. */
static int parse_percent(const char *text, int64_t scale, int64_t *value)
{
	size_t len = strlen(text);
	if (len && text[len - 1] == '%')
		len--;
	size_t whole_len = strcspn(text, ".");
	if (whole_len > len)
		whole_len = len;
	int64_t whole = 0, sum;
	if (file_parse_i64(text, whole_len, &whole) || whole < 0 || whole > 1000000)
		return -EINVAL;
	sum = whole * scale;
	if (whole_len < len) {
		const char *digits = text + whole_len + 1;
		size_t count = len - whole_len - 1;
		if (count == 0 || count > 4)
			return -EINVAL;
		for (int64_t unit = scale; count; count--, digits++) {
			unit /= 10;
			if (*digits < '0' || *digits > '9' || (unit == 0 && *digits != '0'))
				return -EINVAL;
			sum += (*digits - '0') * unit;
		}
	}
	*value = sum;
	return 0;
}

static void format_value(const struct config *config, const struct key *key, char *buf, size_t size)
{
	int64_t value = key->kind == KIND_PATH ? 0 : load(config, key);
	for (size_t i = 0; i < 4 && key->words[i]; i++) {
		if (key->values[i] == value) {
			snprintf(buf, size, "%s", key->words[i]);
			return;
		}
	}
	if (key->kind == KIND_PATH) {
		snprintf(buf, size, "%s", (const char *)config + key->offset);
	} else if (key->kind == KIND_PERCENT) {
		int digits = 0;
		for (int64_t unit = key->scale; unit > 1; unit /= 10)
			digits++;
		int n = snprintf(buf, size, "%" PRId64 ".%0*" PRId64, value / key->scale, digits,
			value % key->scale);
		while (n > 0 && buf[n - 1] == '0')
			buf[--n] = '\0';
		if (n > 0 && buf[n - 1] == '.')
			buf[n - 1] = '\0';
	} else {
		snprintf(buf, size, "%" PRId64, value);
	}
}

struct reading {
	struct config *config;
	FILE *file;
	int line; /* read last; where `failed`, the wrong one */
	char *message;
	size_t size;
	bool failed;
};

static int complain(struct reading *reading, const struct key *key, const char *value)
{
	char low[32], high[32];
	if (key->kind == KIND_PATH) {
		snprintf(reading->message, reading->size,
			"%s must be an absolute path of at most %zu bytes", key->name,
			key->width - 1);
	} else if (key->kind == KIND_WORD) {
		snprintf(reading->message, reading->size, "'%s' is none of the words of %s (%s)",
			value, key->name, key->help);
	} else {
		struct config limits;
		store(&limits, key, key->min);
		format_value(&limits, key, low, sizeof(low));
		store(&limits, key, key->max);
		format_value(&limits, key, high, sizeof(high));
		snprintf(reading->message, reading->size, "%s must be from %s to %s%s%s, not '%s'",
			key->name, low, high, key->words[0] ? " or " : "",
			key->words[0] ? key->words[0] : "", value);
	}
	return 0;
}

static int take_value(struct reading *reading, const struct key *key, const char *value)
{
	int64_t number;
	for (size_t i = 0; i < 4 && key->words[i]; i++) {
		if (!strcmp(key->words[i], value)) {
			store(reading->config, key, key->values[i]);
			return 1;
		}
	}
	if (key->kind == KIND_PATH) {
		if (*value != '/' || strlen(value) >= key->width)
			return complain(reading, key, value);
		strcpy((char *)reading->config + key->offset, value); /* NOLINT: checked */
		return 1;
	}
	int err = key->kind == KIND_WORD      ? -EINVAL
		  : key->kind == KIND_PERCENT ? parse_percent(value, key->scale, &number)
					      : file_parse_i64(value, strlen(value), &number);
	if (err || number < key->min || number > key->max)
		return complain(reading, key, value);
	store(reading->config, key, number);
	return 1;
}

/* Called by libinih for each key. Only the first mistake is told. */
static int take_key(void *user, const char *section, const char *name, const char *value)
{
	struct reading *reading = user;
	(void)section;
	if (reading->failed)
		return 0;
	size_t i = 0;
	while (i < KEYS && strcmp(keys[i].name, name) != 0)
		i++;
	if (i == KEYS)
		snprintf(reading->message, reading->size,
			"unknown key '%s'; 'ksmctl daemon --print-config' lists the keys", name);
	reading->failed = i == KEYS || !take_value(reading, &keys[i], value);
	return !reading->failed;
}

/*
 * Called by libinih for each line. Refuses what libinih would take in its own way: sections,
 * indented lines (to it the value before goes on), and lines too long for it (it would take the
 * rest for a line of its own).
 */
static char *read_line(char *text, int size, void *user)
{
	struct reading *reading = user;
	if (reading->failed || !fgets(text, size, reading->file))
		return NULL;
	reading->line++;
	const char *wrong = NULL;
	size_t len = strlen(text), blanks = strspn(text, " \t");
	bool comment = text[blanks] == '#' || text[blanks] == ';';
	if (len && text[len - 1] != '\n' && !feof(reading->file)) {
		int c;
		while ((c = getc(reading->file)) != EOF && c != '\n')
			;
		if (!comment)
			wrong = "the line is too long";
	}
	if (*text == '[')
		wrong = "there are no sections";
	else if (blanks && text[blanks] && text[blanks] != '\n' && text[blanks] != '\r' && !comment)
		wrong = "a line must not begin with a blank";
	if (!wrong)
		return text;
	snprintf(reading->message, reading->size, "%s", wrong);
	reading->failed = true;
	return NULL;
}

int config_read(struct config *config, const char *path, char *message, size_t size)
{
	struct config copy = *config;
	struct reading reading = { .config = &copy, .message = message, .size = size };

	reading.file = fopen(path, "re");
	if (!reading.file)
		return -errno;
	errno = 0;
	int line = ini_parse_stream(read_line, &reading, take_key, &reading);
	int err = ferror(reading.file) ? -(errno ? errno : EIO) : 0;
	fclose(reading.file);
	if (err || line == -2)
		return err ? err : -ENOMEM;
	if (reading.failed)
		return reading.line;
	if (line) {
		snprintf(message, size, "not a line of the form key = value");
		return line;
	}
	*config = copy;
	return 0;
}

void config_print(const struct config *config, FILE *out)
{
	char value[300];
	for (size_t i = 0; i < KEYS; i++) {
		format_value(config, &keys[i], value, sizeof(value));
		fprintf(out, "%s# %s\n%s = %s\n", i ? "\n" : "", keys[i].help, keys[i].name, value);
	}
}
