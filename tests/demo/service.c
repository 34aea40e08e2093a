/* The adaptive service, started for a demonstration with a folder of its own. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/demo/service.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sysfs/file.h"

int service_start(struct service *service, const char *programs, int lock_fd)
{
	char path[PATH_MAX + 32];
	snprintf(service->dir, sizeof(service->dir), "/tmp/ksmctl-demo-XXXXXX");
	if (!mkdtemp(service->dir))
		return -errno;
	snprintf(service->config, sizeof(service->config), "%s/ksmctl.conf", service->dir);
	FILE *config = fopen(service->config, "we");
	if (!config)
		return -errno;
	fprintf(config, "state-dir = %s\n", service->dir);
	if (fclose(config))
		return -errno;
	snprintf(path, sizeof(path), "%s/ksmctl", programs);
	service->pid = fork();
	if (service->pid < 0)
		return -errno;
	if (service->pid == 0) {
		/* Ctrl-C is for the demonstration, which then stops the service in order. */
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		fcntl(lock_fd, F_SETFD, 0);
		execl(path, "ksmctl", "daemon", "-c", service->config, (char *)NULL);
		perror(path);
		_exit(127);
	}
	return 0;
}

const char *service_phase(const struct service *service, char *buf, size_t size)
{
	char path[96], text[4096];
	*buf = '\0';
	snprintf(path, sizeof(path), "%s/status", service->dir);
	if (file_read(AT_FDCWD, path, text, sizeof(text)) < 0)
		return buf;
	const char *phase = strstr(text, "\nphase=");
	if (phase)
		snprintf(buf, size, "%.*s", (int)strcspn(phase + 7, "\n"), phase + 7);
	return buf;
}

int service_stop(struct service *service)
{
	static const char *const names[] = { "ksmctl.conf", "lock", "status", "decisions",
		"first-values" };
	int status = 0;
	if (service->pid > 0) {
		kill(service->pid, SIGTERM);
		while (waitpid(service->pid, &status, 0) < 0 && errno == EINTR)
			;
		service->pid = 0;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char path[128];
		snprintf(path, sizeof(path), "%s/%s", service->dir, names[i]);
		unlink(path);
	}
	rmdir(service->dir);
	return status;
}
