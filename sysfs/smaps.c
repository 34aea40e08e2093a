/* /proc/PID/smaps: a streaming parser, a reader, and the sums that a reporter needs. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/smaps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * Piece of smaps that is parsed at once. The longest line is a header: 4096 bytes of path, each
 * at most four characters when escaped, fit twice.
 */
#define SMAPS_BUFFER (32 * 1024)

/* In the kernel's order, so that the search for a name mostly ends at its first comparison. */
static const struct {
	const char *name;
	unsigned len;
	enum smaps_field field;
} smaps_names[] = {
#define NAME(text, field) \
	{ \
		text ":", sizeof(text), field \
	}
	NAME("Size", SMAPS_SIZE),
	NAME("Rss", SMAPS_RSS),
	NAME("Pss", SMAPS_PSS),
	NAME("Shared_Clean", SMAPS_SHARED_CLEAN),
	NAME("Shared_Dirty", SMAPS_SHARED_DIRTY),
	NAME("Private_Clean", SMAPS_PRIVATE_CLEAN),
	NAME("Private_Dirty", SMAPS_PRIVATE_DIRTY),
	NAME("Anonymous", SMAPS_ANONYMOUS),
	NAME("KSM", SMAPS_KSM),
	NAME("LazyFree", SMAPS_LAZY_FREE),
	NAME("AnonHugePages", SMAPS_ANON_HUGE),
	NAME("ShmemPmdMapped", SMAPS_SHMEM_PMD),
	NAME("FilePmdMapped", SMAPS_FILE_PMD),
	NAME("Shared_Hugetlb", SMAPS_SHARED_HUGETLB),
	NAME("Private_Hugetlb", SMAPS_PRIVATE_HUGETLB),
	NAME("Swap", SMAPS_SWAP),
#undef NAME
};
#define SMAPS_NAMES (sizeof(smaps_names) / sizeof(*smaps_names))

static bool parse_number(const char **at, const char *end, unsigned base, uint64_t *value)
{
	const char *p = *at;
	uint64_t sum = 0;
	for (; p < end; p++) {
		unsigned digit;
		if (*p >= '0' && *p <= '9')
			digit = (unsigned)(*p - '0');
		else if (base == 16 && *p >= 'a' && *p <= 'f')
			digit = (unsigned)(*p - 'a') + 10;
		else
			break;
		if (__builtin_mul_overflow(sum, base, &sum) ||
			__builtin_add_overflow(sum, digit, &sum))
			return false;
	}
	if (p == *at)
		return false;
	*at = p;
	*value = sum;
	return true;
}

static bool skip_char(const char **at, const char *end, char c)
{
	if (*at == end || **at != c)
		return false;
	++*at;
	return true;
}

/* "start-end rwxp offset major:minor inode   name". Returns 0 or -EINVAL; *area is then undefined. */
static int parse_header(const char *line, size_t len, struct smaps_area *area)
{
	const char *p = line, *end = line + len;
	uint64_t ignored;

	memset(area, 0, offsetof(struct smaps_area, kib));
	area->name[0] = '\0';
	if (!parse_number(&p, end, 16, &area->start) || !skip_char(&p, end, '-') ||
		!parse_number(&p, end, 16, &area->end) || !skip_char(&p, end, ' ') || end - p < 5 ||
		area->end < area->start)
		return -EINVAL;
	area->bits = (p[0] == 'r' ? SMAPS_READ : 0) | (p[1] == 'w' ? SMAPS_WRITE : 0) |
		     (p[2] == 'x' ? SMAPS_EXEC : 0) | (p[3] == 's' ? SMAPS_MAYSHARE : 0);
	p += 4;
	if (!skip_char(&p, end, ' ') || !parse_number(&p, end, 16, &area->offset) ||
		!skip_char(&p, end, ' ') || !parse_number(&p, end, 16, &ignored) ||
		!skip_char(&p, end, ':') || !parse_number(&p, end, 16, &ignored) ||
		!skip_char(&p, end, ' ') || !parse_number(&p, end, 10, &area->inode))
		return -EINVAL;
	while (p < end && *p == ' ')
		p++;
	size_t name_len = (size_t)(end - p);
	if (name_len >= sizeof(area->name))
		name_len = sizeof(area->name) - 1;
	memcpy(area->name, p, name_len);
	area->name[name_len] = '\0';
	return 0;
}

