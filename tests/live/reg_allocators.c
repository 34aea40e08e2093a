/* The heaps of two equal programs merge: libksmreg in each allocator, the preload, and the whole process. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include "libksmreg/ksmreg.h"
#include "sysfs/proc.h"
#include "sysfs/smaps.h"
#include "tests/live/guard.h"
#include "tests/tap.h"

#define PASSES 3      /* between two looks */
#define MAX_PASSES 45 /* pages that many others equal take the longest */
#define OFF_PASSES 15

#define BATCH 512

static size_t page;

/*
 * Each row starts two of a program. It prints "ready PID BYTES" when so many bytes of its heap are
 * filled, and stays until its standard input ends.
 */
static const struct row {
	const char *name;
	const char *program;  /* in the folder of the examples; with a slash, anywhere */
	const char *words[5]; /* its arguments */
	const char *env[3];   /* a library of the build follows LD_PRELOAD= without its folder */
	const char *needs;    /* the package without which there is no such program, or NULL */
	int enough;	      /* per cent of the pages that are equal; 0: not one may merge */
} rows[] = {
#define MIB "64"
#define PERFTOOLS "libgoogle-perftools-dev"
#define JEMALLOC "libjemalloc-dev"
#define MIMALLOC "libmimalloc-dev"
#define PYTHON "libpython3-dev"
#define PRELOAD "LD_PRELOAD=libksmreg-preload.so"
	{ "arena", "fill-arena", { MIB }, { NULL }, NULL, 95 },
	{ "arena, off", "fill-arena", { MIB }, { "KSMREG=off" }, NULL, 0 },
	{ "tcmalloc", "fill-tcmalloc", { MIB }, { NULL }, PERFTOOLS, 95 },
	{ "tcmalloc, no races", "fill-tcmalloc", { MIB, "apart" }, { NULL }, PERFTOOLS, 95 },
	{ "tcmalloc, late", "fill-tcmalloc", { MIB, "late" }, { NULL }, PERFTOOLS, 95 },
	{ "tcmalloc, in a race", "fill-tcmalloc", { MIB, "twice" }, { NULL }, PERFTOOLS, 95 },
	{ "tcmalloc, off", "fill-tcmalloc", { MIB }, { "KSMREG=off" }, PERFTOOLS, 0 },
	{ "jemalloc", "fill-jemalloc", { MIB }, { NULL }, JEMALLOC, 95 },
	{ "jemalloc, late", "fill-jemalloc", { MIB, "late" }, { NULL }, JEMALLOC, 95 },
	{ "jemalloc, in a race", "fill-jemalloc", { MIB, "twice" }, { NULL }, JEMALLOC, 95 },
	{ "jemalloc, off", "fill-jemalloc", { MIB }, { "KSMREG=off" }, JEMALLOC, 0 },
	{ "mimalloc", "fill-mimalloc", { MIB }, { NULL }, MIMALLOC, 95 },
	{ "mimalloc, late", "fill-mimalloc", { MIB, "late" }, { NULL }, MIMALLOC, 95 },
	/* what a thread maps at that moment can be lost: the first segment of one */
	{ "mimalloc, in a race", "fill-mimalloc", { MIB, "twice" }, { NULL }, MIMALLOC, 60 },
	{ "mimalloc, off", "fill-mimalloc", { MIB }, { "KSMREG=off" }, MIMALLOC, 0 },
	{ "tcmalloc, preload by madvise", "fill-plain-tcmalloc", { MIB },
		{ PRELOAD, "KSMREG=madvise" }, PERFTOOLS, 95 },
	{ "jemalloc, preload by madvise", "fill-plain-jemalloc", { MIB },
		{ PRELOAD, "KSMREG=madvise" }, JEMALLOC, 95 },
	{ "mimalloc, preload by madvise", "fill-plain-mimalloc", { MIB },
		{ PRELOAD, "KSMREG=madvise" }, MIMALLOC, 95 },
	{ "glibc, preload by prctl", "fill", { MIB }, { PRELOAD, "KSMREG=prctl" }, NULL, 95 },
	{ "jemalloc, preload by prctl", "fill-plain-jemalloc", { MIB }, { PRELOAD, "KSMREG=prctl" },
		JEMALLOC, 95 },
	{ "glibc, its adapter", "fill", { MIB }, { "LD_PRELOAD=libksmreg-glibc.so" }, NULL, 95 },
	{ "glibc, its adapter off", "fill", { MIB },
		{ "LD_PRELOAD=libksmreg-glibc.so", "KSMREG=off" }, NULL, 0 },
	{ "glibc, its adapter linked", "fill-glibc", { MIB }, { NULL }, NULL, 95 },
	{ "glibc, its adapter linked, off", "fill-glibc", { MIB }, { "KSMREG=off" }, NULL, 0 },
	/* in front of another malloc it lets all through */
	{ "tcmalloc, glibc's adapter", "fill-plain-tcmalloc", { MIB },
		{ "LD_PRELOAD=libksmreg-glibc.so" }, PERFTOOLS, 0 },
	{ "python", "fill-python", { MIB }, { NULL }, PYTHON, 95 },
	{ "python, off", "fill-python", { MIB }, { "KSMREG=off" }, PYTHON, 0 },
	{ "glibc, preload off", "fill", { MIB }, { PRELOAD, "KSMREG=off" }, NULL, 0 },
};

