/* Fuzz target: /proc/PID/syscall, by which a thread is chosen. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/inject_target.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_string(data, size);

	for (const char *state = "RSDZTtXI"; *state; state++) {
		long call = 0;
		enum inject_rank rank = inject_rank_call(*state, text, &call);
		FUZZ_MUST(rank <= RANK_USELESS);
		FUZZ_MUST(call >= INJECT_UNKNOWN);
	}
	free(text);
	return 0;
}
