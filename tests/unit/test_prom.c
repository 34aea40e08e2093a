/* ksmstat/prom and outfile: labels of hostile names, what is not known, and files that are replaced as a whole. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/prom.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "ksmstat/outfile.h"
#include "tests/unit/entry_whole.h"
#include "tests/unit/temp.h"

static char *text;
static size_t text_len;

static bool has(const char *line)
{
	const char *at = strstr(text, line);
	size_t len = strlen(line);
	return at && (at == text || at[-1] == '\n') && at[len] == '\n';
}

static void expect(const char *line)
{
	ck_assert_msg(has(line), "no line\n%s\nin\n%s", line, text);
}

static void expect_none(const char *part)
{
	ck_assert_msg(!strstr(text, part), "%s in\n%s", part, text);
}

static void groups(const struct entry_list *list, enum group_by by)
{
	free(text);
	FILE *f = open_memstream(&text, &text_len);
	ck_assert_int_eq(prom_groups(f, list, by), 0);
	fclose(f);
}

static void each(const struct entry_list *list)
{
	free(text);
	FILE *f = open_memstream(&text, &text_len);
	prom_each(f, list);
	fclose(f);
}

START_TEST(sums)
{
	struct entry entries[] = { whole(), whole(), whole() };
	struct entry_list list = { .entries = entries, .count = 3 };
	entries[2].user = "else";
	groups(&list, GROUP_USER);
	expect("# TYPE ksm_user_private_bytes gauge");
	expect("ksm_user_private_bytes{user=\"someone\"} 14336");
	expect("ksm_user_private_bytes{user=\"else\"} 7168");
	expect("ksm_user_processes{user=\"someone\"} 2");
	expect("ksm_user_tracked_pages{user=\"else\"} 501");
	expect_none("pid");
	expect_none("ksm_user_merged_bytes"); /* does not add up */
	groups(&list, GROUP_CONTAINER);
	expect("ksm_container_processes{container=\"lxc:c\"} 3");
}
END_TEST

START_TEST(not_known_is_absent)
{
	struct entry entries[] = { whole(), whole() };
	struct entry_list list = { .entries = entries, .count = 2 };
	entries[0].smaps_error = entries[1].smaps_error = -EACCES;
	entries[1].user = NULL;
	entries[1].place = NULL;
	groups(&list, GROUP_USER);
	expect_none("private_bytes");
	expect_none("saved_bytes");
	expect("ksm_user_unreadable_processes{user=\"someone\"} 1");
	expect("ksm_user_processes{user=\"-\"} 1");
	groups(&list, GROUP_CGROUP);
	expect("ksm_cgroup_processes{cgroup=\"/a\"} 1");
	expect("ksm_cgroup_processes{cgroup=\"-\"} 1");
}
END_TEST

/* Each metric with one head, in front of all its lines. */
static void expect_heads(void)
{
	char current[128] = "", *all = strdup(text), *rest = all;
	char seen[64][128];
	size_t count = 0;
	for (char *line; (line = strsep(&rest, "\n")) && *line;) {
		if (sscanf(line, "# TYPE %127s", current) == 1) {
			for (size_t i = 0; i < count; i++)
				ck_assert_str_ne(seen[i], current);
			strcpy(seen[count++], current);
		} else if (*line != '#') {
			size_t len = strcspn(line, "{ ");
			ck_assert_uint_eq(len, strlen(current));
			ck_assert_int_eq(strncmp(line, current, len), 0);
		}
	}
	ck_assert_uint_gt(count, 0);
	free(all);
}

START_TEST(hostile_names)
{
	struct entry entries[] = { whole(), whole(), whole() };
	struct entry_list list = { .entries = entries, .count = 3 };
	static const struct place place = { "/x", "/x\"\\x0a", NULL, NULL, NULL };
	strcpy(entries[0].stat.comm, "a\"b\\c\n} 1\xff\033");
	strcpy(entries[1].stat.comm, "x\",pid=\"1");
	strcpy(entries[2].stat.comm, "");
	entries[2].user = "u\"\n";
	entries[2].place = &place;
	groups(&list, GROUP_PROGRAM);
	expect("ksm_program_processes{program=\"a\\\"b\\\\x5cc\\\\x0a} 1\\\\xff\\\\x1b\"} 1");
	expect("ksm_program_processes{program=\"x\\\",pid=\\\"1\"} 1");
	expect("ksm_program_processes{program=\"\"} 1");
	expect_heads();
	groups(&list, GROUP_CGROUP); /* what is safe already is not escaped again */
	expect("ksm_cgroup_processes{cgroup=\"/x\\\"\\\\x0a\"} 1");
	each(&list);
	expect("ksm_process_merged_bytes{pid=\"42\",program=\"x\\\",pid=\\\"1\",user=\"someone\"} "
	       "12288");
	expect("ksm_process_private_bytes{pid=\"42\",program=\"\",user=\"u\\\"\\\\x0a\"} 7168");
	expect_none("ksm_process_processes");
	expect_heads();
}
END_TEST

