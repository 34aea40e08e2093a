/* --capture: a tree of the files that our programs read, of this machine now, to be read elsewhere. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_CAPTURE_H
#define KSMSTAT_CAPTURE_H

#include <stdbool.h>

#include "ksmstat/options.h"
#include "sysfs/root.h"

/* In the tree, until all of it is there. */
#define CAPTURE_MARK "incomplete"

/*
 * Make the folder, or take an empty one; before privileges are given up, as its parent may be
 * another user's. Returns a descriptor, or -errno after telling what is wrong.
 */
int capture_begin(const char *path);

/* Fill it, and close the descriptor. After a failure nothing of it is left. Returns an exit code. */
int capture(const struct options *options, const struct root *root, int dir);

/* Take away what was made, and the folder itself where that can be; closes the descriptor. */
void capture_give_up(const char *path, int dir);

/* A tree that was given up half-way, as by a signal? */
bool capture_is_incomplete(const struct root *root);

#endif
