/* ksmctl/state: the folder, the lock and its holder, first values, and replacing files at once. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>

#include "ksmctl/state.h"
#include "tests/unit/temp.h"

static char path[PATH_MAX * 2];

static const char *below(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", temp_path, name);
	return path;
}

static void open_fresh(struct state_dir *dir, const char *name)
{
	ck_assert_int_eq(state_open(dir, below(name), true), 0);
	ck_assert_int_ge(dir->fd, 0);
	ck_assert_int_eq(dir->lock_fd, -1);
}

START_TEST(open_makes)
{
	struct state_dir dir;
	struct stat st;

	ck_assert_int_eq(state_open(&dir, below("made"), false), -ENOENT);
	ck_assert_int_eq(dir.fd, -1);
	umask(0);
	open_fresh(&dir, "made");
	ck_assert_int_eq(fstat(dir.fd, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0755);
	state_close(&dir);
	ck_assert_int_eq(dir.fd, -1);
	open_fresh(&dir, "made"); /* it is there already */
	state_close(&dir);
	ck_assert_int_eq(state_open(&dir, below("no/parent"), true), -ENOENT);
}
END_TEST

START_TEST(open_refuses)
{
	static const mode_t modes[] = { 0775, 0757, 0777, 01777 };
	struct state_dir dir;

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		mkdir(below("open"), 0755);
		ck_assert_int_eq(chmod(path, modes[i]), 0);
		ck_assert_int_eq(state_open(&dir, path, i % 2), -EPERM);
		ck_assert_int_eq(dir.fd, -1);
	}
	if (geteuid() == 0) {
		mkdir(below("given"), 0755);
		ck_assert_int_eq(chown(path, 65534, 65534), 0);
		ck_assert_int_eq(state_open(&dir, path, true), -EPERM);
	} else {
		tap_skip("a folder of somebody else: it takes root to give one away");
	}
	mkdir(below("target"), 0755);
	ck_assert_int_eq(symlinkat("target", temp_fd, "link"), 0);
	int err = state_open(&dir, below("link"), true);
	ck_assert_msg(err == -ELOOP || err == -ENOTDIR, "%d", err);
	temp_put("file", "");
	ck_assert_int_eq(state_open(&dir, below("file"), true), -ENOTDIR);
}
END_TEST

