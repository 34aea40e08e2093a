/* sysfs/pagemap and areas: against a kernel that is played here, page by page, and its ends. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/pagemap.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

#include "sysfs/areas.h"
#include "tests/unit/temp.h"

#define PAGES_MAX 40000
#define AREAS_MAX 3000
#define PAGE 4096

/* Entries of pagemap. */
#define FILE_PAGE (UINT64_C(1) << 61)
#define SWAPPED (UINT64_C(1) << 62)
#define PRESENT (UINT64_C(1) << 63)
#define OWN (UINT64_C(1) << 56)
#define GUARD (UINT64_C(1) << 58)

/* The process that is played. Pages are in the order of their addresses. */
static struct {
	struct areas_one areas[AREAS_MAX];
	size_t area_count;
	struct {
		uint64_t page, entry;
		bool zero, huge;
	} pages[PAGES_MAX];
	size_t page_count;
	int calls, dies_at; /* its memory goes at this call, counted from 1; 0: never */
	int query_errno;
	bool loops;
} model;

static bool dead(void)
{
	return ++model.calls >= model.dies_at && model.dies_at;
}

/* The numbers of include/uapi/linux/fs.h, by their places. */
static int play_query(uint64_t *arg)
{
	ck_assert_uint_eq(arg[0], 104);
	ck_assert_uint_eq(arg[1], 0x10);
	if (model.query_errno || dead()) {
		errno = model.query_errno ? model.query_errno : ESRCH;
		return -1;
	}
	for (size_t i = 0; i < model.area_count; i++) {
		const struct areas_one *area = &model.areas[i];
		if (area->end <= arg[2] && !model.loops)
			continue;
		arg[3] = area->start;
		arg[4] = area->end;
		arg[5] = (area->bits & SMAPS_READ ? 1 : 0) | (area->bits & SMAPS_WRITE ? 2 : 0) |
			 (area->bits & SMAPS_EXEC ? 4 : 0) | (area->bits & SMAPS_MAYSHARE ? 8 : 0);
		arg[6] = area->page_bytes;
		arg[8] = area->inode;
		arg[9] = area->dev_major;
		return 0;
	}
	errno = ENOENT;
	return -1;
}

static uint64_t categories(size_t i)
{
	uint64_t entry = model.pages[i].entry;
	bool zero = model.pages[i].zero;

	return (entry & FILE_PAGE && !zero ? 1 << 2 : 0) | (entry & PRESENT ? 1 << 3 : 0) |
	       (entry & SWAPPED ? 1 << 4 : 0) | (zero ? 1 << 5 : 0) |
	       (model.pages[i].huge ? 1 << 6 : 0);
}

static int play_scan(uint64_t *arg)
{
	uint64_t *regions = (uint64_t *)(uintptr_t)arg[5], at = arg[2], found = 0, pages = 0;

	ck_assert_uint_eq(arg[0], 96);
	ck_assert_uint_eq(arg[1], 0);
	ck_assert(arg[2] < arg[3] && !(arg[2] % PAGE) && !(arg[3] % PAGE));
	if (dead()) {
		arg[4] = arg[3];
		return 0; /* it does not say that there is nothing left to be scanned */
	}
	for (size_t i = 0; i < model.page_count; i++) {
		uint64_t address = model.pages[i].page * PAGE, is = categories(i) & arg[11];
		if (address < arg[2] || address >= arg[3] || !(categories(i) & arg[10]))
			continue;
		uint64_t *last = found ? regions + (found - 1) * 3 : NULL;
		bool joins = last && last[1] == address && last[2] == is;
		if (pages == arg[7] || (!joins && found == arg[6])) {
			arg[4] = at;
			return (int)found;
		}
		if (!joins) {
			last = regions + found++ * 3;
			last[0] = address;
			last[2] = is;
		}
		last[1] = at = address + PAGE;
		pages++;
	}
	arg[4] = arg[3];
	return (int)found;
}

int __wrap_ioctl(int fd, unsigned long request, ...);
ssize_t __wrap_pread64(int fd, void *buf, size_t size, off_t offset);
ssize_t __real_pread64(int fd, void *buf, size_t size, off_t offset);

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list args;

	(void)fd;
	va_start(args, request);
	uint64_t *arg = va_arg(args, uint64_t *);
	va_end(args);
	ck_assert_uint_eq(_IOC_TYPE(request), 'f');
	if (_IOC_NR(request) == 17)
		return play_query(arg);
	ck_assert_uint_eq(_IOC_NR(request), 16);
	return play_scan(arg);
}

static int counts_fd = -1;

