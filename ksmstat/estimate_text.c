/* What the table and the JSON of an estimate say in the same words. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/estimate_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_groups(const void *a, const void *b, void *data)
{
	const struct class_share *shares = data;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct class_share *x = &shares[i], *y = &shares[k];
	if (x->saved_parts != y->saved_parts)
		return x->saved_parts < y->saved_parts ? 1 : -1;
	if (x->pages != y->pages)
		return x->pages < y->pages ? 1 : -1;
	return (i > k) - (i < k);
}

uint32_t *estimate_order(const struct estimate *estimate)
{
	uint32_t *order = calloc(estimate->group_count + 1, sizeof(*order));
	for (size_t i = 0; order && i < estimate->group_count; i++)
		order[i] = (uint32_t)i;
	if (order)
		qsort_r(order, estimate->group_count, sizeof(*order), compare_groups,
			estimate->sums.groups);
	return order;
}

const char *estimate_content(
	const struct estimate *estimate, const struct class_top *top, char *buf, size_t size)
{
	if (top->zero) {
		snprintf(buf, size, "zeros");
		return buf;
	}
	snprintf(buf, size, "-");
	char *page = malloc(estimate->page_bytes);
	for (int byte = 1; page && byte < 256; byte++) {
		memset(page, byte, estimate->page_bytes);
		if (XXH128_isEqual(XXH3_128bits(page, estimate->page_bytes), top->hash)) {
			snprintf(buf, size, "0x%02x", (unsigned)byte);
			break;
		}
	}
	free(page);
	return buf;
}

const char *estimate_top_kind(const struct class_top *top)
{
	size_t most = 0;
	for (size_t i = 1; i < PLAN_KINDS; i++)
		most = top->kinds[i] > top->kinds[most] ? i : most;
	return plan_kind_names[most];
}
