/* A line by the interval, in the manner of vmstat: the state of merging, what changed, and how fast. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/interval.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ksmstat/entry.h"
#include "ksmstat/report.h"
#include "ksmstat/sample.h"
#include "ksmstat/ticker.h"

/* Everything that lives from one line to the next. */
struct state {
	const struct options *options;
	const struct root *root;
	struct interval_choice columns;
	struct sampler sampler;
	struct report_source source; /* of processes, where some are meant */
	uint64_t lines;		     /* printed so far */
	uint64_t since_headings;
};

/* Returns 0 or -errno. */
static int read_sample(struct state *state, struct sample *sample)
{
	struct entry_list list;
	int err = 0;

	if (!select_any(&state->options->selection)) {
		sample_read(&state->sampler, sample);
		return 0;
	}
	err = report_read(&state->source, &list);
	sample_read(&state->sampler, sample);
	if (!err)
		sample_add_processes(sample, &list);
	entry_free(&list);
	return err;
}

static void print_headings(const struct state *state)
{
	const struct print_options *print = &state->options->print;
	for (size_t i = 0; i < state->columns.count; i++) {
		enum rates_key key = state->columns.key[i];
		const struct interval_column *column = &interval_columns[key];
		if (i)
			putchar(' ');
		if (print->form == PRINT_RAW)
			fputs(column->name, stdout);
		else
			printf("%*s", interval_width(key, print->bytes), column->heading);
	}
	putchar('\n');
}

static void print_pairs_or_json(const struct state *state, const struct rates *rates)
{
	bool json = state->options->print.form == PRINT_JSON;
	char buf[INTERVAL_CELL_MAX];

	if (json)
		putchar('{');
	for (size_t i = 0; i < state->columns.count; i++) {
		enum rates_key key = state->columns.key[i];
		const struct interval_column *column = &interval_columns[key];
		const char *cell = interval_cell(rates, key, INTERVAL_EXACT, buf);
		const char *quote = cell && column->kind == INTERVAL_TIME ? "\"" : "";
		if (json) {
			printf("%s\"%s\":%s%s%s", i ? "," : "", column->key, quote,
				cell ? cell : "null", quote);
			if (key == RATES_TIME) /* for those who count */
				printf(",\"epoch\":%" PRId64 ".%03d", rates->value[key] / 1000,
					(int)(rates->value[key] % 1000));
		} else {
			printf("%s%s=\"%s\"", i ? " " : "", column->name, cell ? cell : "-");
		}
	}
	fputs(json ? "}\n" : "\n", stdout);
}

static void print_cells(const struct state *state, const struct rates *rates)
{
	const struct print_options *print = &state->options->print;
	bool raw = print->form == PRINT_RAW;
	enum interval_style style = raw && print->bytes ? INTERVAL_EXACT
				    : print->bytes	? INTERVAL_FULL
							: INTERVAL_SHORT;
	char buf[INTERVAL_CELL_MAX];

	for (size_t i = 0; i < state->columns.count; i++) {
		enum rates_key key = state->columns.key[i];
		const char *cell = interval_cell(rates, key, style, buf);
		printf("%s%*s", i ? " " : "", raw ? 0 : interval_width(key, print->bytes),
			cell ? cell : "-");
	}
	putchar('\n');
}

/* Headings come again when those before have left the screen: to a file they come once. */
static bool headings_due(const struct state *state)
{
	struct winsize size;

	if (!state->lines)
		return true;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row < 3)
		return false;
	return state->since_headings + 2 >= size.ws_row;
}

/* Returns 0, or -errno when it could not be written. */
static int print_line(struct state *state, const struct rates *rates)
{
	enum print_form form = state->options->print.form;

	if (form == PRINT_TABLE || form == PRINT_RAW) {
		if (!state->options->print.no_headings && headings_due(state)) {
			print_headings(state);
			state->since_headings = 0;
		}
		print_cells(state, rates);
	} else {
		print_pairs_or_json(state, rates);
	}
	state->lines++;
	state->since_headings++;
	errno = 0;
	return fflush(stdout) == 0 ? 0 : errno ? -errno : -EIO;
}

/* Returns an exit code. */
static int print_lines(struct state *state, const struct ticker *ticker)
{
	struct sample samples[2];
	uint64_t wanted = state->options->lines;
	int signal, err = read_sample(state, &samples[0]);

	while (!err && (!wanted || state->lines < wanted)) {
		int event = ticker_wait(ticker, -1, STDOUT_FILENO, &signal);
		if (event == TICKER_SIGNAL)
			return wanted ? STAT_INTERRUPTED : STAT_OK;
		if (event == TICKER_CLOSED)
			return STAT_OK;
		if (event < 0) {
			error("cannot wait: %s", strerror(-event));
			return STAT_FAILED;
		}
		struct sample *before = &samples[state->lines % 2];
		struct sample *now = &samples[(state->lines + 1) % 2];
		struct rates rates;
		err = read_sample(state, now);
		if (err)
			break;
		rates_between(before, now, &rates);
		if (print_line(state, &rates))
			return STAT_FAILED; /* main() says why */
	}
	if (err)
		error("cannot read /proc: %s", strerror(-err));
	return err ? STAT_FAILED : STAT_OK;
}

int interval(const struct options *options, const struct root *root)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	bool of_processes = select_any(&options->selection);
	struct state state = { .options = options, .root = root, .columns = options->interval };
	struct ticker ticker;
	int code = STAT_FAILED;

	int err = sample_open(&state.sampler, root);
	if (err)
		error("no KSM here: cannot open /sys/kernel/mm/ksm: %s", strerror(-err));
	else if (!of_processes || !report_open(&state.source, options, root)) {
		err = ticker_open(
			&ticker, options->delay_ns, signals, sizeof(signals) / sizeof(*signals));
		if (err)
			error("cannot make a timer: %s", strerror(-err));
		else
			code = print_lines(&state, &ticker);
		ticker_close(&ticker);
	}
	if (of_processes)
		report_close(&state.source);
	sample_close(&state.sampler);
	return code;
}
