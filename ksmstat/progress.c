/* A line on stderr that tells how far a long reading is. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "ksmstat/text.h"

#define BAR 20
/* Before that a rate says nothing. */
#define RATE_AFTER_NS 300000000u

uint64_t progress_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void progress_begin(struct progress *progress, const char *what, uint64_t total_bytes)
{
	progress->shown = isatty(STDERR_FILENO) == 1;
	progress->drawn = false;
	progress->what = what;
	progress->total_bytes = total_bytes;
	progress->begin_ns = progress_now_ns();
}

const char *progress_line(char *buf, size_t size, const char *what, uint64_t done_bytes,
	uint64_t total_bytes, uint64_t elapsed_ns)
{
	char done[16], total[16], rate[16], bar[BAR + 1], rest[48] = "";

	/* Processes grow meanwhile; more than all of it would only puzzle. */
	if (done_bytes > total_bytes)
		total_bytes = done_bytes;
	double share = total_bytes ? (double)done_bytes / (double)total_bytes : 1;
	for (int i = 0; i < BAR; i++)
		bar[i] = share * BAR > i ? '#' : '.';
	bar[BAR] = '\0';
	if (elapsed_ns >= RATE_AFTER_NS && done_bytes) {
		double per_s = (double)done_bytes / ((double)elapsed_ns / 1e9);
		uint64_t left_s = (uint64_t)((double)(total_bytes - done_bytes) / per_s + 0.999);
		snprintf(rest, sizeof(rest), "  %s/s  %" PRIu64 ":%02" PRIu64 " left",
			text_size((int64_t)per_s, rate, sizeof(rate)), left_s / 60, left_s % 60);
	}
	snprintf(buf, size, "%s [%s] %3.0f %%  %s of %s%s", what, bar, share * 100,
		text_size((int64_t)done_bytes, done, sizeof(done)),
		text_size((int64_t)total_bytes, total, sizeof(total)), rest);
	return buf;
}

void progress_draw(struct progress *progress, uint64_t done_bytes)
{
	char line[160];
	if (!progress->shown)
		return;
	fprintf(stderr, "\r%s\033[K",
		progress_line(line, sizeof(line), progress->what, done_bytes, progress->total_bytes,
			progress_now_ns() - progress->begin_ns));
	progress->drawn = true;
}

void progress_end(struct progress *progress)
{
	if (progress->drawn)
		fputs("\r\033[K", stderr);
	progress->drawn = false;
}
