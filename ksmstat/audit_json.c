/* Prints an audit as one JSON object, in bytes, with all groups and pairs. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>

#include "ksmstat/audit.h"
#include "ksmstat/text.h"

static void print_text(const char *text)
{
	if (text)
		text_quote(stdout, text);
	else
		fputs("null", stdout);
}

static void print_bytes(const struct audit *audit, const char *name, uint64_t pages)
{
	printf(",\n    \"%s\": %" PRIu64, name, pages * (uint64_t)audit->page_bytes);
}

static void print_head(const struct audit *audit)
{
	const struct audit_sums *sums = &audit->sums;
	printf("{\n  \"audit\": {\n    \"complete\": %s", audit->complete ? "true" : "false");
	printf(",\n    \"processes\": %zu,\n    \"unreadable\": %zu,\n    \"missing\": %zu",
		audit->selected, audit->unreadable, audit->missing);
	print_bytes(audit, "merged", sums->pages);
	print_bytes(audit, "mapped", sums->mappings);
	print_bytes(audit, "shared", sums->shared_pages);
	print_bytes(audit, "alone", sums->alone_pages);
	print_bytes(audit, "unseen", sums->unseen_pages);
	print_bytes(audit, "zero", audit->zero_pages);
	printf(",\n    \"crosses\": {");
	for (unsigned i = 0; i < AUDIT_BOUNDARIES; i++)
		printf("%s \"%s\": %" PRIu64, i ? "," : "", audit_words[i],
			sums->crossing_pages[i] * (uint64_t)audit->page_bytes);
	printf(" }");
}

/* Which sides of a boundary have pages together: each page is in one of these sets. */
static void print_sides(const struct audit *audit, unsigned boundary)
{
	const struct together *sets = &audit->sums.sides[boundary];
	printf("%s\n      \"%s\": [", boundary ? "," : "", audit_words[boundary]);
	for (size_t i = 0; i < sets->count; i++) {
		printf("%s\n        { \"shared\": %" PRIu64 ", \"names\": [", i ? "," : "",
			(uint64_t)sets->sets[i].saved_pages * (uint64_t)audit->page_bytes);
		for (size_t k = 0; k < sets->sets[i].count; k++) {
			char text[AUDIT_TEXT_MAX];
			printf(k ? ", " : " ");
			print_text(audit_side(
				audit, boundary, sets->ids[sets->sets[i].first + k], text));
		}
		printf(" ] }");
	}
	printf("\n      ]");
}

static void print_group(const struct audit *audit, const struct audit_group *group)
{
	char text[AUDIT_TEXT_MAX];
	printf("{ \"name\": ");
	print_text(audit_name(audit, group, text));
	if (audit->by == GROUP_NONE) {
		printf(", \"user\": ");
		print_text(group->user ? text_safe(group->user, text, sizeof(text)) : NULL);
	}
	printf(", \"pids\": [");
	for (size_t i = 0; i < group->count; i++)
		printf("%s %d", i ? "," : "", (int)audit->order[group->first + i]->pid);
	printf(" ] }");
}

static void print_pairs(const struct audit *audit)
{
	printf(",\n    \"pairs\": [");
	for (size_t i = 0; i < audit->sums.pair_count; i++) {
		const struct audit_pair *pair = &audit->sums.pairs[i];
		bool first = true;
		printf("%s\n      { \"a\": %u, \"b\": %u, \"shared\": %" PRIu64 ", \"crosses\": [",
			i ? "," : "", (unsigned)pair->a, (unsigned)pair->b,
			pair->pages * (uint64_t)audit->page_bytes);
		for (unsigned k = 0; k < AUDIT_BOUNDARIES; k++) {
			if (pair->crosses >> k & 1) {
				printf("%s \"%s\"", first ? "" : ",", audit_words[k]);
				first = false;
			}
		}
		printf(" ] }");
	}
	printf("\n    ]");
}

int audit_json(const struct audit *audit)
{
	print_head(audit);
	printf(",\n    \"together\": {");
	for (unsigned i = 0; i < AUDIT_BOUNDARIES; i++)
		print_sides(audit, i);
	printf("\n    },\n    \"groups\": [");
	for (size_t i = 0; i < audit->group_count; i++) {
		printf("%s\n      ", i ? "," : "");
		print_group(audit, &audit->groups[i]);
	}
	printf("\n    ]");
	print_pairs(audit);
	printf("\n  }\n}\n");
	return 0;
}
