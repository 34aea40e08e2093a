/* What the table and the JSON of an estimate say in the same words. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_ESTIMATE_TEXT_H
#define KSMSTAT_ESTIMATE_TEXT_H

#include "ksmstat/estimate.h"

/* Indexes of the groups, what saves most first. NULL without memory; to be freed. */
uint32_t *estimate_order(const struct estimate *estimate);

/* "zeros", "0xff" for a page of one byte only, else "-": nothing else of a content is ever told. */
const char *estimate_content(
	const struct estimate *estimate, const struct class_top *top, char *buf, size_t size);

/* The kind of area that has it most. */
const char *estimate_top_kind(const struct class_top *top);

#endif