/* In the build tree: this program's folder or one further up. False where it is not there. */
static bool find(const char *name, char *path, size_t size)
{
	char base[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", base, sizeof(base) - 1);

	ck_assert_int_gt(n, 0);
	base[n] = '\0';
	for (char *slash; (slash = strrchr(base, '/'));) {
		*slash = '\0';
		if (snprintf(path, size, "%s/%s", base, name) < (int)size && !access(path, R_OK))
			return true;
	}
	return false;
}

struct running {
	pid_t pid;
	int in; /* ends it when closed */
	size_t bytes;
};

static void set_env(const char *pair)
{
	static const char preload[] = "LD_PRELOAD=";
	char name[64], path[PATH_MAX];
	const char *value = strchr(pair, '=') + 1;

	if (!strncmp(pair, preload, sizeof(preload) - 1) && !find(value, path, sizeof(path)))
		_exit(126);
	snprintf(name, sizeof(name), "%.*s", (int)(value - 1 - pair), pair);
	setenv(name, strcmp(name, "LD_PRELOAD") ? value : path, 1);
}

static void run_program(const struct row *row, const char *program)
{
	const char *argv[2 + sizeof(row->words) / sizeof(*row->words)] = { program };

	memcpy(argv + 1, row->words, sizeof(row->words));
	for (size_t i = 0; i < sizeof(row->env) / sizeof(*row->env) && row->env[i]; i++)
		set_env(row->env[i]);
	execv(program, (char **)argv);
	_exit(127);
}

static struct running start(const struct row *row, const char *program)
{
	struct running running = { 0 };
	int in[2], out[2];
	char line[128];
	long pid;

	ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	running.pid = fork();
	ck_assert_int_ge(running.pid, 0);
	if (running.pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		run_program(row, program);
	}
	close(in[0]);
	close(out[1]);
	running.in = in[1];
	FILE *f = fdopen(out[0], "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_msg(fgets(line, sizeof(line), f), "%s: the program ended early", row->name);
	ck_assert_int_eq(sscanf(line, "ready %ld %zu", &pid, &running.bytes), 2);
	ck_assert_int_eq(pid, running.pid);
	fclose(f);
	return running;
}

static void stop(struct running *running)
{
	int status;

	close(running->in);
	ck_assert_int_eq(waitpid(running->pid, &status, 0), running->pid);
	ck_assert_int_eq(status, 0);
}

struct frame {
	uint64_t hash; /* of the content */
	uint64_t pfn;
};

/* The heap of a process: its private anonymous pages, but for the main stack and the kernel's zero page. */
struct heap {
	struct frame *frames;
	size_t count, room;
	size_t areas; /* all that the process has */
	size_t mergeable_bytes, bytes;
	int mem, pagemap, kpageflags;
	char *content; /* of the page being looked at */
};

static int by_hash(const void *a, const void *b)
{
	const struct frame *x = a, *y = b;
	return (x->hash > y->hash) - (x->hash < y->hash);
}

static int by_pfn(const void *a, const void *b)
{
	const struct frame *x = a, *y = b;
	return (x->pfn > y->pfn) - (x->pfn < y->pfn);
}

/* Memory that was read before it was written: no page of the process, and the same one everywhere. */
static bool is_kernels_zero_page(const struct heap *heap, uint64_t pfn)
{
	uint64_t flags;

	ck_assert_int_eq(pread(heap->kpageflags, &flags, 8, (off_t)pfn * 8), 8);
	return flags >> 24 & 1;
}

static void add_page(struct heap *heap, uint64_t pfn)
{
	if (is_kernels_zero_page(heap, pfn))
		return;
	if (heap->count == heap->room) {
		heap->room = heap->room ? heap->room * 2 : 4096;
		heap->frames = realloc(heap->frames, heap->room * sizeof(*heap->frames));
		ck_assert_ptr_nonnull(heap->frames);
	}
	heap->frames[heap->count++] = (struct frame){ XXH3_64bits(heap->content, page), pfn };
}

/* The first BATCH of n pages: a reservation has millions, and few of them are there. */
static void add_pages(struct heap *heap, uint64_t at, size_t n)
{
	uint64_t entries[BATCH];

	n = n < BATCH ? n : BATCH;
	ck_assert_int_eq(pread(heap->pagemap, entries, n * 8, (off_t)(at / page * 8)), n * 8);
	for (size_t i = 0; i < n; i++) {
		if (entries[i] >> 63 && pread(heap->mem, heap->content, page,
						(off_t)(at + i * page)) == (ssize_t)page)
			add_page(heap, entries[i] & ((UINT64_C(1) << 55) - 1));
	}
}

static int add_area(const struct smaps_area *area, void *data)
{
	struct heap *heap = data;

	heap->areas++;
	if (area->inode || (area->name[0] == '[' && strcmp(area->name, "[heap]") != 0) ||
		area->kib[SMAPS_ANONYMOUS] == 0)
		return 0;
	heap->bytes += area->kib[SMAPS_ANONYMOUS] << 10;
	if (area->bits & SMAPS_MERGEABLE)
		heap->mergeable_bytes += area->kib[SMAPS_ANONYMOUS] << 10;
	for (uint64_t at = area->start; at < area->end; at += BATCH * page)
		add_pages(heap, at, (area->end - at) / page);
	return 0;
}

static void read_heap(pid_t pid, struct heap *heap)
{
	struct root root;
	struct proc proc;

	memset(heap, 0, sizeof(*heap));
	heap->content = malloc(page);
	ck_assert_ptr_nonnull(heap->content);
	ck_assert_int_eq(root_open(&root, NULL), 0);
	ck_assert_int_eq(proc_open(&proc, &root, pid), 0);
	heap->mem = openat(proc.fd, "mem", O_RDONLY | O_CLOEXEC);
	heap->pagemap = openat(proc.fd, "pagemap", O_RDONLY | O_CLOEXEC);
	heap->kpageflags = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	ck_assert(heap->mem >= 0 && heap->pagemap >= 0 && heap->kpageflags >= 0);
	ck_assert_int_eq(smaps_read(&proc, add_area, heap), 0);
	close(heap->mem);
	close(heap->pagemap);
	close(heap->kpageflags);
	free(heap->content);
	proc_close(&proc);
	root_close(&root);
}

static void sort(struct heap *heap, int (*order)(const void *, const void *))
{
	if (heap->count)
		qsort(heap->frames, heap->count, sizeof(*heap->frames), order);
}

/* How many pages of a have one like it in b, which is sorted so. */
static size_t count_in(
	const struct heap *a, const struct heap *b, int (*order)(const void *, const void *))
{
	size_t n = 0;

	for (size_t i = 0; i < a->count && b->count; i++)
		n += !!bsearch(&a->frames[i], b->frames, b->count, sizeof(*b->frames), order);
	return n;
}

/* What the rows are about: the heap of one of two processes, seen from the other. */
struct outcome {
	size_t pages, equal, merged; /* equal: there is a page of this content in the other */
	size_t areas;
	double mergeable_percent;
};

/*
 * Merged is a page whose frame the other has too. Of a content that is there very often (zeros) one
 * frame serves max_page_sharing pages, which may all be of one process: these count when another page
 * of their own process has the frame.
 */
static struct outcome compare(pid_t a, pid_t b)
{
	struct heap x, y;
	struct outcome outcome;

	read_heap(a, &x);
	read_heap(b, &y);
	outcome = (struct outcome){ .pages = x.count, .areas = x.areas };
	outcome.mergeable_percent =
		100.0 * (double)x.mergeable_bytes / (double)(x.bytes ? x.bytes : 1);
	sort(&y, by_hash);
	outcome.equal = count_in(&x, &y, by_hash);
	sort(&y, by_pfn);
	outcome.merged = count_in(&x, &y, by_pfn);
	sort(&x, by_pfn);
	for (size_t i = 1; i < x.count; i++) {
		bool twin = x.frames[i].pfn == x.frames[i - 1].pfn;
		bool first = i == 1 || x.frames[i - 1].pfn != x.frames[i - 2].pfn;

		if (twin && !bsearch(&x.frames[i], y.frames, y.count, sizeof(*y.frames), by_pfn))
			outcome.merged += first ? 2 : 1;
	}
	free(x.frames);
	free(y.frames);
	return outcome;
}

static bool uses_prctl(const struct row *row)
{
	return row->env[0] && row->env[1] && !strcmp(row->env[1], "KSMREG=prctl");
}

static bool left_out(const struct row *row, const char *program)
{
	struct ksmreg_caps caps = { .size = sizeof(caps) };

	if (!*program) {
		tap_skip("%s: there is no %s without %s", row->name, row->program, row->needs);
		return true;
	}
	ck_assert_int_eq(ksmreg_probe(&caps), 0);
	if (uses_prctl(row) && caps.prctl) {
		tap_skip("%s: no PR_SET_MEMORY_MERGE in this kernel", row->name);
		return true;
	}
#ifdef __SANITIZE_ADDRESS__
	if (row->env[0] && !strncmp(row->env[0], "LD_PRELOAD", 10)) {
		tap_skip("%s: a sanitizer's runtime must come before any preload", row->name);
		return true;
	}
#endif
	return false;
}

/*
 * Two pages of this test that are equal: ksmd makes no pass where nothing at all is registered, and
 * these show that it was at work where nothing else is to merge.
 */
static char *witness_start(void)
{
	char *p = mmap(NULL, 16 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	ck_assert_int_eq(ksmreg_register(p, 16 * page), 0);
	memset(p, 0x5a, 16 * page);
	return p;
}

static bool witness_merged(const char *p)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entries[2];

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, entries, 16, (off_t)((uintptr_t)p / page * 8)), 16);
	close(fd);
	return entries[0] >> 63 && ((entries[0] ^ entries[1]) & ((UINT64_C(1) << 55) - 1)) == 0;
}

