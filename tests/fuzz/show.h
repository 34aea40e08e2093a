/* What ksmstat would show of a process that was read from anything: every column, and texts fit for terminals. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_FUZZ_SHOW_H
#define TESTS_FUZZ_SHOW_H

#include <locale.h>
#include <wchar.h>
#include <wctype.h>

#include "ksmstat/column.h"
#include "ksmstat/text.h"
#include "tests/fuzz/fuzz.h"

/* Printable, as the C library sees it, which knows nothing of ours. */
static inline void show_printable(const char *text)
{
	static locale_t utf8;
	const char *end = text + strlen(text);
	mbstate_t state = { 0 };
	wchar_t c;

	if (!utf8)
		utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	FUZZ_MUST(utf8 != (locale_t)0);
	locale_t before = uselocale(utf8);
	while (text < end) {
		size_t len = mbrtowc(&c, text, (size_t)(end - text), &state);
		FUZZ_MUST(len > 0 && len <= (size_t)(end - text));
		FUZZ_MUST(!iswcntrl((wint_t)c));
		text += len;
	}
	uselocale(before);
}

/* Cut to fit: ended by a NUL, printable, and nothing beyond `size`. */
static inline void show_safe(const char *raw, size_t size)
{
	char *buf = malloc(size);

	FUZZ_MUST(buf != NULL);
	FUZZ_MUST(text_safe(raw, buf, size) == buf);
	FUZZ_MUST(memchr(buf, '\0', size) != NULL);
	show_printable(buf);
	free(buf);
}

/* No column may be more than a signed number holds, nor below 0 where it counts. */
static inline void show_columns(const struct entry *entry)
{
	for (size_t i = 0; i < columns_count; i++) {
		const struct column *column = &columns[i];
		int64_t value = 0;
		if (column->text) {
			const char *text = column->text(entry);
			if (text)
				show_safe(text, 4 * strlen(text) + 1);
		} else if (column->number(entry, &value) && column->kind == COLUMN_BYTES &&
			   strcmp(column->name, "PROFIT") != 0) {
			FUZZ_MUST(value >= 0);
		}
	}
}

#endif
