/* A process in a situation that ksmctl doctor must recognise: how its memory is registered and what is in it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: scene SCENE [MIB [SEED]]
 * Scenes with another seed have other contents (1): what merges with what is then up to one test alone.
 * Prints "ready PID" (of the process in question) and stays until its standard input ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libksmreg/ksmreg.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#ifndef MAP_HUGETLB
#define MAP_HUGETLB 0x40000
#endif

static size_t page, bytes;
static pid_t subject; /* whose PID is printed */
static uint64_t seed;

static void fill(char *to, size_t size, uint64_t from)
{
	uint64_t x = from * 0x9e3779b97f4a7c15 | 1;

	for (size_t i = 0; i + 8 <= size; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(to + i, &x, 8);
	}
}

static char *map_with(int flags, size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		fprintf(stderr, "scene: cannot map %zu bytes: %s\n", size, strerror(errno));
		exit(1);
	}
	return p;
}

/* Memory that is registered, on small pages so that nothing but its content matters. */
static char *registered(size_t size)
{
	char *p = map_with(MAP_PRIVATE, size);

	ksmreg_register_with(p, size, KSMREG_NOHUGEPAGE);
	return p;
}

static void equal(void)
{
	fill(registered(bytes), bytes, seed);
}

static void unique(void)
{
	fill(registered(bytes), bytes, (uint64_t)getpid());
}

/* Some is equal, so that merging saves something, and it costs more than that. */
static void loss(void)
{
	fill(registered(64 * page), 64 * page, seed);
	unique();
}

static void zero(void)
{
	memset(registered(bytes), 0, bytes);
	fill(registered(128 * page), 128 * page, seed);
}

static void plain(void)
{
	fill(map_with(MAP_PRIVATE, bytes), bytes, seed);
}

static void part(void)
{
	fill(registered(bytes / 4), bytes / 4, seed);
	plain();
}

static void shared(void)
{
	char *p = map_with(MAP_SHARED, bytes);

	ksmreg_register(p, bytes);
	fill(p, bytes, seed);
}

static void hugetlb(void)
{
	char *p = map_with(MAP_PRIVATE | MAP_HUGETLB, bytes);

	ksmreg_register(p, bytes);
	fill(p, bytes, seed);
}

static void huge(void)
{
	/* whole huge pages, of which none has a twin */
	char *p = map_with(MAP_PRIVATE, bytes + (2 << 20));

	p = (char *)(((uintptr_t)p + (2 << 20) - 1) & -(uintptr_t)(2 << 20));
	madvise(p, bytes, MADV_HUGEPAGE);
	ksmreg_register(p, bytes);
	fill(p, bytes, (uint64_t)getpid());
	fill(registered(bytes / 2), bytes / 2, seed);
}

/* Equal but for some words at the front of each page. */
static void with_words(bool addresses)
{
	char *p = registered(bytes);

	fill(p, bytes, seed);
	for (size_t at = 0; at < bytes; at += page) {
		for (size_t word = 0; word < 3; word++) {
			uint64_t value = addresses ? (uintptr_t)p + at + word * 64
						   : (uint64_t)getpid() * 1000 + word;
			memcpy(p + at + word * 8, &value, 8);
		}
	}
}

static void addresses(void)
{
	with_words(true);
}

static void values(void)
{
	with_words(false);
}

/* The same, beginning at another place in the page for each process. */
static void shifted(void)
{
	char *p = registered(bytes);

	fill(p + 64 * (1 + getpid() % 60), bytes - page, seed);
}

/* Its own pages are equal to each other, a quarter of them; the rest is unlike anything. */
static void inner(void)
{
	char *p = registered(bytes);

	for (size_t at = 0; at < bytes / 4; at += page)
		fill(p + at, page, (uint64_t)getpid());
	fill(p + bytes / 4, bytes - bytes / 4, (uint64_t)getpid() << 20);
}

static void locked(void)
{
	char *p = registered(bytes);

	fill(p, bytes, 1);
	if (syscall(SYS_mlock, p, bytes)) /* a sanitizer's mlock does nothing */
		perror("scene: mlock");
}

/* Given up, and not yet taken by the kernel. */
static void lazy(void)
{
	char *p = registered(bytes);

	fill(p, bytes, (uint64_t)getpid());
	madvise(p, bytes / 2, MADV_FREE);
}

static void forked(void)
{
	fill(registered(bytes), bytes, (uint64_t)getpid());
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/* As many areas as a process may have, but for a thousand. */
static void areas(void)
{
	char *p;
	size_t count = 64500;

	fill(registered(bytes), bytes, 1);
	p = map_with(MAP_PRIVATE | MAP_NORESERVE, count * page);
	for (size_t i = 0; i < count; i += 2)
		mprotect(p + i * page, page, PROT_NONE);
}

static void secret(void)
{
	int fd = (int)syscall(SYS_memfd_secret, 0);
	char *p;

	if (fd < 0 || ftruncate(fd, (off_t)bytes)) {
		perror("scene: memfd_secret");
		exit(1);
	}
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		perror("scene: secret memory");
		exit(1);
	}
	ksmreg_register(p, bytes);
	fill(p, bytes, 1);
}

