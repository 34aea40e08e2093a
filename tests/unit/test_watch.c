/* ksmctl/watch: who opted in, how it grows, who left, and what is said where nothing can be read. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <stdarg.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "ksmctl/watch.h"
#include "tests/unit/fixture.h"
#include "tests/unit/temp.h"

static struct root root;
static struct watch watch;
static int64_t page_kib;

static void __attribute__((format(printf, 2, 3)))
put(int pid, const char *format, ...) /* "FILE TEXT" */
{
	char line[1024], path[1100];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	char *text = strchr(line, ' ');
	*text++ = '\0';
	snprintf(path, sizeof(path), "root/proc/%d/%s", pid, line);
	temp_put(path, text);
}

/* A process with so many resident anonymous pages, which opted in or did not. */
static void make(int pid, const char *ksm_stat, int pages)
{
	put(pid, "ksm_stat %s", ksm_stat);
	put(pid, "ksm_merging_pages 0\n");
	put(pid, "smaps %s", "");
	put(pid, "statm 9999 %d 7 1 0 99 0\n", pages + 7);
}

static void leave(int pid)
{
	char command[PATH_MAX * 3];
	snprintf(command, sizeof(command), "rm -r '%s/root/proc/%d'", temp_path, pid);
	ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): a path of our own */
}

#define NO "ksm_rmap_items 0\nksm_merge_any: no\nksm_mergeable: no\n"
#define YES "ksm_rmap_items 0\nksm_merge_any: no\nksm_mergeable: yes\n"

static void begin(void)
{
	char command[PATH_MAX * 3];
	snprintf(command, sizeof(command), "rm -rf '%s/root' && mkdir -p '%s/root/proc'", temp_path,
		temp_path);
	ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): a path of our own */
	page_kib = sysconf(_SC_PAGESIZE) / 1024;
	temp_root(&root, "root");
}

static void begin_watch(int64_t now_ms)
{
	ck_assert_int_eq(watch_open(&watch, &root, false, now_ms), 0);
}

static void finish(void)
{
	watch_close(&watch);
	root_close(&root);
}

static void expect(int64_t processes, int64_t pages, int64_t news)
{
	ck_assert_int_eq(watch.processes, processes);
	ck_assert_int_eq(watch.kib, pages < 0 ? -1 : pages * page_kib);
	ck_assert_int_eq(watch.news, news);
}

/* Resident anonymous pages of a captured process, by its statm. */
static long long captured_pages(const char *tree, long long pid)
{
	char path[PATH_MAX];
	long long resident = 0, shared = 0;

	snprintf(path, sizeof(path), "%s/proc/%lld/statm", tree, pid);
	FILE *file = fopen(path, "re");
	ck_assert(file != NULL);
	ck_assert_int_eq(fscanf(file, "%*s %lld %lld", &resident, &shared), 2);
	fclose(file);
	return resident - shared;
}

static void check_tree(const char *tree)
{
	static const char *const roles[] = { "twin_a", "twin_b", "inner", "optin", "leaderless",
		"mapper", "plain", "hostile" };
	long long processes = 0, pages = 0;

	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++) {
		if (!fixture_number(tree, roles[i], "registered"))
			continue;
		processes++;
		pages += captured_pages(tree, fixture_number(tree, roles[i], "pid"));
	}
	ck_assert_int_gt(processes, 2);
	page_kib = sysconf(_SC_PAGESIZE) / 1024;
	fixture_root(tree, &root);
	begin_watch(1000);
	expect(processes, pages, processes);
	for (int64_t now = 1000; now < 20000; now += 250)
		ck_assert_int_eq(watch_update(&watch, now), 0);
	expect(processes, pages, processes);
	finish();
}

START_TEST(captured)
{
	fixture_each(check_tree);
}
END_TEST

