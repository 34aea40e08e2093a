/* sysfs/smaps: the parser, on texts of every kernel and hostile ones. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/smaps.h"

#include <errno.h>
#include <string.h>

#include "tests/tap.h"

#define AREAS 8

/* What the parser gave. */
struct got {
	int count;
	struct smaps_area area[AREAS];
};

static int collect(const struct smaps_area *area, void *data)
{
	struct got *got = data;

	ck_assert_int_lt(got->count, AREAS);
	got->area[got->count++] = *area;
	return 0;
}

/* Parse a text in two calls, the first with `first` bytes. */
static int parse_at(const char *text, size_t len, size_t first, struct got *got)
{
	struct smaps_parser parser = { 0 };
	/* two pieces without a NUL */
	char *a = malloc(first ? first : 1), *b = malloc(len - first ? len - first : 1);

	memset(got, 0, sizeof(*got));
	memcpy(a, text, first);
	memcpy(b, text + first, len - first);
	int err = smaps_parse(&parser, a, first, collect, got);
	free(a); /* nothing may be kept of it */
	if (!err)
		err = smaps_parse(&parser, b, len - first, collect, got);
	free(b);
	return err ? err : smaps_finish(&parser, collect, got);
}

static int parse(const char *text, struct got *got)
{
	return parse_at(text, strlen(text), strlen(text), got);
}

static void parse_ok(const char *text, struct got *got, int count)
{
	ck_assert_int_eq(parse(text, got), 0);
	ck_assert_int_eq(got->count, count);
}

static void expect_field(const struct smaps_area *area, enum smaps_field field, uint64_t kib)
{
	ck_assert_msg(area->seen & 1u << field, "field %d not seen", field);
	ck_assert_uint_eq(area->kib[field], kib);
}

#define HEADER "7f0000000000-7f0000002000 rw-p 00000000 00:00 0 \n"
#define RECORD \
	"55d0c0a00000-55d0c0a08000 r-xp 00002000 fe:01 1234567890                 /usr/bin/cat\n" \
	"Size:                 32 kB\nKernelPageSize:        4 kB\nMMUPageSize:           4 kB\n" \
	"Rss:                  31 kB\nPss:                  30 kB\nPss_Dirty:            29 kB\n" \
	"Shared_Clean:          1 kB\nShared_Dirty:          2 kB\nPrivate_Clean:         3 kB\n" \
	"Private_Dirty:         4 kB\nReferenced:           55 kB\nAnonymous:             5 kB\n" \
	"KSM:                   6 kB\nLazyFree:             66 kB\nAnonHugePages:         7 kB\n" \
	"ShmemPmdMapped:        8 kB\nFilePmdMapped:         9 kB\nShared_Hugetlb:       10 kB\n" \
	"Private_Hugetlb:      11 kB\nSwap:                 12 kB\nSwapPss:              77 kB\n" \
	"Locked:               88 kB\nTHPeligible:           1\nProtectionKey:         0\n" \
	"VmFlags: rd ex mr mw me sd mg \n"

static void expect_record(const struct smaps_area *area)
{
	static const uint64_t kib[] = { 32, 31, 30, 1, 2, 3, 4, 5, 6, 66, 7, 8, 9, 10, 11, 12 };

	ck_assert_uint_eq(area->start, 0x55d0c0a00000);
	ck_assert_uint_eq(area->end, 0x55d0c0a08000);
	ck_assert_uint_eq(area->offset, 0x2000);
	ck_assert_uint_eq(area->inode, 1234567890);
	ck_assert_str_eq(area->name, "/usr/bin/cat");
	ck_assert_uint_eq(
		area->bits, SMAPS_READ | SMAPS_EXEC | SMAPS_MERGEABLE | SMAPS_HAS_VMFLAGS);
	ck_assert_uint_eq(area->seen, (1u << SMAPS_FIELDS) - 1);
	for (int i = 0; i < SMAPS_FIELDS; i++)
		expect_field(area, i, kib[i]);
}

