/* Fuzz target: values of /sys/kernel/mm/ksm and numbers of small files. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/ksm.h"

#include <errno.h>

#include "sysfs/file.h"
#include "tests/fuzz/fuzz.h"

/* What is parsed and written again is the same number. */
static void check_key(enum ksm_key key, const char *text, size_t size)
{
	int64_t value = 0x5a5a, again = 0;
	char buf[32];
	int err = ksm_parse(key, text, size, &value);

	FUZZ_MUST(err == 0 || err == -EINVAL || err == -ERANGE);
	if (err) {
		FUZZ_MUST(value == 0x5a5a);
		return;
	}
	FUZZ_MUST(ksm_format(key, value, buf, sizeof(buf)) == buf);
	FUZZ_MUST(memchr(buf, '\0', sizeof(buf)) != NULL);
	err = ksm_parse(key, buf, strlen(buf), &again);
	if (key == KSM_ADVISOR_MODE && value == KSM_ADVISOR_OTHER)
		FUZZ_MUST(err == -EINVAL); /* a word that cannot be written back */
	else
		FUZZ_MUST(!err && again == value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size), *name = fuzz_string(data, size);
	uint64_t found = 0x5a5a;

	check_key(KSM_RUN, text, size);
	check_key(KSM_ADVISOR_MODE, text, size);
	int err = file_find_u64(text, size, "", &found);
	FUZZ_MUST(!err || found == 0x5a5a);
	int key = ksm_find(name);
	FUZZ_MUST(key == -ENOENT || (key >= 0 && key < KSM_KEYS));
	free(name);
	free(text);
	return 0;
}
