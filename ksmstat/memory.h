/* Reads the memory of one process, by the way that is fastest for what is asked, or gentlest. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_MEMORY_H
#define KSMSTAT_MEMORY_H

#include "ksmstat/entry.h"

/*
 * Fill what entry.h calls memory. The entry's ksm_stat must be there already. Returns 0 or -errno;
 * -ESRCH when there is no memory any more, also when it went while it was read: then what was read
 * is a part of it, and none of it holds.
 */
int memory_read(struct entry *entry, const struct proc *proc, const struct entry_request *request);

#endif
