/* An entry of ksmstat of which everything is known. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_UNIT_ENTRY_WHOLE_H
#define TESTS_UNIT_ENTRY_WHOLE_H

#include <string.h>

#include "ksmstat/column.h"
#include "tests/tap.h"

static inline const struct column *find(const char *name)
{
	const struct column *column = column_find(name, strlen(name));

	ck_assert_msg(column != NULL, "no column %s", name);
	return column;
}

static inline int add_text(struct entry *entry, const char *text)
{
	struct smaps_parser parser = { 0 };
	int err = smaps_parse(&parser, text, strlen(text), smaps_add, &entry->sum);

	return err ? err : smaps_finish(&parser, smaps_add, &entry->sum);
}

/* A process of which everything is known, every number another one. */
static inline struct entry whole(void)
{
	static const struct place place = { "/a", "/a", "b.service", "lxc:c", "d" };
	struct entry entry = {
		.pid = 42,
		.place = &place,
		.user = "someone",
		.stat = { .comm = "prog",
			.state = 'S',
			.ppid = 7,
			.threads = 3,
			.minflt = 1001,
			.majflt = 1002 },
		.ksm = { .present = 0x3f,
			.rmap_items = 501,
			.merging_pages = 502,
			.zero_pages = 503,
			.profit_bytes = -504 },
	};
	struct smaps_sum *sum = &entry.sum;

	ck_assert_int_eq(
		add_text(&entry, "1000-2000 rw-p 00000000 00:00 0 \nVmFlags: rd wr mg \n"), 0);
	sum->areas = 20;
	sum->mergeable_areas = 2;
	sum->seen = (1u << SMAPS_FIELDS) - 1;
	sum->code_private_kib = 1;
	sum->code_shared_kib = 20;
	sum->data_private_kib = 300;
	sum->data_shared_kib = 4000;
	sum->rss_kib = 5;
	sum->pss_kib = 6;
	sum->uss_kib = 7;
	sum->swap_kib = 8;
	sum->dirty_kib = 9;
	sum->anonymous_kib = 10;
	sum->huge_kib = 11;
	sum->ksm_kib = 12;
	sum->saved_kib = 13;
	return entry;
}

#endif
