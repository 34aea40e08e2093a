/* Memory offered by libksmreg or its preload merges between processes on this kernel, other memory does not. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "libksmreg/ksmreg.h"
#include "sysfs/proc.h"
#include "tests/live/guard.h"
#include "tests/tap.h"

/* Of each process. A process offered as a whole merges some pages of libc too; 1 % must hold them. */
#define PAGES 8192
/* A pair in the test itself that always merges: the scanner worked, also where nothing is to merge. */
#define WITNESS 256
#define ENOUGH_PASSES 8
#define MANY_PASSES 30

static size_t page;

static void fill(char *to, size_t pages, uint64_t seed)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15 | 1;

	for (size_t i = 0; i < pages * page / 8; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(to + i * 8, &x, 8);
	}
}

/*
 * The other processes are this program again: `reg_merge hold SOURCE [WORD...]`. Words are done in
 * their order: register, process, fork (both go on), exec (start again with the words after it). Then
 * it fills the memory, says where it is, and stays until stdin ends.
 */
struct held {
	pid_t pid;
	char *at;
};

static char *get_memory(const char *source)
{
	if (!strcmp(source, "malloc"))
		return malloc((PAGES + 1) * page);
	if (!strcmp(source, "sbrk"))
		return sbrk((PAGES + 1) * page);
	return mmap(NULL, (PAGES + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);
}

static int hold(char **words)
{
	const char *source = words[2];
	char *memory = NULL, c;
	struct held held;
	int i;

	for (i = 3; words[i]; i++) {
		if (!strcmp(words[i], "process") && ksmreg_process(1))
			return 1;
		if (!strcmp(words[i], "register")) {
			memory = get_memory(source);
			if (ksmreg_register(memory, (PAGES + 1) * page))
				return 1;
		}
		if (!strcmp(words[i], "fork") && fork() < 0)
			return 1;
		if (!strcmp(words[i], "exec")) {
			for (char **to = &words[3], **from = &words[i + 1]; (*to++ = *from++);)
				;
			execv("/proc/self/exe", words);
			return 1;
		}
	}
	if (!memory)
		memory = get_memory(source);
	if (!memory || memory == MAP_FAILED)
		return 1;
	/* from a page on: malloc puts a header before it, and a last partial page after it */
	held = (struct held){ getpid(), (char *)(((uintptr_t)memory + page - 1) & -page) };
	fill(held.at, PAGES, 1);
	if (write(1, &held, sizeof(held)) != sizeof(held))
		return 1;
	return read(0, &c, 1) != 0;
}

static const struct pair {
	const char *name;
	const char *preload; /* KSMREG for the preload; NULL: without it */
	const char *source;
	const char *words[5];
	int merges; /* 1 yes, 0 no, -1 where areas join under the prctl */
	int needs_prctl;
	int forks;		      /* one is started and makes the other */
	int since_major, since_minor; /* kernels that do so for sure */
} pairs[] = {
	{ "registered memory", NULL, "mmap", { "register" }, 1, 0, 0, 0, 0 },
	{ "memory not registered", NULL, "mmap", { NULL }, 0, 0, 0, 0, 0 },
	{ "registered before fork", NULL, "mmap", { "register", "fork" }, 1, 0, 1, 0, 0 },
	{ "registered before exec", NULL, "mmap", { "register", "exec" }, 0, 0, 0, 0, 0 },
	{ "whole process", NULL, "malloc", { "process" }, 1, 1, 0, 0, 0 },
	{ "whole process before fork", NULL, "malloc", { "process", "fork" }, 1, 1, 1, 0, 0 },
	{ "whole process before exec", NULL, "malloc", { "process", "exec" }, 1, 1, 0, 6, 18 },
	{ "preload by prctl, malloc", "prctl", "malloc", { NULL }, 1, 1, 0, 0, 0 },
	{ "preload by madvise, mmap", "madvise", "mmap", { NULL }, 1, 0, 0, 0, 0 },
	{ "preload by madvise, sbrk", "madvise", "sbrk", { NULL }, 1, 0, 0, 0, 0 },
	{ "preload by madvise, libc's malloc", "madvise", "malloc", { NULL }, 0, 0, 0, 0, 0 },
	{ "preload by its own choice, malloc", "auto", "malloc", { NULL }, -1, 0, 0, 0, 0 },
	{ "preload by its own choice, mmap", "auto", "mmap", { NULL }, 1, 0, 0, 0, 0 },
	{ "preload, off", "off", "mmap", { NULL }, 0, 0, 0, 0, 0 },
};

static void set_preload(const char *how)
{
	static const char name[] = "/libksmreg-preload.so";
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof(name));

	if (n < 0)
		_exit(125);
	path[n] = '\0';
	/* in the build tree, beside this program or further up */
	for (char *slash; (slash = strrchr(path, '/')); *slash = '\0') {
		strcpy(slash, name);
		if (access(path, R_OK) == 0)
			break;
	}
	setenv("LD_PRELOAD", path, 1);
	setenv("KSMREG", how, 1);
}

