/* ksmctl/state: files that others left in the folder, and what is put in its place while it is looked at. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "ksmctl/state.h"
#include "tests/unit/temp.h"

#define FIRST "pages_to_scan=1234\nrun=1\n"
#define EVIL "pages_to_scan=666\nrun=2\n"
#define VICTIM "pages_to_scan=4321\nrun=1\nnobody's business\n"

enum {
	OFTEN = 200,	 /* each outcome of a race is to be seen so often */
	PATIENCE_S = 30, /* and within this time */
};

static char path[PATH_MAX * 2];

static const char *below(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", temp_path, name);
	return path;
}

static void open_fresh(struct state_dir *dir, const char *name)
{
	ck_assert_int_eq(state_open(dir, below(name), true), 0);
}

static mode_t mode_of(const char *name)
{
	struct stat st;

	ck_assert_int_eq(fstatat(temp_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

/* Nothing is taken from the files of this folder, and they stay as they are. */
static void expect_refused(const char *what)
{
	struct state_dir dir;
	struct ksm_state first;
	char text[128];
	int nice;
	pid_t holder;
	mode_t before = mode_of("left/lock");

	open_fresh(&dir, "left");
	ck_assert_msg(state_read(&dir, "status", text, sizeof(text)) == -EPERM, "%s", what);
	ck_assert_msg(state_load_first(&dir, &first, &nice) == -EPERM, "%s", what);
	ck_assert_msg(state_holder(&dir) == -EPERM, "%s", what);
	ck_assert_msg(state_lock(&dir, &holder) == -EPERM, "%s", what);
	ck_assert_int_eq(dir.lock_fd, -1);
	ck_assert_uint_eq(mode_of("left/lock"), before);
	temp_expect("left/first-values", FIRST);
	state_close(&dir);
}

static const char *const names[] = { "status", "first-values", "lock" };
#define NAMES (sizeof(names) / sizeof(*names))

static void leave_files(void)
{
	char name[64];

	for (size_t i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "left/%s", names[i]);
		unlinkat(temp_fd, name, 0);
		temp_put(name, FIRST);
	}
}

/* Left from a time when the folder was open: whose file it is may write to it still. */
START_TEST(files_of_others)
{
	static const mode_t modes[] = { 0664, 0646, 0666 };
	char what[16];
	struct state_dir dir;
	struct ksm_state first;
	int nice;

	leave_files();
	open_fresh(&dir, "left");
	ck_assert_int_eq(state_load_first(&dir, &first, &nice), 0);
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		for (size_t k = 0; k < NAMES; k++)
			ck_assert_int_eq(fchmodat(dir.fd, names[k], modes[i], 0), 0);
		snprintf(what, sizeof(what), "mode %04o", (unsigned)modes[i]);
		expect_refused(what);
	}
	leave_files();
	ck_assert_int_eq(state_load_first(&dir, &first, &nice), 0);
	if (geteuid() != 0) {
		tap_skip("a file of somebody else: it takes root to give one away");
		state_close(&dir);
		return;
	}
	for (size_t k = 0; k < NAMES; k++)
		ck_assert_int_eq(fchownat(dir.fd, names[k], 65534, 65534, 0), 0);
	expect_refused("another owner");
	/* What is written anew is ours again. */
	ck_assert_int_eq(state_replace(&dir, "first-values", EVIL, strlen(EVIL)), 0);
	ck_assert_int_eq(state_load_first(&dir, &first, &nice), 0);
	ck_assert_int_eq(first.value[KSM_PAGES_TO_SCAN], 666);
	state_close(&dir);
}
END_TEST

/* Once it is open, it is this folder, whatever stands in its place meanwhile. */
START_TEST(folder_moved)
{
	struct state_dir dir, other;
	struct ksm_state first;
	int nice;
	pid_t holder;

	open_fresh(&dir, "mine");
	ck_assert_int_eq(state_lock(&dir, &holder), 0);
	temp_put("mine/first-values", FIRST);
	temp_put("evil/first-values", EVIL);
	ck_assert_int_eq(renameat(temp_fd, "mine", temp_fd, "moved"), 0);
	ck_assert_int_eq(symlinkat("evil", temp_fd, "mine"), 0);
	ck_assert_int_eq(state_load_first(&dir, &first, &nice), 0);
	ck_assert_int_eq(first.value[KSM_PAGES_TO_SCAN], 1234);
	ck_assert_int_eq(state_replace(&dir, "status", "x\n", 2), 0);
	temp_expect("moved/status", "x\n");
	ck_assert_int_eq(faccessat(temp_fd, "evil/status", F_OK, 0), -1);
	ck_assert_int_eq(state_drop_first(&dir), 0);
	ck_assert_int_eq(faccessat(temp_fd, "moved/first-values", F_OK, 0), -1);
	temp_expect("evil/first-values", EVIL);
	int err = state_open(&other, below("mine"), true);
	ck_assert_msg(err == -ELOOP || err == -ENOTDIR, "%d", err);
	state_close(&dir);
}
END_TEST

static bool in_time(void)
{
	static time_t end;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!end)
		end = now.tv_sec + PATIENCE_S;
	return now.tv_sec < end;
}

