/* Fuzz target: the service's file of first values, which root writes back to the kernel. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <sys/types.h>

#include "ksmctl/state.h"
#include "tests/fuzz/fuzz.h"

static struct {
	const uint8_t *data;
	size_t size;
} file;

ssize_t __wrap_file_read(int dirfd, const char *path, char *buf, size_t size);

ssize_t __wrap_file_read(int dirfd, const char *path, char *buf, size_t size)
{
	(void)dirfd, (void)path;
	if (file.size >= size)
		return -EFBIG;
	memcpy(buf, file.data, file.size);
	buf[file.size] = '\0';
	return (ssize_t)file.size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct state_dir dir = { .fd = -1, .lock_fd = -1 };
	struct ksm_state first = { 0 };
	int nice = 100;

	if (!size)
		return 0;
	file.data = data;
	file.size = size;
	int err = state_load_first(&dir, &first, &nice);
	FUZZ_MUST(err == 0 || err == -EINVAL || err == -EFBIG);
	if (err)
		return 0;
	FUZZ_MUST(ksm_has(&first, KSM_RUN));
	for (int key = KSM_TUNABLES; key < KSM_KEYS; key++)
		FUZZ_MUST(!ksm_has(&first, (enum ksm_key)key));
	FUZZ_MUST(nice == 100 || (nice >= -20 && nice <= 19));
	return 0;
}
