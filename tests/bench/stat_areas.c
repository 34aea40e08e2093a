/* A process with 60 000 memory areas, to be looked at; it stays until its standard input ends. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define AREAS 60000

int main(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char c, *p = mmap(NULL, AREAS * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	if (p == MAP_FAILED)
		return 1;
	memset(p, 1, AREAS * page);
	for (size_t i = 0; i < AREAS; i += 2) {
		if (mprotect(p + i * page, page, PROT_READ)) {
			perror("stat_areas");
			return 1;
		}
	}
	puts("ready");
	fflush(stdout);
	return read(0, &c, 1) != 0;
}
