/* The memory areas of a process, by the PROCMAP_QUERY request: without a walk over its pages. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/areas.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* include/uapi/linux/fs.h of Linux 6.11, which older headers lack */
struct query {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t start, end, flags, page_bytes, offset, inode;
	uint32_t dev_major, dev_minor;
	uint32_t name_size, build_id_size;
	uint64_t name, build_id;
};
#define QUERY _IOWR('f', 17, struct query)
enum {
	QUERY_READABLE = 0x01,
	QUERY_WRITABLE = 0x02,
	QUERY_EXECUTABLE = 0x04,
	QUERY_SHARED = 0x08,
	QUERY_OR_NEXT = 0x10,
};

/* A request for each area costs less than a line of text does, but many lines come in one read. */
#define MANY 1024

/* The area at address `from` or behind. Returns 1, 0 at the end, or -errno. */
static int query(int maps_fd, uint64_t from, struct areas_one *area)
{
	struct query query = {
		.size = sizeof(query), .query_flags = QUERY_OR_NEXT, .query_addr = from
	};
	if (ioctl(maps_fd, QUERY, &query) < 0)
		return errno == ENOENT ? 0 : errno == EINVAL ? -ENOTTY : -errno;
	if (query.end <= from)
		return -EIO; /* it would never end */
	*area = (struct areas_one){
		.start = query.start,
		.end = query.end,
		.inode = query.inode,
		.page_bytes = query.page_bytes,
		.dev_major = query.dev_major,
		.bits = (query.flags & QUERY_READABLE ? SMAPS_READ : 0) |
			(query.flags & QUERY_WRITABLE ? SMAPS_WRITE : 0) |
			(query.flags & QUERY_EXECUTABLE ? SMAPS_EXEC : 0) |
			(query.flags & QUERY_SHARED ? SMAPS_MAYSHARE : 0),
	};
	return 1;
}

/* Areas that come from the text of maps, from an address on. */
struct text {
	int maps_fd;
	uint64_t from, page_bytes;
	areas_visit visit;
	void *data;
	size_t count;
	struct areas_one areas[AREAS_AT_ONCE];
};

static int add_line(const struct smaps_area *line, void *data)
{
	struct text *text = data;
	struct areas_one *area = &text->areas[text->count];
	if (line->start < text->from || line->start > INT64_MAX)
		return 0;
	*area = (struct areas_one){ .start = line->start,
		.end = line->end,
		.inode = line->inode,
		.page_bytes = text->page_bytes,
		.bits = line->bits };
	/* The text does not tell the size of pages; all others of them are of 512 pages and more. */
	if (line->inode && !((line->start | line->end) & (512 * text->page_bytes - 1))) {
		int found = query(text->maps_fd, line->start, area);
		if (found < 0)
			return found;
	}
	if (++text->count < AREAS_AT_ONCE)
		return 0;
	text->count = 0;
	return text->visit(text->areas, AREAS_AT_ONCE, text->data);
}

static int read_text(int maps_fd, uint64_t from, areas_visit visit, void *data)
{
	struct text text = { .maps_fd = maps_fd,
		.from = from,
		.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
		.visit = visit,
		.data = data };
	struct areas_one ignored;
	bool empty;
	int err = smaps_read_fd(maps_fd, add_line, &text, &empty);
	if (!err && text.count)
		err = visit(text.areas, text.count, data);
	if (err)
		return err;
	/* The text also ends where the process does. */
	err = query(maps_fd, 0, &ignored);
	return err < 0 ? err : 0;
}

int areas_each(int maps_fd, areas_visit visit, void *data)
{
	struct areas_one areas[AREAS_AT_ONCE] = { 0 };
	uint64_t from = 0;
	for (size_t all = 0; all < MANY;) {
		size_t count = 0;
		int found = 1;
		while (count < AREAS_AT_ONCE && (found = query(maps_fd, from, &areas[count])) > 0)
			from = areas[count++].end;
		if (found < 0)
			return found;
		int result = count ? visit(areas, count, data) : 0;
		/* The end must be met after the last visit: else its memory may have gone meanwhile. */
		if (result || !count)
			return result;
		all += count;
	}
	return read_text(maps_fd, from, visit, data);
}
