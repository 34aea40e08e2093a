/* Privileges: given up in stages, down to what the work needs. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_PRIVILEGE_H
#define KSMCTL_PRIVILEGE_H

#include <stdbool.h>

/*
 * DOC: what the service needs of root, and until when
 *
 * It starts as root. The knobs below /sys/kernel/mm/ksm and the folder below /run belong to root
 * with mode 0644 and 0755, so writing to them needs user ID 0 and no capability at all.
 *
 * Set-up needs CAP_NET_ADMIN to join the process connector, and may use CAP_SYS_NICE (ksmd's
 * niceness) and CAP_SYS_RESOURCE (the pressure trigger). Afterwards privilege_work() keeps
 *
 *   CAP_DAC_READ_SEARCH  to open /proc/PID/ksm_stat, which is 0400 and belongs to the process's
 *                        user: how the service knows who opted in;
 *   CAP_SYS_PTRACE       only where the kernel's ksm_stat does not tell who opted in (before
 *                        6.13): there smaps of newcomers has to be read;
 *   CAP_SYS_NICE         only where ksmd's niceness is configured: making it less nice again when
 *                        the service leaves.
 *
 * Everything else is gone for good, from the bounding set too, and no_new_privs is set. What the
 * service parses from then on is numbers and yes/no words that the kernel makes; names, paths and
 * command lines of processes are never read (on the older kernels smaps holds paths: they are
 * copied, cut to size, and not interpreted).
 */

/* Returns 0 or -errno. Without privileges there is nothing to give up, and that is no error. */
int privilege_work(bool need_ptrace, bool need_nice);

/*
 * For `enable` and `disable`, before the first process is looked at. Kept are
 *
 *   CAP_SYS_PTRACE       to trace processes of others;
 *   CAP_SYS_ADMIN        to suspend a system call filter (seccomp) for the one call, which could
 *                        kill the process otherwise;
 *   CAP_DAC_READ_SEARCH  to open ksm_stat;
 *   CAP_SYS_NICE         to go ahead of others while a thread of the process stands still.
 *
 * They are as good as root; the stage keeps a mistake from reaching files, devices and the network.
 * Returns as privilege_work.
 */
int privilege_inject(void);

#endif
