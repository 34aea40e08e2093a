/* Gives up every privilege that reading other processes does not need. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_PRIVILEGE_H
#define KSMSTAT_PRIVILEGE_H

#include <stdbool.h>

/*
 * Called once, before anything that another process controls is read. What stays, if it was there:
 * CAP_SYS_PTRACE (smaps and memory of other users), CAP_DAC_READ_SEARCH (ksm_stat, which only its
 * owner may open), and with `frames` CAP_SYS_ADMIN, without which pagemap hides the frame numbers
 * that tell which pages are shared. Without privileges there is nothing to give up. Never fails:
 * the worst case is to go on as privileged as ksmstat was started.
 */
void privilege_drop(bool frames);

#endif
