/* Fuzz target: meminfo and vmstat. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/mem.h"

#include <errno.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size);
	struct mem_info info, info_before;
	struct mem_vmstat vmstat, vmstat_before;

	memset(&info_before, 0x5a, sizeof(info_before));
	memcpy(&info, &info_before, sizeof(info));
	int err = mem_parse_info(text, size, &info);
	FUZZ_MUST(err == 0 || err == -EINVAL);
	if (err)
		FUZZ_MUST(fuzz_same(&info, &info_before, sizeof(info)));
	memset(&vmstat_before, 0x5a, sizeof(vmstat_before));
	memcpy(&vmstat, &vmstat_before, sizeof(vmstat));
	err = mem_parse_vmstat(text, size, &vmstat);
	FUZZ_MUST(err == 0 || err == -EINVAL);
	if (err)
		FUZZ_MUST(fuzz_same(&vmstat, &vmstat_before, sizeof(vmstat)));
	else
		FUZZ_MUST(vmstat.cow_ksm >= -1 && vmstat.ksm_swpin_copy >= -1 &&
			  vmstat.thp_split_page >= -1 && vmstat.thp_collapse_alloc >= -1);
	free(text);
	return 0;
}
