/* A service on a copy of a captured kernel, as the tests of faults start, watch and end it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/fault/serve.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READY_MS = 5000 };

struct serve serve;
static int notify_fd;

void serve_setup(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *b = getenv("B"), *which = getenv("FAULTS");
	serve.exhaustive = which && !strcmp(which, "all");
	if (!realpath(b ? b : "build", serve.build))
		exit(EXIT_FAILURE);
	snprintf(serve.program, sizeof(serve.program), "%s/ksmctl", serve.build);
	run_setup(serve.build);
	tree_make(&serve.tree, "linux-6.18");
	const char *work = serve.tree.work;
	snprintf(serve.config_path, sizeof(serve.config_path), "%s/conf", work);
	snprintf(serve.state_path, sizeof(serve.state_path), "%s/state", work);
	snprintf(serve.first_path, sizeof(serve.first_path), "%s/state/first-values", work);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.80s/notify", work);
	FILE *config = fopen(serve.config_path, "we");
	notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (!config || bind(notify_fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		exit(EXIT_FAILURE);
	fprintf(config, "state-dir = %s\ninterval = 20\nrest-interval = 100\n", serve.state_path);
	fclose(config);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
}

bool serve_own_mounts(void)
{
	return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

void serve_reset(void)
{
	tree_reset(&serve.tree);
	unlink(serve.first_path);
}

static bool notified(const char *text, int ms)
{
	char message[256];
	struct pollfd in = { .fd = notify_fd, .events = POLLIN };
	while (poll(&in, 1, ms) == 1) {
		ssize_t len = recv(notify_fd, message, sizeof(message) - 1, 0);
		message[len > 0 ? len : 0] = '\0';
		if (!strcmp(message, text))
			return true;
	}
	return false;
}

void serve_begin(struct run *run, const char *mode)
{
	static const char *argv[8];
	const char *const words[] = { serve.program, "--root", serve.tree.root, "daemon", "-c",
		serve.config_path, mode, NULL };
	const char *const live_words[] = { serve.program, "daemon", "-c", serve.config_path, mode,
		NULL };
	if (serve.live)
		memcpy(argv, live_words, sizeof(live_words));
	else
		memcpy(argv, words, sizeof(words));
	run->argv = argv;
	while (notified("", 0))
		;
	run_start(run);
}

bool serve_becomes_ready(struct run *run)
{
	for (int ms = 0; ms < READY_MS; ms += 20) {
		if (notified("READY=1", 20))
			return true;
		if (run_ends(run, 0))
			return false;
	}
	return false;
}

int serve_end(struct run *run)
{
	if (run->pid)
		kill(run->pid, SIGTERM);
	run_wait(run);
	return !run->hung && WIFEXITED(run->status) ? WEXITSTATUS(run->status) : -1;
}

int serve_again(const char *mode)
{
	struct run again = { 0 };
	serve_begin(&again, mode);
	if (mode)
		run_wait(&again);
	else
		serve_becomes_ready(&again);
	int code = serve_end(&again);
	run_close(&again);
	return code;
}

bool serve_as_found(void)
{
	struct ksm_state now;
	enum ksm_key key;
	tree_read(&serve.tree, &now);
	return tree_same(&now, &serve.tree.found, &key) && access(serve.first_path, F_OK) < 0;
}

int serve_failures(const struct run *run)
{
	bool odd;
	int lines = run_said(run, "ksmctl: ", &odd);
	return odd ? -1 : lines - !!strstr(run_text(run->err_fd), "no process connector here");
}

static bool read_status(char *text, size_t size)
{
	char path[200];
	snprintf(path, sizeof(path), "%s/status", serve.state_path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text + 1, size - 2);
	if (fd >= 0)
		close(fd);
	text[0] = '\n'; /* so that each line has one before it */
	text[len > 0 ? len + 1 : 1] = '\0';
	return len > 0;
}

int64_t serve_status(const char *key)
{
	char text[2048], line[64];
	int len = snprintf(line, sizeof(line), "\n%s=", key);
	const char *at = read_status(text, sizeof(text)) ? strstr(text, line) : NULL;
	return at ? strtoll(at + len, NULL, 10) : -1;
}

bool serve_shows(const char *line, int ms)
{
	char text[2048], wanted[128];
	snprintf(wanted, sizeof(wanted), "\n%s\n", line);
	for (; ms > 0; ms -= 10) {
		if (read_status(text, sizeof(text)) && strstr(text, wanted))
			return true;
		usleep(10 * 1000);
	}
	return false;
}
