/* Tells a service manager how the service is, by its notification socket. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_NOTIFY_H
#define KSMCTL_NOTIFY_H

#include <stdint.h>

/*
 * Send "READY=1", "STATUS=..." and the like to $NOTIFY_SOCKET, several lines at once if needed.
 * Does nothing without one; a service goes on when nobody listens.
 */
void notify_send(const char *lines);

/* The watchdog's time from $WATCHDOG_USEC in ms, 0 when there is none for this process. */
int64_t notify_watchdog_ms(void);

#endif
