/* The preload: what it marks, what it leaves alone, and that no call of the program changes by it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/unit/test_reg.h"

/*
 * The tests start this program again, with the preload or without, in a role named by its first
 * argument. A role knows nothing of libksmreg and prints what it sees.
 */

static void say(const char *what, const void *addr)
{
	printf("%s %d\n", what, marked(addr));
}

static char *area(int flags, int prot)
{
	char *p = mmap(NULL, 64 * page, prot, flags, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	return p;
}

static int role_marks(void)
{
	const int rw = PROT_READ | PROT_WRITE, anon = MAP_PRIVATE | MAP_ANONYMOUS;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *p;

	printf("flag %d\n", prctl(68, 0, 0, 0, 0)); /* PR_GET_MEMORY_MERGE */
	say("mmap", area(anon, rw));
	say("mmap64", mmap64(NULL, 64 * page, rw, anon, -1, 0));
	say("none", area(anon, PROT_NONE));
	say("fixed", mmap(area(anon, PROT_NONE), 64 * page, rw, anon | MAP_FIXED, -1, 0));
	say("small", mmap(NULL, page, PROT_READ, anon, -1, 0));
	say("stack", area(anon | MAP_STACK, PROT_READ));
	say("shared", area(MAP_SHARED | MAP_ANONYMOUS, rw));
	say("file", mmap(NULL, 64 * page, PROT_READ, MAP_PRIVATE, fd, 0));
	p = sbrk(64 * page);
	say("sbrk", p + page);
	p = sbrk(0);
	printf("moved %d\n", brk(p + 64 * page) == 0 && (char *)sbrk(0) == p + 64 * page);
	say("brk", p + page);
	say("malloc", malloc(1 << 20));
	return 0;
}

/* Everything a program can see of these calls; compared with and without the preload. */
static int role_behaves(void)
{
	const int anon = MAP_PRIVATE | MAP_ANONYMOUS;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *start = sbrk(0), *kept[64], *mine[64];
	int wrong = 0;

#define SHOW(call) \
	(errno = 4711, printf("%s = %ld", #call, (long)(call)), printf(" errno %d\n", errno))
	SHOW(mmap(NULL, 0, PROT_READ, anon, -1, 0));
	SHOW(mmap(NULL, page, PROT_READ, MAP_PRIVATE, -1, 0));
	SHOW(mmap(NULL, page, PROT_READ, 0, fd, 0));
	SHOW(mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 1));
	SHOW(mmap(NULL, SIZE_MAX, PROT_READ, anon, -1, 0));
	SHOW(mmap64(NULL, page, PROT_WRITE, MAP_SHARED, fd, 0));
	SHOW(mmap(NULL, page, PROT_READ, anon, -1, 0) != MAP_FAILED);
	SHOW(mmap(NULL, 64 * page, PROT_READ, anon, -1, 0) != MAP_FAILED);
	SHOW((char *)sbrk(12345) - start);
	SHOW((char *)sbrk(-345) - start);
	SHOW((char *)sbrk(0) - start);
	SHOW(sbrk(PTRDIFF_MAX));
	SHOW(brk((void *)-page));
	SHOW(brk(start + 1000000));
	SHOW((char *)sbrk(0) - start);
	SHOW(brk((void *)page));
	SHOW(brk(NULL));
	SHOW(brk(start + 2000000));
	SHOW((char *)sbrk(0) - start);
	/* libc's malloc and the program take turns at the break */
	for (int i = 0; i < 64; i++) {
		mine[i] = sbrk(40000);
		memset(mine[i], i, 40000);
		kept[i] = malloc(100000);
		memset(kept[i], i + 64, 100000);
	}
	for (int i = 0; i < 64; i++)
		wrong += mine[i][39999] != i || mine[i][0] != i || kept[i][99999] != i + 64 ||
			 kept[i][0] != i + 64;
	printf("wrong %d\n", wrong);
	return 0;
}

/* Is it offered, by either way? */
static int role_offered(void)
{
	say("offered", area(MAP_PRIVATE | MAP_ANONYMOUS, PROT_READ | PROT_WRITE));
	return 0;
}

/* What it executes in another process, and then in the same one. */
static int role_family(void)
{
	int status;
	pid_t pid;

	say("self", area(MAP_PRIVATE | MAP_ANONYMOUS, PROT_READ | PROT_WRITE));
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		say("forked", area(MAP_PRIVATE | MAP_ANONYMOUS, PROT_READ | PROT_WRITE));
		fflush(stdout);
		execl("/proc/self/exe", "offered", "offered", NULL);
		_exit(126);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return 1;
	printf("children %s\n", getenv("KSMREG_CHILDREN") ? getenv("KSMREG_CHILDREN") : "unset");
	return 0;
}

static int role_becomes(void)
{
	execl("/proc/self/exe", "offered", "offered", NULL);
	return 126;
}

static const struct {
	const char *name;
	int (*run)(void);
} roles[] = { { "marks", role_marks }, { "behaves", role_behaves }, { "offered", role_offered },
	{ "family", role_family }, { "becomes", role_becomes } };

static const char *preload_path(void)
{
	static char path[PATH_MAX];
	static const char name[] = "/libksmreg-preload.so";
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof(name));

	/* in the build tree, beside this program or further up */
	ck_assert_int_gt(n, 0);
	path[n] = '\0';
	for (char *slash; (slash = strrchr(path, '/')) && slash != path;) {
		strcpy(slash, name);
		if (access(path, R_OK) == 0)
			return path;
		*slash = '\0';
	}
	ck_abort_msg("libksmreg-preload.so is not in the build tree");
}

/* Run a role; how is NULL for no preload, or KSMREG's value ("" unset). */
static const char *run(const char *role, const char *how)
{
	static char out[2][8192];
	static int turn;
	char *text = out[turn++ % 2];
	size_t n = 0;
	ssize_t got;
	int ends[2], status;
	pid_t pid;

	ck_assert_int_eq(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], 1);
		close(ends[0]);
		close(ends[1]);
		if (how)
			setenv("LD_PRELOAD", preload_path(), 1);
		if (how && *how)
			setenv("KSMREG", how, 1);
		execl("/proc/self/exe", role, role, NULL);
		_exit(126);
	}
	close(ends[1]);
	while ((got = read(ends[0], text + n, sizeof(out[0]) - 1 - n)) > 0)
		n += got;
	text[n] = '\0';
	close(ends[0]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0, "%s with %s: status %x", role, how, status);
	return text;
}

