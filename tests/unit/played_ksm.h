/* The files of KSM played in memory, after the kernel's rules, with faults to order. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_UNIT_PLAYED_KSM_H
#define TESTS_UNIT_PLAYED_KSM_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

#include "sysfs/ksm.h"
#include "tests/tap.h"

/* Linked with --wrap (rules.mk): calls that name these descriptors are played, others are real. */
#define PLAYED_DIR 100000
#define PLAYED_FILE 200000 /* + key */

/* What goes wrong with one file. 0: nothing. */
struct fault {
	int open_errno, open_write_errno, read_errno, write_errno, close_errno;
	int times;	    /* the faults end after so many; 0: never */
	bool is_short;	    /* a write takes one byte less than it was given */
	bool is_deaf;	    /* a write is accepted and changes nothing */
	const char *answer; /* what a read gives instead of the value */
};

static struct played {
	int64_t value[KSM_KEYS];
	bool absent[KSM_KEYS];
	struct fault fault[KSM_KEYS];
	size_t piece; /* a read gives at most so many bytes; 0: no limit */
	/* What happened. */
	enum ksm_key written[64]; /* in this order, failed ones too */
	char text[64][24];
	int writes;
	int open_files;
	/* Of the file that is open: there is never more than one. */
	bool was_written;
	size_t read_at;
} played;

int __real_openat(int dirfd, const char *path, int flags, ...);
ssize_t __real_read(int fd, void *buf, size_t size);
ssize_t __real_write(int fd, const void *buf, size_t size);
int __real_close(int fd);
int __wrap_openat(int dirfd, const char *path, int flags, ...);
int __wrap_openat64(int dirfd, const char *path, int flags, ...);
ssize_t __wrap_read(int fd, void *buf, size_t size);
ssize_t __wrap_write(int fd, const void *buf, size_t size);
int __wrap_close(int fd);

static bool played_file(int fd)
{
	return fd >= PLAYED_FILE && fd < PLAYED_FILE + KSM_KEYS;
}

/* A fault that strikes sets errno and counts. */
static bool played_strikes(struct fault *fault, int number)
{
	if (!number || fault->times < 0)
		return false;
	if (fault->times && --fault->times == 0)
		fault->times = -1;
	errno = number;
	return true;
}

int __wrap_openat(int dirfd, const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	int mode = flags & O_CREAT ? va_arg(args, int) : 0;
	va_end(args);
	if (dirfd != PLAYED_DIR)
		return __real_openat(dirfd, path, flags, mode);
	ck_assert_int_eq(flags & (O_CREAT | O_TRUNC | O_APPEND), 0);
	ck_assert_int_ne(flags & O_CLOEXEC, 0);
	int key = ksm_find(path);
	if (key < 0 || played.absent[key]) {
		errno = ENOENT;
		return -1;
	}
	struct fault *fault = &played.fault[key];
	bool to_write = (flags & O_ACCMODE) != O_RDONLY;
	if (played_strikes(fault, fault->open_errno) ||
		(to_write && played_strikes(fault, fault->open_write_errno)))
		return -1;
	played.open_files++;
	played.was_written = false;
	played.read_at = 0;
	return PLAYED_FILE + key;
}

int __wrap_openat64(int dirfd, const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	int mode = flags & O_CREAT ? va_arg(args, int) : 0;
	va_end(args);
	return __wrap_openat(dirfd, path, flags, mode);
}

static void played_show(enum ksm_key key, char *text, size_t size)
{
	if (played.fault[key].answer)
		snprintf(text, size, "%s", played.fault[key].answer);
	else if (key == KSM_ADVISOR_MODE)
		snprintf(text, size, "%s",
			played.value[key] == 0	 ? "[none] scan-time\n"
			: played.value[key] == 1 ? "none [scan-time]\n"
						 : "none scan-time [another]\n");
	else
		snprintf(text, size, "%" PRId64 "\n", played.value[key]);
}

