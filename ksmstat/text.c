/* Strings and sizes made fit for people and for parsers. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/text.h"

#include <inttypes.h>
#include <stdbool.h>
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

const char *text_size(int64_t bytes, char *buf, size_t size)
{
	static const char units[] = "BKMGTPE";
	double value = (double)bytes;
	size_t unit = 0;
	/* From 1023.5 on it would be rounded to 1024 of this unit. */
	while ((value >= 1023.5 || value <= -1023.5) && unit < sizeof(units) - 2) {
		value /= 1024;
		unit++;
	}
	bool whole =
		unit == 0 || value >= 99.95 || value <= -99.95 || value == (double)(int64_t)value;
	snprintf(buf, size, "%.*f%c", whole ? 0 : 1, value, units[unit]);
	return buf;
}