/* In a role's output, the number behind a word. */
static int said(const char *text, const char *what)
{
	char key[32];
	const char *line;

	snprintf(key, sizeof(key), "\n%s ", what);
	line = strstr(text, key);
	ck_assert_msg(line != NULL, "no '%s' in: %s", what, text);
	return atoi(line + strlen(key));
}

static const char *marks(const char *how)
{
	static char text[8193];

	snprintf(text, sizeof(text), "\n%s", run("marks", how));
	return text;
}

static bool has_prctl(void)
{
	return prctl(68, 0, 0, 0, 0) >= 0;
}

START_TEST(madvise_marks_what_is_asked_for)
{
	const char *text = marks("madvise");
	static const char *const yes[] = { "mmap", "mmap64", "none", "fixed", "sbrk", "brk",
		"moved" };
	static const char *const no[] = { "small", "stack", "shared", "file", "malloc" };

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		ck_assert_msg(said(text, yes[i]) == 1, "%s is not marked", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		ck_assert_msg(said(text, no[i]) == 0, "%s is marked", no[i]);
	ck_assert_int_eq(said(text, "flag"), has_prctl() ? 0 : -1);
}
END_TEST

START_TEST(prctl_marks_all)
{
	const char *text = marks("prctl");

	if (!has_prctl()) {
		tap_skip("no PR_SET_MEMORY_MERGE in this kernel");
		ck_assert_int_eq(said(text, "mmap"), 0);
		return;
	}
	ck_assert_int_eq(said(text, "flag"), 1);
	ck_assert_int_eq(said(text, "malloc"), 1);
	ck_assert_int_eq(said(text, "small"), 1);
	ck_assert_int_eq(said(text, "shared"), 0);
}
END_TEST

START_TEST(auto_chooses)
{
	/* either way memory from mmap is marked; which way is up to the kernel */
	const char *text = marks(_i ? "auto" : "");

	ck_assert_int_eq(said(text, "mmap"), 1);
	if (said(text, "flag") == 1)
		ck_assert_int_eq(said(text, "malloc"), 1);
	else
		ck_assert_int_eq(said(text, "malloc"), 0);
}
END_TEST

START_TEST(off_marks_nothing)
{
	const char *text = marks(_i ? "off" : NULL);

	ck_assert_int_eq(said(text, "mmap") + said(text, "sbrk") + said(text, "malloc"), 0);
	ck_assert_int_eq(said(text, "flag"), has_prctl() ? 0 : -1);
	ck_assert_int_eq(said(text, "moved"), 1);
}
END_TEST

static const char *const ways[] = { "off", "madvise", "prctl", "auto", "nonsense" };

START_TEST(calls_do_not_change)
{
	const char *plain = run("behaves", NULL);

	ck_assert_ptr_nonnull(strstr(plain, "wrong 0\n"));
	ck_assert_str_eq(run("behaves", ways[_i]), plain);
}
END_TEST

START_TEST(programs_run)
{
	static const char *const commands[] = {
		"test \"$(seq 100000 | sort -R | sort -n | tail -1)\" = 100000",
		"sh -c 'exit 3'; test $? = 3",
	};
	static const char *const how[] = { "madvise", "prctl" };

	setenv("LD_PRELOAD", preload_path(), 1);
	for (int i = 0; i < 4; i++) {
		setenv("KSMREG", how[i / 2], 1);
		ck_assert_int_eq(system(commands[i % 2]), 0);
	}
}
END_TEST

/* KSMREG_CHILDREN=0: for the program that was started, whatever it becomes, and for none that it starts. */
START_TEST(not_for_children)
{
	static const char *const how[] = { "prctl", "madvise" };
	const char *way = how[_i];
	char text[8192];

	if (_i == 0 && !has_prctl()) {
		tap_skip("no PR_SET_MEMORY_MERGE in this kernel");
		return;
	}
	setenv("KSMREG_CHILDREN", "0", 1);
	snprintf(text, sizeof(text), "\n%s", run("family", way));
	ck_assert_int_eq(said(text, "self"), 1);
	ck_assert_int_eq(said(text, "forked"), 1);
	ck_assert_int_eq(said(text, "offered"), 0);
	ck_assert_ptr_nonnull(strstr(text, "\nchildren 0:"));
	snprintf(text, sizeof(text), "\n%s", run("becomes", way));
	ck_assert_int_eq(said(text, "offered"), 1);
	/* any other value is as if there were none */
	setenv("KSMREG_CHILDREN", "1", 1);
	snprintf(text, sizeof(text), "\n%s", run("family", way));
	ck_assert_int_eq(said(text, "self"), 1);
	ck_assert_int_eq(said(text, "offered"), 1);
	ck_assert_ptr_nonnull(strstr(text, "\nchildren 1\n"));
	/* a number of somebody else's: a child of his */
	setenv("KSMREG_CHILDREN", "0:1", 1);
	snprintf(text, sizeof(text), "\n%s", run("offered", way));
	ck_assert_int_eq(said(text, "offered"), 0);
}
END_TEST

/* A launcher made the call: nothing is left to be done, and nothing is marked one by one. */
START_TEST(launched)
{
	if (prctl(67, 1, 0, 0, 0)) { /* PR_SET_MEMORY_MERGE */
		tap_skip("no PR_SET_MEMORY_MERGE in this kernel");
		return;
	}
	const char *plain = marks(NULL);

	if (said(plain, "flag") != 1) {
		tap_skip("this kernel drops the flag over exec");
		return;
	}
	const char *text = marks("");
	ck_assert_int_eq(said(text, "flag"), 1);
	ck_assert_int_eq(said(text, "malloc"), 1);
	ck_assert_int_eq(said(text, "small"), 1);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("reg_preload");
	TCase *t = tcase_create("reg_preload");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, madvise_marks_what_is_asked_for);
	tcase_add_test(t, prctl_marks_all);
	tcase_add_loop_test(t, auto_chooses, 0, 2);
	tcase_add_loop_test(t, off_marks_nothing, 0, 2);
	tcase_add_loop_test(t, calls_do_not_change, 0, sizeof(ways) / sizeof(ways[0]));
	tcase_add_test(t, programs_run);
	tcase_add_loop_test(t, not_for_children, 0, 2);
	tcase_add_test(t, launched);
	suite_add_tcase(s, t);
	return s;
}

int main(int argc, char **argv)
{
	page = sysconf(_SC_PAGESIZE);
	for (size_t i = 0; argc > 1 && i < sizeof(roles) / sizeof(roles[0]); i++)
		if (!strcmp(argv[1], roles[i].name))
			return roles[i].run();
	if (SANITIZED) {
		puts("1..0 # SKIP a sanitizer's runtime must come before any preload");
		return 77;
	}
	unsetenv("KSMREG");
	unsetenv("KSMREG_MIN");
	unsetenv("KSMREG_CHILDREN");
	return tap_run(suite());
}
