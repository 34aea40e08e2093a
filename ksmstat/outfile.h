/* Replaces a file as a whole: its readers see the old one or the new one. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_OUTFILE_H
#define KSMSTAT_OUTFILE_H

#include <stddef.h>

/*
 * Make `path` a regular file with mode 0644 and these bytes, by way of a hidden one beside it whose
 * name does not end as its own does. A symbolic link is replaced and not followed. On failure the
 * old file is as it was, and nothing is left behind. Returns 0, -EINVAL (path names a folder, a
 * device or the like) or -errno.
 */
int outfile_write(const char *path, const char *text, size_t len);

#endif
