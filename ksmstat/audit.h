/* ksmstat --audit: which processes share merged pages, and where that crosses users, control groups, containers. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_AUDIT_H
#define KSMSTAT_AUDIT_H

#include "ksmstat/audit_sum.h"
#include "ksmstat/entry.h"
#include "ksmstat/options.h"
#include "sysfs/root.h"

/* Processes that are shown as one. Texts live as long as the entries; NULL: not known, or none. */
struct audit_group {
	const char *name;    /* raw where it is that of a program or user */
	const char *user;    /* where groups are of programs and users; else NULL */
	size_t first, count; /* of `order` */
};

/* Everything that is shown. */
struct audit {
	int64_t page_bytes;
	struct entry_list list;
	const struct entry **order; /* entries, those of a group next to each other */
	struct audit_cell *cells;
	uint32_t *cell_of; /* of each in `order` */
	size_t cell_count;
	struct audit_group *groups;
	size_t group_count;
	enum group_by by;		      /* GROUP_NONE: program and user */
	const char **sides[AUDIT_BOUNDARIES]; /* their names; NULL: not known, or of no container */
	size_t side_count[AUDIT_BOUNDARIES];
	struct audit_sums sums;
	size_t selected, unreadable, missing;
	uint64_t zero_pages; /* of those selected */
	bool complete;	     /* what was not found is not there */
};

/* "user", ..., and the plurals of that. */
extern const char *const audit_words[AUDIT_BOUNDARIES], *const audit_plurals[AUDIT_BOUNDARIES];

/* Put the entries into groups, and tell on which side of each boundary they are. 0 or -ENOMEM. */
int audit_group(struct audit *audit);

/* Returns an exit code of ksmstat. */
int audit_run(const struct options *options, const struct root *root);

/* Print for people, or one JSON object with everything. Return 0 or -errno. */
int audit_print(const struct audit *audit, const struct options *options);
int audit_json(const struct audit *audit);

/* For both: a text fit to be shown; NULL where there is none. Made in buf where it is raw. */
#define AUDIT_TEXT_MAX 512
const char *audit_side(
	const struct audit *audit, unsigned boundary, uint32_t side, char buf[AUDIT_TEXT_MAX]);
const char *audit_name(
	const struct audit *audit, const struct audit_group *group, char buf[AUDIT_TEXT_MAX]);

#endif
