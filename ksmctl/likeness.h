/* How alike the registered memory of two processes is: equal pages, nearly equal ones, shifted ones. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_LIKENESS_H
#define KSMCTL_LIKENESS_H

#include <stdint.h>

#include "sysfs/proc.h"

/* Counts of pages of the first process, of those that were looked at. */
struct likeness {
	int64_t pages;		    /* looked at: resident, private, registered, not all zeros */
	int64_t zero;		    /* all zeros, not in `pages` */
	int64_t changing;	    /* other content at a second look */
	int64_t equal;		    /* the second process has one that is equal to the byte */
	int64_t near;		    /* one that differs in less than a quarter of its words */
	int64_t near_words;	    /* of these: words of 8 bytes that differ, in all */
	int64_t near_address_words; /* of those: both hold addresses of their own process */
	int64_t shifted;	    /* one with the same content at another place within the page */
};

/*
 * Look at up to 64 MiB of each, spread evenly, without touching what is not resident; `wait_ms`
 * lies between the two looks at the first. `twin` may be NULL: then only the first is looked at.
 * Returns 0, -ENOMEM, -ESRCH or -errno (-EACCES).
 */
int likeness_measure(
	struct likeness *likeness, const struct proc *proc, const struct proc *twin, int wait_ms);

#endif
