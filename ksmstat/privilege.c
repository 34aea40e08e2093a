/* Gives up every privilege that reading other processes does not need. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/privilege.h"

#include <stddef.h>
#include <sys/capability.h>
#include <sys/prctl.h>

void privilege_drop(bool frames)
{
	static const cap_value_t needed[] = { CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SYS_ADMIN };
	size_t count = sizeof(needed) / sizeof(*needed) - !frames;
	cap_t now = cap_get_proc(), less = cap_init();

	for (size_t i = 0; now && less && i < count; i++) {
		cap_flag_value_t have = CAP_CLEAR;
		cap_get_flag(now, needed[i], CAP_PERMITTED, &have);
		if (have == CAP_SET) {
			cap_set_flag(less, CAP_PERMITTED, 1, &needed[i], CAP_SET);
			cap_set_flag(less, CAP_EFFECTIVE, 1, &needed[i], CAP_SET);
		}
	}
	if (now && less)
		cap_set_proc(less);
	cap_free(now);
	cap_free(less);
	prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL);
}
