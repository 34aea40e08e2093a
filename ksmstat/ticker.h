/* Waits for the next of evenly spaced moments, and meanwhile for signals, keys, and a reader that goes. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_TICKER_H
#define KSMSTAT_TICKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ticker {
	int timer_fd, signal_fd; /* -1 when closed */
};

/*
 * From now on the moments are multiples of the delay away from now, however long the work between
 * them takes; those that are missed are left out. The signals are blocked for the whole program,
 * also in threads that it makes, and reported here; SIGINT, SIGTERM and SIGHUP that were ignored
 * stay so. Returns 0 or -errno; close in any case.
 */
int ticker_open(struct ticker *ticker, uint64_t delay_ns, const int *signals, size_t count);
void ticker_close(struct ticker *ticker);

/* Begin anew from now with another delay. Returns 0 or -errno. */
int ticker_set(const struct ticker *ticker, uint64_t delay_ns);

enum ticker_event { TICKER_MOMENT, TICKER_SIGNAL, TICKER_INPUT, TICKER_CLOSED };

/*
 * Wait for what comes first: input on input_fd (-1: none is wanted), a signal (in *signal), the end
 * of whoever reads output_fd, or the next moment. Returns an event or -errno.
 */
int ticker_wait(const struct ticker *ticker, int input_fd, int output_fd, int *signal);

#endif
