/* Fuzz target: /proc/pressure. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "sysfs/mem.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size);
	struct mem_pressure pressure, before;

	memset(&before, 0x01, sizeof(before));
	memcpy(&pressure, &before, sizeof(pressure));
	int err = mem_parse_pressure(text, size, &pressure);
	FUZZ_MUST(err == 0 || err == -EINVAL);
	if (err) {
		FUZZ_MUST(fuzz_same(&pressure, &before, sizeof(pressure)));
	} else {
		FUZZ_MUST(pressure.some_avg10_centi < 101 * 100);
		FUZZ_MUST(pressure.full_avg10_centi < 101 * 100);
		FUZZ_MUST(pressure.has_full || !pressure.full_total_us);
	}
	free(text);
	return 0;
}
