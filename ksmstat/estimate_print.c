/* Prints an estimate for people: what would be saved in words, then tables of where. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <libsmartcols.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ksmstat/estimate.h"
#include "ksmstat/estimate_text.h"
#include "ksmstat/text.h"

/* Rows of a table; JSON has all. */
#define ROWS_MAX 20
#define TOGETHER_MAX 10
#define CELL 128

/* What the printing functions need. */
struct printer {
	const struct estimate *estimate;
	const struct options *options;
};

/* A size for people, or in bytes where they asked for that. Returns buf. */
static const char *size(const struct printer *p, int64_t pages, char *buf, size_t len)
{
	int64_t bytes = pages * (int64_t)p->estimate->page_bytes;
	if (!p->options->print.bytes)
		return text_size(bytes, buf, len);
	snprintf(buf, len, "%" PRId64, bytes);
	return buf;
}

static void print_line(const struct printer *p, int64_t pages, const char *text)
{
	char buf[32];
	if (pages)
		printf("  %8s  %s\n", size(p, pages, buf, sizeof(buf)), text);
}

static void print_saving(const struct printer *p)
{
	const struct class_sums *sums = &p->estimate->sums;
	int64_t saved = estimate_saved_pages(p->estimate);
	int64_t across = sums->saved - sums->saved_in_process;
	char buf[32], other[32], line[96];
	double share = sums->total.pages ? 100.0 * (double)saved / (double)sums->total.pages : 0;

	printf("Merging all of it would save %s (%.1f %%)\n", size(p, saved, buf, sizeof(buf)),
		share);
	print_line(p, across, "equal in different processes");
	print_line(p, sums->saved_in_process, "equal within one process");
	if (sums->rules.zero_pages) {
		print_line(p, sums->zero_saved_all, "filled with zeros");
	} else {
		snprintf(line, sizeof(line), "filled with zeros (%s with use_zero_pages=1)",
			size(p, sums->zero_saved_all, other, sizeof(other)));
		print_line(p, sums->zero_saved, line);
	}
	if (saved)
		printf("  of it %s in areas that are open to merging now\n",
			sums->saved_mergeable ? size(p, sums->saved_mergeable, buf, sizeof(buf))
					      : "nothing");
	if (sums->total.merged)
		printf("Merged already: %s, which saves %s and is not counted again\n",
			size(p, (int64_t)sums->total.merged, buf, sizeof(buf)),
			size(p, sums->saved_now, other, sizeof(other)));
	if (sums->total.changed)
		printf("Left out: %s that changed between the two looks\n",
			size(p, (int64_t)sums->total.changed, buf, sizeof(buf)));
}

static void print_head(const struct printer *p)
{
	const struct estimate *estimate = p->estimate;
	uint64_t scanned = estimate_scanned_pages(estimate);
	char buf[32], rate[32];
	double read = estimate->plan.pages ? 100.0 * (double)estimate->sums.total.pages /
						     (double)estimate->plan.pages
					   : 100;

	if (estimate->reading.first_partial)
		printf("PARTIAL: of what was read when it ended, %.0f %% of all\n", read);
	else if (estimate->partial)
		puts("PARTIAL: it ended before the second look, so pages that change are not all "
		     "left out");
	printf("%zu process%s with %s of private memory, read %s at %s/s\n", estimate->processes,
		estimate->processes == 1 ? "" : "es",
		size(p, (int64_t)estimate->sums.total.pages, buf, sizeof(buf)),
		estimate->reading.second.wall_ns ? "twice" : "once",
		text_size((int64_t)estimate_rate(estimate), rate, sizeof(rate)));
	print_saving(p);
	printf("Cost: %s of kernel memory, and %.1f s of ksmd for each pass (%.1f us a page, %s)\n",
		text_size((int64_t)(scanned * ESTIMATE_RMAP_ITEM_BYTES), buf, sizeof(buf)),
		(double)(scanned * estimate->page_ns) / 1e9, (double)estimate->page_ns / 1e3,
		estimate->page_ns_measured ? "as measured here since the start" : "assumed");
	if (!estimate->reading.knows_frames)
		puts("Pages shared since a fork, and merged ones, are told without page frame "
		     "numbers: as root it is exact");
}

