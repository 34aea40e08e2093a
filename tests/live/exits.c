/* Processes that end, or start another program, while they are read: all of their memory, or none. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ksmstat/entry.h"
#include "tests/tap.h"

#define AREAS 300
#define AREA_PAGES 8
#define ROUNDS 250
#define LONG_US 900000

static struct root root;
static struct frames frames;
static size_t page;

static void set_up(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	ck_assert_int_eq(root_open(&root, NULL), 0);
	frames_open(&frames, &root);
}

static void tear_down(void)
{
	frames_close(&frames);
	root_close(&root);
}

/* Many areas, so that reading them takes several steps, each of which can be the last. */
static void fill(void)
{
	char *p = mmap(NULL, AREAS * AREA_PAGES * page, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(1);
	madvise(p, AREAS * AREA_PAGES * page, MADV_NOHUGEPAGE);
	memset(p, 1, AREAS * AREA_PAGES * page);
	for (size_t i = 0; i < AREAS; i += 2)
		mprotect(p + i * AREA_PAGES * page, AREA_PAGES * page, PROT_READ);
}

static void nap(unsigned long us)
{
	nanosleep(&(struct timespec){ .tv_nsec = (long)us * 1000 }, NULL);
}

/* Ends, or is replaced, `us` after the signal to go. */
static pid_t start(int go, unsigned us, bool execs)
{
	int ready[2];
	char c;

	ck_assert_int_eq(pipe(ready), 0);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fill();
		if (write(ready[1], "", 1) != 1 || read(go, &c, 1) != 1)
			_exit(1);
		nap(us);
		if (execs)
			execlp("sleep", "sleep", "60", (char *)NULL);
		_exit(0);
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

enum { WHOLE, NEW, GONE, WAYS };

static int read_one(pid_t pid, const struct entry_request *request)
{
	const uint64_t all_kib = AREAS * AREA_PAGES * page / 1024;
	struct entry_list list;
	int outcome = GONE;

	ck_assert_int_eq(entry_read(&list, &root, request), 0);
	ck_assert_uint_eq(list.count + list.missing, 1);
	if (list.count) {
		const struct entry *entry = list.entries;
		ck_assert_int_eq(entry->pid, pid);
		ck_assert_int_eq(entry->smaps_error, 0);
		outcome = entry->sum.rss_kib >= all_kib ? WHOLE : NEW;
		/* the new program has hardly anything; what is in between was not read to its end */
		ck_assert_msg(outcome == WHOLE || entry->sum.rss_kib < all_kib / 4,
			"%ju of %ju KiB were read", (uintmax_t)entry->sum.rss_kib,
			(uintmax_t)all_kib);
		ck_assert_uint_gt(entry->sum.rss_kib, 0);
		/* a program that begins has a stack, and nothing else yet */
		ck_assert_uint_gt(entry->sum.areas, outcome == WHOLE ? AREAS : 0);
	}
	entry_free(&list);
	return outcome;
}

static const struct {
	const char *name;
	unsigned needs;
	bool gentle, execs;
} ways[] = {
	{ "by smaps, exits", ENTRY_NEEDS_SMAPS, false, false },
	{ "by pagemap, exits", 0, false, false },
	{ "gently, exits", 0, true, false },
	{ "by both, exits", ENTRY_NEEDS_SMAPS | ENTRY_NEEDS_SHARED, false, false },
	{ "by smaps, execs", ENTRY_NEEDS_SMAPS, false, true },
	{ "by pagemap, execs", 0, false, true },
	{ "gently, execs", 0, true, true },
};

/* Reads one that ends `us` after it was told to go. */
static int try_one(int way, bool pagemap, unsigned us)
{
	int go[2], outcome;
	ck_assert_int_eq(pipe(go), 0);
	pid_t pid = start(go[0], us, ways[way].execs);
	struct selection selection = { .pids = &pid, .pid_count = 1 };
	struct entry_request request = { .selection = &selection,
		.needs = ways[way].needs,
		.gentle = ways[way].gentle,
		.pagemap = pagemap,
		.frames = frames.count_fd < 0 ? NULL : &frames };
	ck_assert_int_eq(write(go[1], "", 1), 1);
	outcome = read_one(pid, &request);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(go[0]);
	close(go[1]);
	return outcome;
}

/* How long it takes to read one that does not end. An emulated machine needs more than others. */
static unsigned undisturbed_us(int way, bool pagemap)
{
	struct timespec begin, end;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	ck_assert_int_eq(try_one(way, pagemap, LONG_US), WHOLE);
	clock_gettime(CLOCK_MONOTONIC, &end);
	return (unsigned)((end.tv_sec - begin.tv_sec) * 1000000 +
			  (end.tv_nsec - begin.tv_nsec) / 1000);
}

START_TEST(in_between)
{
	bool pagemap = pagemap_probe(&root) == 0;
	unsigned outcomes[WAYS] = { 0 }, most_us = ways[_i].gentle ? 40000 : 2000;

	if (!pagemap && ways[_i].needs != ENTRY_NEEDS_SMAPS) {
		tap_skip("this kernel is read by smaps alone");
		return;
	}
	unsigned us = undisturbed_us(_i, pagemap);
	most_us = us > most_us ? us : most_us;
	for (unsigned round = 0; round < ROUNDS / (ways[_i].gentle ? 4 : 1); round++)
		outcomes[try_one(_i, pagemap, round * 997 % most_us)]++;
	printf("# %s: %u times whole, %u times the new program, %u times gone\n", ways[_i].name,
		outcomes[WHOLE], outcomes[NEW], outcomes[GONE]);
	fflush(stdout);
	ck_assert_uint_gt(outcomes[WHOLE], 0);
	ck_assert_uint_gt(outcomes[ways[_i].execs ? NEW : GONE], 0);
	ck_assert_msg(!ways[_i].execs || !outcomes[GONE], "one that goes on was taken for gone");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("exits");
	TCase *tcase = tcase_create("exits");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, in_between, 0, sizeof(ways) / sizeof(*ways));
	suite_add_tcase(suite, tcase);
	return tap_run(suite);
}
