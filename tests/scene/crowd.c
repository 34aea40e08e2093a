/* Many processes, names or areas for a reporter to miss none of. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: crowd names N SEED   N children with names of any bytes; "PID NAME" of each, the name in hexadecimal
 *        crowd areas N        N further areas of memory
 *
 * Then "ready PID". It stays until its standard input ends, and no child outlives it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME_BYTES 15 /* that the kernel keeps */

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* Every byte but NUL, and often those that mean something to somebody. */
static size_t make_name(char *name)
{
	static const char special[] = "\n\t\033\\\"'()[]{}<>&%$`\x7f\x9b\xff\xc3\xe2\xf0\xed ";
	size_t len = 1 + (size_t)random() % NAME_BYTES;

	for (size_t i = 0; i < len; i++)
		name[i] = random() % 3 ? (char)(1 + random() % 255)
				       : special[(size_t)random() % (sizeof(special) - 1)];
	name[len] = '\0';
	return len;
}

static void names(long count)
{
	for (long i = 0; i < count; i++) {
		char name[NAME_BYTES + 1];
		size_t len = make_name(name);
		/* The child has it from its parent, from its first moment on. */
		prctl(PR_SET_NAME, name);
		pid_t pid = fork();
		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		printf("%d ", (int)pid);
		for (size_t j = 0; j < len; j++)
			printf("%02x", (unsigned char)name[j]);
		putchar('\n');
	}
}

static void areas(long count)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (size_t)count * page;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		fail("mmap");
	for (long i = 0; i < count; i += 2) {
		p[(size_t)i * page] = 1;
		if (mprotect(p + (size_t)i * page, page, PROT_READ))
			fail("mprotect");
	}
}

int main(int argc, char **argv)
{
	char c;
	long count = argc > 2 ? atol(argv[2]) : 0;

	if (count > 0 && argc == 4 && !strcmp(argv[1], "names")) {
		srandom((unsigned)atol(argv[3]));
		names(count);
	} else if (count > 0 && argc == 3 && !strcmp(argv[1], "areas")) {
		areas(count);
	} else {
		fputs("usage: crowd names N SEED | areas N\n", stderr);
		return 2;
	}
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	return 0;
}
