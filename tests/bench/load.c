/* One process of a benchmark workload: builds registered memory of a given mixture and keeps it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "libksmreg/ksmreg.h"
#include "tests/bench/load.h"

#define PAGE 4096u
#define PAGES_PER_MIB (1048576u / PAGE)
#define PAGE_WORDS (PAGE / sizeof(uint64_t))
/* An allocator takes its memory in regions of about this size. */
#define CHUNK_PAGES (8 * PAGES_PER_MIB)
/* Paced work is done in this many slices per period. */
#define SLICES 20

enum { KIND_EQUAL, KIND_ZERO, KIND_UNIQUE, KIND_VOLATILE, KINDS };

static struct {
	uint64_t mib, percent[KINDS], seed, period_ms;
	uint64_t grow_mib_s; /* 0: all at once */
	uint64_t children,
		rewrite;       /* prefork: children, and percent of the memory that each rewrites */
	uint64_t short_rounds; /* work through the memory this often, then exit */
	bool busy;	       /* only burn CPU */
	int fd;
	uint64_t slot;
} options = { .mib = 256, .percent = { 40, 10, 30, 20 }, .period_ms = 1000, .fd = -1 };

static struct load_report *reports, *report;
static uint64_t **pages[KINDS];
static uint64_t page_count[KINDS];

/* splitmix64: a stream of well mixed numbers from a seed. */
static uint64_t mix(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void fill(uint64_t *page, uint64_t seed)
{
	for (size_t i = 0; i < PAGE_WORDS; i++)
		page[i] = mix(&seed);
}

static void *xmap(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		perror("load: mmap");
		exit(1);
	}
	return p;
}

/* The next page of the arena; registered before anybody touches it. */
static uint64_t *arena_page(void)
{
	static char *next;
	static size_t left;
	if (left == 0) {
		next = xmap((size_t)CHUNK_PAGES * PAGE);
		left = CHUNK_PAGES;
		ksmreg_register(next, (size_t)CHUNK_PAGES * PAGE);
	}
	uint64_t *page = (uint64_t *)(void *)next;
	next += PAGE;
	left--;
	return page;
}

static void add_page(int kind)
{
	uint64_t *page = arena_page(), index = page_count[kind]++;
	pages[kind][index] = page;
	switch (kind) {
	case KIND_EQUAL:
		fill(page, index << 8);
		atomic_fetch_add(&report->equal_pages, 1);
		break;
	case KIND_ZERO:
		memset(page, 0, PAGE);
		atomic_fetch_add(&report->zero_pages, 1);
		break;
	default:
		fill(page, (options.seed + 1) << 40 | index << 2 | (unsigned)kind);
		atomic_fetch_add(
			kind == KIND_UNIQUE ? &report->unique_pages : &report->volatile_pages, 1);
	}
}

/* Bring the memory to `total` pages of the wanted mixture, one MiB of a kind at a time. */
static void build_to(uint64_t total)
{
	for (int kind = 0; kind < KINDS; kind++) {
		uint64_t want = total * options.percent[kind] / 100;
		while (page_count[kind] < want)
			add_page(kind);
	}
}

/* A page changes when one of its lines does; more would only load the machine. */
static void rewrite_volatile(uint64_t first, uint64_t end, uint64_t round)
{
	for (uint64_t i = first; i < end; i++) {
		uint64_t state = round << 32 ^ i ^ options.seed << 56;
		for (int word = 0; word < 8; word++)
			pages[KIND_VOLATILE][i][word] = mix(&state);
	}
	atomic_fetch_add(&report->work, end - first);
}

/* One equal page in every round, so that a merge of unequal pages would be seen. */
static void check_equal(uint64_t round)
{
	uint64_t count = page_count[KIND_EQUAL];
	if (!count)
		return;
	uint64_t index = round * 7919 % count, state = index << 8;
	for (size_t i = 0; i < PAGE_WORDS; i++) {
		if (pages[KIND_EQUAL][index][i] != mix(&state)) {
			atomic_fetch_add(&report->damaged, 1);
			return;
		}
	}
}

static void wait_until(struct timespec *t, uint64_t add_ns)
{
	t->tv_nsec += (long)add_ns;
	while (t->tv_nsec >= 1000000000) {
		t->tv_nsec -= 1000000000;
		t->tv_sec++;
	}
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, t, NULL) == EINTR)
		;
}

/* Keep the memory, rewriting and growing it at an even pace, until killed. */
static _Noreturn void live(void)
{
	uint64_t total = options.mib * PAGES_PER_MIB, built = options.grow_mib_s ? 0 : total;
	uint64_t slice_ns = options.period_ms * 1000000 / SLICES;
	uint64_t grow = options.grow_mib_s * PAGES_PER_MIB * options.period_ms / 1000 / SLICES;
	struct timespec next;
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (uint64_t n = 0;; n++) {
		uint64_t count = page_count[KIND_VOLATILE], slice = n % SLICES;
		wait_until(&next, slice_ns);
		rewrite_volatile(count * slice / SLICES, count * (slice + 1) / SLICES, n);
		check_equal(n);
		if (built < total) {
			built = built + grow < total ? built + grow : total;
			build_to(built);
			atomic_store(&report->ready, built == total);
		}
	}
}

