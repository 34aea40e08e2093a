/* What was measured lately, and how it is drawn with letters. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/watch_history.h"

#include <string.h>

void watch_history_add(struct watch_history *history, int64_t value)
{
	history->values[history->next] = value < 0 ? -1 : value;
	history->next = (history->next + 1) % WATCH_HISTORY_MAX;
	if (history->count < WATCH_HISTORY_MAX)
		history->count++;
}

/* The value so many before the newest; -1 where there is none. */
static int64_t past(const struct watch_history *history, size_t ago)
{
	if (ago >= history->count)
		return -1;
	return history->values[(history->next + 2 * (size_t)WATCH_HISTORY_MAX - 1 - ago) %
			       WATCH_HISTORY_MAX];
}

int64_t watch_history_max(const struct watch_history *history, size_t width)
{
	int64_t max = 0;
	for (size_t ago = 0; ago < width; ago++) {
		int64_t value = past(history, ago);
		if (value > max)
			max = value;
	}
	return max;
}

void watch_history_row(const struct watch_history *history, size_t width, size_t rows, size_t row,
	bool utf8, char *buf, size_t size)
{
	static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const letters[] = { " ", ".", ":", "#" };
	const char *const *glyphs = utf8 ? blocks : letters;
	size_t steps = utf8 ? 8 : 3, at = 0; /* of one cell */
	int64_t max = watch_history_max(history, width);
	size_t below = (rows - 1 - row) * steps;

	for (size_t ago = width; ago-- > 0;) {
		int64_t value = past(history, ago);
		size_t level = 0;
		if (value > 0) {
			level = (size_t)((double)value / (double)max * (double)(rows * steps));
			level = level ? level : 1;
		}
		level = level <= below ? 0 : level - below;
		const char *glyph = glyphs[level < steps ? level : steps];
		size_t len = strlen(glyph);
		if (at + len >= size)
			break;
		memcpy(buf + at, glyph, len);
		at += len;
	}
	buf[at] = '\0';
}
