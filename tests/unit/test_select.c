/* sysfs/select: lists as they are typed, what fits, and who is visited of a made-up tree. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/select.h"

#include <errno.h>

#include "tests/unit/temp.h"

/* Which call for memory from now on fails; 0: none. */
static int fails_at;

char *__wrap_strndup(const char *text, size_t len);
char *__real_strndup(const char *text, size_t len);
void *__wrap_reallocarray(void *old, size_t count, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);

static bool fails(void)
{
	if (!fails_at || --fails_at)
		return false;
	errno = ENOMEM;
	return true;
}

char *__wrap_strndup(const char *text, size_t len)
{
	return fails() ? NULL : __real_strndup(text, len);
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
	return fails() ? NULL : __real_reallocarray(old, count, size);
}

typedef int (*add_list)(
	struct selection *selection, const char *list, const char **bad, size_t *len);

static void add(struct selection *selection, add_list add_words, const char *list)
{
	const char *bad;
	size_t len;

	ck_assert_int_eq(add_words(selection, list, &bad, &len), 0);
}

/* It is refused, and this word of it is said to be wrong. */
static void refused(add_list add_words, const char *list, const char *word)
{
	struct selection selection = { 0 };
	const char *bad = NULL;
	size_t len = 0;

	ck_assert_msg(add_words(&selection, list, &bad, &len) == -EINVAL, "'%s'", list);
	ck_assert(bad >= list && bad + len <= list + strlen(list));
	ck_assert_msg(len == strlen(word) && !strncmp(bad, word, len), "'%s': '%.*s', not '%s'",
		list, (int)len, bad, word);
	select_free(&selection);
	ck_assert(!select_any(&selection));
}

START_TEST(lists)
{
	struct selection selection = { 0 };

	ck_assert(!select_any(&selection));
	add(&selection, select_add_pids, "7,2147483647,7");
	add(&selection, select_add_pids, "1,7");
	ck_assert_uint_eq(selection.pid_count, 3);
	ck_assert_int_eq(selection.pids[1], INT_MAX);
	ck_assert_int_eq(selection.pids[2], 1);
	add(&selection, select_add_comms, "a b,*,x");
	ck_assert_uint_eq(selection.comm_count, 3);
	ck_assert_str_eq(selection.comms[0], "a b");
	ck_assert_str_eq(selection.comms[2], "x");
	add(&selection, select_add_users, "root,4294967294,12");
	ck_assert_uint_eq(selection.user_count, 3);
	ck_assert_uint_eq(selection.users[0], 0);
	ck_assert_uint_eq(selection.users[1], 4294967294U);
	ck_assert_uint_eq(selection.users[2], 12);
	ck_assert(select_any(&selection));
	select_free(&selection);
	ck_assert(!select_any(&selection));

	refused(select_add_pids, "", "");
	refused(select_add_pids, "1,", "");
	refused(select_add_pids, "1,,2", "");
	refused(select_add_pids, "1,0,2", "0");
	refused(select_add_pids, "-1", "-1");
	refused(select_add_pids, "5,12x", "12x");
	refused(select_add_pids, "2147483648,1", "2147483648");
	refused(select_add_pids, "4294967297", "4294967297"); /* 1, if it were cut */
	refused(select_add_comms, "a,,b", "");
	refused(select_add_users, "root,no such user", "no such user");
	refused(select_add_users, "-1", "-1");
	refused(select_add_users, "4294967295", "4294967295"); /* nobody's number */
}
END_TEST

START_TEST(cgroup_paths)
{
	static const char *const paths[][2] = {
		{ "/a/b", "/a/b" },
		{ "/a/b//", "/a/b" },
		{ "a/b/", "a/b" },
		{ "/", "/" },
		{ "//", "/" },
		{ "/sys/fs/cgroup/a,b", "/a,b" },
		{ "/sys/fs/cgroup/", "/" },
		{ "/sys/fs/cgroup/memory/a/", "/a" },
		{ "/sys/fs/cgroup/systemd/a", "/a" },
		{ "/sys/fs/cgroup/unified/", "/" },
		{ "/sys/fs/cgroups", "/sys/fs/cgroups" },
	};
	struct selection selection = { 0 };

	ck_assert_int_eq(select_add_cgroup(&selection, ""), -EINVAL);
	ck_assert(!select_any(&selection));
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		ck_assert_int_eq(select_add_cgroup(&selection, paths[i][0]), 0);
		ck_assert_str_eq(selection.cgroups[i], paths[i][1]);
	}
	select_free(&selection);
}
END_TEST

