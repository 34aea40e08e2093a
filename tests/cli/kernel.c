/* Preloaded into ksmctl by a test: a made-up /sys/kernel/mm/ksm takes writes as the kernel does. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/*
 * A plain file keeps the rest of a longer old text, and can be seen half written. Here a write
 * replaces the whole value at once, also when the writer is killed at any moment; and it is refused
 * where the kernel refuses it. $PLAYED_LOG gets a line for each write, with whether $PLAYED_FIRST
 * (the file of first values) was there by then.
 */

static void note(const char *key, const char *value)
{
	const char *log = getenv("PLAYED_LOG"), *first = getenv("PLAYED_FIRST");
	char line[256];
	int fd = log ? open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
	if (fd < 0)
		return;
	int len = snprintf(line, sizeof(line), "%s=%s %s\n", key, value,
		first && !access(first, F_OK) ? "saved" : "unsaved");
	syscall(SYS_write, fd, line, (size_t)len);
	close(fd);
}

static bool advisor_works(int dir)
{
	char text[64] = "";
	int fd = openat(dir, "advisor_mode", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t len = read(fd, text, sizeof(text) - 1);
	close(fd);
	return len > 0 && strstr(text, "[scan-time]");
}

static int put(int dir, const char *key, const char *text, mode_t mode)
{
	char fresh[64];
	/* Beside the folder, so that nobody takes it for a file of the kernel. */
	snprintf(fresh, sizeof(fresh), "../.played.%d", (int)getpid());
	int fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode & 0777);
	if (fd < 0)
		return errno;
	fchmod(fd, mode & 0777);
	syscall(SYS_write, fd, text, strlen(text));
	close(fd);
	return renameat(dir, fresh, dir, key) < 0 ? errno : 0;
}

/* Returns 0, or the error that the kernel gives. */
static int replace(int dir, const char *key, const char *value, mode_t mode)
{
	char text[64];
	if (!strcmp(key, "pages_to_scan") && advisor_works(dir))
		return EINVAL;
	if (!strcmp(key, "run") && (strlen(value) != 1 || *value < '0' || *value > '2'))
		return EINVAL;
	snprintf(text, sizeof(text), "%s\n", value);
	if (!strcmp(key, "advisor_mode")) {
		bool on = !strcmp(value, "scan-time");
		if (!on && strcmp(value, "none") != 0)
			return EINVAL;
		if (on != advisor_works(dir))
			put(dir, "pages_to_scan", on ? "500\n" : "100\n", 0644);
		snprintf(text, sizeof(text), "%s\n", on ? "none [scan-time]" : "[none] scan-time");
	}
	return put(dir, key, text, mode);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's own */
__attribute__((visibility("default"))) ssize_t write(int fd, const void *buf, size_t len)
{
	static const char folder[] = "/sys/kernel/mm/ksm/";
	char link[32], path[PATH_MAX], value[32];
	struct stat st;
	struct statfs fs;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	char *key = strstr(path, folder);
	/* The kernel's own folder may be covered by a made-up one. */
	if (key == path && (fstatfs(fd, &fs) < 0 || fs.f_type == SYSFS_MAGIC))
		key = NULL;
	if (!key || len >= sizeof(value) || fstat(fd, &st) < 0)
		return syscall(SYS_write, fd, buf, len);
	memcpy(value, buf, len);
	value[len] = '\0';
	key += strlen(folder);
	key[-1] = '\0';
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = dir < 0 ? errno : 0;
	if (!err)
		note(key, value);
	if (!err)
		err = replace(dir, key, value, st.st_mode);
	if (dir >= 0)
		close(dir);
	errno = err;
	return err ? -1 : (ssize_t)len;
}