/* A table; bit i of `texts` says that column i holds texts, the others hold numbers. */
static struct libscols_table *new_table(
	const struct printer *p, const char *const *names, size_t count, unsigned texts)
{
	struct libscols_table *table = scols_new_table();
	scols_table_enable_noheadings(table, p->options->print.no_headings);
	for (size_t i = 0; table && i < count; i++) {
		/* What stands last is cut where the terminal ends. */
		int flags = !(texts >> i & 1) ? SCOLS_FL_RIGHT
			    : i + 1 == count  ? SCOLS_FL_TRUNC
					      : 0;
		if (!scols_table_new_column(table, names[i], 0, flags)) {
			scols_unref_table(table);
			return NULL;
		}
	}
	return table;
}

static int set_size(const struct printer *p, struct libscols_line *line, size_t at, int64_t pages)
{
	char buf[32];
	return scols_line_set_data(line, at, size(p, pages, buf, sizeof(buf)));
}

static int set_count(struct libscols_line *line, size_t at, uint64_t count)
{
	char buf[32];
	snprintf(buf, sizeof(buf), "%" PRIu64, count);
	return scols_line_set_data(line, at, buf);
}

/* Prints the table if it has lines, and frees it. */
static int show_table(struct libscols_table *table, int err, size_t left_out)
{
	if (!err && scols_table_get_nlines(table)) {
		putchar('\n');
		fflush(stdout);
		err = scols_print_table(table);
		if (left_out)
			printf("and %zu more\n", left_out);
	}
	scols_unref_table(table);
	return err;
}

/* The columns of a share, from `at` on. */
static int set_share(const struct printer *p, struct libscols_line *line, size_t at,
	const struct class_share *share)
{
	int err = set_size(p, line, at, (int64_t)share->pages);
	err = err ? err : set_size(p, line, at + 1, share->saved_parts >> CLASS_PART_SHIFT);
	err = err ? err : set_size(p, line, at + 2, (int64_t)share->zero);
	err = err ? err : set_size(p, line, at + 3, (int64_t)share->merged);
	return err ? err : set_size(p, line, at + 4, (int64_t)share->changed);
}

static int print_kinds(const struct printer *p)
{
	static const char *const names[] = { "KIND", "READ", "SAVED", "ZERO", "MERGED", "CHANGED" };
	struct libscols_table *table = new_table(p, names, 6, 1);
	int err = table ? 0 : -ENOMEM;
	for (size_t i = 0; i < PLAN_KINDS && !err; i++) {
		const struct class_share *share = &p->estimate->sums.kinds[i];
		if (!share->pages)
			continue;
		struct libscols_line *line = scols_table_new_line(table, NULL);
		err = line ? scols_line_set_data(line, 0, plan_kind_names[i]) : -ENOMEM;
		err = err ? err : set_share(p, line, 1, share);
	}
	return table ? show_table(table, err, 0) : err;
}

static int print_groups(const struct printer *p)
{
	const char *names[] = { "PROGRAM", "PROCESSES", "READ", "SAVED", "ZERO", "MERGED",
		"CHANGED" };
	char word[16] = "";
	const struct estimate *estimate = p->estimate;
	uint32_t *order = estimate_order(estimate);
	struct libscols_table *table;
	for (size_t i = 0; estimate->group_word[i]; i++)
		word[i] = (char)toupper((unsigned char)estimate->group_word[i]);
	names[0] = word;
	table = new_table(p, names, 7, 1);
	int err = table && order ? 0 : -ENOMEM;
	size_t rows = estimate->group_count < ROWS_MAX ? estimate->group_count : ROWS_MAX;
	for (size_t i = 0; i < rows && !err; i++) {
		const struct class_share *share = &estimate->sums.groups[order[i]];
		if (!estimate->groups[order[i]].processes) /* could not be read */
			continue;
		struct libscols_line *line = scols_table_new_line(table, NULL);
		err = line ? scols_line_set_data(line, 0, estimate->groups[order[i]].name)
			   : -ENOMEM;
		err = err ? err : set_count(line, 1, estimate->groups[order[i]].processes);
		err = err ? err : set_share(p, line, 2, share);
	}
	free(order);
	return table ? show_table(table, err, estimate->group_count - rows) : err;
}

