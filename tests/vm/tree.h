/* Reads of whole kernel files, and where they go. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VM_TREE_H
#define VM_TREE_H

#include <stddef.h>
#include <sys/types.h>

#define KSM "/sys/kernel/mm/ksm/"

/* Say why on stderr and exit with 1. */
void __attribute__((format(printf, 1, 2), noreturn)) die(const char *format, ...);

/* Whole text of a file, terminated; NULL when it cannot be opened or read. The caller frees it. */
char *tree_read(const char *path, size_t *len);
/* mkdir -p of the directory that holds path. */
void tree_make_parents(char *path);

/* The kernel thread of that name, 0 when none is to be seen. */
pid_t tree_kernel_thread(const char *name);

#endif
