/* What --watch shows, as the keys have it: order, groups, place in the table, pause. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_WATCH_VIEW_H
#define KSMSTAT_WATCH_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ksmstat/options.h"

struct watch_view {
	const struct options *options;
	enum group_by by;
	const struct column *sort;
	bool reverse;
	struct column_choice columns;
	bool paused, help;
	uint64_t delay_ns;
	size_t top;   /* rows of the table that are above the screen */
	size_t shift; /* cells of it that are left of the screen */
};

void watch_view_init(struct watch_view *view, const struct options *options);

/* What a key asks for; bits. */
enum {
	WATCH_DRAW = 1 << 0,  /* what is shown differs */
	WATCH_TABLE = 1 << 1, /* the table must be made anew from what was read */
	WATCH_READ = 1 << 2,  /* other columns: and read anew */
	WATCH_DELAY = 1 << 3,
	WATCH_QUIT = 1 << 4,
};

/* Keys that are no characters: the screen has its own numbers for them. */
enum watch_key {
	WATCH_KEY_UP = 256,
	WATCH_KEY_DOWN,
	WATCH_KEY_LEFT,
	WATCH_KEY_RIGHT,
	WATCH_KEY_PAGE_UP,
	WATCH_KEY_PAGE_DOWN,
	WATCH_KEY_HOME,
	WATCH_KEY_END,
	WATCH_KEY_NONE,
};

/* Do what a key says, where `page` rows of `rows` are on the screen. Returns bits. */
unsigned watch_view_key(struct watch_view *view, int key, size_t page, size_t rows);

/* Keep the place in a table that became shorter. */
void watch_view_fit(struct watch_view *view, size_t page, size_t rows);

#endif