ssize_t __wrap_pread64(int fd, void *buf, size_t size, off_t offset)
{
	uint64_t *entries = buf, first = (uint64_t)offset / 8;

	if (size == 1) /* whether the text of maps is there still */
		return dead() ? 0 : 1;
	if (fd == counts_fd)
		return __real_pread64(fd, buf, size, offset);
	ck_assert(size > 0 && !(size % 8) && !(offset % 8));
	if (dead())
		return 0;
	memset(buf, 0, size);
	for (size_t i = 0; i < model.page_count; i++) {
		if (model.pages[i].page >= first && model.pages[i].page - first < size / 8)
			entries[model.pages[i].page - first] = model.pages[i].entry;
	}
	return (ssize_t)size;
}

static struct proc proc;

static void begin(void)
{
	struct root root;

	memset(&model, 0, sizeof(model));
	temp_put("t/proc/1/maps", "");
	temp_put("t/proc/1/pagemap", "");
	temp_root(&root, "t");
	ck_assert_int_eq(proc_open(&proc, &root, 1), 0);
	root_close(&root);
}

static void end(void)
{
	proc_close(&proc);
}

static void area(uint64_t start_page, uint64_t pages, unsigned bits, uint64_t inode)
{
	model.areas[model.area_count++] = (struct areas_one){ .start = start_page * PAGE,
		.end = (start_page + pages) * PAGE,
		.inode = inode,
		.page_bytes = PAGE,
		.dev_major = inode ? 8 : 0,
		.bits = bits };
}

static void put(uint64_t page, uint64_t count, uint64_t entry)
{
	for (uint64_t i = 0; i < count; i++) {
		model.pages[model.page_count].page = page + i;
		model.pages[model.page_count].entry = entry;
		model.page_count++;
	}
}

static void put_zeros(uint64_t page, uint64_t count, bool huge)
{
	size_t from = model.page_count;

	put(page, count, PRESENT | (huge ? FILE_PAGE : 0));
	for (size_t i = from; i < model.page_count; i++) {
		model.pages[i].zero = true;
		model.pages[i].huge = huge;
	}
}

static struct pagemap_shared shared;

static struct smaps_sum look(const struct pagemap_how *how)
{
	const struct pagemap_how plain = { 0 };
	struct smaps_sum sum;

	ck_assert_int_eq(pagemap_read(&proc, how ? how : &plain, &sum, &shared), 0);
	ck_assert_uint_eq(sum.areas, model.area_count);
	return sum;
}

#define CODE (SMAPS_READ | SMAPS_EXEC)
#define DATA (SMAPS_READ | SMAPS_WRITE)

START_TEST(kinds)
{
	area(100, 50, CODE, 7);
	put(100, 10, PRESENT | FILE_PAGE);
	put(110, 5, PRESENT | FILE_PAGE | OWN);
	put(120, 3, PRESENT | OWN); /* written to */
	area(1000, 100, DATA, 0);
	put(1000, 20, PRESENT | OWN);
	put(1030, 7, PRESENT); /* forked or merged */
	put(1040, 4, SWAPPED);
	area(2000, 10, DATA | SMAPS_MAYSHARE, 9);
	put(2000, 6, PRESENT | FILE_PAGE);
	put(2007, 1, PRESENT); /* of a device: nobody's page */
	struct smaps_sum sum = look(NULL);
	ck_assert_uint_eq(sum.code_private_kib, 8 * 4);
	ck_assert_uint_eq(sum.code_shared_kib, 10 * 4);
	ck_assert_uint_eq(sum.data_private_kib, 20 * 4);
	ck_assert_uint_eq(sum.data_shared_kib, (7 + 6) * 4);
	ck_assert_uint_eq(sum.rss_kib, (8 + 10 + 20 + 7 + 6) * 4);
	ck_assert_uint_eq(sum.uss_kib, 28 * 4);
	ck_assert_uint_eq(sum.anonymous_kib, (3 + 20 + 7) * 4);
	ck_assert_uint_eq(sum.swap_kib, 4 * 4);
	ck_assert(sum.seen & 1U << SMAPS_SWAP);
	ck_assert(!(sum.seen & (1U << SMAPS_PSS | 1U << SMAPS_KSM)));
	ck_assert_uint_eq(shared.file_kib, 16 * 4);
	ck_assert_uint_eq(shared.anon_kib, 7 * 4);
}
END_TEST

START_TEST(zeros)
{
	area(100, 100, DATA, 0);
	put(100, 3, PRESENT | OWN);
	put_zeros(103, 50, false);
	put(153, 2, PRESENT);
	area(1024, 2048, DATA, 0);
	put_zeros(1024, 512, true);
	put(1536, 2, PRESENT | OWN);
	put_zeros(1540, 5, false);
	area(4000, 2, CODE, 0); /* [vdso] has no inode, and pages that all share */
	put(4000, 2, PRESENT | FILE_PAGE);
	struct smaps_sum sum = look(NULL);
	ck_assert_uint_eq(sum.rss_kib, (3 + 2 + 2 + 2) * 4);
	ck_assert_uint_eq(sum.data_shared_kib, 2 * 4);
	ck_assert_uint_eq(sum.code_shared_kib, 2 * 4);
}
END_TEST