ssize_t __wrap_read(int fd, void *buf, size_t size)
{
	char text[512];

	if (!played_file(fd))
		return __real_read(fd, buf, size);
	struct fault *fault = &played.fault[fd - PLAYED_FILE];
	if (played_strikes(fault, fault->read_errno))
		return -1;
	played_show(fd - PLAYED_FILE, text, sizeof(text));
	size_t rest = strlen(text) - played.read_at;
	if (played.piece && rest > played.piece)
		rest = played.piece;
	if (rest > size)
		rest = size;
	memcpy(buf, text + played.read_at, rest);
	played.read_at += rest;
	return (ssize_t)rest;
}

/* mm/ksm.c, the *_store functions. Returns 0 or an errno. */
static int played_store(enum ksm_key key, const char *text)
{
	int64_t value, *now = &played.value[key];
	bool advisor = key == KSM_ADVISOR_MODE;

	if (key >= KSM_TUNABLES)
		return EACCES;
	if (advisor)
		value = !strcmp(text, "none") ? 0 : !strcmp(text, "scan-time") ? 1 : -1;
	else if (sscanf(text, "%" SCNd64, &value) != 1)
		return EINVAL;
	if (value < 0 || (key == KSM_RUN && value > 2) ||
		(key == KSM_ADVISOR_TARGET_SCAN_TIME && !value) ||
		(key == KSM_MAX_PAGE_SHARING && value < 2) ||
		(key == KSM_PAGES_TO_SCAN && played.value[KSM_ADVISOR_MODE]))
		return EINVAL;
	if ((key == KSM_MERGE_ACROSS_NODES || key == KSM_MAX_PAGE_SHARING) && value != *now &&
		played.value[KSM_PAGES_SHARED])
		return EBUSY;
	if (played.fault[key].is_deaf)
		return 0;
	if (advisor && value != *now)
		played.value[KSM_PAGES_TO_SCAN] = value ? played.value[KSM_ADVISOR_MIN_PAGES] : 100;
	if (key == KSM_RUN && value == KSM_RUN_UNMERGE)
		played.value[KSM_PAGES_SHARED] = played.value[KSM_PAGES_SHARING] = 0;
	*now = value;
	return 0;
}

ssize_t __wrap_write(int fd, const void *buf, size_t size)
{
	char text[24] = "";

	if (!played_file(fd))
		return __real_write(fd, buf, size);
	enum ksm_key key = (enum ksm_key)(fd - PLAYED_FILE);
	struct fault *fault = &played.fault[key];
	ck_assert_msg(!played.was_written, "a second write to %s", ksm_keys[key].name);
	played.was_written = true;
	ck_assert_uint_lt(size, sizeof(text));
	memcpy(text, buf, size);
	ck_assert_int_lt(played.writes, 64);
	played.written[played.writes] = key;
	memcpy(played.text[played.writes++], text, sizeof(text));
	if (played_strikes(fault, fault->write_errno))
		return -1;
	if (fault->is_short)
		return (ssize_t)size - 1;
	int err = played_store(key, text);
	if (err) {
		errno = err;
		return -1;
	}
	return (ssize_t)size;
}

int __wrap_close(int fd)
{
	if (!played_file(fd))
		return __real_close(fd);
	played.open_files--;
	struct fault *fault = &played.fault[fd - PLAYED_FILE];
	return played_strikes(fault, fault->close_errno) ? -1 : 0;
}

/* A kernel as it comes up. */
static const struct ksm played_ksm = { .fd = PLAYED_DIR };

static void played_boot(void)
{
	memset(&played, 0, sizeof(played));
	played.value[KSM_PAGES_TO_SCAN] = 100;
	played.value[KSM_SLEEP_MILLISECS] = 20;
	played.value[KSM_SMART_SCAN] = 1;
	played.value[KSM_MERGE_ACROSS_NODES] = 1;
	played.value[KSM_MAX_PAGE_SHARING] = 256;
	played.value[KSM_CHAINS_PRUNE_MILLISECS] = 2000;
	played.value[KSM_ADVISOR_MAX_CPU] = 70;
	played.value[KSM_ADVISOR_MIN_PAGES] = 500;
	played.value[KSM_ADVISOR_MAX_PAGES] = 30000;
	played.value[KSM_ADVISOR_TARGET_SCAN_TIME] = 200;
}

#endif
