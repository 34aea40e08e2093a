/* Waits for the next of evenly spaced moments, and meanwhile for signals, keys, and a reader that goes. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/ticker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

int ticker_set(const struct ticker *ticker, uint64_t delay_ns)
{
	struct timespec now;
	struct itimerspec timer = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t first_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + delay_ns;
	timer.it_interval.tv_sec = (time_t)(delay_ns / 1000000000u);
	timer.it_interval.tv_nsec = (long)(delay_ns % 1000000000u);
	timer.it_value.tv_sec = (time_t)(first_ns / 1000000000u);
	timer.it_value.tv_nsec = (long)(first_ns % 1000000000u);
	return timerfd_settime(ticker->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL) < 0 ? -errno : 0;
}

/* Who started this with the signal ignored (nohup, a shell's "&") meant it. */
static bool wanted(int signal)
{
	struct sigaction action;
	return (signal != SIGINT && signal != SIGTERM && signal != SIGHUP) ||
	       sigaction(signal, NULL, &action) < 0 || action.sa_handler != SIG_IGN;
}

int ticker_open(struct ticker *ticker, uint64_t delay_ns, const int *signals, size_t count)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < count; i++) {
		if (wanted(signals[i]))
			sigaddset(&set, signals[i]);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	ticker->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	ticker->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (ticker->signal_fd < 0 || ticker->timer_fd < 0)
		return -errno;
	return ticker_set(ticker, delay_ns);
}

void ticker_close(struct ticker *ticker)
{
	if (ticker->timer_fd >= 0)
		close(ticker->timer_fd);
	if (ticker->signal_fd >= 0)
		close(ticker->signal_fd);
	ticker->timer_fd = ticker->signal_fd = -1;
}

/* What poll found; -EAGAIN when it is nothing. */
static int event(const struct ticker *ticker, const struct pollfd *polled, int *signal)
{
	struct signalfd_siginfo info;
	uint64_t moments;

	if (polled[1].revents && read(ticker->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		*signal = (int)info.ssi_signo;
		return TICKER_SIGNAL;
	}
	if (polled[3].revents || polled[2].revents & (POLLHUP | POLLERR | POLLNVAL))
		return TICKER_CLOSED;
	if (polled[2].revents)
		return TICKER_INPUT;
	if (polled[0].revents &&
		read(ticker->timer_fd, &moments, sizeof(moments)) == sizeof(moments))
		return TICKER_MOMENT;
	return -EAGAIN;
}

int ticker_wait(const struct ticker *ticker, int input_fd, int output_fd, int *signal)
{
	for (;;) {
		struct pollfd polled[] = {
			{ .fd = ticker->timer_fd, .events = POLLIN },
			{ .fd = ticker->signal_fd, .events = POLLIN },
			{ .fd = input_fd, .events = POLLIN },
			{ .fd = output_fd }, /* errors alone */
		};
		if (poll(polled, sizeof(polled) / sizeof(*polled), -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		int found = event(ticker, polled, signal);
		if (found != -EAGAIN)
			return found;
	}
}
