/* Makes processes with known KSM state, then copies what /sys and /proc say of them into a tree. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: capture DIR
 *
 * The numbers in DIR/expected come from how the memory was filled, not from the kernel; the kernel's
 * own pages_sharing must come to agree with them, else nothing is captured and the exit code is 1.
 * The knobs are global: they are changed under the lock of their directory and put back at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ksmstat/copy.h"
#include "roles.h"
#include "tree.h"

#define LOCK_WAIT_S 1200
#define MERGE_WAIT_S 90
#define PR_GET_MERGE 68 /* PR_GET_MEMORY_MERGE, Linux 6.4 */

static void sleep_ms(long ms)
{
	struct timespec delay = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&delay, NULL);
}

static long long knob_read(const char *name)
{
	char path[PATH_MAX], *text;
	long long value = -1;

	snprintf(path, sizeof(path), KSM "%s", name);
	text = tree_read(path, NULL);
	if (text)
		value = atoll(text);
	free(text);
	return value;
}

static int knob_write(const char *name, const char *value)
{
	char path[PATH_MAX];
	int fd, rc = 0;

	snprintf(path, sizeof(path), KSM "%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

/* In the order in which they can be put back: pages_to_scan cannot be written under the advisor. */
static struct knob {
	const char *name;
	char was[64];
} knobs[] = { { .name = "run" }, { .name = "sleep_millisecs" }, { .name = "pages_to_scan" },
	{ .name = "use_zero_pages" }, { .name = "advisor_mode" } };
#define KNOBS (sizeof(knobs) / sizeof(knobs[0]))

static void knobs_save(void)
{
	for (struct knob *knob = knobs; knob < knobs + KNOBS; knob++) {
		char path[PATH_MAX], *text, *word;

		snprintf(path, sizeof(path), KSM "%s", knob->name);
		text = tree_read(path, NULL);
		if (!text)
			continue;
		word = strchr(text, '[');
		word = word ? word + 1 : text;
		word[strcspn(word, "]\n")] = 0;
		snprintf(knob->was, sizeof(knob->was), "%s", word);
		free(text);
	}
}

static int knobs_restore(void)
{
	int failed = 0;

	for (struct knob *knob = knobs; knob < knobs + KNOBS; knob++) {
		if (*knob->was && knob_write(knob->name, knob->was)) {
			fprintf(stderr, "capture: %s could not be put back to %s\n", knob->name,
				knob->was);
			failed = 1;
		}
	}
	return failed;
}

/* --- the state --- */

/* What the contents say: a page of n equal ones is shared, the n - 1 others share it. */
static void expect(long long *shared, long long *sharing, long long *zero)
{
	long long distinct = 0;

	*shared = *sharing = *zero = 0;
	for (const struct role *role = roles; role < roles + ROLES; role++) {
		if (!role->registered)
			continue;
		*sharing += role->equal;
		*zero += role->zero;
		distinct = role->equal > distinct ? role->equal : distinct;
		if (role->same) {
			*shared += 1;
			*sharing += role->same - 1;
		}
	}
	*shared += distinct;
	*sharing -= distinct;
}

static void want_knob(const char *name, const char *value)
{
	int rc = knob_write(name, value);

	if (rc && rc != -ENOENT)
		die("%s=%s: %s", name, value, strerror(-rc));
}

/* Scan fast until the kernel has merged what is equal, then three passes more: it must stay so. */
static void merge_all(long long shared, long long sharing, long long zero)
{
	long long scans = -1, got = 0, zeros = 0;
	time_t end = time(NULL) + MERGE_WAIT_S;

	want_knob("advisor_mode", "none");
	want_knob("use_zero_pages", "1");
	want_knob("pages_to_scan", "4000");
	want_knob("sleep_millisecs", "10");
	want_knob("run", "1");
	do {
		if (time(NULL) > end)
			die("pages_sharing is %lld, must be %lld; %lld zero pages of %lld", got,
				sharing, zeros, zero);
		sleep_ms(50);
		got = knob_read("pages_sharing");
		zeros = knob_read("ksm_zero_pages");
		if (got != sharing || knob_read("pages_shared") != shared ||
			(zeros >= 0 && zeros < zero))
			scans = -1;
		else if (scans < 0)
			scans = knob_read("full_scans");
	} while (scans < 0 || knob_read("full_scans") < scans + 3);

	/* The tree shall show a running ksmd, but nothing may move while it is copied. */
	want_knob("sleep_millisecs", "60000");
	want_knob("pages_to_scan", "100");
	sleep_ms(300);
}

static void write_expected(const char *dir, long long shared, long long sharing, long long zero)
{
	bool have_prctl = prctl(PR_GET_MERGE, 0, 0, 0, 0) >= 0;
	char path[PATH_MAX];
	struct utsname name;
	FILE *file;

	snprintf(path, sizeof(path), "%s/expected", dir);
	file = fopen(path, "w");
	if (!file || uname(&name))
		die("%s: %s", path, strerror(errno));
	/* What follows the version proper names a builder, not a kernel. */
	fprintf(file, "kernel %.*s\n", (int)strcspn(name.release, "+-"), name.release);
	fprintf(file, "page_size %ld\n", sysconf(_SC_PAGESIZE));
	fprintf(file, "pages_shared %lld\npages_sharing %lld\nzero_pages %lld\n", shared, sharing,
		zero);
	fprintf(file, "ksmd.pid %d\nkthreadd.pid %d\n", tree_kernel_thread("ksmd"),
		tree_kernel_thread("kthreadd"));
	for (const struct role *role = roles; role < roles + ROLES; role++) {
		const char *key = role->key;

		fprintf(file, "%s.pid %d\n%s.comm %s\n%s.uid %u\n", key, role->pid, key, role->comm,
			key, role->uid);
		fprintf(file, "%s.registered %d\n%s.merge_any %d\n", key, role->registered, key,
			role->merge_any && have_prctl);
		fprintf(file, "%s.equal_pages %u\n%s.same_pages %u\n", key, role->equal, key,
			role->same);
		fprintf(file, "%s.unique_pages %u\n%s.zero_pages %u\n", key, role->unique, key,
			role->zero);
	}
	if (fclose(file))
		die("%s: %s", path, strerror(errno));
}

/* As `ksmstat --capture` does, but of chosen processes, which all must be there. */
static void copy_one(const struct copy *copy, const struct root *root, pid_t pid)
{
	struct proc proc;
	int err = proc_open(&proc, root, pid);

	if (!err)
		err = copy_process(copy, &proc);
	if (err)
		die("process %d: %s", (int)pid, err < 0 ? strerror(-err) : "no smaps");
	proc_close(&proc);
}

static int capture(const char *dir)
{
	struct copy copy = { .dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	struct root root;
	long long shared, sharing, zero;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Paths of cgroups are then told from here on, whatever holds this program itself. */
	if (unshare(CLONE_NEWCGROUP))
		die("unshare: %s", strerror(errno));
	expect(&shared, &sharing, &zero);
	roles_start();
	merge_all(shared, sharing, zero);
	if (copy.dir < 0 || root_open(&root, NULL) || copy_system(&copy, &root))
		die("%s: %s", dir, strerror(errno));
	for (const struct role *role = roles; role < roles + ROLES; role++)
		copy_one(&copy, &root, role->pid);
	copy_one(&copy, &root, tree_kernel_thread("ksmd"));
	copy_one(&copy, &root, tree_kernel_thread("kthreadd"));
	root_close(&root);
	close(copy.dir);
	write_expected(dir, shared, sharing, zero);
	if (knob_read("pages_sharing") != sharing)
		die("pages_sharing moved during the copy");
	roles_end();
	return 0;
}

static void lock_late(int signal_number)
{
	static const char why[] = "capture: another program holds " KSM " or has merged pages\n";

	(void)signal_number;
	_exit(write(STDERR_FILENO, why, sizeof(why) - 1) < 0 ? 2 : 1);
}

/* Nobody else's pages may be merged: the numbers would not be those of the roles. */
static void lock_knobs(void)
{
	int fd = open(KSM, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		die("%s: %s", KSM, strerror(errno));
	/* A wait in the queue of the lock: to look again and again would lose against those who queue. */
	signal(SIGALRM, lock_late);
	alarm(LOCK_WAIT_S);
	while (flock(fd, LOCK_EX) || knob_read("pages_shared")) {
		flock(fd, LOCK_UN);
		sleep_ms(100);
	}
	alarm(0);
}

/* The work is a child's, so that the knobs are put back however that ends. */
int main(int argc, char **argv)
{
	pid_t worker;
	int status = 1;

	if (argc == 3 && !strcmp(argv[1], "role"))
		roles_play(argv[2]);
	if (argc != 2 || (mkdir(argv[1], 0755) && errno != EEXIST))
		die("usage: capture DIR");
	lock_knobs();
	knobs_save();
	worker = fork();
	if (!worker)
		return capture(argv[1]);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (worker < 0 || waitpid(worker, &status, 0) != worker)
		status = 1;
	roles_end();
	return knobs_restore() || status ? 1 : 0;
}
