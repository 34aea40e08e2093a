/* Fuzz target: the service's file of first values, which root writes back to the kernel. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "ksmctl/state.h"
#include "tests/fuzz/fuzz.h"

/* As much as the service reads of it. */
#define TEXT_MAX 2047

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TEXT_MAX + 1];
	struct ksm_state first = { 0 };
	int nice = 100;

	if (!size || size > TEXT_MAX)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	int err = state_parse_first(text, &first, &nice);
	FUZZ_MUST(err == 0 || err == -EINVAL);
	if (err)
		return 0;
	FUZZ_MUST(ksm_has(&first, KSM_RUN));
	for (int key = KSM_TUNABLES; key < KSM_KEYS; key++)
		FUZZ_MUST(!ksm_has(&first, (enum ksm_key)key));
	FUZZ_MUST(nice == 100 || (nice >= -20 && nice <= 19));
	return 0;
}
