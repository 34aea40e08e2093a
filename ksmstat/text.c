/* Strings and sizes made fit for people and for parsers. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Length of the valid printable UTF-8 sequence at p, which ends in a NUL; 0 when there is none. */
static size_t utf8_length(const unsigned char *p)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = *p < 0x80 ? 1 : *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : *p >= 0xc0 ? 2 : 0;
	if (len == 0 || *p > 0xf4)
		return 0;
	if (len == 1)
		return *p >= 0x20 && *p != 0x7f && *p != '\\';
	uint32_t code = *p & (0x7f >> len);
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	/* Too long a form, a surrogate, beyond Unicode, or one of the C1 controls. */
	if (code < least[len] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ||
		code < 0xa0)
		return 0;
	/* Characters that turn the direction of writing can disguise a line. */
	if (code == 0x61c || (code >= 0x200e && code <= 0x200f) ||
		(code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069))
		return 0;
	return len;
}

const char *text_safe(const char *raw, char *buf, size_t size)
{
	const unsigned char *p = (const unsigned char *)raw;
	size_t at = 0;
	while (*p) {
		size_t len = utf8_length(p);
		size_t need = len ? len : 4;
		if (at + need >= size)
			break;
		if (len) {
			memcpy(buf + at, p, len);
			p += len;
		} else {
			snprintf(buf + at, size - at, "\\x%02x", *p++);
		}
		at += need;
	}
	buf[at] = '\0';
	return buf;
}

void text_quote(FILE *f, const char *text)
{
	putc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', f);
		putc(*text, f);
	}
	putc('"', f);
}

/* In integers: the C library's floating point would be a good part of what printing a table takes. */
const char *text_size(int64_t bytes, char *buf, size_t size)
{
	static const char units[] = "BKMGTPE";
	const char *sign = bytes < 0 ? "-" : "";
	uint64_t all = bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes;
	unsigned unit = 0, shift = 0;
	/* From 1023.5 on it would be rounded to 1024 of this unit. */
	while (all >> shift >= 1024 || (shift && all >> (shift - 1) >= 2047)) {
		shift += 10;
		unit++;
	}
	uint64_t whole = all >> shift, rest = all - (whole << shift);
	uint64_t half = (UINT64_C(1) << shift) / 2;
	uint64_t tenths = whole * 10 + ((rest * 10 + half) >> shift);
	if (!rest || tenths >= 1000)
		snprintf(buf, size, "%s%" PRIu64 "%c", sign, whole + (rest && rest >= half),
			units[unit]);
	else
		snprintf(buf, size, "%s%" PRIu64 ".%" PRIu64 "%c", sign, tenths / 10, tenths % 10,
			units[unit]);
	return buf;
}
