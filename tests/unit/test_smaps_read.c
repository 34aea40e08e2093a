/* sysfs/smaps: the reader, with text in pieces of any size, faults, threads, and very many areas. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/smaps.h"

#include <errno.h>
#include <sys/mman.h>

#include "tests/unit/smaps_naive.h"
#include "tests/unit/temp.h"

/* Linked with --wrap (rules.mk): the reads of a test are cut into pieces, or fail. */
static struct {
	bool on;
	size_t first,
		rest; /* bytes that the first read, and each later one, may give; 0: no limit */
	int fail_at;  /* this read fails, counted from 1; 0: none */
	int fail_errno;
	int reads;
} plan;

ssize_t __real_read(int fd, void *buf, size_t size);
ssize_t __wrap_read(int fd, void *buf, size_t size);

ssize_t __wrap_read(int fd, void *buf, size_t size)
{
	if (!plan.on)
		return __real_read(fd, buf, size);
	size_t limit = plan.reads++ ? plan.rest : plan.first;
	if (plan.fail_at == plan.reads) {
		errno = plan.fail_errno;
		return -1;
	}
	return __real_read(fd, buf, limit && limit < size ? limit : size);
}

static void open_process(struct proc *proc, pid_t pid)
{
	struct root root;

	temp_root(&root, "t");
	ck_assert_int_eq(proc_open(proc, &root, pid), 0);
	root_close(&root);
}

static int read_planned(pid_t pid, size_t first, size_t rest, smaps_visit visit, void *data)
{
	struct proc proc;

	open_process(&proc, pid);
	plan.first = first;
	plan.rest = rest;
	plan.reads = 0;
	plan.on = true;
	int err = smaps_read(&proc, visit, data);
	plan.on = false;
	proc_close(&proc);
	return err;
}

#define FIRST \
	"55d0c0a00000-55d0c0a08000 r-xp 00002000 fe:01 1234567890                 /usr/bin/a b " \
	"12 kB\n" \
	"Size:                 32 kB\nRss:                  31 kB\nPss:                  20 kB\n" \
	"Shared_Clean:          1 kB\nShared_Dirty:          2 kB\nPrivate_Clean:         3 kB\n" \
	"Private_Dirty:         4 kB\nAnonymous:             5 kB\nKSM:                   6 kB\n" \
	"AnonHugePages:         7 kB\nSwap:                 12 kB\nTHPeligible:           1\n" \
	"VmFlags: rd ex mr mw me sd mg \n"
#define SECOND \
	"7f0000000000-7f0000002000 rw-p 00000000 00:00 0 \nRss:                   8 kB\n" \
	"Pss:                   8 kB\nPrivate_Dirty:         8 kB\nVmFlags: \n"
#define THIRD "7f0000003000-7f0000004000 r--p 00000000 00:00 0                  [vvar]\nPss: 0 kB\n"

/* The text cut in two at every byte, and in pieces of every size: the same sums. */
START_TEST(split_anywhere)
{
	static const char text[] = FIRST SECOND THIRD FIRST;
	struct smaps_sum want;

	temp_put("t/proc/1/smaps", text);
	naive_text(text, strlen(text), &want);
	ck_assert_uint_eq(want.areas, 4);
	for (size_t at = 1; at < sizeof(text); at++) {
		struct smaps_sum got = { 0 };
		ck_assert_int_eq(read_planned(1, at, 0, smaps_add, &got), 0);
		ck_assert_int_eq(plan.reads, at < strlen(text) ? 3 : 2);
		naive_expect("cut in two", &got, &want);
		memset(&got, 0, sizeof(got));
		ck_assert_int_eq(read_planned(1, at, at, smaps_add, &got), 0);
		naive_expect("in pieces", &got, &want);
	}
}
END_TEST

/* The same through a pipe, whose reads end where the writes did. */
START_TEST(through_a_pipe)
{
	static const char text[] = FIRST SECOND THIRD;
	struct smaps_sum want, got = { 0 };

	naive_text(text, strlen(text), &want);
	temp_parents("t/proc/2/smaps");
	ck_assert_int_eq(mkfifoat(temp_fd, "t/proc/2/smaps", 0600), 0);
	pid_t writer = fork();
	if (!writer) {
		int fd = openat(temp_fd, "t/proc/2/smaps", O_WRONLY);
		for (size_t at = 0; at < strlen(text); at += 7) {
			size_t len = strlen(text) - at < 7 ? strlen(text) - at : 7;
			if (write(fd, text + at, len) != (ssize_t)len)
				_exit(1);
			usleep(200);
		}
		_exit(0);
	}
	ck_assert_int_eq(read_planned(2, 0, 0, smaps_add, &got), 0);
	ck_assert_int_gt(plan.reads, 3);
	naive_expect("pipe", &got, &want);
}
END_TEST