/* Starts a process of a pair. It writes a struct held to `ready` and ends when `stay` does. */
static void start(const struct pair *pair, int stay[2], int ready[2])
{
	const char *argv[10] = { "reg_merge", "hold", pair->source };
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid)
		return;
	memcpy(argv + 3, pair->words, sizeof(pair->words));
	dup2(stay[0], 0);
	dup2(ready[1], 1);
	close(stay[0]);
	close(stay[1]);
	close(ready[0]);
	close(ready[1]);
	if (pair->preload)
		set_preload(pair->preload);
	execv("/proc/self/exe", (char **)argv);
	_exit(126);
}

static int64_t sharing(void)
{
	int64_t pages;

	ck_assert_int_eq(ksm_get(guard_ksm(), KSM_PAGES_SHARING, &pages), 0);
	return pages;
}

/* Which frames of memory n pages lie in, from pagemap. 0 is a page that is not there. */
static void read_frames(struct held held, size_t n, uint64_t *frames)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)held.pid);
	f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fseeko(f, (uintptr_t)held.at / page * 8, SEEK_SET), 0);
	ck_assert_uint_eq(fread(frames, 8, n, f), n);
	fclose(f);
	for (size_t i = 0; i < n; i++)
		frames[i] = frames[i] >> 63 ? frames[i] & ((UINT64_C(1) << 55) - 1) : 0;
}

/* How many of n pages of two processes are one page: the truth, whatever else runs here. */
static int common(struct held a, struct held b, size_t n)
{
	static uint64_t frames_a[PAGES], frames_b[PAGES];
	int same = 0;

	read_frames(a, n, frames_a);
	read_frames(b, n, frames_b);
	for (size_t i = 0; i < n; i++)
		same += frames_a[i] && frames_a[i] == frames_b[i];
	return same;
}

/*
 * The scanner is shown to work, and what else is on this machine comes to rest: pages of processes
 * that ended while nothing scanned still count until their areas are passed.
 */
