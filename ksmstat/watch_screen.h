/* The terminal of --watch: takes it, draws on it, reads its keys, and gives it back as it was. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_WATCH_SCREEN_H
#define KSMSTAT_WATCH_SCREEN_H

#include <stddef.h>

#include "ksmstat/rates.h"
#include "ksmstat/watch_history.h"
#include "ksmstat/watch_view.h"

/* What is drawn. */
struct watch_picture {
	const struct watch_view *view;
	const struct rates *rates; /* NULL before the second reading */
	const struct watch_history *saving, *ksmd;
	char *const *lines; /* the table, its headings first; safe to be shown */
	size_t line_count;
	size_t processes, unreadable;
};

/* Returns 0, or an exit code after telling why there can be no screen. */
int watch_screen_open(void);
/* The terminal as it was. Does nothing when it is not open. */
void watch_screen_close(void);

/* Rows of the table that fit, without its headings; and cells. */
size_t watch_screen_page(void);
size_t watch_screen_width(void);

void watch_screen_draw(const struct watch_picture *picture);

/* The next key that was pressed, as watch_view_key takes it; WATCH_KEY_NONE when there is none. */
int watch_screen_key(void);

/* The terminal has another size; or somebody else wrote to it. */
void watch_screen_resize(void);

/* Stop as a shell's Ctrl-Z does, and go on after it. */
void watch_screen_stop(void);

#endif
