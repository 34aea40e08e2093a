/* Fuzz target: /proc/PID/stat, with names that hold anything. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "sysfs/proc.h"
#include "tests/fuzz/show.h"

static void check(const char *text, size_t size, const struct proc_stat *stat)
{
	struct entry entry = { .pid = 1, .stat = *stat };
	const char *open = memchr(text, '(', size), *close = memrchr(text, ')', size);
	size_t len = strnlen(stat->comm, sizeof(stat->comm));

	FUZZ_MUST(len < sizeof(stat->comm));
	FUZZ_MUST(open && close && open < close);
	FUZZ_MUST(!memcmp(stat->comm, open + 1, len));
	show_safe(stat->comm, 4 * len + 1);
	show_safe(stat->comm, 1 + len);
	show_columns(&entry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size);
	struct proc_stat stat, before;

	memset(&before, 0x5a, sizeof(before));
	memcpy(&stat, &before, sizeof(stat));
	int err = proc_parse_stat(text, size, &stat);
	FUZZ_MUST(err == 0 || err == -EINVAL);
	if (err)
		FUZZ_MUST(fuzz_same(&stat, &before, sizeof(stat)));
	else
		check(text, size, &stat);
	free(text);
	return 0;
}
