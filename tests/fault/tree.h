/* A copy of a captured kernel whose knobs a program under test writes, and what they are. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_FAULT_TREE_H
#define TESTS_FAULT_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "sysfs/ksm.h"

struct tree {
	char work[128]; /* a folder of our own; tree_remove removes it */
	char root[160]; /* the tree in it */
	struct root handle;
	struct ksm ksm;
	struct ksm_state found; /* its knobs at first */
};

/* Copy tests/fixtures/NAME. Ends the program where that fails. */
void tree_make(struct tree *tree, const char *name);
void tree_remove(struct tree *tree);
/* Its knobs as they were at first, whatever happened. */
void tree_reset(const struct tree *tree);
/* Change one, and what "at first" is. */
void tree_put(struct tree *tree, enum ksm_key key, int64_t value);

/* What a pass of ksmd over so many pages counts up. */
void tree_scan(const struct tree *tree, int64_t pages);

void tree_read(const struct tree *tree, struct ksm_state *state);
/* Whether all knobs are equal. Else *key is one that is not. */
bool tree_same(const struct ksm_state *a, const struct ksm_state *b, enum ksm_key *key);

#endif
