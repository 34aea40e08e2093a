/* Strings and sizes made fit for people and for parsers. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_TEXT_H
#define KSMSTAT_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Copy `raw` with control characters, backslashes and bytes that are not UTF-8 written as \xNN:
 * safe on a terminal, valid in JSON, and the raw bytes can be had back. Cut to fit. Returns buf.
 */
const char *text_safe(const char *raw, char *buf, size_t size);

/* Write a text that text_safe made in quotes, as JSON and the labels of Prometheus want it. */
void text_quote(FILE *f, const char *text);

/* "1.5G": three digits or so, binary units. Returns buf. */
const char *text_size(int64_t bytes, char *buf, size_t size);

#endif
