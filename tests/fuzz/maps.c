/* Fuzz target: maps, as it is read behind the areas that were asked for one by one, and as ptrace needs it. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdarg.h>
#include <sys/types.h>
#include <unistd.h>

#include "ksmctl/inject_target.h"
#include "sysfs/areas.h"
#include "sysfs/smaps.h"
#include "tests/fuzz/fuzz.h"

#define PLAYED_FD (-77)
#define ASKED 1024 /* areas, before the text is read instead */

static struct {
	const char *text;
	size_t len, at;
	uint32_t seed;
} file;

ssize_t __wrap_read(int fd, void *buf, size_t size);
ssize_t __real_read(int fd, void *buf, size_t size);
ssize_t __wrap_pread64(int fd, void *buf, size_t size, off_t at);
ssize_t __real_pread64(int fd, void *buf, size_t size, off_t at);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __real_ioctl(int fd, unsigned long request, void *arg);

ssize_t __wrap_read(int fd, void *buf, size_t size)
{
	if (fd != PLAYED_FD)
		return __real_read(fd, buf, size);
	size_t len = 1 + fuzz_next(&file.seed) % 4096;
	if (len > size)
		len = size;
	if (len > file.len - file.at)
		len = file.len - file.at;
	if (len)
		memcpy(buf, file.text + file.at, len);
	file.at += len;
	return (ssize_t)len;
}

ssize_t __wrap_pread64(int fd, void *buf, size_t size, off_t at)
{
	return fd == PLAYED_FD ? file.len > 0 : __real_pread64(fd, buf, size, at);
}

/* The head of struct procmap_query, up to where the kernel's answer ends. */
struct query {
	uint64_t size, query_flags, query_addr;
	uint64_t start, end, flags, page_bytes;
};

/* A process with an area of one page at every second page, without end. */
int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	va_start(args, request);
	struct query *query = va_arg(args, void *);
	va_end(args);
	if (fd != PLAYED_FD)
		return __real_ioctl(fd, request, query);
	uint64_t page = query->query_addr / 8192;
	if (page > UINT64_MAX / 8192 - 2) {
		errno = ENOENT;
		return -1;
	}
	page += query->query_addr % 8192 >= 4096;
	query->start = page * 8192;
	query->end = query->start + 4096;
	query->flags = 0x03;
	query->page_bytes = 4096;
	return 0;
}

struct seen {
	size_t asked, from_text;
};

static int visit(const struct areas_one *areas, size_t count, void *data)
{
	struct seen *seen = data;

	FUZZ_MUST(count > 0 && count <= AREAS_AT_ONCE);
	for (size_t i = 0; i < count; i++) {
		FUZZ_MUST(areas[i].start <= areas[i].end);
		FUZZ_MUST(areas[i].page_bytes > 0);
		if (seen->asked < ASKED) {
			seen->asked++;
		} else {
			FUZZ_MUST(areas[i].start >= (ASKED - 1) * 8192 + 4096);
			FUZZ_MUST(areas[i].start <= INT64_MAX);
			seen->from_text++;
		}
	}
	return 0;
}

/* Line by line, as the search for a system call instruction looks at them. */
static void look_for_code(const uint8_t *data, size_t size)
{
	char *text = fuzz_string(data, size), *rest = text, *line;

	while ((line = strsep(&rest, "\n"))) {
		uint64_t start, end;
		bool vdso = false;
		if (inject_code_area(line, &start, &end, &vdso))
			FUZZ_MUST(strchr(line, 'x') && (vdso || strchr(line, '/')));
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size);
	struct seen seen = { 0 };

	file.text = text;
	file.len = size;
	file.at = 0;
	file.seed = fuzz_seed(data, size);
	int err = areas_each(PLAYED_FD, visit, &seen);
	FUZZ_MUST(err == 0 || err == -EINVAL || err == -EFBIG);
	FUZZ_MUST(seen.asked == ASKED);
	free(text);
	look_for_code(data, size);
	return 0;
}