static const char *path_of(const char *name)
{
	static char path[2][2 * PATH_MAX];
	static unsigned which;
	char *buf = path[which++ % 2];
	snprintf(buf, sizeof(path[0]), "%s/%s", temp_path, name);
	return buf;
}

static void expect_file(const char *name, const char *want)
{
	char buf[64] = "";
	struct stat st;
	int fd = open(path_of(name), O_RDONLY | O_NOFOLLOW);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_ge(read(fd, buf, sizeof(buf) - 1), 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	close(fd);
	ck_assert_str_eq(buf, want);
	ck_assert_int_eq(st.st_mode, S_IFREG | 0644);
}

static size_t files(void)
{
	size_t count = 0;
	DIR *dir = opendir(temp_path);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

START_TEST(replaces)
{
	umask(077);
	ck_assert_int_eq(outfile_write(path_of("a.prom"), "one\n", 4), 0);
	expect_file("a.prom", "one\n");
	ck_assert_int_eq(outfile_write(path_of("a.prom"), "", 0), 0);
	expect_file("a.prom", "");
	ck_assert_int_eq(chdir(temp_path), 0);
	ck_assert_int_eq(outfile_write("a.prom", "two\n", 4), 0);
	expect_file("a.prom", "two\n");
	ck_assert_int_eq(symlink(path_of("a.prom"), path_of("link")), 0);
	ck_assert_int_eq(outfile_write(path_of("link"), "three\n", 6), 0);
	expect_file("link", "three\n");
	expect_file("a.prom", "two\n");
	ck_assert_uint_eq(files(), 2);
	unlink("a.prom");
	unlink("link");
}
END_TEST

START_TEST(refuses)
{
	char longer[NAME_MAX + 2];
	ck_assert_int_eq(mkdir(path_of("folder"), 0755), 0);
	ck_assert_int_eq(mkfifo(path_of("pipe"), 0644), 0);
	size_t before = files();
	ck_assert_int_eq(outfile_write(path_of("folder"), "x", 1), -EINVAL);
	ck_assert_int_eq(outfile_write(path_of("pipe"), "x", 1), -EINVAL);
	ck_assert_int_eq(outfile_write(path_of(""), "x", 1), -EINVAL);
	ck_assert_int_eq(outfile_write(path_of("."), "x", 1), -EINVAL);
	ck_assert_int_eq(outfile_write("", "x", 1), -EINVAL);
	ck_assert_int_eq(outfile_write(path_of("none/x"), "x", 1), -ENOENT);
	ck_assert_int_eq(outfile_write(path_of("pipe/x"), "x", 1), -ENOTDIR);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	ck_assert_int_eq(outfile_write(path_of(longer), "x", 1), -ENAMETOOLONG);
	ck_assert_uint_eq(files(), before);
	rmdir(path_of("folder"));
	unlink(path_of("pipe"));
}
END_TEST

/* The file system is full in the middle: the old file is there, and nothing else. */
START_TEST(failure_keeps_the_old)
{
	const struct rlimit limit = { 6, 6 };
	ck_assert_int_eq(outfile_write(path_of("a.prom"), "old\n", 4), 0);
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(outfile_write(path_of("a.prom"), "much longer\n", 12), -EFBIG);
	expect_file("a.prom", "old\n");
	ck_assert_uint_eq(files(), 1);
	unlink(path_of("a.prom"));
}
END_TEST

START_TEST(readers_see_it_whole)
{
	enum { SIZE = 100000, ROUNDS = 300 };
	static char one[SIZE], got[SIZE + 1];
	memset(one, 'a', SIZE);
	ck_assert_int_eq(outfile_write(path_of("b.prom"), one, SIZE), 0);
	pid_t writer = fork();
	if (writer == 0) {
		for (int i = 0; i < ROUNDS; i++) {
			memset(one, 'a' + i % 26, SIZE);
			if (outfile_write(path_of("b.prom"), one, (size_t)(SIZE - i)))
				_exit(1);
		}
		_exit(0);
	}
	int status, rounds = 0;
	while (waitpid(writer, &status, WNOHANG) == 0) {
		int fd = open(path_of("b.prom"), O_RDONLY);
		ck_assert_int_ge(fd, 0);
		ssize_t len = read(fd, got, sizeof(got));
		close(fd);
		ck_assert_int_gt(len, SIZE - ROUNDS);
		ck_assert_int_eq(got[0], got[len - 1]);
		rounds++;
	}
	ck_assert_int_eq(status, 0);
	ck_assert_int_gt(rounds, 10);
	unlink(path_of("b.prom"));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("prom");
	TCase *t = tcase_create("prom");

	tcase_add_unchecked_fixture(t, temp_setup, temp_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, sums);
	tcase_add_test(t, not_known_is_absent);
	tcase_add_test(t, hostile_names);
	tcase_add_test(t, replaces);
	tcase_add_test(t, refuses);
	tcase_add_test(t, failure_keeps_the_old);
	tcase_add_test(t, readers_see_it_whole);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return tap_run(suite());
}
