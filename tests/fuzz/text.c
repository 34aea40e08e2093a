/* Fuzz target: strings of strangers made fit for terminals; the bytes can be had back. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/ksmctl.h"
#include "tests/fuzz/show.h"

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Every \xNN turned back into its byte is what was there, from the start. */
static void comes_back(const char *raw, size_t len, const char *safe)
{
	for (size_t at = 0; *safe; at++) {
		FUZZ_MUST(at < len);
		unsigned char byte = (unsigned char)*safe;
		if (*safe == '\\') {
			FUZZ_MUST(safe[1] == 'x' && hex(safe[2]) >= 0 && hex(safe[3]) >= 0);
			byte = (unsigned char)(hex(safe[2]) << 4 | hex(safe[3]));
			safe += 4;
		} else {
			safe++;
		}
		/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): at < len */
		FUZZ_MUST(byte == (unsigned char)raw[at]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *raw = fuzz_string(data, size), name[32], short_text[40];
	size_t room = 4 * strlen(raw) + 1, cut = 1 + fuzz_seed(data, size) % room;
	char *safe = malloc(room);

	FUZZ_MUST(safe != NULL);
	text_safe(raw, safe, room);
	show_printable(safe);
	comes_back(raw, strlen(raw), safe);
	size_t back = strlen(raw);
	for (const char *p = safe; *p; p += *p == '\\' ? 4 : 1)
		back--;
	FUZZ_MUST(back == 0);
	show_safe(raw, cut);
	ctl_safe_name(name, sizeof(name), raw);
	FUZZ_MUST(memchr(name, '\0', sizeof(name)) != NULL);
	show_printable(name);
	if (size >= sizeof(int64_t)) {
		int64_t bytes;
		memcpy(&bytes, data, sizeof(bytes));
		text_size(bytes, short_text, sizeof(short_text));
		FUZZ_MUST(strlen(short_text) >= 2 && strlen(short_text) <= 6);
	}
	free(safe);
	free(raw);
	return 0;
}