START_TEST(every_field)
{
	struct got got;

	parse_ok(RECORD, &got, 1);
	expect_record(&got.area[0]);
}
END_TEST

/* Nothing of an area is left in the next. */
START_TEST(areas_apart)
{
	struct got got;

	parse_ok(RECORD HEADER "Rss: 5 kB\n" RECORD, &got, 3);
	expect_record(&got.area[0]);
	ck_assert_uint_eq(got.area[1].seen, 1u << SMAPS_RSS);
	ck_assert_uint_eq(got.area[1].bits, SMAPS_READ | SMAPS_WRITE);
	ck_assert_str_eq(got.area[1].name, "");
	ck_assert_uint_eq(got.area[1].inode, 0);
	expect_record(&got.area[2]);
}
END_TEST

START_TEST(any_order)
{
	struct got got;

	parse_ok(HEADER
		"Swap: 1 kB\nKSM: 2 kB\nRss: 3 kB\nAnonymous: 4 kB\nSize: 5 kB\nPss: 6 kB\n",
		&got, 1);
	expect_field(&got.area[0], SMAPS_SWAP, 1);
	expect_field(&got.area[0], SMAPS_KSM, 2);
	expect_field(&got.area[0], SMAPS_RSS, 3);
	expect_field(&got.area[0], SMAPS_ANONYMOUS, 4);
	expect_field(&got.area[0], SMAPS_SIZE, 5);
	expect_field(&got.area[0], SMAPS_PSS, 6);
}
END_TEST

START_TEST(nothing)
{
	struct got got;
	struct smaps_parser parser = { 0 };

	parse_ok("", &got, 0);
	ck_assert_int_eq(smaps_finish(&parser, collect, &got), 0);
	ck_assert_int_eq(got.count, 0);
	/* an area without a single field */
	parse_ok(HEADER, &got, 1);
	ck_assert_uint_eq(got.area[0].seen, 0);
	parse_ok(HEADER HEADER HEADER, &got, 3);
	/* finish is done once */
	ck_assert_int_eq(smaps_parse(&parser, HEADER, strlen(HEADER), collect, &got), 0);
	ck_assert_int_eq(smaps_finish(&parser, collect, &got), 0);
	ck_assert_int_eq(smaps_finish(&parser, collect, &got), 0);
	ck_assert_int_eq(got.count, 4);
}
END_TEST

START_TEST(flags)
{
	struct got got;

	parse_ok(HEADER "VmFlags: \n", &got, 1);
	ck_assert_uint_eq(got.area[0].bits, SMAPS_READ | SMAPS_WRITE | SMAPS_HAS_VMFLAGS);
	parse_ok(HEADER "VmFlags:\n", &got, 1);
	ck_assert_uint_eq(got.area[0].bits, SMAPS_READ | SMAPS_WRITE | SMAPS_HAS_VMFLAGS);
	parse_ok(HEADER "Rss: 1 kB\n", &got, 1);
	ck_assert_uint_eq(got.area[0].bits, SMAPS_READ | SMAPS_WRITE);
	parse_ok(HEADER "VmFlags: rd wr mr mg\n" HEADER "VmFlags: mg \n" HEADER
			"VmFlags: rd m g gm \n" HEADER "VmFlags: rd xmg mr \n",
		&got, 4);
	ck_assert(got.area[0].bits & SMAPS_MERGEABLE);
	ck_assert(got.area[1].bits & SMAPS_MERGEABLE);
	ck_assert(!(got.area[2].bits & SMAPS_MERGEABLE));
	ck_assert(!(got.area[3].bits & SMAPS_MERGEABLE));
	parse_ok(HEADER "VmFlags: rd lo mg\n" HEADER "VmFlags: rd pf\n" HEADER
			"VmFlags: io \n" HEADER "VmFlags: ol fp oi l o\n",
		&got, 4);
	ck_assert(got.area[0].bits & SMAPS_LOCKED && got.area[0].bits & SMAPS_MERGEABLE);
	ck_assert(!(got.area[0].bits & SMAPS_DEVICE));
	ck_assert(got.area[1].bits & SMAPS_DEVICE && !(got.area[1].bits & SMAPS_LOCKED));
	ck_assert(got.area[2].bits & SMAPS_DEVICE);
	ck_assert(!(got.area[3].bits & (SMAPS_DEVICE | SMAPS_LOCKED)));
}
END_TEST

