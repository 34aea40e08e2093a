/* A line on stderr that tells how far a long reading is. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_PROGRESS_H
#define KSMSTAT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
	bool shown; /* stderr is a terminal */
	bool drawn; /* something stands in the line */
	const char *what;
	uint64_t total_bytes;
	uint64_t begin_ns;
};

/* Begin to read so many bytes, and call it `what`. */
void progress_begin(struct progress *progress, const char *what, uint64_t total_bytes);
/* Draw what is done: bar, share, rate, time left. Nothing where stderr is no terminal. */
void progress_draw(struct progress *progress, uint64_t done_bytes);
/* Leave the line empty. */
void progress_end(struct progress *progress);

/* The line, without going to its start: for progress_draw and tests. Returns buf. */
const char *progress_line(char *buf, size_t size, const char *what, uint64_t done_bytes,
	uint64_t total_bytes, uint64_t elapsed_ns);

/* The clock of all durations here. */
uint64_t progress_now_ns(void);

#endif