/* A process that does this without end, until the test that started it is over. */
static pid_t meanwhile(void (*act)(unsigned round))
{
	pid_t parent = getpid(), child = fork();

	if (child == 0) {
		for (unsigned round = 0; getppid() == parent; round++)
			act(round);
		_exit(0);
	}
	ck_assert_int_gt(child, 0);
	return child;
}

static void enough(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Puts links, pipes and files by turns, made aside, at once in the place of each file. */
static void swap_files(unsigned round)
{
	static const char *const places[] = { "race/status", "race/first-values", "race/lock",
		"race/.status.new" };
	const char *place = places[round / 3 % 4];

	switch (round % 3) {
	case 0:
		symlinkat("../victim", temp_fd, "aside");
		break;
	case 1:
		mkfifoat(temp_fd, "aside", 0644);
		break;
	default:
		close(openat(temp_fd, "aside", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	}
	if (renameat(temp_fd, "aside", temp_fd, place) < 0)
		unlinkat(temp_fd, "aside", 0);
}

/* Nothing is followed, nothing waits, and the file outside is neither read nor changed. */
START_TEST(files_swapped)
{
	struct state_dir dir;
	struct ksm_state first;
	char text[128];
	int nice, read = 0, refused = 0, locked = 0, not_locked = 0;
	pid_t holder;

	open_fresh(&dir, "race");
	temp_put("victim", VICTIM);
	pid_t child = meanwhile(swap_files);
	for (int round = 0; read < OFTEN || refused < OFTEN || locked < OFTEN || not_locked < OFTEN;
		round++) {
		ck_assert_msg(in_time(), "read %d, refused %d, locked %d, not %d", read, refused,
			locked, not_locked);
		if (round % 2) /* it may be refused, when the new name is taken just then */
			state_replace(&dir, "status", FIRST, strlen(FIRST));
		ssize_t len = state_read(&dir, "status", text, sizeof(text));
		ck_assert_msg(len <= 0 || !strcmp(text, FIRST), "it was read: %s", text);
		refused += len < 0;
		read += len > 0;
		/* an empty file of his is no first values; a link to the victim would be */
		ck_assert_int_ne(state_load_first(&dir, &first, &nice), 0);
		int err = state_lock(&dir, &holder);
		locked += !err;
		not_locked += !!err;
		if (!err) {
			struct stat st;
			ck_assert_int_eq(fstat(dir.lock_fd, &st), 0);
			ck_assert(S_ISREG(st.st_mode) && !st.st_size);
			close(dir.lock_fd);
			dir.lock_fd = -1;
		}
	}
	enough(child);
	temp_expect("victim", VICTIM);
	ck_assert_uint_eq(mode_of("victim"), 0644); /* a lock would have closed it */
	state_close(&dir);
}
END_TEST

/* The folder and a link to another folder, by turns in the same place. */
static void swap_folders(unsigned round)
{
	(void)round;
	renameat2(temp_fd, "here", temp_fd, "there", RENAME_EXCHANGE);
}

START_TEST(folder_swapped)
{
	struct state_dir dir;
	struct stat mine, opened;
	int refused = 0, taken = 0;

	open_fresh(&dir, "here");
	ck_assert_int_eq(fstat(dir.fd, &mine), 0);
	state_close(&dir);
	temp_put("outside/first-values", EVIL);
	ck_assert_int_eq(symlinkat("outside", temp_fd, "there"), 0);
	pid_t child = meanwhile(swap_folders);
	while (refused < OFTEN || taken < OFTEN) {
		ck_assert_msg(in_time(), "refused %d, taken %d", refused, taken);
		int err = state_open(&dir, below("here"), true);
		if (err) {
			ck_assert_msg(err == -ELOOP || err == -ENOTDIR, "%d", err);
			refused++;
			continue;
		}
		ck_assert_int_eq(fstat(dir.fd, &opened), 0);
		ck_assert(opened.st_ino == mine.st_ino && opened.st_dev == mine.st_dev);
		state_close(&dir);
		taken++;
	}
	enough(child);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("state_hostile");
	TCase *tcase = temp_case(suite, "state_hostile");

	umask(022);
	tcase_add_test(tcase, files_of_others);
	tcase_add_test(tcase, folder_moved);
	tcase_add_test(tcase, files_swapped);
	tcase_add_test(tcase, folder_swapped);
	return tap_run(suite);
}