START_TEST(permissions)
{
	static const struct {
		const char *text;
		unsigned bits;
	} cases[] = { { "---p", 0 }, { "r--p", SMAPS_READ }, { "-w-p", SMAPS_WRITE },
		{ "--xp", SMAPS_EXEC }, { "---s", SMAPS_MAYSHARE },
		{ "rwxs", SMAPS_READ | SMAPS_WRITE | SMAPS_EXEC | SMAPS_MAYSHARE } };
	struct got got;
	char text[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		snprintf(text, sizeof(text), "1000-2000 %s 00000000 00:00 0 \n", cases[i].text);
		parse_ok(text, &got, 1);
		ck_assert_uint_eq(got.area[0].bits, cases[i].bits);
	}
}
END_TEST

/* Some areas have a Pss line and nothing else; 2.6.32 knew neither Anonymous nor VmFlags nor KSM. */
START_TEST(old_and_short_records)
{
	struct got got;

	parse_ok(HEADER "Pss: 7 kB\n" RECORD, &got, 2);
	ck_assert_uint_eq(got.area[0].seen, 1u << SMAPS_PSS);
	expect_field(&got.area[0], SMAPS_PSS, 7);
	expect_record(&got.area[1]);

	parse_ok("00400000-0040b000 r-xp 00000000 08:01 131 /bin/cat\nSize:                 44 kB\n"
		 "Rss:                  20 kB\nPss:                   4 kB\nShared_Clean:         "
		 "20 kB\n"
		 "Shared_Dirty:          0 kB\nPrivate_Clean:         0 kB\nPrivate_Dirty:         "
		 "0 kB\n"
		 "Referenced:           20 kB\nSwap:                  0 kB\nKernelPageSize:        "
		 "4 kB\n"
		 "MMUPageSize:           4 kB\n",
		&got, 1);
	ck_assert(!(got.area[0].seen & (1u << SMAPS_ANONYMOUS | 1u << SMAPS_KSM)));
	ck_assert(!(got.area[0].bits & SMAPS_HAS_VMFLAGS));
	expect_field(&got.area[0], SMAPS_RSS, 20);
	expect_field(&got.area[0], SMAPS_SWAP, 0);
}
END_TEST

static void expect_name(const char *raw, const char *want)
{
	struct got got;
	char text[2048];

	snprintf(text, sizeof(text), "7f0000-7f2000 r--p 00000000 fe:01 99%sRss: 3 kB\nPss: 2 kB\n",
		raw);
	parse_ok(text, &got, 1);
	ck_assert_str_eq(got.area[0].name, want);
	ck_assert_uint_eq(got.area[0].inode, 99);
	expect_field(&got.area[0], SMAPS_RSS, 3);
	expect_field(&got.area[0], SMAPS_PSS, 2);
}