START_TEST(not_in_smaps_either)
{
	area(1024, 1024, DATA, 5);
	model.areas[0].page_bytes = 512 * PAGE;
	put(1024, 512, PRESENT | FILE_PAGE | OWN);
	area(4000, 4, DATA, 0);
	put(4000, 1, PRESENT | OWN);
	struct smaps_sum sum = look(NULL);
	ck_assert_uint_eq(sum.rss_kib, 4);
}
END_TEST

/* What can be taken for swapped out, and is not. */
START_TEST(swap_not_sure)
{
	area(100, 100, DATA, 0);
	put(100, 3, SWAPPED);
	put(110, 5, SWAPPED | GUARD);
	ck_assert(!(look(NULL).seen & 1U << SMAPS_SWAP));
	model.page_count = 3;
	ck_assert(look(NULL).seen & 1U << SMAPS_SWAP);
	area(1000, 8, DATA | SMAPS_MAYSHARE, 77);
	ck_assert(look(NULL).seen & 1U << SMAPS_SWAP);
	model.areas[1].dev_major = 0; /* shared memory, perhaps */
	ck_assert(!(look(NULL).seen & 1U << SMAPS_SWAP));
}
END_TEST

/* A terabyte with a page here and there: not read page by page. */
START_TEST(sparse)
{
	const uint64_t all = UINT64_C(1) << 28, step = all / 1000;

	area(1 << 20, all, DATA, 0);
	for (uint64_t i = 0; i < 1000; i++)
		put((1 << 20) + i * step, 2, PRESENT | OWN);
	struct smaps_sum sum = look(NULL);
	ck_assert_uint_eq(sum.data_private_kib, 2000 * 4);
	ck_assert_int_lt(model.calls, 1200);
}
END_TEST

START_TEST(huge)
{
	struct pagemap_how how = { .not_huge = true };
	struct smaps_sum sum;
	uint64_t counts[2048] = { 0 };
	struct frames frames = { .flags_fd = -1, .page_bytes = PAGE };

	area(1024, 1024, DATA, 0);
	for (uint64_t i = 0; i < 1024; i++) {
		put(1024 + i, 1, PRESENT | OWN | (600 + i)); /* so says the kernel of all parts */
		model.pages[i].huge = true;
		counts[600 + i] = 1 + (i >= 100 && i < 700);
	}
	ck_assert_int_eq(pagemap_read(&proc, &how, &sum, &shared), -EOPNOTSUPP);
	how.not_huge = false;
	ck_assert_uint_eq(look(&how).data_private_kib, 1024 * 4);
	FILE *file = tmpfile();
	ck_assert_uint_eq(fwrite(counts, sizeof(counts), 1, file), 1);
	fflush(file);
	frames.count_fd = counts_fd = fileno(file);
	how.counts = &frames;
	sum = look(&how);
	ck_assert_uint_eq(sum.data_private_kib, 424 * 4);
	ck_assert_uint_eq(sum.data_shared_kib, 600 * 4);
	fclose(file);
	counts_fd = -1;
}
END_TEST

START_TEST(frames_wanted)
{
	struct frames_list list = { 0 };
	struct pagemap_how how = { .frames = &list };
	struct smaps_sum sum;

	area(100, 100, DATA, 0);
	put(100, 2, PRESENT | OWN | 11);
	put(102, 1, PRESENT | 12);
	put(103, 1, PRESENT | FILE_PAGE | 13);
	put_zeros(104, 4, false);
	look(&how);
	ck_assert_uint_eq(list.count, 3);
	model.pages[1].entry = PRESENT | OWN; /* hidden */
	ck_assert_int_eq(pagemap_read(&proc, &how, &sum, &shared), -EACCES);
	free(list.frames);
}
END_TEST

/* Whenever its memory goes, what was read before is not taken for all of it. */
static void die_at_every_call(void)
{
	struct pagemap_how how = { 0 };
	struct smaps_sum sum;

	model.calls = 0;
	look(NULL);
	int calls = model.calls;
	for (int at = 1; at <= calls; at++) {
		model.calls = 0;
		model.dies_at = at;
		int err = pagemap_read(&proc, &how, &sum, &shared);
		ck_assert_msg(err == -ESRCH, "at call %d of %d: %d", at, calls, err);
	}
	model.dies_at = 0;
}

START_TEST(dies)
{
	area(100, 50, CODE, 7);
	put(100, 10, PRESENT | FILE_PAGE);
	put_zeros(110, 3, false);
	area(3000, 4000, DATA, 0);
	put(3000, 100, PRESENT | OWN);
	put(3500, 100, PRESENT);
	die_at_every_call(); /* also where nothing is left but to look for more */
	area(9000, 40, DATA, 0);
	die_at_every_call();
}
END_TEST

