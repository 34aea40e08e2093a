/* Fuzz target: /proc/PID/ksm_stat, and what is shown of it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "sysfs/proc.h"
#include "tests/fuzz/show.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size);
	struct proc_ksm ksm, before;

	memset(&before, 0x01, sizeof(before));
	memcpy(&ksm, &before, sizeof(ksm));
	int err = proc_parse_ksm_stat(text, size, &ksm);
	FUZZ_MUST(err == 0 || err == -EINVAL);
	if (err) {
		FUZZ_MUST(fuzz_same(&ksm, &before, sizeof(ksm)));
	} else {
		struct entry entry = { .pid = 1, .ksm = ksm };
		FUZZ_MUST(ksm.present && !(ksm.present >> 6));
		FUZZ_MUST(ksm.zero_pages >= 0);
		show_columns(&entry);
	}
	free(text);
	return 0;
}
