/* Processes with memory, for programs under test to find. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/fault/memory.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sysfs/proc.h"

static void hold(size_t bytes, bool opt, int ready)
{
	char fine = 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!opt || prctl(67 /* PR_SET_MEMORY_MERGE */, 1UL, 0UL, 0UL, 0UL) == 0) {
		void *memory = mmap(
			NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			_exit(1);
		memset(memory, 7, bytes);
		fine = 1;
	}
	if (write(ready, &fine, 1) == 1 && fine)
		pause();
	_exit(1);
}

static pid_t make(size_t bytes, bool opt)
{
	int ready[2];
	char fine = 0;
	if (pipe(ready) < 0) {
		perror("pipe");
		exit(EXIT_FAILURE);
	}
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		hold(bytes, opt, ready[1]);
	close(ready[1]);
	if (child < 0 || read(ready[0], &fine, 1) != 1) {
		perror("a process with memory");
		exit(EXIT_FAILURE);
	}
	close(ready[0]);
	if (!fine)
		waitpid(child, NULL, 0);
	return fine ? child : -1;
}

int64_t memory_count_opted(void)
{
	struct root root;
	struct proc_walk walk;
	struct proc proc;
	int64_t count = 0;
	bool told = false;
	if (root_open(&root, "/") || proc_walk_open(&walk, &root))
		return -1;
	while (proc_walk_next(&walk, &proc) > 0) {
		struct proc_ksm ksm = { 0 };
		if (!proc_read_ksm_stat(&proc, &ksm)) {
			told |= ksm.present & PROC_KSM_MERGEABLE;
			count += ksm.merge_any || ksm.mergeable;
		}
		proc_close(&proc);
	}
	proc_walk_close(&walk);
	root_close(&root);
	return told ? count : -1;
}

pid_t memory_child(size_t bytes)
{
	return make(bytes, false);
}

pid_t memory_opted_child(size_t bytes)
{
	return make(bytes, true);
}