START_TEST(names)
{
	char raw[1100], cut[SMAPS_NAME_MAX];

	expect_name(" \n", "");
	expect_name("\n", "");
	expect_name("                    \n", "");
	expect_name("      [heap]\n", "[heap]");
	expect_name("      [anon: glibc: malloc]\n", "[anon: glibc: malloc]");
	expect_name("      [anon:Rss: 99 kB]\n", "[anon:Rss: 99 kB]");
	expect_name("      /a b  c\n", "/a b  c");
	expect_name("      /tmp/odd 12 kB\n", "/tmp/odd 12 kB");
	expect_name("      /tmp/x\\012Pss:                  99 kB\n",
		"/tmp/x\\012Pss:                  99 kB");
	expect_name("      /tmp/x\\0127f00-7f01 rwxp 0 00:00 0\n",
		"/tmp/x\\0127f00-7f01 rwxp 0 00:00 0");
	expect_name("      /lib/gone.so (deleted)\n", "/lib/gone.so (deleted)");
	expect_name("      /\xff\xfe\x80\x1b[31m\"'\t\n", "/\xff\xfe\x80\x1b[31m\"'\t");
	expect_name("      /trailing blank \n", "/trailing blank ");
	expect_name("      //anon\n", "//anon");
	/* longer than the room for it: cut */
	memset(raw, 'x', sizeof(raw));
	raw[0] = ' ';
	snprintf(raw + sizeof(raw) - 2, 2, "\n");
	memset(cut, 'x', sizeof(cut) - 1);
	cut[sizeof(cut) - 1] = '\0';
	expect_name(raw, cut);
	snprintf(raw + SMAPS_NAME_MAX + 1, 2, "\n"); /* one too long */
	expect_name(raw, cut);
	snprintf(raw + SMAPS_NAME_MAX, 2, "\n"); /* fits */
	expect_name(raw, cut);
}
END_TEST

START_TEST(fields_hostile)
{
	struct got got;

	/* not a number, too big a number: not seen, and nothing after it lost */
	parse_ok(HEADER
		"Rss: x kB\nPss:\nSize: kB\nKSM: -5 kB\nAnonymous: 99999999999999999999999 kB\n"
		"Swap: 18446744073709551616 kB\nPrivate_Dirty: 4 kB\n",
		&got, 1);
	ck_assert_uint_eq(got.area[0].seen, 1u << SMAPS_PRIVATE_DIRTY);
	/* fields of later kernels, names that only start or end alike, empty lines */
	parse_ok(HEADER "New_Field: 5 kB\nRssAnon: 6 kB\nRss 7 kB\nXRss: 8 kB\n\n\nrss: 9 kB\n: 1 "
			"kB\nPss_Anon: 3 "
			"kB\nRss:\t4 kB\n",
		&got, 1);
	ck_assert_uint_eq(got.area[0].seen & ~(1u << SMAPS_RSS), 0);
	/* without a unit, without a newline at the very end */
	parse_ok(HEADER "Rss: 7\nPss:8", &got, 1);
	expect_field(&got.area[0], SMAPS_RSS, 7);
	expect_field(&got.area[0], SMAPS_PSS, 8);
	/* bytes that no kernel sends */
	static const char bytes[] = HEADER "R\0s: 5 kB\n\xff\xff\nPss: 1 kB\n";
	ck_assert_int_eq(parse_at(bytes, sizeof(bytes) - 1, 0, &got), 0);
	ck_assert_int_eq(got.count, 1);
	expect_field(&got.area[0], SMAPS_PSS, 1);
}
END_TEST

