/* sysfs/file and sysfs/root: whole reads, checked writes, strict numbers, the root handle. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/file.h"

#include <errno.h>
#include <inttypes.h>

#include "tests/unit/temp.h"

#define UNTOUCHED INT64_C(0x1badc0de)

START_TEST(read_whole)
{
	char buf[16];

	temp_put("empty", "");
	ck_assert_int_eq(file_read(temp_fd, "empty", buf, sizeof(buf)), 0);
	ck_assert_str_eq(buf, "");
	temp_write("nul", "a\0b\n", 4);
	ck_assert_int_eq(file_read(temp_fd, "nul", buf, sizeof(buf)), 4);
	ck_assert_mem_eq(buf, "a\0b\n\0", 5);
	/* bytes as they are */
	temp_put("raw", "\xff\x1b\n\n");
	ck_assert_int_eq(file_read(temp_fd, "raw", buf, sizeof(buf)), 4);
	ck_assert_str_eq(buf, "\xff\x1b\n\n");
	/* the dirfd does not matter to an absolute path */
	ck_assert_int_gt(file_read(-1, "/proc/self/comm", buf, sizeof(buf)), 0);
}
END_TEST

START_TEST(read_limits)
{
	char text[40], buf[40];

	memset(text, 'x', sizeof(text));
	for (size_t len = 0; len < sizeof(text); len++) {
		temp_write("limit", text, len);
		for (size_t size = 1; size < sizeof(buf); size++) {
			memset(buf, '!', sizeof(buf));
			ssize_t got = file_read(temp_fd, "limit", buf, size);
			if (len < size) {
				ck_assert_int_eq(got, (ssize_t)len);
				ck_assert_int_eq(buf[len], '\0');
			} else {
				ck_assert_int_eq(got, -EFBIG);
			}
			ck_assert_int_eq(buf[size], '!');
		}
	}
}
END_TEST

START_TEST(read_errors)
{
	char buf[16];

	ck_assert_int_eq(file_read(temp_fd, "nothing here", buf, sizeof(buf)), -ENOENT);
	mkdirat(temp_fd, "directory", 0755);
	ck_assert_int_eq(file_read(temp_fd, "directory", buf, sizeof(buf)), -EISDIR);
	ck_assert_int_eq(file_read(temp_fd, "directory/x/y", buf, sizeof(buf)), -ENOENT);
	ck_assert_int_eq(file_read(-1, "x", buf, sizeof(buf)), -EBADF);
	temp_put("plain", "1\n");
	ck_assert_int_eq(file_read(temp_fd, "plain/x", buf, sizeof(buf)), -ENOTDIR);
}
END_TEST

START_TEST(no_fd_left)
{
	char buf[4];
	int before = dup(temp_fd);

	close(before);
	temp_put("long", "more than fits");
	for (int i = 0; i < 8; i++) {
		file_read(temp_fd, "long", buf, sizeof(buf));
		file_read(temp_fd, "none", buf, sizeof(buf));
		file_read(temp_fd, ".", buf, sizeof(buf));
		file_write(temp_fd, "long", "more than fits");
		file_write(temp_fd, "none", "x");
	}
	ck_assert_int_eq(dup(temp_fd), before);
}
END_TEST

START_TEST(write_existing_only)
{
	ck_assert_int_eq(file_write(temp_fd, "absent", "1"), -ENOENT);
	ck_assert_int_eq(faccessat(temp_fd, "absent", F_OK, 0), -1);
	/* neither truncated nor appended to: a kernel file knows neither */
	temp_put("knob", "12345\n");
	ck_assert_int_eq(file_write(temp_fd, "knob", "99"), 0);
	temp_expect("knob", "99345\n");
	mkdirat(temp_fd, "folder", 0755);
	ck_assert_int_eq(file_write(temp_fd, "folder", "1"), -EISDIR);
	if (access("/dev/full", W_OK))
		tap_skip("no /dev/full");
	else
		ck_assert_int_eq(file_write(-1, "/dev/full", "1"), -ENOSPC);
}
END_TEST

