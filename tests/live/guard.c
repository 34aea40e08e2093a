/* Guards a live test: one lock for the machine, and every KSM knob as it was, however the test ends. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/live/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sysfs/file.h"

/* Settings beside those of KSM that tests change: whole files, or the word in brackets of a list. */
static const char *const settings[] = {
	"/sys/kernel/mm/transparent_hugepage/enabled",
	"/sys/kernel/mm/transparent_hugepage/defrag",
	"/proc/sys/vm/swappiness",
};
#define SETTINGS (sizeof(settings) / sizeof(*settings))

static struct {
	struct ksm ksm;
	char words[SETTINGS][32]; /* "" where there is none */
	pid_t guardian;
	int channel;
} guard = { .ksm = { .fd = -1 }, .channel = -1 };

static void read_word(const char *path, char word[32])
{
	char text[256];
	ssize_t len = file_read(AT_FDCWD, path, text, sizeof(text));
	const char *from = len > 0 ? text : "", *bracket = strchr(from, '[');
	if (bracket)
		from = bracket + 1;
	snprintf(word, 32, "%.*s", (int)strcspn(from, "]\n"), from);
}

static int restore_settings(void)
{
	int first = 0;
	for (size_t i = 0; i < SETTINGS; i++) {
		const char *word = guard.words[i];
		char now[32];
		read_word(settings[i], now);
		if (!*word || !strcmp(word, now))
			continue;
		int fd = open(settings[i], O_WRONLY | O_CLOEXEC);
		if ((fd < 0 || write(fd, word, strlen(word)) < 0) && !first)
			first = -errno;
		if (fd >= 0)
			close(fd);
	}
	return first;
}

/* What was merged in the test can still hold max_page_sharing: unmerge, then it can be written. */
static int restore(const struct ksm *ksm, const struct ksm_state *saved)
{
	int err = ksm_restore(ksm, saved, NULL);
	for (int tries = 0; err == -EBUSY && tries < 50; tries++) {
		ksm_set(ksm, KSM_RUN, KSM_RUN_UNMERGE);
		usleep(100 * 1000);
		err = ksm_restore(ksm, saved, NULL);
	}
	return err;
}

static void guardian(
	const struct ksm *ksm, const struct ksm_state *saved, int parent_fd, int channel)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };
	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		signal(ignored[i], SIG_IGN);
	setsid();
	prctl(PR_SET_NAME, "ksm-guard"); /* so that a pkill of the test spares it */
	struct pollfd fds[] = { { parent_fd, POLLIN, 0 }, { channel, POLLIN, 0 } };
	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	int err = restore(ksm, saved), other = restore_settings();
	if (!err)
		err = other;
	if (err)
		fprintf(stderr, "guard: the knobs could not all be restored: %s\n", strerror(-err));
	if (write(channel, &err, sizeof(err)) < 0 && errno != EPIPE)
		_exit(1);
	_exit(err != 0);
}

static int fail(int err)
{
	ksm_close(&guard.ksm);
	return err;
}

int guard_take(void)
{
	struct root root;
	struct ksm_state saved;
	int pair[2];

	int err = root_open(&root, NULL);
	if (err)
		return err;
	err = ksm_open(&guard.ksm, &root);
	root_close(&root);
	if (err)
		return err;
	while (flock(guard.ksm.fd, LOCK_EX) < 0) {
		if (errno != EINTR)
			return fail(-errno);
	}
	ksm_read(&guard.ksm, &saved);
	for (size_t i = 0; i < SETTINGS; i++)
		read_word(settings[i], guard.words[i]);
	/* Writing what is there already shows whether writing is allowed, and changes nothing. */
	err = ksm_has(&saved, KSM_SLEEP_MILLISECS)
		      ? ksm_set(&guard.ksm, KSM_SLEEP_MILLISECS, saved.value[KSM_SLEEP_MILLISECS])
		      : saved.error[KSM_SLEEP_MILLISECS];
	if (err)
		return fail(err);

	int parent_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (parent_fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return fail(-errno);
	fflush(NULL);
	guard.guardian = fork();
	if (guard.guardian < 0)
		return fail(-errno);
	if (guard.guardian == 0) {
		close(pair[0]);
		guardian(&guard.ksm, &saved, parent_fd, pair[1]);
	}
	close(parent_fd);
	close(pair[1]);
	guard.channel = pair[0];
	return 0;
}

int guard_release(void)
{
	int err = -EIO;
	if (write(guard.channel, "", 1) == 1 &&
		read(guard.channel, &err, sizeof(err)) != sizeof(err))
		err = -EIO;
	while (waitpid(guard.guardian, NULL, 0) < 0 && errno == EINTR)
		;
	close(guard.channel);
	ksm_close(&guard.ksm);
	return err;
}

const struct ksm *guard_ksm(void)
{
	return &guard.ksm;
}

int guard_fast(void)
{
	static const struct {
		enum ksm_key key;
		int64_t value;
	} fast[] = {
		{ KSM_ADVISOR_MODE, KSM_ADVISOR_NONE },
		{ KSM_SMART_SCAN, 0 },
		{ KSM_USE_ZERO_PAGES, 0 },
		{ KSM_PAGES_TO_SCAN, 5000 },
		{ KSM_SLEEP_MILLISECS, 1 },
		{ KSM_RUN, KSM_RUN_MERGE },
	};
	for (size_t i = 0; i < sizeof(fast) / sizeof(*fast); i++) {
		int err = ksm_set(&guard.ksm, fast[i].key, fast[i].value);
		if (err && err != -ENOENT)
			return err;
	}
	return 0;
}

bool guard_wait_passes(int n, int timeout_s)
{
	int64_t first, now;
	if (ksm_get(&guard.ksm, KSM_FULL_SCANS, &first))
		return false;
	for (int i = 0; i < timeout_s * 100; i++) {
		if (!ksm_get(&guard.ksm, KSM_FULL_SCANS, &now) && now - first >= n)
			return true;
		/* A race in the kernel can leave ksmd asleep with run=1: writing it again wakes ksmd. */
		if (i % 200 == 199 && !ksm_get(&guard.ksm, KSM_RUN, &now) && now == KSM_RUN_MERGE)
			ksm_set(&guard.ksm, KSM_RUN, KSM_RUN_MERGE);
		usleep(10 * 1000);
	}
	return false;
}