START_TEST(fits)
{
	ck_assert(select_comm_fits("sh", "sh"));
	ck_assert(!select_comm_fits("sh", "bash"));
	ck_assert(select_comm_fits("*sh", "bash"));
	ck_assert(select_comm_fits("[a", "[a")); /* no pattern, and a name */
	ck_assert(select_comm_fits("fifteen_letters_and_more", "fifteen_letters"));
	ck_assert(!select_comm_fits("fifteen_letters_and_more", "fifteen_letter"));
	ck_assert(!select_comm_fits("sixteen__letters_", "fifteen_letters"));

	ck_assert(select_cgroup_fits("/", "/any/where"));
	ck_assert(select_cgroup_fits("/a", "/a"));
	ck_assert(select_cgroup_fits("/a", "/a/b"));
	ck_assert(!select_cgroup_fits("/a", "/ab"));
	ck_assert(!select_cgroup_fits("/a", "/b/a"));
	ck_assert(select_cgroup_fits("a", "/b/a"));
	ck_assert(select_cgroup_fits("a/b", "/aa/a/b/c"));
	ck_assert(!select_cgroup_fits("a", "/aa/ab"));
	ck_assert(select_cgroup_fits("a", "/aa/a")); /* the second place where it stands */
}
END_TEST

static void process(pid_t pid, const char *comm, unsigned flags, unsigned uid, const char *cgroup)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "t/proc/%d/stat", (int)pid);
	snprintf(text, sizeof(text), "%d (%s) S 1 0 0 0 -1 %u 0 0 0 0 30 70 0 0 25 5 1 0 5 0 0 0\n",
		(int)pid, comm, flags);
	temp_put(path, text);
	if (!cgroup)
		return;
	snprintf(path, sizeof(path), "t/proc/%d/status", (int)pid);
	snprintf(text, sizeof(text), "Name:\t%s\nUid:\t7\t%u\t7\t7\n", comm, uid);
	temp_put(path, text);
	snprintf(path, sizeof(path), "t/proc/%d/cgroup", (int)pid);
	snprintf(text, sizeof(text), "0::%s\n", cgroup);
	temp_put(path, text);
}

enum { WORKER = 10, BELOW, OTHER, KERNEL_THREAD, UNREADABLE, GONE, HIDDEN, NO_FOLDER, LAST };

static void tree(struct root *root)
{
	process(WORKER, "worker", 0, 1000, "/sys.slice/a");
	process(BELOW, "worker", 0, 1001, "/sys.slice/a/sub");
	process(OTHER, "other", 0, 1000, "/user");
	process(KERNEL_THREAD, "kthread", 0x200000, 0, "/");
	temp_put("t/proc/14/stat/x", "");
	temp_put("t/proc/15/comm", "gone\n");
	process(HIDDEN, "worker", 0, 0, NULL);
	temp_root(root, "t");
}

/* Who was visited, a bit for each; and for whom `stat` was there. */
struct visits {
	unsigned pids, known;
	int stop_at, stop;
};

static int visit(const struct proc *proc, const struct proc_stat *stat, void *data)
{
	struct visits *visits = data;

	ck_assert(proc->pid >= WORKER && proc->pid < LAST);
	ck_assert_uint_eq(visits->pids & 1U << proc->pid, 0);
	ck_assert_int_ge(proc->fd, 0);
	visits->pids |= 1U << proc->pid;
	visits->known |= stat ? 1U << proc->pid : 0;
	return proc->pid == visits->stop_at ? visits->stop : 0;
}

#define BIT(pid) (1U << (pid))

/* Visits and frees the selection. Returns who was visited. */
static unsigned each(const struct root *root, struct selection *selection, size_t not_there)
{
	struct visits visits = { 0 };
	size_t missing = 99;

	ck_assert_int_eq(select_each(selection, root, visit, &visits, &missing), 0);
	ck_assert_uint_eq(missing, not_there);
	ck_assert_uint_eq(visits.known, visits.pids & ~BIT(UNREADABLE));
	select_free(selection);
	return visits.pids;
}

