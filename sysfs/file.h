/* Small text files of the kernel: whole reads, checked writes, strict numbers. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SYSFS_FILE_H
#define SYSFS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Read the whole file `path` below `dirfd` into buf and end it with a NUL.
 * Returns the length in bytes, or -errno; -EFBIG when it does not fit into size - 1.
 * buf is left undefined on failure.
 */
ssize_t file_read(int dirfd, const char *path, char *buf, size_t size);

/* The same for what the kernel gives in one piece, so that nobody need ask whether there is more. */
ssize_t file_read_record(int dirfd, const char *path, char *buf, size_t size);

/*
 * Write `text` to an existing file with one write(2) and report what write and close said.
 * Never creates or truncates. Returns 0 or -errno (-EIO for a short write).
 * EINTR is passed on: after run=2 it means that part of the memory is still merged.
 */
int file_write(int dirfd, const char *path, const char *text);

/*
 * Parse a decimal integer with an optional '-' that fills text[0..len) up to one newline at the
 * end. Returns 0, -EINVAL (not a number) or -ERANGE; *value is untouched on failure.
 */
int file_parse_i64(const char *text, size_t len, int64_t *value);

/* file_read and file_parse_i64 in one. Returns 0 or -errno. */
int file_read_i64(int dirfd, const char *path, int64_t *value);

/*
 * Find the line of text[0..len) that starts with `key` and parse the decimal number behind it,
 * after any blanks; what follows the number is not looked at ("MemFree:   12 kB").
 * Returns 0, -ENOENT (no such line), -EINVAL or -ERANGE.
 */
int file_find_u64(const char *text, size_t len, const char *key, uint64_t *value);

#endif