/* "a, b, c and 7 more" */
static void name_groups(
	const struct printer *p, const uint32_t *ids, size_t count, char *buf, size_t len)
{
	size_t at = 0;
	buf[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		const char *name = p->estimate->groups[ids[i]].name;
		if (i == 6 || at + strlen(name) + 16 >= len) {
			snprintf(buf + at, len - at, " and %zu more", count - i);
			return;
		}
		at += (size_t)snprintf(buf + at, len - at, "%s%s", i ? ", " : "", name);
	}
}

/* "These five together save 1.2 GB", and the pairs where larger sets hide them. */
static int print_together(const struct printer *p)
{
	static const char *const names[] = { "SAVED", "GROUPS", "TOGETHER" };
	const struct together *together = &p->estimate->sums.together;
	struct libscols_table *table = new_table(p, names, 3, 1u << 2);
	size_t rows = together->count < TOGETHER_MAX ? together->count : TOGETHER_MAX;
	int err = table ? 0 : -ENOMEM;
	for (size_t i = 0; i < rows && !err; i++) {
		const struct together_set *set = &together->sets[i];
		char text[4 * CELL];
		struct libscols_line *line = scols_table_new_line(table, NULL);
		name_groups(p, together->ids + set->first, set->count, text, sizeof(text));
		err = line ? set_size(p, line, 0, set->saved_pages) : -ENOMEM;
		err = err ? err : set_count(line, 1, set->count);
		err = err ? err : scols_line_set_data(line, 2, text);
	}
	return table ? show_table(table, err, together->count - rows) : err;
}

static int print_pairs(const struct printer *p)
{
	static const char *const names[] = { "SAVED", "PAIR" };
	struct together_pair pairs[TOGETHER_MAX];
	const struct estimate *estimate = p->estimate;
	size_t count = together_pairs(
		&estimate->sums.together, estimate->group_count, pairs, TOGETHER_MAX);
	struct libscols_table *table = new_table(p, names, 2, 1u << 1);
	int err = table ? 0 : -ENOMEM;
	/* Two groups have one pair, and it stands above. */
	for (size_t i = 0; i < count && !err && estimate->group_count > 2; i++) {
		char text[2 * CELL + 8];
		struct libscols_line *line = scols_table_new_line(table, NULL);
		name_groups(p, (uint32_t[]){ pairs[i].a, pairs[i].b }, 2, text, sizeof(text));
		err = line ? set_size(p, line, 0, pairs[i].saved_pages) : -ENOMEM;
		err = err ? err : scols_line_set_data(line, 1, text);
	}
	return table ? show_table(table, err, 0) : err;
}

static int print_top(const struct printer *p)
{
	static const char *const names[] = { "PAGES", "DISTINCT", "MERGED", "PROCESSES", "KIND",
		"CONTENT", "GROUPS" };
	const struct class_sums *sums = &p->estimate->sums;
	struct libscols_table *table = new_table(p, names, 7, 7u << 4);
	int err = table ? 0 : -ENOMEM;
	for (size_t i = 0; i < sums->top_count && !err; i++) {
		const struct class_top *top = &sums->top[i];
		char text[4 * CELL], content[16];
		struct libscols_line *line = scols_table_new_line(table, NULL);
		name_groups(
			p, top->group_ids, top->groups < 4 ? top->groups : 4, text, sizeof(text));
		if (top->groups > 4)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), ", ...");
		estimate_content(p->estimate, top, content, sizeof(content));
		err = line ? set_count(line, 0, top->pages) : -ENOMEM;
		err = err ? err : set_count(line, 1, top->distinct);
		err = err ? err : set_count(line, 2, top->merged);
		err = err ? err : set_count(line, 3, top->processes);
		err = err ? err : scols_line_set_data(line, 4, estimate_top_kind(top));
		err = err ? err : scols_line_set_data(line, 5, content);
		err = err ? err : scols_line_set_data(line, 6, text);
	}
	return table ? show_table(table, err, 0) : err;
}

int estimate_print(const struct estimate *estimate, const struct options *options)
{
	const struct printer p = { estimate, options };
	print_head(&p);
	int err = print_kinds(&p);
	err = err ? err : print_groups(&p);
	err = err ? err : print_together(&p);
	err = err ? err : print_pairs(&p);
	return err ? err : print_top(&p);
}