static void settle(void)
{
	char *p = mmap(NULL, 2 * WITNESS * page, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct held a = { getpid(), p }, b = { getpid(), p + WITNESS * page };

	ck_assert_ptr_ne(p, MAP_FAILED);
	ck_assert_int_eq(ksmreg_register(p, 2 * WITNESS * page), 0);
	fill(a.at, WITNESS, 2);
	fill(b.at, WITNESS, 2);
	ck_assert_int_eq(guard_fast(), 0);
	ck_assert(guard_wait_passes(ENOUGH_PASSES, 120));
	ck_assert_int_eq(common(a, b, WITNESS), WITNESS);
}

/* Does anybody but this test offer memory now? Then pages_sharing says nothing about us. */
static bool alone(const struct held *ours)
{
	struct root root;
	struct proc_walk walk;
	struct proc proc;
	struct proc_ksm ksm;
	bool others = false;

	ck_assert_int_eq(root_open(&root, NULL), 0);
	ck_assert_int_eq(proc_walk_open(&walk, &root), 0);
	while (proc_walk_next(&walk, &proc) == 1) {
		if (proc.pid != getpid() && proc.pid != ours[0].pid && proc.pid != ours[1].pid &&
			proc_read_ksm_stat(&proc, &ksm) == 0)
			others |= ksm.rmap_items > 0;
		proc_close(&proc);
	}
	proc_walk_close(&walk);
	root_close(&root);
	return !others;
}

static bool older_than(int major, int minor)
{
	struct utsname name;
	int a = 0, b = 0;

	uname(&name);
	sscanf(name.release, "%d.%d", &a, &b);
	return a < major || (a == major && b < minor);
}

static bool left_out(const struct pair *pair, const struct ksmreg_caps *caps)
{
	if (pair->needs_prctl && caps->prctl) {
		tap_skip("%s: no PR_SET_MEMORY_MERGE in this kernel", pair->name);
		return true;
	}
#ifdef __SANITIZE_ADDRESS__
	if (pair->preload) {
		tap_skip("%s: a sanitizer's runtime must come before any preload", pair->name);
		return true;
	}
#endif
	if (older_than(pair->since_major, pair->since_minor)) {
		tap_skip("%s: not before Linux %d.%d", pair->name, pair->since_major,
			pair->since_minor);
		return true;
	}
	return false;
}

START_TEST(merges)
{
	const struct pair *pair = &pairs[_i];
	struct ksmreg_caps caps = { .size = sizeof(caps) };
	struct held held[2] = { { 0, NULL }, { 0, NULL } };
	int stay[2], ready[2], err, merged, expected;
	int64_t before, gained;
	bool was_alone;

	ck_assert_int_eq(ksmreg_probe(&caps), 0);
	if (left_out(pair, &caps))
		return;
	err = guard_take();
	if (err) {
		tap_skip("%s: KSM cannot be used here: %s", pair->name, strerror(-err));
		return;
	}
	settle();
	was_alone = alone(held);
	before = sharing();
	ck_assert_int_eq(pipe(stay), 0);
	ck_assert_int_eq(pipe(ready), 0);
	start(pair, stay, ready);
	if (!pair->forks)
		start(pair, stay, ready);
	close(ready[1]);
	close(stay[0]);
	for (int i = 0; i < 2; i++)
		ck_assert_msg(read(ready[0], &held[i], sizeof(held[i])) == sizeof(held[i]),
			"%s: a process failed", pair->name);

	expected = (pair->merges < 0 ? caps.areas_merge == 1 : pair->merges) * PAGES;
	ck_assert(guard_wait_passes(ENOUGH_PASSES, 120));
	for (int i = 0; (merged = common(held[0], held[1], PAGES)) < expected && i < MANY_PASSES;
		i++)
		ck_assert(guard_wait_passes(1, 60));
	gained = sharing() - before;
	was_alone = was_alone && alone(held);
	printf("# %s: %d of %d pages are common, pages_sharing %+ld%s\n", pair->name, merged, PAGES,
		(long)gained, was_alone ? "" : " (not compared: others merge here too)");
	fflush(stdout);
	ck_assert_int_ge(merged, expected - PAGES / 100);
	ck_assert_int_le(merged, expected);
	if (was_alone) {
		ck_assert_int_ge(gained, expected - PAGES / 100);
		ck_assert_int_le(gained, expected + PAGES / 100);
	}
	close(stay[1]);
	ck_assert_int_eq(guard_release(), 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("reg_merge");
	TCase *t = tcase_create("reg_merge");

	/* other tests may hold the lock */
	tcase_set_timeout(t, 600);
	tcase_add_loop_test(t, merges, 0, sizeof(pairs) / sizeof(pairs[0]));
	suite_add_tcase(s, t);
	return s;
}

int main(int argc, char **argv)
{
	page = sysconf(_SC_PAGESIZE);
	if (argc > 2 && !strcmp(argv[1], "hold"))
		return hold(argv);
	unsetenv("KSMREG");
	unsetenv("KSMREG_MIN");
	unsetenv("LD_PRELOAD");
	return tap_run(suite());
}