/* Every way in which kernels tell that a process opted in. */
START_TEST(ways)
{
	static const struct {
		const char *ksm_stat, *smaps;
		bool opted;
	} all[] = {
		{ YES, "", true },
		{ NO, "", false },
		{ "ksm_rmap_items 0\nksm_merge_any: yes\nksm_mergeable: no\n", "", true },
		{ "ksm_rmap_items 0\nksm_merge_any: yes\n", "", true },
		{ "ksm_rmap_items 1\n", "", true },
		{ "ksm_rmap_items 0\n", "", false },
		{ "ksm_rmap_items 0\nksm_zero_pages 0\nksm_merging_pages 0\nksm_process_profit 0\n",
			"7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \nVmFlags: rd wr mr mw me "
			"mg \n",
			true },
		{ "ksm_rmap_items 0\n",
			"7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \nVmFlags: rd wr mr mw me "
			"\n",
			false },
		/* The kernel's word counts, not areas of another time. */
		{ NO, "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \nVmFlags: mg \n", false },
	};
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		begin();
		make(100, all[i].ksm_stat, 50);
		put(100, "smaps %s", all[i].smaps);
		begin_watch(0);
		ck_assert_msg(watch.processes == all[i].opted, "%zu: %" PRId64, i, watch.processes);
		expect(all[i].opted, all[i].opted ? 50 : 0, all[i].opted);
		finish();
	}
}
END_TEST

START_TEST(growth)
{
	begin();
	make(100, YES, 10);
	make(101, NO, 1000);
	make(102, YES, 20);
	begin_watch(0);
	expect(2, 30, 2);
	for (int i = 1; i <= 50; i++) { /* while they are few, every update sees it */
		put(100, "statm 9999 %d 7 1 0 99 0\n", 10 + i * 100 + 7);
		ck_assert_int_eq(watch_update(&watch, i * 1000), 0);
		expect(2, 30 + i * 100, 2);
	}
	put(100, "statm 9999 5 7 1 0 99 0\n"); /* odd, but no reason for a negative sum */
	ck_assert_int_eq(watch_update(&watch, 60000), 0);
	expect(2, 20, 2);
	finish();
}
END_TEST

/* A newcomer opts in some time after its start: seen within a quarter of its age then. */
START_TEST(opts_in_late)
{
	static const int64_t ages[] = { 0, 50, 190, 500, 2000, 10000, 100000 };
	for (size_t i = 0; i < sizeof(ages) / sizeof(*ages); i++) {
		int64_t now = 0;
		begin();
		make(100, NO, 64);
		begin_watch(0);
		for (; now < ages[i]; now += 50) {
			ck_assert_int_eq(watch_update(&watch, now), 0);
			expect(0, 0, 0);
		}
		put(100, "ksm_stat %s", YES);
		while (watch.processes == 0 && now < 1000000) {
			now += 50;
			ck_assert_int_eq(watch_update(&watch, now), 0);
		}
		expect(1, 64, 1);
		ck_assert_int_le(now - ages[i], 250 + ages[i] / 4);
		finish();
	}
}
END_TEST

START_TEST(comes_and_goes)
{
	begin();
	make(200, YES, 10);
	make(201, NO, 10);
	begin_watch(0);
	expect(1, 10, 1);
	make(50, YES, 1); /* before, between and behind the others */
	make(300, YES, 2);
	make(1234567, NO, 2);
	ck_assert_int_eq(watch_update(&watch, 100), 0);
	expect(1, 10, 1); /* without events a newcomer waits for the next walk */
	int64_t now = 100;
	while (watch.processes < 3 && now < 60000) {
		now += 100;
		ck_assert_int_eq(watch_update(&watch, now), 0);
	}
	ck_assert_int_le(now, 5000); /* even where the walk was slow by chance */
	expect(3, 13, 3);
	leave(200);
	leave(201);
	ck_assert_int_eq(watch_update(&watch, now + 500), 0); /* within half a second */
	expect(2, 3, 3);
	leave(50);
	leave(300);
	leave(1234567);
	ck_assert_int_eq(watch_update(&watch, now + 1000), 0);
	expect(0, 0, 3);
	ck_assert_int_eq(watch_update(&watch, now + 400000), 0);
	ck_assert_uint_eq(watch.count, 0);
	make(50, YES, 5); /* a process of the same number is another one */
	ck_assert_int_eq(watch_update(&watch, now + 800000), 0);
	expect(1, 5, 4);
	finish();
}
END_TEST

