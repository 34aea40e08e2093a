/* Names replaced by others that say nothing, the same by the same, in the text of the kernel's files. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_ANONYM_H
#define KSMSTAT_ANONYM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Each name gets the number of its first appearance. The table lives in memory alone and ends with
 * the program: nothing that is written leads back, not even by guessing names, as it would from a hash.
 */
struct anonym {
	void *tree; /* of tsearch(3) */
	uint64_t next[8];
	int failed; /* 0, or -ENOMEM: then the output is of no use */
};

enum anonym_kind {
	ANONYM_PROGRAM,
	ANONYM_WORD, /* of a control group's path, or a name of memory */
	ANONYM_DIGITS,
	ANONYM_ID, /* hexadecimal */
	ANONYM_FILE,
	ANONYM_INODE,
	ANONYM_UID,
	ANONYM_GID,
};

void anonym_init(struct anonym *anonym);
void anonym_free(struct anonym *anonym);

/* The number of a name, from 1. */
uint64_t anonym_number(struct anonym *anonym, enum anonym_kind kind, const char *text, size_t len);

/* A user or group: root stays, others become 100001 and so on. */
uint64_t anonym_id(struct anonym *anonym, enum anonym_kind kind, uint64_t id);

/* What is known of the process whose files are written. Start with anonym_begin. */
struct anonym_process {
	struct anonym *anonym;
	char name[64];	       /* that it has from here on */
	uint64_t next_address; /* areas lie side by side from 64 KiB on, as large as they are */
	uint64_t last_end;
};

/* Of its stat. Kernel threads keep their names. */
void anonym_begin(
	struct anonym_process *process, struct anonym *anonym, const char *comm, int kernel_thread);

/* Write a text anew: the whole of stat, comm and cmdline; one line of status, cgroup, maps and smaps. */
typedef void (*anonym_text)(
	struct anonym_process *process, const char *text, size_t len, FILE *out);

void anonym_stat(struct anonym_process *process, const char *text, size_t len, FILE *out);
void anonym_comm(struct anonym_process *process, const char *text, size_t len, FILE *out);
void anonym_cmdline(struct anonym_process *process, const char *text, size_t len, FILE *out);
void anonym_status(struct anonym_process *process, const char *line, size_t len, FILE *out);
void anonym_cgroup(struct anonym_process *process, const char *line, size_t len, FILE *out);
void anonym_smaps(struct anonym_process *process, const char *line, size_t len, FILE *out);

#endif
