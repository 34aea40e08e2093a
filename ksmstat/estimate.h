/* ksmstat --estimate: what merging would save, found by hashing the resident pages of processes. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_ESTIMATE_H
#define KSMSTAT_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ksmstat/estimate_class.h"
#include "ksmstat/estimate_plan.h"
#include "ksmstat/estimate_read.h"
#include "ksmstat/options.h"
#include "sysfs/root.h"

/* Processes that are shown as one. */
struct estimate_group {
	char *name; /* fit to be shown; "-" of those that are in no such thing */
	size_t processes;
};

/* Everything that is shown. Of pages; the printers make bytes of them. */
struct estimate {
	size_t page_bytes;
	struct plan plan;
	struct page_store store;
	struct reading reading;
	struct class_sums sums;
	struct estimate_group *groups;
	size_t group_count;
	const char *group_word;		    /* "program", "user", ...: what the groups are */
	size_t processes, unreadable, gone; /* read; not allowed; ended meanwhile */
	unsigned settle_ms;		    /* 0: one look only */
	bool partial;			    /* interrupted, or not enough room */
	/* What ksmd would have to do. */
	uint64_t page_ns;      /* for each page in each pass */
	bool page_ns_measured; /* here, since the machine was started; else assumed */
	uint64_t own_bytes;    /* memory for the records of pages */
};

/* Returns an exit code of ksmstat; STAT_INTERRUPTED for the result so far after a SIGINT. */
int estimate(const struct options *options, const struct root *root);

/* Put the processes of the plan into groups. Returns 0 or -ENOMEM. */
int estimate_group(struct estimate *estimate, enum group_by by);
void estimate_group_free(struct estimate *estimate);

/* What merging would save in all, with zeros as the kernel is set now. */
int64_t estimate_saved_pages(const struct estimate *estimate);
/* Pages that ksmd would keep track of: each costs this many bytes of kernel memory. */
#define ESTIMATE_RMAP_ITEM_BYTES 64
/* Pages that ksmd would visit in each pass. */
uint64_t estimate_scanned_pages(const struct estimate *estimate);
/* Of the first look. */
double estimate_rate(const struct estimate *estimate);

/* Print tables, or one JSON object. Return 0 or -errno. */
int estimate_print(const struct estimate *estimate, const struct options *options);
int estimate_json(const struct estimate *estimate);

#endif
