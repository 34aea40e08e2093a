/* Fuzz target: /proc/PID/status, of which the user is read. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "sysfs/proc.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size);
	uid_t uid = 0x5a5a5a5a;
	int err = proc_parse_uid(text, size, &uid);

	FUZZ_MUST(err == 0 || (err == -EINVAL && uid == 0x5a5a5a5a));
	if (!err)
		FUZZ_MUST(memmem(text, size, "\nUid:", 5) != NULL);
	free(text);
	return 0;
}
