/* Processes with memory, for programs under test to find. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_FAULT_MEMORY_H
#define TESTS_FAULT_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One with so many bytes, which ends with its parent at the latest. Ends the program where that fails. */
pid_t memory_child(size_t bytes);
/* One that has opted in, too; -1 where this kernel has no prctl for it. */
pid_t memory_opted_child(size_t bytes);

/* How many on this machine have opted in, as the kernel tells it now; -1 where it does not. */
int64_t memory_count_opted(void);

#endif
