/* What the kernel says of this process's areas: memory from before the hook, and proof that a mark took. */
/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "ksmreg.h"
#include "kernel.h"

#include <fcntl.h>
#include <string.h>

/*
 * A file read line by line, through a buffer on the stack: whoever calls may be inside an allocator. A
 * line is cut where it exceeds what is looked at: the beginning of a header, with all but the path.
 */
struct lines {
	long fd;
	long pos, len; /* of buf */
	char buf[1024];
	char line[256];
};

static int open_lines(struct lines *in, const char *path)
{
	in->pos = in->len = 0;
	in->fd = call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	return in->fd < 0 ? (int)in->fd : 0;
}

/* 1 with the next line in in->line, 0 at the end, or -errno. */
static int next_line(struct lines *in)
{
	size_t n = 0;

	for (;;) {
		if (in->pos == in->len) {
			do
				in->len = call(
					SYS_read, in->fd, (long)in->buf, sizeof(in->buf), 0, 0, 0);
			while (in->len == -EINTR);
			in->pos = 0;
			if (in->len <= 0)
				return (int)in->len;
		}
		if (in->buf[in->pos] == '\n') {
			in->pos++;
			in->line[n] = '\0';
			return 1;
		}
		if (n < sizeof(in->line) - 1)
			in->line[n++] = in->buf[in->pos];
		in->pos++;
	}
}

static void close_lines(struct lines *in)
{
	call(SYS_close, in->fd, 0, 0, 0, 0, 0);
}

struct area {
	uintptr_t start, end;
	int private, writable, file;
	const char *name; /* in the line it was read from; "" for none */
};

static const char *hex(const char *text, uintptr_t *value)
{
	uintptr_t n = 0;
	char c;

	for (; (c = *text); text++) {
		if (c >= '0' && c <= '9')
			n = n << 4 | (c - '0');
		else if (c >= 'a' && c <= 'f')
			n = n << 4 | (c - 'a' + 10);
		else
			break;
	}
	*value = n;
	return text;
}

/* START-END PERM OFFSET DEVICE INODE   NAME. Lines of smaps that begin with a capital are none. */
static int parse_header(const char *line, struct area *area)
{
	const char *p = hex(line, &area->start);

	if (p == line || *p != '-')
		return 0;
	p = hex(p + 1, &area->end);
	if (*p != ' ' || strlen(p) < 6)
		return 0;
	area->writable = p[2] == 'w';
	area->private = p[4] == 'p';
	p += 5;
	for (int field = 0; field < 3; field++) {
		p += strspn(p, " ");
		area->file = *p != '0'; /* of the last one: the inode */
		p += strcspn(p, " ");
	}
	area->name = p + strspn(p, " ");
	return 1;
}

static int is(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

static unsigned kind(const struct area *area)
{
	if (!area->private)
		return 0;
	if (area->file)
		return area->writable ? KSMREG_DATA : 0;
	if (is(area->name, "[heap]"))
		return KSMREG_HEAP;
	/* not [stack], [vdso], [vvar], [vsyscall]... */
	return !*area->name || is(area->name, "[anon") ? KSMREG_ANON : 0;
}

int ksmreg_register_existing(unsigned kinds)
{
	struct lines in;
	struct area area;
	int err, first = 0;

	if (!kinds || kinds & ~(KSMREG_HEAP | KSMREG_ANON | KSMREG_DATA))
		return -EINVAL;
	if (ksmreg_is_off())
		return -EOPNOTSUPP;
	err = open_lines(&in, "/proc/self/maps");
	if (err)
		return err;
	while ((err = next_line(&in)) > 0) {
		if (!parse_header(in.line, &area) || !(kind(&area) & kinds))
			continue;
		err = ksmreg_register((void *)area.start, area.end - area.start);
		/* another thread may have unmapped it since */
		if (err && err != -ENOMEM && !first)
			first = err;
	}
	close_lines(&in);
	return first ? first : err;
}

static uint64_t overlap(const struct area *area, uintptr_t start, uintptr_t end)
{
	uintptr_t from = area->start > start ? area->start : start;
	uintptr_t to = area->end < end ? area->end : end;

	return to > from ? to - from : 0;
}

/* Of the line of an area that holds `bytes` of the range. */
static void add_line(struct ksmreg_range *range, const char *line, uint64_t bytes)
{
	const char *flag;
	uint64_t kib = 0;

	if (is(line, "KSM:")) {
		for (line += 4 + strspn(line + 4, " "); *line >= '0' && *line <= '9'; line++)
			kib = kib * 10 + (*line - '0');
		range->merged_bytes += kib << 10;
	}
	if (!is(line, "VmFlags:"))
		return;
	flag = strstr(line, " mg");
	if (flag && (flag[3] == ' ' || !flag[3]))
		range->mergeable_bytes += bytes;
}

int ksmreg_verify(const void *addr, size_t len, struct ksmreg_range *range)
{
	struct ksmreg_range mine = { .size = sizeof(mine) };
	uintptr_t start = (uintptr_t)addr, end = start + len;
	struct lines in;
	struct area area;
	uint64_t bytes = 0;
	int err, flags = 0;

	if (!addr || end < start || !range || range->size < sizeof(mine))
		return -EINVAL;
	err = open_lines(&in, "/proc/self/smaps");
	if (err)
		return err;
	while ((err = next_line(&in)) > 0) {
		if (parse_header(in.line, &area)) {
			if (area.start >= end)
				break;
			bytes = overlap(&area, start, end);
			mine.mapped_bytes += bytes;
			mine.areas += bytes > 0;
			continue;
		}
		flags |= is(in.line, "VmFlags:");
		if (bytes)
			add_line(&mine, in.line, bytes);
	}
	close_lines(&in);
	if (err < 0)
		return err;
	if (mine.areas && !flags)
		return -ENODATA;
	memcpy(range, &mine, sizeof(mine));
	return 0;
}