START_TEST(many)
{
	begin();
	for (int pid = 1; pid <= 500; pid++)
		make(pid, pid % 5 ? NO : YES, 3);
	begin_watch(0);
	expect(100, 300, 100);
	for (int pid = 501; pid <= 1000; pid++)
		make(pid, YES, 3);
	int64_t now = 0;
	while (watch.processes < 600 && now < 100000) {
		now += 200;
		ck_assert_int_eq(watch_update(&watch, now), 0);
	}
	ck_assert_int_le(now, 12000);
	expect(600, 1800, 600);
	finish();
}
END_TEST

/* Mostly unreadable, as without privileges: nothing is known, and that is not "none". */
START_TEST(blind)
{
	begin();
	for (int pid = 1; pid <= 4; pid++) {
		put(pid, "statm 9999 11 7 1 0 99 0\n");
		/* A folder gives an error when it is read, to root too. */
		if (pid <= 2)
			put(pid, "ksm_stat/x %s", YES);
		else
			put(pid, "ksm_stat %s", YES);
	}
	begin_watch(0);
	expect(2, 8, 2); /* half of them can be read */
	put(5, "ksm_stat/x %s", YES);
	ck_assert_int_eq(watch_update(&watch, 100000), 0);
	expect(-1, -1, 2);
	leave(5);
	ck_assert_int_eq(watch_update(&watch, 200000), 0);
	expect(2, 8, 2);
	finish();
}
END_TEST

/* Descriptors run out for a while: nobody is taken for gone, and what was known holds. */
START_TEST(no_descriptors)
{
	struct rlimit limit, none;
	begin();
	make(100, YES, 10);
	make(101, NO, 1000);
	make(102, YES, 20);
	begin_watch(0);
	int next = dup(root.fd);
	ck_assert_int_ge(next, 0);
	close(next);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){ (rlim_t)next, limit.rlim_max };
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (int64_t now = 500; now <= 20000; now += 500) {
		watch_update(&watch, now);
		expect(2, 30, 2);
	}
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	put(100, "statm 9999 %d 7 1 0 99 0\n", 50 + 7);
	ck_assert_int_eq(watch_update(&watch, 20500), 0);
	expect(2, 70, 2);
	finish();
}
END_TEST

START_TEST(due)
{
	begin();
	make(100, NO, 1);
	begin_watch(1000);
	ck_assert_int_eq(watch.due_ms, 1200); /* a young process has its turn soon */
	for (int64_t now = 1000; now <= 10000; now += 100)
		ck_assert_int_eq(watch_update(&watch, now), 0);
	ck_assert_int_eq(watch.due_ms, INT64_MAX); /* an old one has time */
	finish();
}
END_TEST

START_TEST(nothing_there)
{
	begin();
	begin_watch(0);
	expect(0, 0, 0);
	ck_assert_int_eq(watch_update(&watch, 5000), 0);
	finish();
	begin();
	ck_assert_int_eq(unlinkat(root.fd, "proc", AT_REMOVEDIR), 0);
	ck_assert_int_eq(watch_open(&watch, &root, false, 0), -ENOENT);
	finish();
}
END_TEST