START_TEST(visited)
{
	struct selection selection = { 0 };
	struct root root;

	tree(&root);
	/* who ends during a walk was not asked for, and is not missing */
	ck_assert_uint_eq(each(&root, &selection, 0),
		BIT(WORKER) | BIT(BELOW) | BIT(OTHER) | BIT(UNREADABLE) | BIT(HIDDEN));
	add(&selection, select_add_pids, "12,99,15,13,14,12");
	ck_assert_uint_eq(each(&root, &selection, 2), BIT(OTHER) | BIT(UNREADABLE));
	add(&selection, select_add_comms, "none,work*");
	ck_assert_uint_eq(each(&root, &selection, 0), BIT(WORKER) | BIT(BELOW) | BIT(HIDDEN));
	/* whose user or group cannot be told does not fit */
	add(&selection, select_add_users, "5,1000");
	ck_assert_uint_eq(each(&root, &selection, 0), BIT(WORKER) | BIT(OTHER));
	ck_assert_int_eq(select_add_cgroup(&selection, "/none"), 0);
	ck_assert_int_eq(select_add_cgroup(&selection, "/sys.slice/a"), 0);
	ck_assert_uint_eq(each(&root, &selection, 0), BIT(WORKER) | BIT(BELOW));
	/* one of each kind has to fit */
	ck_assert_int_eq(select_add_cgroup(&selection, "/sys.slice/a"), 0);
	add(&selection, select_add_comms, "worker");
	add(&selection, select_add_users, "1001");
	ck_assert_uint_eq(each(&root, &selection, 0), BIT(BELOW));
	add(&selection, select_add_pids, "10,11");
	add(&selection, select_add_users, "1001");
	ck_assert_uint_eq(each(&root, &selection, 0), BIT(BELOW));
	root_close(&root);
}
END_TEST

START_TEST(ends_early)
{
	static const char *const pids[] = { NULL, "12,10,11" };
	struct root root;

	tree(&root);
	for (size_t i = 0; i < 2; i++) {
		static const int stops[] = { 7, -EIO };
		for (size_t k = 0; k < 2; k++) {
			struct visits visits = { .stop_at = WORKER, .stop = stops[k] };
			struct selection selection = { 0 };
			size_t missing;
			if (pids[i])
				add(&selection, select_add_pids, pids[i]);
			ck_assert_int_eq(
				select_each(&selection, &root, visit, &visits, &missing), stops[k]);
			ck_assert_uint_ne(visits.pids & BIT(WORKER), 0);
			if (pids[i])
				ck_assert_uint_eq(visits.pids, BIT(WORKER) | BIT(OTHER));
			select_free(&selection);
		}
	}
	root_close(&root);
}
END_TEST

START_TEST(cannot_be_read)
{
	struct selection selection = { 0 };
	struct visits visits = { 0 };
	struct root root;
	size_t missing;

	tree(&root);
	temp_put("t/proc/17", "a file");
	add(&selection, select_add_pids, "10,17,11");
	ck_assert_int_eq(select_each(&selection, &root, visit, &visits, &missing), -ENOTDIR);
	ck_assert_uint_eq(visits.pids, BIT(WORKER));
	select_free(&selection);
	unlinkat(temp_fd, "t/proc/17", 0);
	root_close(&root);
	mkdirat(temp_fd, "bare", 0755);
	temp_root(&root, "bare");
	ck_assert_int_eq(select_each(&selection, &root, visit, &visits, &missing), -ENOENT);
	root_close(&root);
}
END_TEST

/* Whichever call for memory fails: it is said, and what was there before stays whole. */
START_TEST(no_memory)
{
	static const struct {
		add_list add_words;
		const char *list;
		int calls;
	} calls[] = {
		{ select_add_pids, "1,2", 2 },
		{ select_add_comms, "a,b", 4 },
		{ select_add_users, "root,5", 4 },
	};
	struct selection selection = { 0 };
	const char *bad;
	size_t len;

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		for (int at = 1; at <= calls[i].calls; at++) {
			fails_at = at;
			ck_assert_int_eq(
				calls[i].add_words(&selection, calls[i].list, &bad, &len), -ENOMEM);
			ck_assert_int_eq(fails_at, 0);
			select_free(&selection);
		}
		fails_at = calls[i].calls + 1; /* there is none */
		add(&selection, calls[i].add_words, calls[i].list);
		ck_assert_int_eq(fails_at, 1);
		fails_at = 0;
		select_free(&selection);
	}
	for (int at = 1; at <= 2; at++) {
		ck_assert_int_eq(select_add_cgroup(&selection, "/kept"), 0);
		fails_at = at;
		ck_assert_int_eq(select_add_cgroup(&selection, "/a"), -ENOMEM);
		ck_assert_uint_eq(selection.cgroup_count, 1);
		ck_assert_str_eq(selection.cgroups[0], "/kept");
		select_free(&selection);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("select");
	TCase *tcase = temp_case(suite, "select");

	tcase_add_test(tcase, lists);
	tcase_add_test(tcase, cgroup_paths);
	tcase_add_test(tcase, fits);
	tcase_add_test(tcase, visited);
	tcase_add_test(tcase, ends_early);
	tcase_add_test(tcase, cannot_be_read);
	tcase_add_test(tcase, no_memory);
	return tap_run(suite);
}
