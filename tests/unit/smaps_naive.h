/* The sums over smaps made again, by other means: line by line with scanf. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_UNIT_SMAPS_NAIVE_H
#define TESTS_UNIT_SMAPS_NAIVE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sysfs/smaps.h"
#include "tests/tap.h"

struct naive_area {
	unsigned long long rss, pss, shared_clean, shared_dirty, private_clean, private_dirty,
		anonymous, ksm, swap, huge;
	bool exec;
};

static inline void naive_field(struct naive_area *area, const char *line)
{
	char name[64];
	unsigned long long kib;

	if (sscanf(line, "%63[^ :]: %llu kB", name, &kib) != 2)
		return;
	unsigned long long *to = !strcmp(name, "Rss")		  ? &area->rss
				 : !strcmp(name, "Pss")		  ? &area->pss
				 : !strcmp(name, "Shared_Clean")  ? &area->shared_clean
				 : !strcmp(name, "Shared_Dirty")  ? &area->shared_dirty
				 : !strcmp(name, "Private_Clean") ? &area->private_clean
				 : !strcmp(name, "Private_Dirty") ? &area->private_dirty
				 : !strcmp(name, "Anonymous")	  ? &area->anonymous
				 : !strcmp(name, "KSM")		  ? &area->ksm
				 : !strcmp(name, "Swap")	  ? &area->swap
								  : NULL;
	if (to)
		*to = kib;
	if (!strcmp(name, "AnonHugePages") || !strcmp(name, "ShmemPmdMapped") ||
		!strcmp(name, "FilePmdMapped") || !strcmp(name, "Shared_Hugetlb") ||
		!strcmp(name, "Private_Hugetlb"))
		area->huge += kib;
}

static inline void naive_end(struct smaps_sum *sum, struct naive_area *area)
{
	unsigned long long own = area->private_clean + area->private_dirty;
	unsigned long long shared = area->shared_clean + area->shared_dirty;
	long long saved = (long long)area->rss - (long long)area->pss;

	*(area->exec ? &sum->code_private_kib : &sum->data_private_kib) += own;
	*(area->exec ? &sum->code_shared_kib : &sum->data_shared_kib) += shared;
	sum->rss_kib += area->rss;
	sum->pss_kib += area->pss;
	sum->uss_kib += own;
	sum->swap_kib += area->swap;
	sum->dirty_kib += area->private_dirty + area->shared_dirty;
	sum->anonymous_kib += area->anonymous;
	sum->huge_kib += area->huge;
	sum->ksm_kib += area->ksm;
	saved = saved < 0 ? 0 : saved > (long long)area->ksm ? (long long)area->ksm : saved;
	sum->saved_kib += (unsigned long long)saved;
	memset(area, 0, sizeof(*area));
}

/* `seen` is left 0. */
static inline void naive_sum(FILE *file, struct smaps_sum *sum)
{
	struct naive_area area = { 0 };
	char *line = NULL, perms[5];
	size_t room = 0;
	bool any = false;

	memset(sum, 0, sizeof(*sum));
	while (getline(&line, &room, file) > 0) {
		unsigned long start, end;
		if (sscanf(line, "%lx-%lx %4s ", &start, &end, perms) == 3) {
			if (any)
				naive_end(sum, &area);
			any = true;
			sum->areas += !strstr(line, "[vsyscall]");
			area.exec = perms[2] == 'x';
		} else if (!strncmp(line, "VmFlags:", 8)) {
			sum->mergeable_areas += strstr(line, " mg ") != NULL;
		} else {
			naive_field(&area, line);
		}
	}
	if (any)
		naive_end(sum, &area);
	free(line);
}

static inline void naive_file(const char *path, struct smaps_sum *sum)
{
	FILE *file = fopen(path, "re");

	ck_assert_msg(file != NULL, "%s", path);
	naive_sum(file, sum);
	fclose(file);
}

static inline void naive_text(const char *text, size_t len, struct smaps_sum *sum)
{
	FILE *file = fmemopen((char *)(uintptr_t)text, len, "r");

	ck_assert_ptr_nonnull(file);
	naive_sum(file, sum);
	fclose(file);
}

#define NAIVE_SAME(field) ck_assert_msg(got->field == want->field, "%s: " #field, what)

static inline void naive_expect(
	const char *what, const struct smaps_sum *got, const struct smaps_sum *want)
{
	NAIVE_SAME(areas);
	NAIVE_SAME(mergeable_areas);
	NAIVE_SAME(code_private_kib);
	NAIVE_SAME(code_shared_kib);
	NAIVE_SAME(data_private_kib);
	NAIVE_SAME(data_shared_kib);
	NAIVE_SAME(rss_kib);
	NAIVE_SAME(pss_kib);
	NAIVE_SAME(uss_kib);
	NAIVE_SAME(swap_kib);
	NAIVE_SAME(dirty_kib);
	NAIVE_SAME(anonymous_kib);
	NAIVE_SAME(huge_kib);
	NAIVE_SAME(ksm_kib);
	NAIVE_SAME(saved_kib);
}

#endif