/* Real events, more than the socket holds: they are lost, and nobody is. */
START_TEST(overrun)
{
	int smallest = 1;
	int64_t now_ms = 1000;

	ck_assert_int_eq(root_open(&root, "/"), 0);
	ck_assert_int_eq(watch_open(&watch, &root, true, now_ms), 0);
	if (watch.connector.fd < 0 || watch.processes < 0) {
		tap_skip("no process connector here, or not root");
		watch_close(&watch);
		return;
	}
	setsockopt(watch.connector.fd, SOL_SOCKET, SO_RCVBUF, &smallest, sizeof(smallest));
	int64_t walk_due_ms = watch.walk_due_ms;
	for (int i = 0; i < 500; i++) {
		pid_t child = fork();
		if (child == 0)
			_exit(0);
		waitpid(child, NULL, 0);
	}
	int ready[2];
	char opted = 0;
	int64_t before = watch.news; /* of processes others may end meanwhile */
	ck_assert_int_eq(pipe(ready), 0);
	pid_t late = fork();
	if (late == 0) {
		opted = prctl(67 /* PR_SET_MEMORY_MERGE */, 1, 0, 0, 0) == 0;
		if (write(ready[1], &opted, 1) == 1)
			pause();
		_exit(1);
	}
	ck_assert_int_eq(read(ready[0], &opted, 1), 1);
	for (int i = 1; i < 5 || (i < 50 && opted && watch.news == before); i++)
		ck_assert_int_eq(watch_update(&watch, now_ms + i * 1000), 0);
	kill(late, SIGKILL);
	waitpid(late, NULL, 0);
	ck_assert_msg(watch.walk_due_ms > walk_due_ms, "no event was lost: it proves nothing");
	if (opted)
		ck_assert_msg(watch.news > before, "who opted in is not known");
	else
		tap_skip("who opts in after the loss: this kernel has no prctl for it");
	watch_close(&watch);
	root_close(&root);
}
END_TEST

/* Sends a message as the kernel's to that socket, without any privilege. Returns errno, or 0. */
static int forge(const struct sockaddr_nl *to)
{
	char message[NLMSG_SPACE(sizeof(struct cn_msg) + sizeof(struct proc_event))] = { 0 };
	struct nlmsghdr *header = (void *)message;
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_CONNECTOR);

	header->nlmsg_len = sizeof(message);
	if (fd < 0 || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return EBADF;
	return sendto(fd, message, sizeof(message), 0, (const void *)to, sizeof(*to)) < 0 ? errno
											  : 0;
}

/* Events come from the kernel alone: that is what it promises, and what the service goes by. */
START_TEST(not_from_others)
{
	struct sockaddr_nl here = { 0 };
	socklen_t len = sizeof(here);
	int status;

	ck_assert_int_eq(root_open(&root, "/"), 0);
	ck_assert_int_eq(watch_open(&watch, &root, true, 1000), 0);
	if (watch.connector.fd < 0 || geteuid() != 0) {
		tap_skip("no process connector here, or not root");
	} else {
		ck_assert_int_eq(getsockname(watch.connector.fd, (void *)&here, &len), 0);
		ck_assert_uint_ne(here.nl_pid, 0);
		pid_t child = fork();
		if (child == 0)
			_exit(forge(&here));
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert(WIFEXITED(status));
		ck_assert_int_eq(WEXITSTATUS(status), EPERM);
	}
	watch_close(&watch);
	root_close(&root);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("watch");
	TCase *tcase = temp_case(suite, "watch");

	tcase_add_test(tcase, captured);
	tcase_add_test(tcase, ways);
	tcase_add_test(tcase, growth);
	tcase_add_test(tcase, opts_in_late);
	tcase_add_test(tcase, comes_and_goes);
	tcase_add_test(tcase, many);
	tcase_add_test(tcase, blind);
	tcase_add_test(tcase, no_descriptors);
	tcase_add_test(tcase, due);
	tcase_add_test(tcase, nothing_there);
	tcase_add_test(tcase, overrun);
	tcase_add_test(tcase, not_from_others);
	return tap_run(suite);
}
