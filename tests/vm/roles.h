/* The processes of a capture: what memory each has, filled how, and the play of each. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VM_ROLES_H
#define VM_ROLES_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * equal: page i has the same bytes in every role. same: all have one content, found in that role
 * only. unique: found nowhere else. zero: written with zeros.
 */
struct role {
	const char *key, *comm, *cmdline;
	unsigned equal, same, unique, zero;
	bool registered, merge_any; /* by madvise; by prctl where the kernel has it */
	bool leader_exits;	    /* the main thread ends, another lives on */
	bool maps_files;	    /* has areas of every other kind too */
	unsigned uid;
	const char *cgroup; /* where it lives when there is a v2 hierarchy; NULL: the root */
	pid_t pid;
};

#define ROLES 8
extern struct role roles[ROLES];

/* The program was started as that role: becomes it, says so with a byte on ROLES_READY_FD, and waits for its end. */
#define ROLES_READY_FD 3
void __attribute__((noreturn)) roles_play(const char *key);

/* Start all and wait until each is ready. Exits on failure. */
void roles_start(void);
/* End those that this process started; also harmless in one that started none. */
void roles_end(void);

#endif
