/* Processes with known memory: every page is filled so that it is known which other pages equal it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "roles.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tree.h"

#define ROLE_LIMIT_S 300   /* a role ends by itself, whatever became of its parent */
#define PR_MEMORY_MERGE 67 /* PR_SET_MEMORY_MERGE, Linux 6.4 */
#define DELETED_FILE "/tmp/ksm capture gone"
#define ODD_FILE "/tmp/ksm odd\n12 kB"
#define CGROUP2 "/sys/fs/cgroup"

struct role roles[ROLES] = {
	{ .key = "twin_a",
		.comm = "twin",
		.cmdline = "twin",
		.equal = 1024,
		.unique = 256,
		.zero = 256,
		.registered = true,
		.cgroup = "farm.slice/farm-job7.slice/render@7.service" },
	{ .key = "twin_b",
		.comm = "twin",
		.cmdline = "twin",
		.equal = 1024,
		.unique = 256,
		.zero = 256,
		.registered = true,
		.uid = 1000,
		.cgroup = "machine.slice/box-1.scope" },
	{ .key = "inner",
		.comm = "inner",
		.cmdline = "inner",
		.same = 64,
		.unique = 16,
		.registered = true },
	{ .key = "optin",
		.comm = "optin",
		.cmdline = "optin",
		.equal = 128,
		.unique = 16,
		.registered = true,
		.merge_any = true },
	{ .key = "leaderless",
		.comm = "leaderless",
		.cmdline = "leaderless",
		.equal = 64,
		.unique = 16,
		.registered = true,
		.leader_exits = true },
	{ .key = "mapper",
		.comm = "mapper",
		.cmdline = "mapper",
		.unique = 16,
		.registered = true,
		.maps_files = true },
	{ .key = "plain",
		.comm = "plain",
		.cmdline = "plain",
		.equal = 64,
		.unique = 16,
		.uid = 1000 },
	{ .key = "hostile", .comm = "a) R (b", .cmdline = "a) R (b \x1b[31m\xff\n", .unique = 16 },
};

static size_t page;

/* A page that no other call with another (kind, number) makes; the multiplier spreads the bits. */
static void fill(char *at, uint64_t kind, uint64_t number)
{
	uint64_t *words = (uint64_t *)at;

	for (size_t i = 0; i < page / sizeof(*words); i++)
		words[i] = (kind << 48 | number << 16 | i) * UINT64_C(0x9e3779b97f4a7c15);
}

