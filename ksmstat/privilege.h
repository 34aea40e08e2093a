/* Gives up every privilege that reading other processes does not need. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_PRIVILEGE_H
#define KSMSTAT_PRIVILEGE_H

/*
 * Called once, before anything that another process controls is read. What stays, if it was there:
 * CAP_SYS_PTRACE (smaps and memory of other users), CAP_DAC_READ_SEARCH (ksm_stat, which only its
 * owner may open). Without privileges there is nothing to give up. Never fails: the worst case is
 * to go on as privileged as ksmstat was started.
 */
void privilege_drop(void);

#endif
