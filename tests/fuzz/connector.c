/* Fuzz target: messages of the kernel's process connector. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/connector.h"

#include <errno.h>
#include <libmnl/libmnl.h>

#include "tests/fuzz/fuzz.h"

static struct {
	const uint8_t *data;
	size_t left;
	uint32_t seed;
} socket_played;

ssize_t __wrap_mnl_socket_recvfrom(const struct mnl_socket *socket, void *buf, size_t size);

/* One datagram after the other, until there is none. */
ssize_t __wrap_mnl_socket_recvfrom(const struct mnl_socket *socket, void *buf, size_t size)
{
	(void)socket;
	if (!socket_played.left) {
		errno = EAGAIN;
		return -1;
	}
	size_t len = 1 + fuzz_next(&socket_played.seed) % 512;
	if (len > socket_played.left)
		len = socket_played.left;
	if (len > size)
		len = size;
	memcpy(buf, socket_played.data, len);
	socket_played.data += len;
	socket_played.left -= len;
	return (ssize_t)len;
}

static void on_event(pid_t pid, int alive, void *data)
{
	(void)pid;
	FUZZ_MUST(alive == 0 || alive == 1);
	++*(int *)data;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct connector connector = { 0 };
	int told = 0;

	socket_played.data = data;
	socket_played.left = size;
	socket_played.seed = fuzz_seed(data, size);
	int count = connector_read(&connector, on_event, &told);
	FUZZ_MUST(count == told);
	FUZZ_MUST(!socket_played.left);
	return 0;
}