static void expect_i64(const char *text, size_t len, int want_err, int64_t want)
{
	/* no NUL behind it: reading past the end is then found by the sanitizer */
	char *copy = malloc(len ? len : 1);
	int64_t value = UNTOUCHED;

	memcpy(copy, text, len);
	int err = file_parse_i64(copy, len, &value);
	free(copy);
	ck_assert_msg(err == want_err, "'%.*s' gave %d, not %d", (int)len, text, err, want_err);
	if (err)
		want = UNTOUCHED;
	ck_assert_msg(
		value == want, "'%.*s' is %" PRId64 ", not %" PRId64, (int)len, text, value, want);
}

START_TEST(parse_i64)
{
	const struct {
		const char *text;
		int err;
		int64_t value;
	} cases[] = {
		{ "0", 0, 0 },
		{ "0\n", 0, 0 },
		{ "-0\n", 0, 0 },
		{ "007", 0, 7 },
		{ "42\n", 0, 42 },
		{ "-42", 0, -42 },
		{ "2147483648", 0, INT64_C(2147483648) },
		{ "9223372036854775807\n", 0, INT64_MAX },
		{ "-9223372036854775808\n", 0, INT64_MIN },
		{ "00000000000000000000000000000000000000000001", 0, 1 },
		{ "9223372036854775808", -ERANGE, 0 },
		{ "-9223372036854775809", -ERANGE, 0 },
		{ "18446744073709551615", -ERANGE, 0 },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "99999999999999999999999999999999", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "\n", -EINVAL, 0 },
		{ "-", -EINVAL, 0 },
		{ "-\n", -EINVAL, 0 },
		{ "--1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 ", -EINVAL, 0 },
		{ "1 \n", -EINVAL, 0 },
		{ "1\n\n", -EINVAL, 0 },
		{ "\n1", -EINVAL, 0 },
		{ "1\r\n", -EINVAL, 0 },
		{ "1\t", -EINVAL, 0 },
		{ "1-", -EINVAL, 0 },
		{ "1.0", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
		{ "1.2e+07", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "1k", -EINVAL, 0 },
		{ "one", -EINVAL, 0 },
		{ "\xd9\xa1", -EINVAL, 0 }, /* a digit, but not one of the kernel's */
		{ "1;reboot", -EINVAL, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		expect_i64(cases[i].text, strlen(cases[i].text), cases[i].err, cases[i].value);
	expect_i64("1\0", 2, -EINVAL, 0);
	expect_i64("\0", 1, -EINVAL, 0);
	/* only len bytes are looked at */
	expect_i64("123", 2, 0, 12);
	expect_i64("12\n", 2, 0, 12);
}
END_TEST

/* Every single byte: ten of them are numbers. */
START_TEST(parse_i64_bytes)
{
	for (int c = 0; c < 256; c++) {
		char text[] = { (char)c, '1' };
		bool digit = c >= '0' && c <= '9';

		expect_i64(text, 1, digit ? 0 : -EINVAL, c - '0');
		expect_i64(text, 2, digit || c == '-' ? 0 : -EINVAL,
			c == '-' ? -1 : (c - '0') * 10 + 1);
	}
}
END_TEST

START_TEST(read_i64)
{
	int64_t value = UNTOUCHED;
	char text[80];

	temp_put("number", "-123456789012\n");
	ck_assert_int_eq(file_read_i64(temp_fd, "number", &value), 0);
	ck_assert_int_eq(value, INT64_C(-123456789012));
	value = UNTOUCHED;
	temp_put("number", "no\n");
	ck_assert_int_eq(file_read_i64(temp_fd, "number", &value), -EINVAL);
	temp_put("number", "");
	ck_assert_int_eq(file_read_i64(temp_fd, "number", &value), -EINVAL);
	memset(text, '1', sizeof(text));
	temp_write("number", text, sizeof(text));
	ck_assert_int_eq(file_read_i64(temp_fd, "number", &value), -EFBIG);
	ck_assert_int_eq(file_read_i64(temp_fd, "none", &value), -ENOENT);
	ck_assert_int_eq(value, UNTOUCHED);
}
END_TEST

static void expect_u64(const char *text, const char *key, int want_err, uint64_t want)
{
	size_t len = strlen(text);
	char *copy = malloc(len ? len : 1);
	uint64_t value = UNTOUCHED;

	memcpy(copy, text, len);
	int err = file_find_u64(copy, len, key, &value);
	free(copy);
	ck_assert_msg(err == want_err, "'%s' of '%s' gave %d, not %d", key, text, err, want_err);
	ck_assert_uint_eq(value, err ? (uint64_t)UNTOUCHED : want);
}

START_TEST(find_u64)
{
	expect_u64("MemTotal:       12 kB\nMemFree:\t34 kB\n", "MemTotal:", 0, 12);
	expect_u64("MemTotal:       12 kB\nMemFree:\t34 kB\n", "MemFree:", 0, 34);
	expect_u64("a 1\nb 2", "b ", 0, 2); /* the last line has no newline */
	expect_u64("a 1\nb 2", "a", 0, 1);
	expect_u64("12345 6 7\n", "", 0, 12345);
	expect_u64("a:18446744073709551615", "a:", 0, UINT64_MAX);
	expect_u64("a:18446744073709551616", "a:", -ERANGE, 0);
	expect_u64("a: 12kB", "a:", 0, 12);
	/* only at the start of a line; the first one counts */
	expect_u64("SwapCached: 1\nCached: 2\n", "Cached:", 0, 2);
	expect_u64("x a: 1\n", "a:", -ENOENT, 0);
	expect_u64("a: 1\na: 2\n", "a:", 0, 1);
	/* a number is not looked for on the next line */
	expect_u64("a:\n5\n", "a:", -EINVAL, 0);
	expect_u64("a: \n5\n", "a:", -EINVAL, 0);
	expect_u64("a:", "a:", -EINVAL, 0);
	expect_u64("a: -1\n", "a:", -EINVAL, 0);
	expect_u64("a: x\n", "a:", -EINVAL, 0);
	expect_u64("", "a:", -ENOENT, 0);
	expect_u64("\n\n\n", "a:", -ENOENT, 0);
	expect_u64("a", "a:", -ENOENT, 0);
	expect_u64("", "", -ENOENT, 0);
}
END_TEST

START_TEST(roots)
{
	struct root root;

	ck_assert_int_eq(root_open(&root, NULL), 0);
	ck_assert(!root.foreign);
	int fd = root_opendir(&root, "proc");
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(root_opendir(&root, "proc/version"), -ENOTDIR);
	ck_assert_int_eq(root_opendir(&root, "no/such/thing"), -ENOENT);
	root_close(&root);
	ck_assert_int_eq(root.fd, -1);
	root_close(&root); /* twice does no harm */

	ck_assert_int_eq(root_open(&root, ""), 0);
	ck_assert(!root.foreign);
	root_close(&root);
	ck_assert_int_eq(root_open(&root, "/"), 0);
	ck_assert(!root.foreign);
	root_close(&root);

	ck_assert_int_eq(root_open(&root, temp_path), 0);
	ck_assert(root.foreign);
	ck_assert_int_eq(root_opendir(&root, "proc"), -ENOENT);
	root_close(&root);

	ck_assert_int_eq(root_open(&root, "/no such directory"), -ENOENT);
	ck_assert_int_eq(root.fd, -1);
	ck_assert_int_eq(root_open(&root, "/proc/version"), -ENOTDIR);
	ck_assert_int_eq(root.fd, -1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("file");
	TCase *tcase = temp_case(suite, "file");

	tcase_add_test(tcase, read_whole);
	tcase_add_test(tcase, read_limits);
	tcase_add_test(tcase, read_errors);
	tcase_add_test(tcase, no_fd_left);
	tcase_add_test(tcase, write_existing_only);
	tcase_add_test(tcase, parse_i64);
	tcase_add_test(tcase, parse_i64_bytes);
	tcase_add_test(tcase, read_i64);
	tcase_add_test(tcase, find_u64);
	tcase_add_test(tcase, roots);
	return tap_run(suite);
}
