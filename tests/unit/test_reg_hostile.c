/* libksmreg under hostile growth: areas stay bounded, the program's own calls go on working. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <sys/wait.h>

#include "tests/unit/test_reg.h"

/* Steps of each pattern: enough to reach the kernel's limit on areas if nothing held it. */
#define STEPS 40000
#define TINY 100000

/* What a run of a pattern left behind, in memory that parent and child share. */
struct outcome {
	long areas, own_failed, errno_changed;
	struct ksmreg_stats stats;
	bool whole;
};

static struct outcome *outcome;
/* bytes; the smallest range that is registered */
static size_t unit;

static void offer(void *p, size_t len)
{
	errno = 4711;
	ksmreg_register(p, len);
	outcome->errno_changed += errno != 4711;
}

/* The program's own calls; it goes on when they fail, as the count is what matters. */
static char *reserve(size_t size, int prot)
{
	char *p = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		outcome->own_failed++;
	return p == MAP_FAILED ? NULL : p;
}

static char *map_at(char *at, size_t size, int prot)
{
	char *p = mmap(
		at, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	if (p == MAP_FAILED)
		outcome->own_failed++;
	return at;
}

#define RW (PROT_READ | PROT_WRITE)

static void alternate(void)
{
	char *base = reserve(2 * TINY * unit, RW);

	for (size_t i = 0; i < TINY; i++)
		offer(base + 2 * i * unit, unit);
}

/* As an allocator that offers a region of each of its few bytes: most of it below the minimum. */
static void tiny(void)
{
	char *base = reserve(2 * TINY * page, RW);

	for (size_t i = 0; i < TINY; i++) {
		offer(base + 2 * i * page, page);
		offer(base + 2 * i * page + 100, 64);
	}
}

/* Each piece touched before it is offered, so that it never joins its neighbour. */
static void late(void)
{
	char *base = reserve(STEPS * unit, PROT_NONE);

	for (size_t i = 0; i < STEPS; i++) {
		char *p = map_at(base + i * unit, unit, RW);

		*p = 1;
		offer(p, unit);
	}
}

/* Everything offered, then every other piece unmapped, offered, mapped again, offered. */
static void holes(void)
{
	char *base = reserve(STEPS * unit, RW);

	offer(base, STEPS * unit);
	for (size_t i = 0; i < STEPS / 2; i++) {
		char *p = base + 2 * i * unit;

		outcome->own_failed += munmap(p, unit) != 0;
		offer(p, 2 * unit);
		offer(p + unit, unit);
		if (i % 4 == 0)
			offer(map_at(p, unit, RW), unit);
	}
}

static void remaps(void)
{
	char *base = reserve(STEPS * unit, RW), *away = reserve(2 * STEPS * unit, RW);

	offer(base, STEPS * unit);
	for (size_t i = 0; i < STEPS / 4; i++) {
		char *from = base + 2 * i * unit, *to = away + 4 * i * unit;

		*from = 1;
		outcome->own_failed +=
			mremap(from, unit, unit, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to;
		offer(to, 2 * unit);
		offer(from, 2 * unit);
	}
}

static void protections(void)
{
	char *base = reserve(STEPS * unit, PROT_NONE);

	for (size_t i = 0; i < STEPS / 4; i++) {
		char *p = base + 4 * i * unit;

		outcome->own_failed += mprotect(p, 2 * unit, RW) != 0;
		offer(p + unit, 2 * unit);
		outcome->own_failed += mprotect(p + unit, unit, PROT_READ) != 0;
		offer(p, unit);
	}
}

/* Pieces of a registered region replaced and offered at once, whole and by a part of them. */
static void fixed_over(void)
{
	char *base = reserve(STEPS * unit, RW);

	offer(base, STEPS * unit);
	for (size_t i = 0; i < STEPS / 2; i++) {
		map_at(base + 2 * i * unit, unit, i % 2 ? PROT_NONE : RW);
		offer(base + 2 * i * unit, i % 3 ? unit : unit - 1);
	}
}

static uint64_t random_below(uint64_t n)
{
	static uint64_t x = 88172645463325252;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x % n;
}

/* All of it, in any order and size; also ranges that nobody mapped. */
static void anything(void)
{
	char *base = reserve(TINY * unit, RW);

	for (size_t i = 0; i < TINY; i++) {
		char *p = base + random_below(TINY) * unit;
		size_t size = (1 + random_below(random_below(16) ? 2 : 64)) * unit;

		if (p + size > base + TINY * unit)
			continue;
		switch (random_below(8)) {
		case 0:
			outcome->own_failed += munmap(p, size) != 0;
			break;
		case 1:
			outcome->own_failed += mprotect(p, size, RW) != 0 && errno != ENOMEM;
			break;
		case 2:
			map_at(p, size, RW);
			break;
		default:
			offer(p + random_below(2) * random_below(unit), size);
			break;
		}
	}
}

/* A program that has filled most of the limit by itself before it makes its first call. */
static void crowded(void)
{
	char *own = reserve(50000 * page, RW), *base = reserve(STEPS * unit, RW);

	for (size_t i = 0; i < 25000; i++)
		outcome->own_failed += mprotect(own + 2 * i * page, page, PROT_READ) != 0;
	for (size_t i = 0; i < STEPS / 2; i++)
		offer(base + 2 * i * unit, unit);
}

static const struct pattern {
	const char *name;
	void (*run)(void);
	enum { ANY, REFUSES, SKIPS } expected;
	size_t unit;
	const char *setting, *value;
} patterns[] = {
	{ "alternate", alternate, REFUSES, 4096, "KSMREG_MIN", "4096" },
	{ "alternate", alternate, REFUSES, 32768, NULL, NULL },
	{ "alternate", alternate, REFUSES, 32768, "KSMREG_NOHUGEPAGE", "1" },
	{ "tiny", tiny, REFUSES, 4096, "KSMREG_MIN", "4096" },
	{ "tiny", tiny, SKIPS, 32768, NULL, NULL },
	{ "late", late, REFUSES, 32768, NULL, NULL },
	{ "holes", holes, ANY, 32768, NULL, NULL },
	{ "remaps", remaps, ANY, 32768, NULL, NULL },
	{ "protections", protections, ANY, 32768, NULL, NULL },
	{ "fixed over", fixed_over, ANY, 32768, NULL, NULL },
	{ "anything", anything, ANY, 4096, "KSMREG_MIN", "4096" },
	{ "anything", anything, ANY, 32768, NULL, NULL },
	{ "crowded", crowded, REFUSES, 32768, NULL, NULL },
};

static long map_limit(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	long limit = 0;

	ck_assert(f && fscanf(f, "%ld", &limit) == 1);
	fclose(f);
	return limit;
}

/* Does the program still get memory, and areas of their own? Beside what the pattern holds. */
static void use_memory(void)
{
	char *blocks[200];

	for (int i = 0; i < 200; i++) {
		blocks[i] = malloc(256 << 10);
		if (blocks[i])
			memset(blocks[i], 1, 256 << 10);
		outcome->own_failed += !blocks[i];
		char *p = reserve(3 * page, RW);
		outcome->own_failed += !p || munmap(p + page, page) != 0;
	}
	for (int i = 0; i < 200; i++)
		free(blocks[i]);
}

/* Lines of maps: smaps takes long with so many. */
static long count_areas(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	long areas = 0;

	for (int c; f && (c = getc_unlocked(f)) != EOF;)
		areas += c == '\n';
	if (f)
		fclose(f);
	return areas;
}

static struct outcome try_pattern(const struct pattern *pattern, bool on)
{
	int status;
	pid_t pid;

	memset(outcome, 0, sizeof(*outcome));
	pid = fork();
	if (pid == 0) {
		ksmreg_set_enabled(on);
		pattern->run();
		outcome->areas = count_areas();
		use_memory();
		outcome->stats.size = sizeof(outcome->stats);
		ksmreg_get_stats(&outcome->stats);
		outcome->whole = true;
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0 && outcome->whole, "%s: status %x", pattern->name, status);
	return *outcome;
}

/*
 * Own areas that the program makes between two counts are beyond what the library knows, so above
 * half of the limit it may still add a part of what the last count allowed, but not more.
 */
static long bound(long without, long limit)
{
	long more = without + limit / 4;

	return more > limit ? more : limit;
}

START_TEST(stays_below_the_limit)
{
	const struct pattern *pattern = &patterns[_i];
	long limit = map_limit() / 2;
	struct outcome without, with;

	if (getenv("UNDER_VALGRIND")) {
		tap_skip("%s: valgrind itself has room for 30000 areas only", pattern->name);
		return;
	}
	if (pattern->setting)
		setenv(pattern->setting, pattern->value, 1);
	unit = pattern->unit;
	without = try_pattern(pattern, false);
	with = try_pattern(pattern, true);
	printf("# %s, %zu bytes %s: %ld areas (%ld without the library), half of the limit is %ld; "
	       "%lu registered, %lu skipped, %lu refused, %lu failed\n",
		pattern->name, unit, pattern->setting ? pattern->setting : "", with.areas,
		without.areas, limit, with.stats.registered, with.stats.skipped, with.stats.refused,
		with.stats.failed);
	fflush(stdout);
	ck_assert_int_eq(without.stats.calls, 0);
	ck_assert_int_eq(without.own_failed, 0);
	ck_assert_int_eq(with.own_failed, 0);
	ck_assert_int_eq(with.errno_changed, 0);
	ck_assert_int_le(with.areas, bound(without.areas, limit));
	if (pattern->expected == REFUSES) {
		ck_assert_uint_gt(with.stats.refused, 0);
		ck_assert_uint_gt(with.stats.registered, 0);
	}
	if (pattern->expected == SKIPS) {
		ck_assert_uint_eq(with.stats.skipped, 2 * TINY);
		ck_assert_int_eq(with.areas, without.areas);
	}
}
END_TEST

/*
 * Started again with the preload: small pieces mapped over a region, as allocators do that give
 * memory back. Unmarked they would each split a region that is whole without the preload.
 */
static int role_replaces(void)
{
	char *base = reserve(2 * STEPS * page, RW);

	for (size_t i = 0; i < STEPS; i++)
		map_at(base + 2 * i * page, page, RW);
	printf("%ld of the program's calls failed, %ld areas\n", outcome->own_failed,
		count_areas());
	return outcome->own_failed > 0;
}

START_TEST(preload_keeps_replaced_memory_whole)
{
	static const char *const ways[] = { "off", "madvise", "prctl" };
	static const char name[] = "../../libksmreg-preload.so";
	char self[4096] = "", path[4096 + sizeof(name)];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int status;

	if (SANITIZED) {
		tap_skip("a sanitizer's runtime must come before any preload");
		return;
	}
	ck_assert_int_gt(n, 0);
	strcpy(path, self);
	strcpy(strrchr(path, '/') + 1, name);
	ck_assert_int_eq(access(path, R_OK), 0);
	pid_t pid = fork();
	if (pid == 0) {
		setenv("LD_PRELOAD", path, 1);
		setenv("KSMREG", ways[_i], 1);
		execl(self, "replaces", "replaces", NULL);
		_exit(126);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0, "KSMREG=%s: status %x", ways[_i], status);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("reg_hostile");
	TCase *t = tcase_create("reg_hostile");

	tcase_set_timeout(t, 600);
	tcase_add_loop_test(t, stays_below_the_limit, 0, sizeof(patterns) / sizeof(patterns[0]));
	tcase_add_loop_test(t, preload_keeps_replaced_memory_whole, 0, 3);
	suite_add_tcase(s, t);
	return s;
}

int main(int argc, char **argv)
{
	page = sysconf(_SC_PAGESIZE);
	outcome = mmap(
		NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (outcome == MAP_FAILED)
		return 1;
	if (argc > 1 && !strcmp(argv[1], "replaces"))
		return role_replaces();
	unsetenv("KSMREG");
	unsetenv("KSMREG_MIN");
	return tap_run(suite());
}
