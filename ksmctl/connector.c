/* The kernel's process connector: fork, exec and exit as they happen, by libmnl. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/connector.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#define RECEIVE_BUFFER_BYTES (1 << 20) /* some 10 000 events between two reads */
/* What waits behind an error is read all the same, up to so many errors at once. */
#define FAILURES_MAX 8

static int subscribe(struct connector *connector, enum proc_cn_mcast_op op)
{
	char buf[256];
	struct nlmsghdr *header = mnl_nlmsg_put_header(buf);
	header->nlmsg_type = NLMSG_DONE;
	struct cn_msg *message = mnl_nlmsg_put_extra_header(header, sizeof(*message) + sizeof(op));
	message->id.idx = CN_IDX_PROC;
	message->id.val = CN_VAL_PROC;
	message->len = sizeof(op);
	memcpy(message->data, &op, sizeof(op));
	return mnl_socket_sendto(connector->socket, header, header->nlmsg_len) < 0 ? -errno : 0;
}

int connector_open(struct connector *connector)
{
	connector->fd = -1;
	connector->socket = mnl_socket_open2(NETLINK_CONNECTOR, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (!connector->socket)
		return -errno;
	int size = RECEIVE_BUFFER_BYTES, err = 0;
	connector->fd = mnl_socket_get_fd(connector->socket);
	/* More than the default may be refused; then events are lost earlier, and a walk makes up for it. */
	if (setsockopt(connector->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(connector->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (mnl_socket_bind(connector->socket, CN_IDX_PROC, MNL_SOCKET_AUTOPID) < 0)
		err = -errno;
	if (!err)
		err = subscribe(connector, PROC_CN_MCAST_LISTEN);
	if (err)
		connector_close(connector);
	return err;
}

void connector_close(struct connector *connector)
{
	if (connector->socket)
		mnl_socket_close(connector->socket);
	connector->socket = NULL;
	connector->fd = -1;
}

/* Tell one message. Returns whether it was an event to tell. */
static bool tell(
	const struct nlmsghdr *header, void (*event)(pid_t pid, int alive, void *data), void *data)
{
	const struct cn_msg *message = mnl_nlmsg_get_payload(header);
	if (mnl_nlmsg_get_payload_len(header) < sizeof(*message) + sizeof(struct proc_event) ||
		message->id.idx != CN_IDX_PROC || message->id.val != CN_VAL_PROC)
		return false;
	struct proc_event told;
	memcpy(&told, message->data, sizeof(told)); /* the message need not be aligned for it */
	switch (told.what) {
	case PROC_EVENT_FORK:
		if (told.event_data.fork.child_pid != told.event_data.fork.child_tgid)
			return false;
		event(told.event_data.fork.child_tgid, 1, data);
		return true;
	case PROC_EVENT_EXEC:
		event(told.event_data.exec.process_tgid, 1, data);
		return true;
	case PROC_EVENT_EXIT:
		if (told.event_data.exit.process_pid != told.event_data.exit.process_tgid)
			return false;
		event(told.event_data.exit.process_tgid, 0, data);
		return true;
	default:
		return false;
	}
}

int connector_read(
	struct connector *connector, void (*event)(pid_t pid, int alive, void *data), void *data)
{
	char buf[16384];
	int count = 0, failures = 0, lost = 0;
	while (failures < FAILURES_MAX) {
		ssize_t len = mnl_socket_recvfrom(connector->socket, buf, sizeof(buf));
		if (len < 0 && errno == EAGAIN)
			break;
		if (len < 0) {
			failures++;
			lost = errno == EINTR ? lost : -errno;
			continue;
		}
		int left = (int)len;
		/* libmnl takes a length for a signed number, so that one beyond 2 GiB would fit. */
		for (const struct nlmsghdr *header = (const void *)buf;
			mnl_nlmsg_ok(header, left) && header->nlmsg_len <= (unsigned)left;
			header = mnl_nlmsg_next(header, &left))
			count += tell(header, event, data);
	}
	return lost ? lost : count;
}
