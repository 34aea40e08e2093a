/* Guards a live test: one lock for the machine, and every KSM knob as it was, however the test ends. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_LIVE_GUARD_H
#define TESTS_LIVE_GUARD_H

#include <stdbool.h>

#include "sysfs/ksm.h"

/*
 * Take the lock (flock on /sys/kernel/mm/ksm itself, so that it holds across chroots), waiting for
 * it as long as needed, and save all tunables, the mode of transparent huge pages, and swappiness.
 * A guardian process restores them when guard_release is called or when the calling process ends,
 * also by SIGKILL.
 * Returns 0, or -errno when KSM cannot be used here (-ENOENT no KSM, -EACCES or -EROFS not writable).
 */
int guard_take(void);

/* Restore and unlock now. Returns 0 or the -errno of the first knob that could not be restored. */
int guard_release(void);

/* The KSM directory, open between take and release. */
const struct ksm *guard_ksm(void);

/* Scan as fast as the kernel can, smart_scan off, zero pages not merged, advisor none. 0 or -errno. */
int guard_fast(void);

/* Wait until n more full scans have ended. False after timeout_s seconds. */
bool guard_wait_passes(int n, int timeout_s);

#endif
