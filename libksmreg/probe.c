/* What the kernel can do, found out by trying it on pages of our own. */
/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "ksmreg.h"
#include "kernel.h"

#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>

int ksmreg_try_page(size_t page)
{
	long addr = map(0, page, PROT_READ | PROT_WRITE, 0);
	int err;

	if (addr < 0 && addr > -4096)
		return addr;
	err = advise(addr, page, MADV_MERGEABLE);
	unmap(addr, page);
	return err;
}

/*
 * With the flag on: do two areas that are equal and touch become one? Pages 1 and 2 of a reserved
 * block are mapped one after the other, then asked to grow together. The kernel says EFAULT where
 * they are two areas; where they are one it says ENOMEM, for page 3 is in the way. So nothing
 * ever grows.
 */
static int try_areas(size_t page)
{
	const int rw = PROT_READ | PROT_WRITE;
	uintptr_t base = map(0, 4 * page, PROT_NONE, 0);
	int result = -1;
	long a, b, err;

	if (base > -4096UL)
		return -1;
	a = map(base + page, page, rw, MAP_FIXED);
	b = map(base + 2 * page, page, rw, MAP_FIXED);
	if ((uintptr_t)a == base + page && (uintptr_t)b == base + 2 * page) {
		err = call(SYS_mremap, a, 2 * page, 3 * page, 0, 0, 0);
		result = err == -EFAULT ? 0 : err == -ENOMEM ? 1 : -1;
	}
	unmap(base, 4 * page);
	return result;
}

/*
 * Switching the flag off again would also forget areas marked by madvise, so a process that has it
 * off tries it in a child. Exit signal 0: neither SIGCHLD nor a plain wait of the program sees it.
 */
static int try_areas_in_child(size_t page)
{
#ifdef __sparc__
	return -1; /* tells parent from child in a register that syscall() drops */
#else
	long pid = call(SYS_clone, 0, 0, 0, 0, 0, 0);
	siginfo_t info = { 0 };
	long err;

	if (pid == 0) {
		int result = -1;

		if (call(SYS_prctl, SET_MEMORY_MERGE, 1, 0, 0, 0, 0) == 0)
			result = try_areas(page);
		for (;;)
			call(SYS_exit_group, result + 1, 0, 0, 0, 0, 0);
	}
	if (pid < 0)
		return -1;
	do
		err = call(SYS_waitid, P_PID, pid, (long)&info, WEXITED | __WALL, 0, 0);
	while (err == -EINTR);
	return err == 0 && info.si_code == CLD_EXITED ? info.si_status - 1 : -1;
#endif
}

int ksmreg_probe(struct ksmreg_caps *caps)
{
	struct ksmreg_caps mine = { .size = sizeof(mine), .areas_merge = -1 };
	size_t page = getauxval(AT_PAGESZ);
	long on = call(SYS_prctl, GET_MEMORY_MERGE, 0, 0, 0, 0, 0);

	if (!caps || caps->size < sizeof(mine))
		return -EINVAL;
	mine.page_size = page;
	mine.madvise = ksmreg_try_page(page);
	mine.prctl = on < 0 ? on : 0;
	mine.prctl_on = on == 1;
	if (on == 1)
		mine.areas_merge = try_areas(page);
	else if (on == 0)
		mine.areas_merge = try_areas_in_child(page);
	/* a longer struct is of a newer version: size tells the caller what this one filled */
	memcpy(caps, &mine, sizeof(mine));
	return 0;
}
