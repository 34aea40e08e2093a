/* ksmstat/text: strings made safe, sizes made short. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/text.h"

#include <stdbool.h>
#include <string.h>

#include "tests/tap.h"

static void expect_safe(const char *raw, const char *want)
{
	char buf[256];

	ck_assert_ptr_eq(text_safe(raw, buf, sizeof(buf)), buf);
	ck_assert_msg(!strcmp(buf, want), "got %s, not %s", buf, want);
}

/* \xNN turned back. Returns the length. */
static size_t undo(const char *safe, char *raw)
{
	size_t len = 0;

	while (*safe) {
		unsigned byte;
		if (*safe == '\\') {
			ck_assert_int_eq(sscanf(safe, "\\x%2x", &byte), 1);
			raw[len++] = (char)byte;
			safe += 4;
		} else {
			raw[len++] = *safe++;
		}
	}
	return len;
}

START_TEST(safe_every_byte)
{
	for (int c = 1; c < 256; c++) {
		char raw[] = { 'a', (char)c, 'b', '\0' }, buf[16], want[16], back[16];
		bool plain = c >= 0x20 && c < 0x7f && c != '\\';

		snprintf(want, sizeof(want), plain ? "a%cb" : "a\\x%02xb", c);
		text_safe(raw, buf, sizeof(buf));
		ck_assert_str_eq(buf, want);
		ck_assert_uint_eq(undo(buf, back), 3);
		ck_assert_mem_eq(back, raw, 3);
	}
}
END_TEST

/* Every pair of bytes comes back from what is shown, and what is shown has no byte to fear. */
START_TEST(safe_pairs_come_back)
{
	for (int a = 1; a < 256; a++) {
		for (int b = 1; b < 256; b++) {
			char raw[] = { (char)a, (char)b, '\0' }, buf[16], back[16];

			text_safe(raw, buf, sizeof(buf));
			ck_assert_uint_eq(undo(buf, back), 2);
			ck_assert_mem_eq(back, raw, 2);
			for (const char *p = buf; *p; p++)
				ck_assert((unsigned char)*p >= 0x20 && *p != 0x7f);
		}
	}
}
END_TEST

START_TEST(safe_utf8)
{
	expect_safe("", "");
	expect_safe("gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f");
	expect_safe("\xe6\x97\xa5\xf0\x9f\x98\x80", "\xe6\x97\xa5\xf0\x9f\x98\x80");
	/* the first and the last of each length */
	expect_safe("\xc2\xa0", "\xc2\xa0");
	expect_safe("\xdf\xbf", "\xdf\xbf");
	expect_safe("\xe0\xa0\x80", "\xe0\xa0\x80");
	expect_safe("\xef\xbf\xbd", "\xef\xbf\xbd");
	expect_safe("\xf0\x90\x80\x80", "\xf0\x90\x80\x80");
	expect_safe("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf");
	/* on both sides of the surrogates */
	expect_safe("\xed\x9f\xbf", "\xed\x9f\xbf");
	expect_safe("\xee\x80\x80", "\xee\x80\x80");
}
END_TEST

