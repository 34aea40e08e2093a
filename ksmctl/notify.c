/* Tells a service manager how the service is, by its notification socket. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sysfs/file.h"

void notify_send(const char *lines)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	if (!path || (*path != '/' && *path != '@') || strlen(path) >= sizeof(address.sun_path))
		return;
	size_t len = strlen(path);
	memcpy(address.sun_path, path, len);
	if (*path == '@') /* an abstract address starts with a NUL */
		address.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	sendto(fd, lines, strlen(lines), MSG_NOSIGNAL, (struct sockaddr *)&address,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

int64_t notify_watchdog_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	int64_t value, owner;
	if (!usec || file_parse_i64(usec, strlen(usec), &value) || value <= 0)
		return 0;
	if (pid && (file_parse_i64(pid, strlen(pid), &owner) || owner != getpid()))
		return 0;
	return value / 1000;
}