/* Another process holds the lock until it is told to end. */
static pid_t hold_lock(const char *name)
{
	int ready[2];
	char byte;

	ck_assert_int_eq(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		struct state_dir dir;
		pid_t holder;
		if (!state_open(&dir, below(name), true) && !state_lock(&dir, &holder) &&
			write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

START_TEST(lock)
{
	struct state_dir dir;
	pid_t holder = 77;

	open_fresh(&dir, "lock");
	ck_assert_int_eq(state_holder(&dir), -ESRCH); /* there is no lock file yet */
	pid_t child = hold_lock("lock");
	ck_assert_int_eq(state_holder(&dir), child);
	ck_assert_int_eq(state_lock(&dir, &holder), -EBUSY);
	ck_assert_int_eq(holder, child);
	ck_assert_int_eq(dir.lock_fd, -1);
	ck_assert_int_eq(state_holder(&dir), child); /* to ask does not take it away */
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ck_assert_int_eq(state_holder(&dir), -ESRCH);
	ck_assert_int_eq(state_lock(&dir, &holder), 0);
	ck_assert_int_ge(dir.lock_fd, 0);
	state_close(&dir);
	open_fresh(&dir, "lock");
	ck_assert_int_eq(state_holder(&dir), -ESRCH);
	state_close(&dir);
}
END_TEST

/* A lock that is a symbolic link would make us write to what it points at. */
START_TEST(lock_link)
{
	struct state_dir dir;
	pid_t holder;

	open_fresh(&dir, "linked");
	ck_assert_int_eq(symlinkat("/dev/null", dir.fd, "lock"), 0);
	ck_assert_int_eq(state_lock(&dir, &holder), -ELOOP);
	ck_assert_int_eq(state_holder(&dir), -ELOOP);
	state_close(&dir);
}
END_TEST

static void some_state(struct ksm_state *state, int round)
{
	for (int key = 0; key < KSM_KEYS; key++) {
		state->error[key] = 0;
		state->value[key] = round == 0 ? ksm_keys[key].min : ksm_keys[key].max;
	}
	state->value[KSM_ADVISOR_MODE] = round ? KSM_ADVISOR_SCAN_TIME : KSM_ADVISOR_NONE;
	if (round == 2) /* an old kernel */
		for (int key = KSM_SMART_SCAN; key < KSM_TUNABLES; key++)
			state->error[key] = -ENOENT;
}

START_TEST(first_values)
{
	struct state_dir dir;
	struct ksm_state saved, loaded;
	int nice = 99;

	open_fresh(&dir, "first");
	ck_assert_int_eq(state_load_first(&dir, &loaded, &nice), -ENOENT);
	ck_assert_int_eq(state_drop_first(&dir), 0); /* nothing to drop is fine */
	for (int round = 0; round < 3; round++) {
		some_state(&saved, round);
		memset(&loaded, 0x55, sizeof(loaded));
		ck_assert_int_eq(state_save_first(&dir, &saved, -5 + round), 0);
		ck_assert_int_eq(state_load_first(&dir, &loaded, &nice), 0);
		ck_assert_int_eq(nice, -5 + round);
		for (int key = 0; key < KSM_KEYS; key++) {
			bool kept = key < KSM_TUNABLES && ksm_has(&saved, key);
			ck_assert_int_eq(ksm_has(&loaded, key), kept);
			if (kept)
				ck_assert_int_eq(loaded.value[key], saved.value[key]);
		}
	}
	/* An advisor without a name here cannot be put back; everything else can. */
	some_state(&saved, 1);
	saved.value[KSM_ADVISOR_MODE] = KSM_ADVISOR_OTHER;
	ck_assert_int_eq(state_save_first(&dir, &saved, 0), 0);
	ck_assert_int_eq(state_load_first(&dir, &loaded, &nice), 0);
	ck_assert(!ksm_has(&loaded, KSM_ADVISOR_MODE));
	ck_assert_int_eq(loaded.value[KSM_RUN], saved.value[KSM_RUN]);
	ck_assert_int_eq(state_drop_first(&dir), 0);
	ck_assert_int_eq(state_load_first(&dir, &loaded, &nice), -ENOENT);
	state_close(&dir);
}
END_TEST

/* What is loaded is written to the kernel: nothing half understood may come through. */
START_TEST(first_values_refused)
{
	static const char *const texts[] = {
		"",
		"\n\n",
		"pages_to_scan=100\nksmd_nice=5\n", /* cut off before run */
		"run=\n",
		"run=x\n",
		"run=1x\n",
		"run = 1\n",
		"run=1\npages_to_scan=1 0\n",
		"run=1\npages_to_scan=0x10\n",
		"run=1\npages_to_scan=99999999999999999999\n",
		"run=1\nadvisor_mode=[none]x scan-time\n\001\n\nrun=\n",
		"run 1\n",
		"RUN=1\n",
	};
	struct state_dir dir;
	struct ksm_state loaded;
	char big[4096];
	int nice;

	open_fresh(&dir, "refused");
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		temp_put("refused/first-values", texts[i]);
		ck_assert_msg(state_load_first(&dir, &loaded, &nice) == -EINVAL, "%s", texts[i]);
	}
	memset(big, '\n', sizeof(big));
	memcpy(big, "run=1", 5);
	temp_write("refused/first-values", big, sizeof(big));
	ck_assert_int_eq(state_load_first(&dir, &loaded, &nice), -EFBIG);
	/* Lines that another version may have written do no harm. */
	temp_put("refused/first-values", "later_knob=7\npages_shared=3\nrun=1\nno line\n");
	ck_assert_int_eq(state_load_first(&dir, &loaded, &nice), 0);
	ck_assert_int_eq(loaded.value[KSM_RUN], 1);
	ck_assert(!ksm_has(&loaded, KSM_PAGES_SHARED));
	ck_assert(!ksm_has(&loaded, KSM_PAGES_TO_SCAN));
	/* What is no niceness is not one to put back; cut to 32 bits this would be 19. */
	nice = 100;
	temp_put("refused/first-values", "run=1\nksmd_nice=4294967315\n");
	ck_assert_int_eq(state_load_first(&dir, &loaded, &nice), 0);
	ck_assert_int_eq(nice, 100);
	state_close(&dir);
}
END_TEST

START_TEST(replace)
{
	struct state_dir dir;

	open_fresh(&dir, "replace");
	ck_assert_int_eq(state_replace(&dir, "status", "a longer text\n", 14), 0);
	temp_expect("replace/status", "a longer text\n");
	int old = openat(dir.fd, "status", O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(state_replace(&dir, "status", "short\n", 6), 0);
	temp_expect("replace/status", "short\n");
	char text[32] = "";
	ck_assert_int_eq(
		read(old, text, sizeof(text) - 1), 14); /* who reads goes on with the old */
	ck_assert_str_eq(text, "a longer text\n");
	close(old);
	/* Left behind by a service that was killed: overwritten, also when longer. */
	temp_put("replace/.status.new", "left behind by a service that was killed\n");
	ck_assert_int_eq(state_replace(&dir, "status", "next\n", 5), 0);
	temp_expect("replace/status", "next\n");
	ck_assert_int_eq(faccessat(dir.fd, ".status.new", F_OK, 0), -1);
	/* A link in its place is not followed, be it symbolic or hard. */
	temp_put("replace/victim", "victim\n");
	ck_assert_int_eq(symlinkat("victim", dir.fd, ".status.new"), 0);
	ck_assert_int_eq(state_replace(&dir, "status", "x\n", 2), 0);
	temp_expect("replace/victim", "victim\n");
	temp_expect("replace/status", "x\n");
	ck_assert_int_eq(linkat(dir.fd, "victim", dir.fd, ".status.new", 0), 0);
	ck_assert_int_eq(state_replace(&dir, "status", "next\n", 5), 0);
	temp_expect("replace/victim", "victim\n");
	temp_expect("replace/status", "next\n");
	/* What cannot be put in place leaves nothing behind. */
	ck_assert_int_eq(mkdirat(dir.fd, "folder", 0755), 0);
	ck_assert_int_eq(state_replace(&dir, "folder", "x\n", 2), -EISDIR);
	ck_assert_int_eq(faccessat(dir.fd, ".folder.new", F_OK, 0), -1);
	state_close(&dir);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("state");
	TCase *tcase = temp_case(suite, "state");

	tcase_add_test(tcase, open_makes);
	tcase_add_test(tcase, open_refuses);
	tcase_add_test(tcase, lock);
	tcase_add_test(tcase, lock_link);
	tcase_add_test(tcase, first_values);
	tcase_add_test(tcase, first_values_refused);
	tcase_add_test(tcase, replace);
	return tap_run(suite);
}