static void *map(size_t len, int prot, int flags, int fd)
{
	void *at = mmap(NULL, len, prot, flags, fd, 0);

	if (at == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	return at;
}

static void fill_role(const struct role *role)
{
	unsigned kind = 2 + (unsigned)(role - roles),
		 pages = role->equal + role->same + role->unique + role->zero;
	char *at = map(pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	/* Before 6.4 the area is marked instead: the same pages merge on every kernel. */
	if (role->registered && (!role->merge_any || prctl(PR_MEMORY_MERGE, 1, 0, 0, 0)) &&
		madvise(at, pages * page, MADV_MERGEABLE))
		die("madvise: %s", strerror(errno));
	/* Since 6.12 the split of a huge page frees its zero pages by itself: KSM would get none. */
	madvise(at + (pages - role->zero) * page, role->zero * page, MADV_NOHUGEPAGE);
	for (unsigned i = 0; i < role->equal; i++, at += page)
		fill(at, 1, i);
	for (unsigned i = 0; i < role->same; i++, at += page)
		fill(at, kind, 0);
	for (unsigned i = 0; i < role->unique; i++, at += page)
		fill(at, kind, 1 + i);
	for (unsigned i = 0; i < role->zero; i++, at += page)
		memset(at, 0, page);
}

static void map_file(const char *path, bool deleted)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char *at;

	if (fd < 0 || ftruncate(fd, (off_t)(16 * page)))
		die("%s: %s", path, strerror(errno));
	at = map(16 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
	madvise(at, 16 * page, MADV_MERGEABLE);
	for (unsigned i = 0; i < 16; i++)
		(void)*(volatile char *)(at + i * page);
	for (unsigned i = 0; i < 4; i++)
		fill(at + i * page, 20 + deleted, i);
	if (deleted)
		unlink(path);
	close(fd);
}

/* One area of every other kind that smaps tells apart. */
static void map_others(void)
{
	size_t huge = 2 << 20;
	char *at = map(2 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	at += (huge - (uintptr_t)at % huge) % huge;
	madvise(at, huge, MADV_HUGEPAGE);
	*at = 1;
	at = map(32 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	/* Returns 0 and does nothing: the area must show no "mg". */
	madvise(at, 32 * page, MADV_MERGEABLE);
	for (unsigned i = 0; i < 32; i++)
		fill(at + i * page, 1, i);
	map(64 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	map_file(ODD_FILE, false);
	map_file(DELETED_FILE, true);
}

static void ready(const struct role *role)
{
	/* A rename is of the thread: the one that stays must bear the name too. */
	prctl(PR_SET_NAME, role->comm);
	if (write(ROLES_READY_FD, "", 1) != 1)
		exit(1);
	for (;;)
		pause();
}

static void *survivor(void *arg)
{
	struct timespec delay = { 0, 200000000 };

	/* Until the main thread is gone the state is not the one to be captured. */
	nanosleep(&delay, NULL);
	ready(arg);
	return NULL;
}

static void __attribute__((noreturn)) play(struct role *role)
{
	pthread_t thread;

	alarm(ROLE_LIMIT_S);
	fill_role(role);
	if (role->maps_files)
		map_others();
	if (role->uid && (setresgid(role->uid, role->uid, role->uid) ||
				 setresuid(role->uid, role->uid, role->uid)))
		die("setresuid: %s", strerror(errno));
	/* Not earlier: a change of user clears it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, role->comm);
	if (role->leader_exits) {
		if (pthread_create(&thread, NULL, survivor, role))
			die("pthread_create: no thread");
		pthread_exit(NULL);
	}
	ready(role);
	exit(1);
}

void roles_play(const char *key)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	for (struct role *role = roles; role < roles + ROLES; role++)
		if (!strcmp(role->key, key))
			play(role);
	die("no role %s", key);
}

/* Only where the v2 hierarchy is the whole of it, as in the virtual machine: a mixed one is left alone. */
static void enter_cgroup(const struct role *role)
{
	char path[256];
	FILE *file;

	if (!role->cgroup || access(CGROUP2 "/cgroup.procs", W_OK))
		return;
	snprintf(path, sizeof(path), CGROUP2 "/%s/cgroup.procs", role->cgroup);
	tree_make_parents(path);
	file = fopen(path, "w");
	if (!file || fprintf(file, "%d", role->pid) < 0 || fclose(file))
		die("%s: %s", path, strerror(errno));
}

void roles_start(void)
{
	int fds[2];
	char byte;

	if (pipe(fds))
		die("pipe: %s", strerror(errno));
	for (struct role *role = roles; role < roles + ROLES; role++) {
		role->pid = fork();
		if (role->pid < 0)
			die("fork: %s", strerror(errno));
		if (!role->pid) {
			const char *args[] = { role->cmdline, "role", role->key, NULL };
			char *const environment[] = { NULL };

			if (fds[1] != ROLES_READY_FD)
				dup2(fds[1], ROLES_READY_FD);
			execve("/proc/self/exe", (char *const *)args, environment);
			_exit(1);
		}
		enter_cgroup(role);
		if (read(fds[0], &byte, 1) != 1)
			die("%s did not come up", role->key);
	}
	close(fds[0]);
	close(fds[1]);
}

void roles_end(void)
{
	for (struct role *role = roles; role < roles + ROLES; role++) {
		if (role->pid <= 0)
			continue;
		kill(role->pid, SIGKILL);
		waitpid(role->pid, NULL, 0);
		role->pid = 0;
	}
	unlink(ODD_FILE);
}