/* "VmFlags: rd wr mg": pairs of letters, each with a blank; may be empty. */
static void parse_flags(const char *p, const char *end, struct smaps_area *area)
{
	static const struct {
		char name[3];
		unsigned bit;
	} flags[] = { { "mg", SMAPS_MERGEABLE }, { "lo", SMAPS_LOCKED }, { "pf", SMAPS_DEVICE },
		{ "io", SMAPS_DEVICE } };
	area->bits |= SMAPS_HAS_VMFLAGS;
	for (; end - p >= 3; p++) {
		if (p[0] != ' ')
			continue;
		for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
			if (p[1] == flags[i].name[0] && p[2] == flags[i].name[1])
				area->bits |= flags[i].bit;
		}
	}
}

static void parse_field(struct smaps_parser *parser, const char *line, size_t len)
{
	struct smaps_area *area = &parser->area;
	for (unsigned tried = 0, i = parser->next; tried < SMAPS_NAMES; tried++, i++) {
		if (i >= SMAPS_NAMES)
			i = 0;
		if (line[0] != smaps_names[i].name[0] || len <= smaps_names[i].len ||
			memcmp(line, smaps_names[i].name, smaps_names[i].len) != 0)
			continue;
		const char *p = line + smaps_names[i].len, *end = line + len;
		while (p < end && *p == ' ')
			p++;
		uint64_t kib;
		if (parse_number(&p, end, 10, &kib)) {
			area->kib[smaps_names[i].field] = kib;
			area->seen |= 1u << smaps_names[i].field;
		}
		parser->next = i + 1;
		return;
	}
	if (len >= 8 && !memcmp(line, "VmFlags:", 8))
		parse_flags(line + 8, line + len, area);
}

int smaps_parse(
	struct smaps_parser *parser, const char *text, size_t len, smaps_visit visit, void *data)
{
	const char *p = text, *end = text + len;
	while (p < end) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		if (!eol)
			eol = end;
		size_t line_len = (size_t)(eol - p);
		bool header = line_len && ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f'));
		if (header) {
			int err = smaps_finish(parser, visit, data);
			if (!err)
				err = parse_header(p, line_len, &parser->area);
			if (err)
				return err;
			parser->in_area = true;
			parser->next = 0;
		} else if (!parser->in_area) {
			return -EINVAL;
		} else if (line_len) {
			parse_field(parser, p, line_len);
		}
		p = eol + 1;
	}
	return 0;
}

int smaps_finish(struct smaps_parser *parser, smaps_visit visit, void *data)
{
	if (!parser->in_area)
		return 0;
	parser->in_area = false;
	return visit(&parser->area, data);
}

int smaps_read_fd(int fd, smaps_visit visit, void *data, bool *empty)
{
	struct smaps_parser parser = { 0 };
	char buf[SMAPS_BUFFER];
	size_t held = 0;

	*empty = true;
	for (;;) {
		ssize_t n = read(fd, buf + held, sizeof(buf) - held);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		*empty = false;
		held += (size_t)n;
		/* Only whole lines are parsed; the rest waits for the next piece. */
		const char *last = memrchr(buf, '\n', held);
		if (!last) {
			if (held == sizeof(buf))
				return -EFBIG;
			continue;
		}
		size_t whole = (size_t)(last + 1 - buf);
		int err = smaps_parse(&parser, buf, whole, visit, data);
		if (err)
			return err;
		held -= whole;
		memmove(buf, buf + whole, held);
	}
	/* What was there at the beginning is not there any more: it was not read to its end. */
	if (!*empty && pread(fd, buf + held, 1, 0) == 0)
		return -ESRCH;
	int err = held ? smaps_parse(&parser, buf, held, visit, data) : 0;
	return err ? err : smaps_finish(&parser, visit, data);
}

static int read_path(int dirfd, const char *path, smaps_visit visit, void *data, bool *empty)
{
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	int err = smaps_read_fd(fd, visit, data, empty);
	close(fd);
	return err;
}

struct thread_read {
	smaps_visit visit;
	void *data;
	int err;
};