/* Where a device could be: addresses that no memory has. They are mapped and never touched. */
static void device(void)
{
	int fd = open("/dev/mem", O_RDONLY);
	char *p = fd < 0 ? MAP_FAILED
			 : mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)0xe0000000);

	if (p == MAP_FAILED) {
		perror("scene: /dev/mem");
		exit(1);
	}
	ksmreg_register(p, bytes);
}

/* A buffer that io_uring may use at any time. */
static void pinned(void)
{
	struct io_uring_params params = { 0 };
	char *p = registered(bytes);
	struct iovec buffer = { p, bytes };
	int fd;

	fill(p, bytes, 1);
	fd = (int)syscall(SYS_io_uring_setup, 4, &params);
	if (fd < 0 || syscall(SYS_io_uring_register, fd, IORING_REGISTER_BUFFERS, &buffer, 1) < 0) {
		perror("scene: io_uring");
		exit(1);
	}
}

/* Two that fill theirs alike, and unlike all others. The twin ends when it is killed. */
static void twins(void)
{
	char *p = registered(bytes);
	pid_t twin = fork();

	fill(p, bytes, (uint64_t)subject);
	if (twin)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/* In swap for as long as nobody touches it. */
static void swapped(void)
{
	char *p = registered(bytes);

	fill(p, bytes, (uint64_t)getpid());
	madvise(p, bytes, MADV_PAGEOUT);
}

/* A page of every MiB is in a pipe, for which it stays where it is. */
static void piped(void)
{
	char *p = map_with(MAP_PRIVATE, bytes);
	int ends[2];

	fill(p, bytes, 1);
	for (size_t at = 0; at < bytes; at += 1 << 20) {
		struct iovec part = { p + at, page };
		if (pipe(ends) || vmsplice(ends[1], &part, 1, 0) < 0) {
			perror("scene: vmsplice");
			exit(1);
		}
	}
}

static void opted_out_child(void)
{
	prctl(67, 1UL, 0UL, 0UL, 0UL); /* PR_SET_MEMORY_MERGE */
	subject = fork();
	if (subject)
		return;
	prctl(67, 0UL, 0UL, 0UL, 0UL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	plain();
	for (;;)
		pause();
}

static const struct {
	const char *name;
	void (*make)(void);
} scenes[] = {
	{ "equal", equal },
	{ "unique", unique },
	{ "loss", loss },
	{ "zero", zero },
	{ "plain", plain },
	{ "part", part },
	{ "shared", shared },
	{ "hugetlb", hugetlb },
	{ "huge", huge },
	{ "addresses", addresses },
	{ "values", values },
	{ "shifted", shifted },
	{ "lost", opted_out_child },
	{ "inner", inner },
	{ "twins", twins },
	{ "swapped", swapped },
	{ "locked", locked },
	{ "lazy", lazy },
	{ "forked", forked },
	{ "areas", areas },
	{ "secret", secret },
	{ "device", device },
	{ "pinned", pinned },
	{ "piped", piped },
};

/* Writes all of it again and again, until standard input ends. */
static int change(void)
{
	char *p = registered(bytes);
	uint64_t round = (uint64_t)getpid() << 20;
	pid_t changer = fork(); /* it is the child that has the memory and changes it */

	if (changer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;; round++) {
			for (size_t at = 0; at < bytes; at += page)
				memcpy(p + at, &round, 8), memcpy(p + at + 8, &at, 8);
			usleep(20000);
		}
	}
	subject = changer;
	return 0;
}

/* Reads all of it again and again, in a child: where that is more than it may have, it comes from swap. */
static int reads(void)
{
	char *p = registered(bytes);

	fill(p, bytes, 1);
	subject = fork();
	if (subject)
		return 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		for (size_t at = 0; at < bytes; at += page)
			*(volatile char *)(p + at);
		usleep(20000);
	}
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	bool known = false;
	char c;

	page = (size_t)sysconf(_SC_PAGESIZE);
	bytes = (argc > 2 ? strtoul(argv[2], NULL, 10) : 16) << 20;
	seed = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;
	subject = getpid();
	for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++) {
		if (!strcmp(scenes[i].name, name)) {
			scenes[i].make();
			known = true;
		}
	}
	if (!strcmp(name, "change"))
		known = change() == 0;
	if (!strcmp(name, "reads"))
		known = reads() == 0;
	if (!known) {
		fprintf(stderr, "usage: scene SCENE [MIB [SEED]]\n");
		return 2;
	}
	if (subject != getpid())
		usleep(200000);
	printf("ready %ld\n", (long)subject);
	fflush(stdout);
	return read(0, &c, 1) != 0;
}
