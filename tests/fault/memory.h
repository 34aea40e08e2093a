/* Processes with memory, for programs under test to find. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_FAULT_MEMORY_H
#define TESTS_FAULT_MEMORY_H

#include <stddef.h>
#include <sys/types.h>

/* One with so many bytes, which ends with its parent at the latest. Ends the program where that fails. */
pid_t memory_child(size_t bytes);
/* One that has opted in, too; -1 where this kernel has no prctl for it. */
pid_t memory_opted_child(size_t bytes);

#endif
