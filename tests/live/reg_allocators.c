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

#define MIB "32"
#define PASSES 3 /* between two looks */
#define MAX_PASSES 45
#define ENOUGH 95 /* per cent of the pages that are equal */

static size_t page;

static const struct row {
	const char *name;
	const char *program; /* in the folder of the examples */
	const char *preload; /* a library of the build, or NULL */
	const char *how;     /* KSMREG, or NULL */
	const char *package; /* that it is built with, where it may be missing */
	int merges;
} rows[] = {
	{ "arena", "fill-arena", NULL, NULL, NULL, 1 },
	{ "arena, switched off", "fill-arena", NULL, "off", NULL, 0 },
	{ "tcmalloc", "fill-tcmalloc", NULL, NULL, "libgoogle-perftools-dev", 1 },
	{ "tcmalloc, switched off", "fill-tcmalloc", NULL, "off", "libgoogle-perftools-dev", 0 },
	{ "jemalloc", "fill-jemalloc", NULL, NULL, "libjemalloc-dev", 1 },
	{ "jemalloc, switched off", "fill-jemalloc", NULL, "off", "libjemalloc-dev", 0 },
	{ "mimalloc", "fill-mimalloc", NULL, NULL, "libmimalloc-dev", 1 },
	{ "mimalloc, switched off", "fill-mimalloc", NULL, "off", "libmimalloc-dev", 0 },
	{ "tcmalloc, preload by madvise", "fill-plain-tcmalloc", "libksmreg-preload.so", "madvise",
		"libgoogle-perftools-dev", 1 },
	{ "jemalloc, preload by madvise", "fill-plain-jemalloc", "libksmreg-preload.so", "madvise",
		"libjemalloc-dev", 1 },
	{ "mimalloc, preload by madvise", "fill-plain-mimalloc", "libksmreg-preload.so", "madvise",
		"libmimalloc-dev", 1 },
	{ "glibc, preload by prctl", "fill", "libksmreg-preload.so", "prctl", NULL, 1 },
	{ "jemalloc, preload by prctl", "fill-plain-jemalloc", "libksmreg-preload.so", "prctl",
		"libjemalloc-dev", 1 },
	{ "glibc, preload switched off", "fill", "libksmreg-preload.so", "off", NULL, 0 },
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

static struct running start(const struct row *row, const char *program)
{
	struct running running = { 0 };
	int in[2], out[2];
	char line[128], preload[PATH_MAX];
	long pid;

	ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	running.pid = fork();
	ck_assert_int_ge(running.pid, 0);
	if (running.pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		if (row->how)
			setenv("KSMREG", row->how, 1);
		if (row->preload && find(row->preload, preload, sizeof(preload)))
			setenv("LD_PRELOAD", preload, 1);
		execl(program, program, MIB, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	running.in = in[1];
	FILE *f = fdopen(out[0], "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), f));
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

/* The heap of a process: its private anonymous pages, but for stacks, and those filled with zeros. */
struct heap {
	struct frame *frames;
	size_t count, room;
	size_t areas, mergeable_bytes, bytes;
	int mem, pagemap;
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

static void add_page(struct heap *heap, const char *content, uint64_t pfn)
{
	if (content[0] == 0 && !memcmp(content, content + 1, page - 1))
		return;
	if (heap->count == heap->room) {
		heap->room = heap->room ? heap->room * 2 : 4096;
		heap->frames = realloc(heap->frames, heap->room * sizeof(*heap->frames));
		ck_assert_ptr_nonnull(heap->frames);
	}
	heap->frames[heap->count++] = (struct frame){ XXH3_64bits(content, page), pfn };
}

static int add_area(const struct smaps_area *area, void *data)
{
	struct heap *heap = data;
	char *content = malloc(page);
	uint64_t entry;

	ck_assert_ptr_nonnull(content);
	if (!area->inode && area->name[0] != '[')
		heap->areas++;
	if (area->inode || (area->name[0] == '[' && strcmp(area->name, "[heap]") != 0) ||
		area->kib[SMAPS_ANONYMOUS] == 0) {
		free(content);
		return 0;
	}
	heap->bytes += area->kib[SMAPS_ANONYMOUS] << 10;
	if (area->bits & SMAPS_MERGEABLE)
		heap->mergeable_bytes += area->kib[SMAPS_ANONYMOUS] << 10;
	for (uint64_t at = area->start; at < area->end; at += page) {
		ck_assert_int_eq(pread(heap->pagemap, &entry, 8, (off_t)(at / page * 8)), 8);
		if (entry >> 63 && pread(heap->mem, content, page, (off_t)at) == (ssize_t)page)
			add_page(heap, content, entry & ((UINT64_C(1) << 55) - 1));
	}
	free(content);
	return 0;
}

static void read_heap(pid_t pid, struct heap *heap)
{
	struct root root;
	struct proc proc;

	memset(heap, 0, sizeof(*heap));
	ck_assert_int_eq(root_open(&root, NULL), 0);
	ck_assert_int_eq(proc_open(&proc, &root, pid), 0);
	heap->mem = openat(proc.fd, "mem", O_RDONLY | O_CLOEXEC);
	heap->pagemap = openat(proc.fd, "pagemap", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(heap->mem, 0);
	ck_assert_int_ge(heap->pagemap, 0);
	ck_assert_int_eq(smaps_read(&proc, add_area, heap), 0);
	close(heap->mem);
	close(heap->pagemap);
	proc_close(&proc);
	root_close(&root);
}

/* Of the pages of a: how many have an equal in b, and how many are one page with one of b. */
static void compare(
	pid_t a, pid_t b, size_t *equal, size_t *merged, size_t *all, struct heap *shown)
{
	struct heap x, y;

	read_heap(a, &x);
	read_heap(b, &y);
	*equal = *merged = 0;
	*all = x.count;
	if (y.count) {
		qsort(y.frames, y.count, sizeof(*y.frames), by_hash);
		for (size_t i = 0; i < x.count; i++)
			*equal += !!bsearch(
				&x.frames[i], y.frames, y.count, sizeof(*y.frames), by_hash);
		qsort(y.frames, y.count, sizeof(*y.frames), by_pfn);
		for (size_t i = 0; i < x.count; i++)
			*merged += !!bsearch(
				&x.frames[i], y.frames, y.count, sizeof(*y.frames), by_pfn);
	}
	free(x.frames);
	free(y.frames);
	x.frames = NULL;
	*shown = x;
}

static bool left_out(const struct row *row, const char *program)
{
	struct ksmreg_caps caps = { .size = sizeof(caps) };

	if (!*program) {
		tap_skip("%s: %s was not built: needs %s", row->name, row->program, row->package);
		return true;
	}
	ck_assert_int_eq(ksmreg_probe(&caps), 0);
	if (row->how && !strcmp(row->how, "prctl") && caps.prctl) {
		tap_skip("%s: no PR_SET_MEMORY_MERGE in this kernel", row->name);
		return true;
	}
#ifdef __SANITIZE_ADDRESS__
	tap_skip("%s: a sanitizer has a heap of its own", row->name);
	return true;
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

START_TEST(merges)
{
	const struct row *row = &rows[_i];
	char program[PATH_MAX] = "", name[128];
	size_t equal, merged, all;
	struct heap heap;

	snprintf(name, sizeof(name), "examples/%s", row->program);
	if (!find(name, program, sizeof(program))) {
		ck_assert_msg(row->package, "%s is not built: make examples", row->program);
		program[0] = '\0';
	}
	if (left_out(row, program))
		return;
	int err = guard_take();
	if (err) {
		tap_skip("%s: KSM cannot be used here: %s", row->name, strerror(-err));
		return;
	}
	char *witness = witness_start();
	struct running a = start(row, program), b = start(row, program);
	ck_assert_int_eq(guard_fast(), 0);
	for (int passes = 0; passes < MAX_PASSES; passes += PASSES) {
		ck_assert(guard_wait_passes(PASSES, 120));
		compare(a.pid, b.pid, &equal, &merged, &all, &heap);
		if (row->merges ? merged * 100 >= equal * ENOUGH : witness_merged(witness))
			break;
	}
	printf("# %s: of %zu heap pages %.1f %% are equal, of these %.1f %% merged; %.1f %% "
	       "registered, "
	       "%zu areas\n",
		row->name, all, 100.0 * (double)equal / (double)all,
		100.0 * (double)merged / (double)(equal ? equal : 1),
		100.0 * (double)heap.mergeable_bytes / (double)(heap.bytes ? heap.bytes : 1),
		heap.areas);
	fflush(stdout);
	/* the program really has what it says, and enough of it is equal to speak of */
	ck_assert_uint_ge(all * page, a.bytes / 10 * 9);
	ck_assert_uint_ge(equal, all / 4);
	if (row->merges)
		ck_assert_uint_ge(merged * 100, equal * ENOUGH);
	else
		ck_assert(merged == 0 && witness_merged(witness));
	stop(&a);
	stop(&b);
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