START_TEST(last_line_without_newline)
{
	struct smaps_sum sum = { 0 };

	temp_put("t/proc/3/smaps",
		SECOND "7f0000003000-7f0000004000 r--p 00000000 00:00 0 \nRss: 7 kB");
	ck_assert_int_eq(read_planned(3, 0, 0, smaps_add, &sum), 0);
	ck_assert_uint_eq(sum.areas, 2);
	ck_assert_uint_eq(sum.rss_kib, 15);
}
END_TEST

START_TEST(read_fails)
{
	static const char text[] = FIRST SECOND THIRD FIRST SECOND;
	struct smaps_sum sum = { 0 };

	temp_put("t/proc/4/smaps", text);
	/* it went away meanwhile; a fault */
	for (plan.fail_at = 1; plan.fail_at < 6; plan.fail_at++) {
		plan.fail_errno = ESRCH;
		ck_assert_int_eq(read_planned(4, 300, 300, smaps_add, &sum), -ESRCH);
		plan.fail_errno = EIO;
		ck_assert_int_eq(read_planned(4, 300, 300, smaps_add, &sum), -EIO);
	}
	/* a signal is none */
	for (plan.fail_at = 1; plan.fail_at < 6; plan.fail_at++) {
		struct smaps_sum want;
		memset(&sum, 0, sizeof(sum));
		plan.fail_errno = EINTR;
		ck_assert_int_eq(read_planned(4, 300, 300, smaps_add, &sum), 0);
		naive_text(text, strlen(text), &want);
		naive_expect("after a signal", &sum, &want);
	}
	plan.fail_at = 0;
}
END_TEST

START_TEST(not_smaps)
{
	struct smaps_sum sum = { 0 };
	size_t len = 100000;
	char *line = malloc(len);

	temp_put("t/proc/5/smaps", "<html>\n");
	ck_assert_int_eq(read_planned(5, 0, 0, smaps_add, &sum), -EINVAL);
	temp_put("t/proc/5/smaps", SECOND "deadbeef\n" SECOND);
	ck_assert_int_eq(read_planned(5, 0, 0, smaps_add, &sum), -EINVAL);
	memset(line, 'x', len); /* a line without end */
	temp_write("t/proc/5/smaps", line, len);
	ck_assert_int_lt(read_planned(5, 0, 0, smaps_add, &sum), 0);
	ck_assert_int_lt(read_planned(5, 1, 1000, smaps_add, &sum), 0);
	free(line);
	temp_put("t/proc/6/smaps/x", "");
	ck_assert_int_eq(read_planned(6, 0, 0, smaps_add, &sum), -EISDIR);
	temp_put("t/proc/7/comm", "gone");
	ck_assert_int_eq(read_planned(7, 0, 0, smaps_add, &sum), -ESRCH);
}
END_TEST

static int check_name(const struct smaps_area *area, void *data)
{
	ck_assert_uint_eq(strlen(area->name), SMAPS_NAME_MAX - 1);
	ck_assert_uint_eq(area->kib[SMAPS_RSS], 3);
	++*(int *)data;
	return 0;
}

/* The longest path there can be: every byte a newline, each written as \012. */
START_TEST(longest_path)
{
	size_t len = 4 * 4095;
	char *text = malloc(3 * (len + 128)), *p = text;
	int areas = 0;

	for (int i = 0; i < 3; i++) {
		p += sprintf(p, "1000-2000 r--p 00000000 fe:01 5   /");
		for (size_t k = 0; k < len / 4; k++)
			p += sprintf(p, "\\012");
		p += sprintf(p, "\nRss: 3 kB\nPss: 2 kB\n");
	}
	temp_write("t/proc/8/smaps", text, (size_t)(p - text));
	for (size_t piece = 0; piece < 5000; piece += 1237) {
		areas = 0;
		ck_assert_int_eq(read_planned(8, piece, piece, check_name, &areas), 0);
		ck_assert_int_eq(areas, 3);
	}
	free(text);
}
END_TEST

static int stop(const struct smaps_area *area, void *data)
{
	(void)area;
	return ++*(int *)data == 3 ? -77 : 0;
}

START_TEST(visitor_stops)
{
	int visits = 0;

	temp_put("t/proc/9/smaps", SECOND SECOND SECOND SECOND SECOND);
	ck_assert_int_eq(read_planned(9, 100, 100, stop, &visits), -77);
	ck_assert_int_eq(visits, 3);
	/* by the area that only the end of the text completes */
	temp_put("t/proc/9/smaps", SECOND SECOND SECOND);
	visits = 0;
	ck_assert_int_eq(read_planned(9, 0, 0, stop, &visits), -77);
	/* a process with other threads is not read twice because of it */
	temp_put("t/proc/9/task/10/smaps", SECOND SECOND SECOND);
	visits = 2;
	ck_assert_int_eq(read_planned(9, 0, 0, stop, &visits), -77);
	ck_assert_int_eq(visits, 3);
}
END_TEST