/* All threads share the memory: end at the first one that still has any. */
static int read_thread(int task_fd, const char *path, void *data)
{
	struct thread_read *read = data;
	bool empty = true;
	int err = read_path(task_fd, path, read->visit, read->data, &empty);
	if (err == -ESRCH) /* this thread left; another may serve */
		return 0;
	read->err = err;
	return err || !empty;
}

int smaps_read(const struct proc *proc, smaps_visit visit, void *data)
{
	bool empty = true;
	int err = read_path(proc->fd, "smaps", visit, data, &empty);
	if (err || !empty)
		return err;
	struct thread_read read = { visit, data, 0 };
	err = proc_each_thread(proc, "smaps", read_thread, &read);
	return err < 0 ? err : read.err;
}

static uint64_t field(const struct smaps_area *area, enum smaps_field f)
{
	uint64_t kib = area->seen & 1u << f ? area->kib[f] : 0;
	return kib < SMAPS_KIB_MAX ? kib : SMAPS_KIB_MAX;
}

/*
 * What merging saved in this area, in KiB: KSM rss less KSM pss. The pss of the KSM pages alone is
 * not told; where everything else in the area is private it is Pss - (Rss - KSM). Where other pages
 * are shared too this errs, so it is kept between 0 and all of the KSM pages that are mapped twice.
 */
static uint64_t saved_kib(const struct smaps_area *area)
{
	uint64_t ksm = field(area, SMAPS_KSM);
	uint64_t missing = field(area, SMAPS_RSS) > field(area, SMAPS_PSS)
				   ? field(area, SMAPS_RSS) - field(area, SMAPS_PSS)
				   : 0;
	return missing < ksm ? missing : ksm;
}

static void add(uint64_t *sum, uint64_t kib)
{
	*sum = kib > SMAPS_KIB_MAX - *sum ? SMAPS_KIB_MAX : *sum + kib;
}

int smaps_add(const struct smaps_area *area, void *data)
{
	struct smaps_sum *sum = data;
	uint64_t priv = field(area, SMAPS_PRIVATE_CLEAN) + field(area, SMAPS_PRIVATE_DIRTY);
	uint64_t shared = field(area, SMAPS_SHARED_CLEAN) + field(area, SMAPS_SHARED_DIRTY);

	/* What is in the kernel's half of the addresses ([vsyscall]) is no area of the process. */
	sum->areas += area->start <= INT64_MAX;
	sum->mergeable_areas += (area->bits & SMAPS_MERGEABLE) != 0;
	sum->seen |= area->seen;
	sum->has_vmflags |= (area->bits & SMAPS_HAS_VMFLAGS) != 0;
	if (area->bits & SMAPS_EXEC) {
		add(&sum->code_private_kib, priv);
		add(&sum->code_shared_kib, shared);
	} else {
		add(&sum->data_private_kib, priv);
		add(&sum->data_shared_kib, shared);
	}
	add(&sum->rss_kib, field(area, SMAPS_RSS));
	add(&sum->pss_kib, field(area, SMAPS_PSS));
	add(&sum->uss_kib, priv);
	add(&sum->swap_kib, field(area, SMAPS_SWAP));
	add(&sum->dirty_kib, field(area, SMAPS_PRIVATE_DIRTY) + field(area, SMAPS_SHARED_DIRTY));
	add(&sum->anonymous_kib, field(area, SMAPS_ANONYMOUS));
	add(&sum->huge_kib, field(area, SMAPS_ANON_HUGE) + field(area, SMAPS_SHMEM_PMD) +
				    field(area, SMAPS_FILE_PMD) +
				    field(area, SMAPS_SHARED_HUGETLB) +
				    field(area, SMAPS_PRIVATE_HUGETLB));
	add(&sum->ksm_kib, field(area, SMAPS_KSM));
	add(&sum->saved_kib, saved_kib(area));
	return 0;
}

static int is_mergeable(const struct smaps_area *area, void *data)
{
	(void)data;
	return area->bits & SMAPS_MERGEABLE ? 1 : 0;
}

int smaps_any_mergeable(const struct proc *proc)
{
	return smaps_read(proc, is_mergeable, NULL);
}