static void look_at(const struct row *row, const char *program)
{
	char *witness = witness_start();
	struct running a = start(row, program), b = start(row, program);
	struct outcome outcome;
	int passes = 0;

	ck_assert_int_eq(guard_fast(), 0);
	/* where nothing may merge, as many passes as all of the other rows need, and more */
	do {
		int n = row->enough ? PASSES : OFF_PASSES;

		ck_assert(guard_wait_passes(n, 120));
		passes += n;
		outcome = compare(a.pid, b.pid);
	} while (outcome.merged * 100 < outcome.equal * (size_t)row->enough && passes < MAX_PASSES);
	printf("# %s: %zu heap pages, %.1f %% equal, %.1f %% of these merged after %d passes; "
	       "%.1f %% registered, %zu areas\n",
		row->name, outcome.pages, 100.0 * (double)outcome.equal / (double)outcome.pages,
		100.0 * (double)outcome.merged / (double)(outcome.equal ? outcome.equal : 1),
		passes, outcome.mergeable_percent, outcome.areas);
	fflush(stdout);
	/* the program really has what it says, and enough of it is equal to speak of */
	ck_assert_uint_ge(outcome.pages * page, a.bytes / 10 * 9);
	ck_assert_uint_ge(outcome.equal, outcome.pages / 4);
	ck_assert(witness_merged(witness));
	if (row->enough)
		ck_assert_uint_ge(outcome.merged * 100, outcome.equal * (size_t)row->enough);
	else
		ck_assert_uint_eq(outcome.merged, 0);
	stop(&a);
	stop(&b);
}

START_TEST(merges)
{
	const struct row *row = &rows[_i];
	char program[PATH_MAX] = "", name[PATH_MAX];
	bool found;
	int err;

	snprintf(name, sizeof(name), "examples/%s", row->program);
	if (strchr(row->program, '/')) {
		found = !access(row->program, X_OK);
		snprintf(program, sizeof(program), "%s", found ? row->program : "");
	} else {
		found = find(name, program, sizeof(program));
	}
	if (!found) {
		ck_assert_msg(row->needs, "%s is not built: make examples", row->program);
		program[0] = '\0';
	}
	if (left_out(row, program))
		return;
	err = guard_take();
	if (err) {
		tap_skip("%s: KSM cannot be used here: %s", row->name, strerror(-err));
		return;
	}
	look_at(row, program);
	ck_assert_int_eq(guard_release(), 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("reg_allocators");
	TCase *t = tcase_create("reg_allocators");

	/* other tests may hold the lock */
	tcase_set_timeout(t, 600);
	tcase_add_loop_test(t, merges, 0, sizeof(rows) / sizeof(rows[0]));
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	unsetenv("KSMREG");
	unsetenv("KSMREG_MIN");
	unsetenv("LD_PRELOAD");
	return tap_run(suite());
}
