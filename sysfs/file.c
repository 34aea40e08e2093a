/* Small text files of the kernel: whole reads, checked writes, strict numbers. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static ssize_t read_whole(int dirfd, const char *path, char *buf, size_t size, bool in_one)
{
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;

	size_t len = 0;
	int err = 0;
	for (;;) {
		ssize_t n = read(fd, buf + len, size - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err = -errno;
			break;
		}
		if (n == 0)
			break;
		len += (size_t)n;
		if (len == size) {
			err = -EFBIG;
			break;
		}
		if (in_one)
			break;
	}
	close(fd);
	if (err)
		return err;
	buf[len] = '\0';
	return (ssize_t)len;
}

ssize_t file_read(int dirfd, const char *path, char *buf, size_t size)
{
	return read_whole(dirfd, path, buf, size, false);
}

ssize_t file_read_record(int dirfd, const char *path, char *buf, size_t size)
{
	return read_whole(dirfd, path, buf, size, true);
}

int file_write(int dirfd, const char *path, const char *text)
{
	size_t len = strlen(text);
	int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	ssize_t n = write(fd, text, len);
	int err = n < 0 ? -errno : (size_t)n != len ? -EIO : 0;
	if (close(fd) < 0 && !err)
		err = -errno;
	return err;
}

/* Digits from *at up to end into *value. Returns 0, -EINVAL without a digit, -ERANGE; moves *at. */
static int parse_digits(const char **at, const char *end, uint64_t *value)
{
	const char *p = *at;
	uint64_t sum = 0;
	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(sum, 10u, &sum) ||
			__builtin_add_overflow(sum, (uint64_t)(*p - '0'), &sum))
			return -ERANGE;
	}
	if (p == *at)
		return -EINVAL;
	*at = p;
	*value = sum;
	return 0;
}

int file_parse_i64(const char *text, size_t len, int64_t *value)
{
	const char *p = text, *end = text + len;
	if (end > p && end[-1] == '\n')
		end--;
	bool negative = p < end && *p == '-';
	if (negative)
		p++;
	uint64_t magnitude;
	int err = parse_digits(&p, end, &magnitude);
	if (err)
		return err;
	if (p != end)
		return -EINVAL;
	if (magnitude > (uint64_t)INT64_MAX + negative)
		return -ERANGE;
	*value = negative ? (int64_t)-magnitude : (int64_t)magnitude;
	return 0;
}

int file_read_i64(int dirfd, const char *path, int64_t *value)
{
	char buf[64] = { 0 };
	ssize_t len = file_read(dirfd, path, buf, sizeof(buf));
	return len < 0 ? (int)len : file_parse_i64(buf, (size_t)len, value);
}

int file_find_u64(const char *text, size_t len, const char *key, uint64_t *value)
{
	size_t key_len = strlen(key);
	const char *p = text, *end = text + len;
	while (p < end) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		if (!eol)
			eol = end;
		if ((size_t)(eol - p) >= key_len && !memcmp(p, key, key_len)) {
			p += key_len;
			while (p < eol && (*p == ' ' || *p == '\t'))
				p++;
			return parse_digits(&p, eol, value);
		}
		p = eol + 1;
	}
	return -ENOENT;
}