START_TEST(not_smaps)
{
	static const char *const texts[] = { "\n", "\n" HEADER, "Rss: 5 kB\n" HEADER, "hello\n",
		" " HEADER, "VmFlags: rd\n",
		"\x7f"
		"ELF\n",
		"0\n", "1234\n", "a\n", "1000-2000\n", "1000-2000 \n", "1000-2000 rw-p\n",
		"1000-2000 rw-p \n", "1000-2000 rw-p 0\n", "1000-2000 rw-p 0 00\n",
		"1000-2000 rw-p 0 00:\n", "1000-2000 rw-p 0 00:00\n", "1000-2000 rw-p 0 00:00 \n",
		"1000-2000 rw-p 0 00:00 x\n", "1000 2000 rw-p 0 00:00 0 \n",
		"1000-x rw-p 0 00:00 0 \n", "-2000 rw-p 0 00:00 0 \n",
		"2000-1000 rw-p 0 00:00 0 \n", "11111111111111111-2 rw-p 0 00:00 0 \n",
		"1-22222222222222222 rw-p 0 00:00 0 \n",
		"1-2 rw-p 0 00:00 99999999999999999999999 \n",
		HEADER "Rss: 5 kB\n1000-2000 rw-p\n" };
	struct got got;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		ck_assert_msg(parse(texts[i], &got) == -EINVAL, "case %zu was taken", i);
	/* of the last one the good area was given before the bad header was met */
	ck_assert_int_eq(got.count, 1);
	expect_field(&got.area[0], SMAPS_RSS, 5);
	/* every header cut short is none */
	for (size_t len = 1; len < strlen("7f0000000000-7f0000002000 rw-p 00000000 00:00 0"); len++)
		ck_assert_int_eq(parse_at(HEADER, len, 0, &got), -EINVAL);
}
END_TEST

START_TEST(whole_address_space)
{
	struct got got;

	parse_ok("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  "
		 "[vsyscall]\n"
		 "0-ffffffffffffffff ---p ffffffffffffffff ff:fffff 18446744073709551615 \n",
		&got, 2);
	ck_assert_uint_eq(got.area[0].start, 0xffffffffff600000);
	ck_assert_str_eq(got.area[0].name, "[vsyscall]");
	ck_assert_uint_eq(got.area[1].start, 0);
	ck_assert_uint_eq(got.area[1].end, UINT64_MAX);
	ck_assert_uint_eq(got.area[1].offset, UINT64_MAX);
	ck_assert_uint_eq(got.area[1].inode, UINT64_MAX);
}
END_TEST

/* Two calls, cut at every line. */
START_TEST(two_pieces)
{
	const char *text = RECORD HEADER "Rss: 1 kB\n" RECORD;
	struct got whole, got;

	parse_ok(text, &whole, 3);
	for (const char *p = text; (p = strchr(p, '\n')); p++) {
		ck_assert_int_eq(parse_at(text, strlen(text), (size_t)(p + 1 - text), &got), 0);
		ck_assert_int_eq(got.count, 3);
		expect_record(&got.area[0]);
		ck_assert_uint_eq(got.area[1].seen, 1u << SMAPS_RSS);
		expect_record(&got.area[2]);
	}
}
END_TEST

static int stop_at_second(const struct smaps_area *area, void *data)
{
	int *visits = data;

	(void)area;
	return ++*visits == 2 ? 42 : 0;
}

START_TEST(visitor_stops)
{
	const char *text = HEADER HEADER HEADER HEADER;
	struct smaps_parser parser = { 0 };
	int visits = 0;

	ck_assert_int_eq(smaps_parse(&parser, text, strlen(text), stop_at_second, &visits), 42);
	ck_assert_int_eq(visits, 2);
	visits = 1;
	memset(&parser, 0, sizeof(parser));
	ck_assert_int_eq(smaps_parse(&parser, HEADER, strlen(HEADER), stop_at_second, &visits), 0);
	ck_assert_int_eq(smaps_finish(&parser, stop_at_second, &visits), 42);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("smaps");
	TCase *tcase = tcase_create("smaps");

	tcase_add_test(tcase, every_field);
	tcase_add_test(tcase, areas_apart);
	tcase_add_test(tcase, any_order);
	tcase_add_test(tcase, nothing);
	tcase_add_test(tcase, flags);
	tcase_add_test(tcase, permissions);
	tcase_add_test(tcase, old_and_short_records);
	tcase_add_test(tcase, names);
	tcase_add_test(tcase, fields_hostile);
	tcase_add_test(tcase, not_smaps);
	tcase_add_test(tcase, whole_address_space);
	tcase_add_test(tcase, two_pieces);
	tcase_add_test(tcase, visitor_stops);
	suite_add_tcase(suite, tcase);
	return tap_run(suite);
}
