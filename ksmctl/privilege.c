/* Privileges: given up in stages, down to what the work needs. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/privilege.h"

#include <errno.h>
#include <stddef.h>
#include <sys/capability.h>
#include <sys/prctl.h>

static bool permitted(cap_t now, cap_value_t cap)
{
	cap_flag_value_t have = CAP_CLEAR;
	return cap_get_flag(now, cap, CAP_PERMITTED, &have) == 0 && have == CAP_SET;
}

struct kept {
	cap_value_t cap;
	bool needed;
};

/* Down to these, for good: out of the bounding set too, and exec gives nothing back. */
static int reduce(const struct kept *kept, size_t count)
{
	cap_t now = cap_get_proc(), less = cap_init();
	int err = now && less ? 0 : -ENOMEM;

	for (cap_value_t cap = 0; !err && permitted(now, CAP_SETPCAP) && cap <= cap_max_bits() - 1;
		cap++) {
		bool keep = false;
		for (size_t i = 0; i < count; i++)
			keep |= kept[i].needed && kept[i].cap == cap;
		if (!keep && cap_get_bound(cap) == 1 && cap_drop_bound(cap) < 0)
			err = -errno;
	}
	for (size_t i = 0; !err && i < count; i++) {
		if (!kept[i].needed || !permitted(now, kept[i].cap))
			continue;
		if (cap_set_flag(less, CAP_PERMITTED, 1, &kept[i].cap, CAP_SET) < 0 ||
			cap_set_flag(less, CAP_EFFECTIVE, 1, &kept[i].cap, CAP_SET) < 0)
			err = -errno;
	}
	if (!err && cap_set_proc(less) < 0)
		err = -errno;
	cap_free(now);
	cap_free(less);
	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) < 0)
		err = -errno;
	return err;
}

int privilege_work(bool need_ptrace, bool need_nice)
{
	const struct kept kept[] = {
		{ CAP_DAC_READ_SEARCH, true },
		{ CAP_SYS_PTRACE, need_ptrace },
		{ CAP_SYS_NICE, need_nice },
	};
	return reduce(kept, sizeof(kept) / sizeof(*kept));
}

int privilege_inject(void)
{
	const struct kept kept[] = {
		{ CAP_DAC_READ_SEARCH, true },
		{ CAP_SYS_PTRACE, true },
		{ CAP_SYS_ADMIN, true },
		{ CAP_SYS_NICE, true },
	};
	return reduce(kept, sizeof(kept) / sizeof(*kept));
}
