/* What --watch shows, as the keys have it: order, groups, place in the table, pause. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/watch_view.h"

#define SHIFT 8

static const unsigned delays_ms[] = { 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000,
	300000 };
#define DELAYS (sizeof(delays_ms) / sizeof(*delays_ms))

/* Columns that can be shown with these groups: those asked for, or else the default. */
static void choose_columns(struct watch_view *view)
{
	const char *bad, *list = view->options->columns;
	size_t bad_len;
	bool fits = true;

	if (view->by)
		fits = !group_columns(view->by, &view->columns, list, &bad, &bad_len);
	else if (!list || column_parse(&view->columns, list, &bad, &bad_len))
		column_default(&view->columns);
	for (size_t i = 0; i < view->columns.count; i++)
		fits &= !group_refusal(view->by, view->columns.column[i]);
	if (!fits && view->by)
		group_columns(view->by, &view->columns, NULL, &bad, &bad_len);
	else if (!fits)
		column_default(&view->columns);
	if (group_refusal(view->by, view->sort)) {
		view->sort = column_find("SAVED", 5);
		view->reverse = false;
	}
}

void watch_view_init(struct watch_view *view, const struct options *options)
{
	*view = (struct watch_view){ .options = options,
		.by = options->by,
		.sort = options->sort,
		.reverse = options->sort_reverse,
		.delay_ns = options->delay_ns };
	choose_columns(view);
}

/* Sort by the next column to the left or right. */
static void move_sort(struct watch_view *view, bool right)
{
	size_t count = view->columns.count, at = 0;

	while (at < count && view->columns.column[at] != view->sort)
		at++;
	if (at == count)
		at = 0; /* sorted by what is not shown */
	else if (right && at + 1 < count)
		at++;
	else if (!right && at)
		at--;
	view->sort = view->columns.column[at];
	view->reverse = false;
}

static void change_delay(struct watch_view *view, bool longer)
{
	uint64_t now_ms = view->delay_ns / 1000000, to_ms = now_ms;

	for (size_t i = 0; i < DELAYS; i++) {
		size_t at = longer ? i : DELAYS - 1 - i;
		if (longer ? delays_ms[at] > now_ms : delays_ms[at] < now_ms) {
			to_ms = delays_ms[at];
			break;
		}
	}
	view->delay_ns = to_ms * 1000000;
}

void watch_view_fit(struct watch_view *view, size_t page, size_t rows)
{
	size_t most = rows > page ? rows - page : 0;
	if (view->top > most)
		view->top = most;
}

/* Returns whether it is a key to move with. */
static bool scroll(struct watch_view *view, int key, size_t page, size_t rows)
{
	size_t top = view->top, step = page > 1 ? page - 1 : 1;

	switch (key) {
	case WATCH_KEY_UP:
		top = top ? top - 1 : 0;
		break;
	case WATCH_KEY_DOWN:
		top++;
		break;
	case WATCH_KEY_PAGE_UP:
		top = top > step ? top - step : 0;
		break;
	case WATCH_KEY_PAGE_DOWN:
		top += step;
		break;
	case WATCH_KEY_HOME:
		top = 0;
		break;
	case WATCH_KEY_END:
		top = rows;
		break;
	case WATCH_KEY_LEFT:
		view->shift = view->shift > SHIFT ? view->shift - SHIFT : 0;
		return true;
	case WATCH_KEY_RIGHT:
		if (view->shift < 1000)
			view->shift += SHIFT;
		return true;
	default:
		return false;
	}
	view->top = top;
	watch_view_fit(view, page, rows);
	return true;
}

unsigned watch_view_key(struct watch_view *view, int key, size_t page, size_t rows)
{
	if (scroll(view, key, page, rows))
		return WATCH_DRAW;
	switch (key) {
	case 'q':
	case 'Q':
	case 3: /* Ctrl-C, where it makes no signal */
		return WATCH_QUIT;
	case '\033':
		if (!view->help)
			return WATCH_QUIT;
		view->help = false;
		return WATCH_DRAW;
	case '?':
	case 'h':
		view->help = !view->help;
		return WATCH_DRAW;
	case '<':
	case '>':
		move_sort(view, key == '>');
		view->top = 0;
		return WATCH_DRAW | WATCH_TABLE;
	case 'r':
		view->reverse = !view->reverse;
		return WATCH_DRAW | WATCH_TABLE;
	case 'b':
		view->by = view->by	       ? GROUP_NONE
			   : view->options->by ? view->options->by
					       : GROUP_PROGRAM;
		choose_columns(view);
		view->top = view->shift = 0;
		return WATCH_DRAW | WATCH_TABLE | WATCH_READ;
	case ' ':
		view->paused = !view->paused;
		return WATCH_DRAW;
	case '+':
	case '-':
		change_delay(view, key == '+');
		return WATCH_DRAW | WATCH_DELAY;
	default:
		return 0;
	}
}