START_TEST(safe_not_utf8)
{
	expect_safe("\x80", "\\x80");			       /* a continuation alone */
	expect_safe("\xc3", "\\xc3");			       /* cut at the end */
	expect_safe("\xe6\x97", "\\xe6\\x97");		       /* likewise */
	expect_safe("\xf0\x9f\x98", "\\xf0\\x9f\\x98");	       /* likewise */
	expect_safe("\xc3(", "\\xc3(");			       /* the next byte is not lost */
	expect_safe("\xe6\x97\xc3\xbc", "\\xe6\\x97\xc3\xbc"); /* nor is the next character */
	expect_safe("\xc0\xaf", "\\xc0\\xaf");		       /* too long a '/' */
	expect_safe("\xc1\xbf", "\\xc1\\xbf");
	expect_safe("\xe0\x80\xaf", "\\xe0\\x80\\xaf");
	expect_safe("\xe0\x9f\xbf", "\\xe0\\x9f\\xbf");
	expect_safe("\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf");
	expect_safe("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* surrogates */
	expect_safe("\xed\xbf\xbf", "\\xed\\xbf\\xbf");
	expect_safe("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* beyond Unicode */
	expect_safe("\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80");
	expect_safe("\xff\xfe", "\\xff\\xfe");
}
END_TEST

START_TEST(safe_controls)
{
	expect_safe("a\nb\tc\rd\x1b[31m\x7f", "a\\x0ab\\x09c\\x0dd\\x1b[31m\\x7f");
	expect_safe("\\x41", "\\x5cx41"); /* what looks escaped was not */
	expect_safe("\"'", "\"'");	  /* quoting is the printer's affair */
	/* C1 controls: 0x9b opens a sequence as ESC [ does */
	expect_safe("\xc2\x80\xc2\x9b\xc2\x9f", "\\xc2\\x80\\xc2\\x9b\\xc2\\x9f");
	/* what turns the direction of writing */
	expect_safe("\xe2\x80\xae", "\\xe2\\x80\\xae"); /* U+202E */
	expect_safe("\xe2\x80\x8f", "\\xe2\\x80\\x8f"); /* U+200F */
	expect_safe("\xe2\x81\xa6", "\\xe2\\x81\\xa6"); /* U+2066 */
	expect_safe("\xd8\x9c", "\\xd8\\x9c");		/* U+061C */
	/* line separators */
	expect_safe("\xe2\x80\xa8\xe2\x80\xa9", "\\xe2\\x80\\xa8\\xe2\\x80\\xa9");
}
END_TEST

/* With every size: ends in a NUL, is the start of the full text, and is never cut inside a character. */
START_TEST(safe_cut)
{
	const char raw[] = "a\xc3\xbc\n\xe6\x97\xa5\xff\xf0\x9f\x98\x80z";
	/* where a piece may end */
	const size_t ends[] = { 0, 1, 3, 7, 10, 14, 18, 19 };
	char full[64], buf[64];

	text_safe(raw, full, sizeof(full));
	ck_assert_uint_eq(strlen(full), ends[7]);
	for (size_t size = 1; size <= sizeof(full); size++) {
		size_t want = 0;
		for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
			if (ends[i] < size)
				want = ends[i];
		}
		memset(buf, '!', sizeof(buf));
		text_safe(raw, buf, size);
		ck_assert_uint_eq(strlen(buf), want);
		ck_assert_mem_eq(buf, full, want);
		if (size < sizeof(buf))
			ck_assert_int_eq(buf[size], '!');
	}
}
END_TEST

static void expect_size(int64_t bytes, const char *want)
{
	char buf[32];

	ck_assert_ptr_eq(text_size(bytes, buf, sizeof(buf)), buf);
	ck_assert_msg(!strcmp(buf, want), "%lld is %s, not %s", (long long)bytes, buf, want);
}

START_TEST(size_units)
{
	expect_size(0, "0B");
	expect_size(1, "1B");
	expect_size(999, "999B");
	expect_size(1000, "1000B");
	expect_size(1023, "1023B");
	expect_size(1024, "1K");
	expect_size(1536, "1.5K");
	expect_size(1 << 20, "1M");
	expect_size(3 << 19, "1.5M");
	expect_size(INT64_C(1) << 30, "1G");
	expect_size(INT64_C(1) << 40, "1T");
	expect_size(INT64_C(1) << 50, "1P");
	expect_size(INT64_C(1) << 60, "1E");
	expect_size(INT64_C(1) << 31, "2G");
	expect_size(INT64_C(5000) << 30, "4.9T");
	expect_size(INT64_MAX, "8.0E");
}
END_TEST

START_TEST(size_negative)
{
	expect_size(-1, "-1B");
	expect_size(-1023, "-1023B");
	expect_size(-1024, "-1K");
	expect_size(-1536, "-1.5K");
	expect_size(-(INT64_C(1) << 30), "-1G");
	expect_size(INT64_MIN, "-8E");
}
END_TEST

/* Rounding must never show 1024 of a unit, nor 100.0 of one. */
START_TEST(size_boundaries)
{
	static const char units[] = "BKMGTPE";

	expect_size(1025, "1.0K");
	expect_size(99 * 1024 + 972, "99.9K");
	expect_size(99 * 1024 + 973, "100K"); /* 99.95 */
	expect_size(100 * 1024 + 100, "100K");
	expect_size(1023 * 1024, "1023K");
	expect_size(1023 * 1024 + 511, "1023K");
	expect_size(1023 * 1024 + 512, "1.0M"); /* 1023.5 */
	expect_size(1023 * 1024 + 900, "1.0M");
	expect_size((1 << 20) - 1, "1.0M");
	expect_size(-(1 << 20) + 1, "-1.0M");
	expect_size((INT64_C(1) << 60) - 1, "1.0E"); /* no double is as near to 1 EiB */

	for (size_t unit = 1; unit < 6; unit++) {
		int64_t base = INT64_C(1) << (10 * unit);
		for (int64_t part = 0; part < 64; part++) {
			char buf[32];
			text_size(1023 * base + base / 64 * part, buf, sizeof(buf));
			double number = strtod(buf, NULL);
			ck_assert_msg(number >= 1 && number < 1024, "%s", buf);
			ck_assert_int_eq(buf[strlen(buf) - 1], units[number < 2 ? unit + 1 : unit]);
		}
	}
}
END_TEST

START_TEST(size_cut)
{
	char buf[4] = "!!!";

	text_size(1023, buf, 3);
	ck_assert_str_eq(buf, "10");
	ck_assert_int_eq(buf[3], '\0');
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("text");
	TCase *tcase = tcase_create("text");

	tcase_add_test(tcase, safe_every_byte);
	tcase_add_test(tcase, safe_pairs_come_back);
	tcase_add_test(tcase, safe_utf8);
	tcase_add_test(tcase, safe_not_utf8);
	tcase_add_test(tcase, safe_controls);
	tcase_add_test(tcase, safe_cut);
	tcase_add_test(tcase, size_units);
	tcase_add_test(tcase, size_negative);
	tcase_add_test(tcase, size_boundaries);
	tcase_add_test(tcase, size_cut);
	suite_add_tcase(suite, tcase);
	return tap_run(suite);
}
