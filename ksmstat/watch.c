/* --watch: the machine's figures and the processes on the whole terminal, again and again. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ksmstat/report.h"
#include "ksmstat/sample.h"
#include "ksmstat/ticker.h"
#include "ksmstat/watch_screen.h"

struct watch {
	const struct options *options;
	const struct root *root;
	struct sampler sampler;
	struct report_source source;
	struct entry_list list; /* as read last */
	struct watch_view view;
	struct sample sample; /* of the machine, as read last */
	bool has_sample, has_rates;
	struct rates rates;
	struct watch_history saving, ksmd;
	char *table;  /* one text, */
	char **lines; /* cut into these */
	size_t line_count;
};

static void free_table(struct watch *watch)
{
	free(watch->table);
	free(watch->lines);
	watch->table = NULL;
	watch->lines = NULL;
	watch->line_count = 0;
}

/* Returns 0 or -errno. The old processes stay where new ones cannot be read. */
static int read_processes(struct watch *watch)
{
	struct entry_list list;

	report_want(&watch->source, watch->view.by, watch->view.sort, &watch->view.columns);
	/* Names of users belong to the list: the old one must go first. */
	free_table(watch);
	entry_free(&watch->list);
	int err = report_read(&watch->source, &list);
	watch->list = list;
	return err;
}

static void read_machine(struct watch *watch)
{
	struct sample now;

	sample_read(&watch->sampler, &now);
	if (watch->has_sample) {
		rates_between(&watch->sample, &now, &watch->rates);
		watch->has_rates = true;
		watch_history_add(&watch->saving,
			watch->rates.known[RATES_SAVING] ? watch->rates.value[RATES_SAVING] : -1);
		watch_history_add(&watch->ksmd,
			watch->rates.known[RATES_KSMD] ? watch->rates.value[RATES_KSMD] : -1);
	}
	watch->sample = now;
	watch->has_sample = true;
}

static int print_groups(struct watch *watch, const struct print_options *print)
{
	const struct watch_view *view = &watch->view;
	const struct group_order order = { view->sort, view->reverse };
	struct group_list groups;

	int err = group_make(&groups, view->by, &watch->list, &order);
	if (!err && view->by == GROUP_SYSTEM)
		group_add_machine(&groups.groups[0], watch->root);
	if (!err)
		err = group_print(&groups, view->by, false, print);
	group_free(&groups);
	return err;
}

/* Cut the text of the table. Returns 0 or -ENOMEM. */
static int cut_lines(struct watch *watch)
{
	size_t count = 0;

	for (const char *p = watch->table; p && (p = strchr(p, '\n')); p++)
		count++;
	watch->lines = calloc(count + 1, sizeof(*watch->lines));
	if (!watch->lines)
		return -ENOMEM;
	for (char *p = watch->table, *end; p && *p; p = end) {
		end = strchr(p, '\n');
		if (end)
			*end++ = '\0';
		watch->lines[watch->line_count++] = p;
	}
	return 0;
}

/* The same table as the report's, as a text. Returns 0 or -errno. */
static int make_table(struct watch *watch)
{
	const struct watch_view *view = &watch->view;
	struct print_options print = watch->options->print;

	free_table(watch);
	print.form = PRINT_TABLE;
	print.columns = view->columns;
	print.no_headings = print.total = false;
	print.text = &watch->table;
	print.width = watch_screen_width();
	int err;
	if (view->by) {
		err = print_groups(watch, &print);
	} else {
		report_sort(&watch->list, view->sort, view->reverse);
		err = print_entries(&watch->list, &print, select_any(&watch->options->selection));
	}
	return err ? err : cut_lines(watch);
}

static size_t rows(const struct watch *watch)
{
	return watch->line_count ? watch->line_count - 1 : 0;
}

static void draw(struct watch *watch)
{
	watch_view_fit(&watch->view, watch_screen_page(), rows(watch));
	const struct watch_picture picture = {
		.view = &watch->view,
		.rates = watch->has_rates ? &watch->rates : NULL,
		.saving = &watch->saving,
		.ksmd = &watch->ksmd,
		.lines = watch->lines,
		.line_count = watch->line_count,
		.processes = watch->list.count,
		.unreadable = watch->list.unreadable,
	};
	watch_screen_draw(&picture);
}

/* Do what keys or a moment asked for. Returns 0 or -errno. */
static int follow(struct watch *watch, const struct ticker *ticker, unsigned todo)
{
	int err = 0;

	if (todo & WATCH_DELAY)
		err = ticker_set(ticker, watch->view.delay_ns);
	if (!err && todo & WATCH_READ)
		err = read_processes(watch);
	if (!err && todo & WATCH_TABLE)
		err = make_table(watch);
	if (!err && todo & WATCH_DRAW)
		draw(watch);
	return err;
}

static unsigned read_keys(struct watch *watch)
{
	unsigned todo = 0;
	int key;

	while (!(todo & WATCH_QUIT) && (key = watch_screen_key()) != WATCH_KEY_NONE)
		todo |= watch_view_key(&watch->view, key, watch_screen_page(), rows(watch));
	return todo;
}

/* What a signal asks for. */
static unsigned obey(int signal)
{
	switch (signal) {
	case SIGWINCH:
		watch_screen_resize();
		return WATCH_DRAW | WATCH_TABLE;
	case SIGTSTP:
		watch_screen_stop();
		return WATCH_DRAW | WATCH_TABLE;
	default:
		return WATCH_QUIT;
	}
}

/* Returns 0 or -errno. */
static int go_on(struct watch *watch, const struct ticker *ticker)
{
	unsigned todo = WATCH_READ | WATCH_TABLE | WATCH_DRAW;
	int signal, err;

	read_machine(watch);
	for (;;) {
		err = follow(watch, ticker, todo);
		if (err || todo & WATCH_QUIT)
			return err;
		int event = ticker_wait(ticker, STDIN_FILENO, STDOUT_FILENO, &signal);
		if (event < 0)
			return event;
		if (event == TICKER_CLOSED)
			return 0;
		todo = event == TICKER_INPUT	? read_keys(watch)
		       : event == TICKER_SIGNAL ? obey(signal)
						: 0;
		if (event == TICKER_MOMENT && !watch->view.paused) {
			read_machine(watch);
			todo = WATCH_READ | WATCH_TABLE | WATCH_DRAW;
		}
	}
}

int watch(const struct options *options, const struct root *root)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP };
	struct watch *watch = calloc(1, sizeof(*watch));
	struct ticker ticker = { -1, -1 };
	int code = STAT_FAILED, err = 0;

	if (!watch) {
		error("out of memory");
		return STAT_FAILED;
	}
	watch->options = options;
	watch->root = root;
	watch_view_init(&watch->view, options);
	sample_open(&watch->sampler, root); /* a kernel without KSM has processes too */
	if (!report_open(&watch->source, options, root)) {
		/* From before the terminal is taken until it was given back, signals wait for their turn. */
		err = ticker_open(
			&ticker, options->delay_ns, signals, sizeof(signals) / sizeof(*signals));
		if (!err && !watch_screen_open()) {
			err = go_on(watch, &ticker);
			watch_screen_close();
			code = err ? STAT_FAILED : STAT_OK;
		}
	}
	if (err)
		error("cannot go on: %s", strerror(-err));
	ticker_close(&ticker);
	report_close(&watch->source);
	sample_close(&watch->sampler);
	free_table(watch);
	entry_free(&watch->list);
	free(watch);
	return code;
}
