/* Whole-number arithmetic that saturates, for code that must not depend on floating point. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_MATH64_H
#define KSMCTL_MATH64_H

#include <stdint.h>

static inline int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline int64_t clamp64(int64_t value, int64_t low, int64_t high)
{
	return max64(low, min64(value, high));
}

/* a * b / c without overflow on the way; c > 0; saturates. */
static inline int64_t mul_div64(int64_t a, int64_t b, int64_t c)
{
	__int128 wide = (__int128)a * b / c;
	return wide > INT64_MAX ? INT64_MAX : wide < INT64_MIN ? INT64_MIN : (int64_t)wide;
}

#endif
