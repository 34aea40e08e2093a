/* The service's folder: lock, first values of the kernel's knobs, and the status that others read. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sysfs/file.h"

#define LOCK_NAME "lock"
#define FIRST_NAME "first-values"
#define NICE_KEY "ksmd_nice"
#define NICE_MIN \
	(-20) /* what the kernel takes; anything else was never saved by us as a niceness */
#define NICE_MAX 19

/* What is found in the folder decides what root writes to the kernel: root and ourselves alone may write it. */
static bool is_ours(const struct stat *st)
{
	return (st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

int state_open(struct state_dir *dir, const char *path, bool create)
{
	struct stat st;
	dir->lock_fd = -1;
	if (create && mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	dir->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir->fd < 0)
		return -errno;
	if (fstat(dir->fd, &st) == 0 && is_ours(&st))
		return 0;
	close(dir->fd);
	dir->fd = -1;
	return -EPERM;
}

void state_close(struct state_dir *dir)
{
	if (dir->lock_fd >= 0)
		close(dir->lock_fd);
	if (dir->fd >= 0)
		close(dir->fd);
	dir->lock_fd = dir->fd = -1;
}

/* Nothing waits in a folder of ours, and nothing is followed out of it. */
#define FLAGS (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/*
 * Whether it is a file, and of this folder alone: not a pipe that never ends, nor a second name of another. Nor
 * one that somebody left here while he could: he may write to it still, and hold a lock.
 */
static int plain(int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
		return -EINVAL;
	return is_ours(&st) ? 0 : -EPERM;
}

ssize_t state_read(const struct state_dir *dir, const char *name, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n = 0;
	int fd = openat(dir->fd, name, O_RDONLY | FLAGS);
	if (fd < 0)
		return -errno;
	int err = plain(fd);
	while (!err && len < size && (n = read(fd, text + len, size - len)) != 0) {
		if (n > 0)
			len += (size_t)n;
		else if (errno != EINTR)
			err = -errno;
	}
	close(fd);
	if (err || len == size)
		return err ? err : -EFBIG;
	text[len] = '\0';
	return (ssize_t)len;
}

/*
 * A record lock: the kernel drops it when the holder ends in any way, and can tell who holds it. The file is
 * closed to others: whoever may read it may hold a lock too, and so keep the service from starting.
 */
int state_lock(struct state_dir *dir, pid_t *holder)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = openat(dir->fd, LOCK_NAME, O_RDWR | O_CREAT | FLAGS, 0600);
	if (fd < 0)
		return -errno;
	int err = plain(fd);
	if (!err && fchmod(fd, 0600) < 0)
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	if (fcntl(fd, F_SETLK, &lock) == 0) {
		dir->lock_fd = fd;
		return 0;
	}
	err = errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
	*holder = 0;
	if (fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
		*holder = lock.l_pid;
	close(fd);
	return err;
}

pid_t state_holder(const struct state_dir *dir)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	int fd = openat(dir->fd, LOCK_NAME, O_RDONLY | FLAGS);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	int err = plain(fd);
	if (!err)
		err = fcntl(fd, F_GETLK, &lock) < 0 ? -errno : lock.l_type == F_UNLCK ? -ESRCH : 0;
	close(fd);
	return err ? err : lock.l_pid;
}

int state_replace(const struct state_dir *dir, const char *name, const char *text, size_t len)
{
	char fresh[64];
	snprintf(fresh, sizeof(fresh), ".%s.new", name);
	/* A new file, whatever has that name: one of a service that was killed, or a link to another file. */
	if (unlinkat(dir->fd, fresh, 0) < 0 && errno != ENOENT)
		return -errno;
	int fd = openat(dir->fd, fresh, O_WRONLY | O_CREAT | O_EXCL | FLAGS, 0644);
	if (fd < 0)
		return -errno;
	ssize_t n = write(fd, text, len);
	int err = n < 0 ? -errno : (size_t)n != len ? -ENOSPC : 0;
	if (close(fd) < 0 && !err)
		err = -errno;
	if (!err && renameat(dir->fd, fresh, dir->fd, name) < 0)
		err = -errno;
	if (err)
		unlinkat(dir->fd, fresh, 0);
	return err;
}

int state_save_first(const struct state_dir *dir, const struct ksm_state *first, int ksmd_nice)
{
	char text[2048];
	size_t at = 0;
	for (int key = 0; key < KSM_TUNABLES; key++) {
		char value[32];
		/* An advisor that has no name here could not be put back by its name. */
		bool nameless = key == KSM_ADVISOR_MODE && first->value[key] == KSM_ADVISOR_OTHER;
		if (ksm_has(first, (enum ksm_key)key) && !nameless)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s=%s\n",
				ksm_keys[key].name,
				ksm_format((enum ksm_key)key, first->value[key], value,
					sizeof(value)));
	}
	at += (size_t)snprintf(text + at, sizeof(text) - at, NICE_KEY "=%d\n", ksmd_nice);
	return state_replace(dir, FIRST_NAME, text, at);
}

int state_parse_first(char *text, struct ksm_state *first, int *ksmd_nice)
{
	for (int key = 0; key < KSM_KEYS; key++)
		first->error[key] = -ENOENT;
	char *rest = text, *line;
	while ((line = strsep(&rest, "\n"))) {
		char *value = strchr(line, '=');
		int64_t number;
		if (!value)
			continue;
		*value++ = '\0';
		int key = ksm_find(line);
		if (key >= 0 && key < KSM_TUNABLES) {
			int err = ksm_parse(
				(enum ksm_key)key, value, strlen(value), &first->value[key]);
			if (err)
				return -EINVAL;
			first->error[key] = 0;
		} else if (!strcmp(line, NICE_KEY) &&
			   !file_parse_i64(value, strlen(value), &number) && number >= NICE_MIN &&
			   number <= NICE_MAX) {
			*ksmd_nice = (int)number;
		}
	}
	return ksm_has(first, KSM_RUN) ? 0 : -EINVAL;
}

int state_load_first(const struct state_dir *dir, struct ksm_state *first, int *ksmd_nice)
{
	char text[2048];
	ssize_t len = state_read(dir, FIRST_NAME, text, sizeof(text));
	return len < 0 ? (int)len : state_parse_first(text, first, ksmd_nice);
}

int state_drop_first(const struct state_dir *dir)
{
	return unlinkat(dir->fd, FIRST_NAME, 0) < 0 && errno != ENOENT ? -errno : 0;
}