/* More areas than are asked for one by one: the others come from the text. */
START_TEST(many_areas)
{
	static char text[AREAS_MAX * 64];
	size_t len = 0;

	for (uint64_t i = 0; i < 2500; i++) {
		area(1000 + i * 2, 1 + i % 2, i % 3 ? DATA : CODE, i % 5);
		put(1000 + i * 2, 1, PRESENT | (i % 2 ? OWN : 0));
	}
	area(512 * 100, 512, DATA, 99);
	model.areas[2500].page_bytes = 512 * PAGE; /* the text does not tell */
	put(512 * 100, 512, PRESENT | FILE_PAGE | OWN);
	for (size_t i = 0; i < model.area_count; i++) {
		const struct areas_one *one = &model.areas[i];
		len += (size_t)sprintf(text + len, "%jx-%jx r%c%cp 0 08:01 %ju \n",
			(uintmax_t)one->start, (uintmax_t)one->end,
			one->bits & SMAPS_WRITE ? 'w' : '-', one->bits & SMAPS_EXEC ? 'x' : '-',
			(uintmax_t)one->inode);
	}
	strcpy(text + len, "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n");
	temp_put("t/proc/1/maps", text);
	struct smaps_sum sum = look(NULL);
	ck_assert_uint_eq(sum.rss_kib, 2500 * 4);
	ck_assert_uint_eq(sum.code_private_kib + sum.code_shared_kib, 834 * 4);
	ck_assert_uint_eq(sum.uss_kib, 1250 * 4);
	die_at_every_call();
}
END_TEST

START_TEST(other_kernels)
{
	static const int given[] = { ENOTTY, EINVAL, EACCES, ESRCH },
			 want[] = { -ENOTTY, -ENOTTY, -EACCES, -ESRCH };
	struct pagemap_how how = { 0 };
	struct smaps_sum sum;

	area(100, 50, CODE, 7);
	for (size_t i = 0; i < 4; i++) {
		model.query_errno = given[i];
		ck_assert_int_eq(pagemap_read(&proc, &how, &sum, &shared), want[i]);
	}
	model.query_errno = 0;
	model.loops = true; /* a kernel that would keep us for ever */
	area(200, 50, CODE, 7);
	ck_assert_int_eq(pagemap_read(&proc, &how, &sum, &shared), -EIO);
}
END_TEST

/* Areas and pages by chance, against sums made page by page; all ways of reading are the same. */
START_TEST(by_chance)
{
	static const uint64_t all_kinds[] = { 0, PRESENT, PRESENT | OWN, PRESENT | FILE_PAGE,
		PRESENT | FILE_PAGE | OWN, SWAPPED };
	uint64_t own = 0, all = 0, code = 0, page = 500;

	srandom((unsigned)_i);
	for (int i = 0; i < 30; i++) {
		unsigned bits = random() % 2 ? CODE : DATA;
		uint64_t pages = 1 + (uint64_t)random() % (random() % 4 ? 200 : 9000), inode = 3;
		page += random() % 3 ? 0 : (uint64_t)random() % 3000;
		area(page, pages, bits, inode);
		uint64_t run = 0, kind = 0;
		for (uint64_t k = 0; k < pages && model.page_count < PAGES_MAX - 1; k++) {
			if (!run--) {
				run = (uint64_t)random() % 300;
				kind = all_kinds[random() % 6];
			}
			if (kind)
				put(page + k, 1, kind);
			all += kind >> 63;
			own += kind >> 63 && kind & OWN;
			code += kind >> 63 && bits == CODE;
		}
		page += pages;
	}
	struct smaps_sum sum = look(NULL);
	ck_assert_uint_eq(sum.rss_kib, all * 4);
	ck_assert_uint_eq(sum.uss_kib, own * 4);
	ck_assert_uint_eq(sum.code_private_kib + sum.code_shared_kib, code * 4);
	if (_i % 10 == 0) {
		struct pagemap_how how = { .gentle = true };
		struct smaps_sum gentle = look(&how);
		ck_assert_mem_eq(&gentle, &sum, sizeof(sum));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pagemap");
	TCase *tcase = temp_case(suite, "pagemap");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, kinds);
	tcase_add_test(tcase, zeros);
	tcase_add_test(tcase, not_in_smaps_either);
	tcase_add_test(tcase, swap_not_sure);
	tcase_add_test(tcase, sparse);
	tcase_add_test(tcase, huge);
	tcase_add_test(tcase, frames_wanted);
	tcase_add_test(tcase, dies);
	tcase_add_test(tcase, many_areas);
	tcase_add_test(tcase, other_kernels);
	tcase_add_loop_test(tcase, by_chance, 0, 40);
	return tap_run(suite);
}