/* The main thread has exited: one of the others is read, once. */
START_TEST(other_threads)
{
	struct smaps_sum sum = { 0 };

	temp_put("t/proc/20/smaps", "");
	temp_put("t/proc/20/task/20/smaps", "");
	temp_put("t/proc/20/task/21/stat", "it has just left\n");
	temp_put("t/proc/20/task/22/smaps", SECOND);
	temp_put("t/proc/20/task/23/smaps", SECOND);
	ck_assert_int_eq(read_planned(20, 0, 0, smaps_add, &sum), 0);
	ck_assert_uint_eq(sum.areas, 1);
	ck_assert_uint_eq(sum.rss_kib, 8);
	/* the main thread lives: it alone is read */
	temp_put("t/proc/20/smaps", THIRD);
	memset(&sum, 0, sizeof(sum));
	ck_assert_int_eq(read_planned(20, 0, 0, smaps_add, &sum), 0);
	ck_assert_uint_eq(sum.areas, 1);
	ck_assert_uint_eq(sum.rss_kib, 0);
	/* none has memory: a zombie */
	temp_put("t/proc/30/smaps", "");
	temp_put("t/proc/30/task/30/smaps", "");
	memset(&sum, 0, sizeof(sum));
	ck_assert_int_eq(read_planned(30, 0, 0, smaps_add, &sum), 0);
	ck_assert_uint_eq(sum.areas, 0);
}
END_TEST

#define MANY 60000

START_TEST(many_areas)
{
	size_t room = MANY * 300, len = 0;
	char *text = malloc(room);
	struct smaps_sum want, got = { 0 };

	srandom(7);
	for (unsigned long i = 1; i <= MANY; i++)
		len += (size_t)snprintf(text + len, room - len,
			"%lx-%lx r%c%cp 00000000 00:00 0 \nRss: %ld kB\nPss: %ld kB\nShared_Clean: "
			"%ld kB\n"
			"Private_Dirty: %ld kB\nAnonymous: %ld kB\nKSM: %ld kB\nVmFlags: rd%s \n",
			i << 12, (i + 1) << 12, i % 3 ? 'w' : '-', i % 5 ? '-' : 'x',
			random() % 1000000, random() % 1000000, random() % 5000, random() % 70000,
			random() % 9, random() % 900000, i % 7 ? "" : " mg");
	ck_assert_uint_lt(len, room);
	temp_write("t/proc/40/smaps", text, len);
	naive_text(text, len, &want);
	free(text);
	ck_assert_uint_eq(want.areas, MANY);
	ck_assert_int_eq(read_planned(40, 0, 0, smaps_add, &got), 0);
	naive_expect("many areas", &got, &want);
	/* about what the kernel gives at once */
	memset(&got, 0, sizeof(got));
	ck_assert_int_eq(read_planned(40, 3800, 4000, smaps_add, &got), 0);
	naive_expect("many areas in pieces", &got, &want);
}
END_TEST

struct range {
	uint64_t start, end;
	unsigned areas, marked;
};

static int count_in_range(const struct smaps_area *area, void *data)
{
	struct range *range = data;

	if (area->start >= range->start && area->end <= range->end) {
		range->areas++;
		range->marked += (area->bits & SMAPS_MERGEABLE) != 0;
	}
	return 0;
}

/* The real thing: pages of one mapping that differ in turns. */
START_TEST(many_areas_live)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = MANY * page;
	char *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct range range = { .start = (uintptr_t)p, .end = (uintptr_t)p + size };
	struct root root;
	struct proc proc;

	ck_assert_ptr_ne(p, MAP_FAILED);
	for (size_t i = 0; i < MANY; i += 2) {
		if (mprotect(p + i * page, page, PROT_NONE)) {
			ck_assert_int_eq(errno, ENOMEM);
			munmap(p, size);
			tap_skip("vm.max_map_count is below %d", MANY);
			return;
		}
	}
	ck_assert_int_eq(root_open(&root, NULL), 0);
	ck_assert_int_eq(proc_open(&proc, &root, getpid()), 0);
	ck_assert_int_eq(smaps_read(&proc, count_in_range, &range), 0);
	ck_assert_uint_eq(range.areas, MANY);
	ck_assert_uint_eq(range.marked, 0);
	proc_close(&proc);
	root_close(&root);
	munmap(p, size);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("smaps_read");
	TCase *tcase = temp_case(suite, "smaps_read");

	tcase_add_test(tcase, split_anywhere);
	tcase_add_test(tcase, through_a_pipe);
	tcase_add_test(tcase, last_line_without_newline);
	tcase_add_test(tcase, read_fails);
	tcase_add_test(tcase, not_smaps);
	tcase_add_test(tcase, longest_path);
	tcase_add_test(tcase, visitor_stops);
	tcase_add_test(tcase, other_threads);
	tcase_add_test(tcase, many_areas);
	tcase_add_test(tcase, many_areas_live);
	return tap_run(suite);
}