static void die_with_parent(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		exit(1);
}

/* A prefork server: each child writes its own copy of what was inherited, the same in all children. */
static void prefork(void)
{
	uint64_t rewrite = page_count[KIND_UNIQUE] * options.rewrite / 100;
	pid_t parent = getpid();
	for (uint64_t child = 1; child <= options.children; child++) {
		pid_t pid = fork();
		if (pid < 0) {
			perror("load: fork");
			exit(1);
		}
		if (pid)
			continue;
		die_with_parent(parent);
		report = &reports[options.slot + child];
		for (uint64_t i = 0; i < rewrite; i++) {
			fill(pages[KIND_UNIQUE][i], i << 8);
			atomic_fetch_add(&report->equal_pages, 1);
		}
		atomic_store(&report->ready, 1);
		for (;;)
			pause();
	}
}

/* A short job: read all of its memory some times, write a sixteenth of it each time, leave. */
static void short_job(void)
{
	uint64_t sum = 0, count = page_count[KIND_EQUAL];
	for (uint64_t round = 0; round < options.short_rounds; round++) {
		for (uint64_t i = 0; i < count; i++) {
			for (size_t word = 0; word < PAGE_WORDS; word++)
				sum = (sum ^ pages[KIND_EQUAL][i][word]) * 0x100000001b3u;
			if (i % 16 == round % 16)
				pages[KIND_EQUAL][i][0] = sum;
		}
	}
	atomic_fetch_add(&report->work, (sum & 1) + 1);
}

static _Noreturn void burn(void)
{
	atomic_store(&report->ready, 1);
	for (uint64_t state = 0;;) {
		for (int i = 0; i < 100000; i++)
			mix(&state);
		atomic_fetch_add(&report->work, 1 + (mix(&state) == 0));
	}
}

static void parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "mib", required_argument, NULL, 'm' },
		{ "equal", required_argument, NULL, 'e' },
		{ "zero", required_argument, NULL, 'z' },
		{ "unique", required_argument, NULL, 'u' },
		{ "volatile", required_argument, NULL, 'v' },
		{ "seed", required_argument, NULL, 's' },
		{ "period-ms", required_argument, NULL, 'p' },
		{ "grow-mib-s", required_argument, NULL, 'g' },
		{ "children", required_argument, NULL, 'c' },
		{ "rewrite", required_argument, NULL, 'w' },
		{ "short-rounds", required_argument, NULL, 'r' },
		{ "report-fd", required_argument, NULL, 'f' },
		{ "slot", required_argument, NULL, 'n' },
		{ "busy", no_argument, NULL, 'b' },
		{ NULL, 0, NULL, 0 },
	};
	int c;
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		uint64_t n = optarg ? strtoull(optarg, NULL, 10) : 0;
		switch (c) {
		case 'm':
			options.mib = n;
			break;
		case 'e':
			options.percent[KIND_EQUAL] = n;
			break;
		case 'z':
			options.percent[KIND_ZERO] = n;
			break;
		case 'u':
			options.percent[KIND_UNIQUE] = n;
			break;
		case 'v':
			options.percent[KIND_VOLATILE] = n;
			break;
		case 's':
			options.seed = n;
			break;
		case 'p':
			options.period_ms = n;
			break;
		case 'g':
			options.grow_mib_s = n;
			break;
		case 'c':
			options.children = n;
			break;
		case 'w':
			options.rewrite = n;
			break;
		case 'r':
			options.short_rounds = n;
			break;
		case 'f':
			options.fd = (int)n;
			break;
		case 'n':
			options.slot = n;
			break;
		case 'b':
			options.busy = true;
			break;
		default:
			fputs("usage: load [--mib N] [--equal %] [--zero %] [--unique %] "
			      "[--volatile %] [--seed N] [--period-ms N]\n"
			      "            [--grow-mib-s N | --children N --rewrite % | "
			      "--short-rounds N | --busy] [--report-fd FD --slot N]\n",
				stderr);
			exit(2);
		}
	}
	if (optind < argc || options.slot + options.children >= LOAD_SLOTS || !options.period_ms) {
		fputs("load: wrong arguments\n", stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	if (options.fd >= 0) {
		pid_t parent = getppid();
		if (parent == 1)
			return 1;
		die_with_parent(parent);
	}
	int flags = options.fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
	reports = mmap(
		NULL, LOAD_SLOTS * sizeof(*reports), PROT_READ | PROT_WRITE, flags, options.fd, 0);
	if (reports == MAP_FAILED) {
		perror("load: report");
		return 1;
	}
	report = &reports[options.slot];
	if (options.busy)
		burn();
	uint64_t total = options.mib * PAGES_PER_MIB;
	for (int kind = 0; kind < KINDS; kind++)
		pages[kind] = xmap((total + 1) * sizeof(*pages[kind]));
	if (!options.grow_mib_s) {
		build_to(total);
		atomic_store(&report->ready, 1);
	}
	if (options.short_rounds) {
		short_job();
		return 0;
	}
	if (options.children)
		prefork();
	live();
}
