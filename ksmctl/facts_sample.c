/* Looks into some of the registered pages for ksmctl doctor: zeros, and what users have together. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "ksmctl/doctor.h"
#include "sysfs/frames.h"
#include "sysfs/smaps.h"

/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGEMAP_PRESENT (UINT64_C(1) << 63)
#define PAGEMAP_FILE (UINT64_C(1) << 61)

enum {
	READ_OF_ONE = 16,	/* pages that are read of one process */
	FRAMES_MAX = 1 << 20,	/* frames of all: 4 GiB of memory, 16 MiB of our own */
	TOGETHER_MAX = 1 << 16, /* frames of more than one user that are looked up */
	USERS_MAX = 64,
	EXTENTS_MAX = 1024, /* areas of one process */
	KEPT_MAX = 4096,    /* pages that are read twice */
	PAGE_MAX = 64 << 10,
};

struct owned {
	uint64_t frame;
	uid_t user;
};

/* A page that was read, and what was in it. */
struct kept {
	pid_t pid;
	uint64_t address, hash;
};

struct extent {
	uint64_t start, end; /* addresses */
};

struct facts_sampler {
	struct frames frames;
	bool has_frames; /* and may see them */
	struct owned *owned;
	size_t count, room;
	uid_t users[USERS_MAX];
	size_t user_count;
	int64_t page_bytes;
	int64_t looked, zeros;
	struct kept kept[KEPT_MAX];
	size_t kept_count;
	/* of the process at hand */
	struct extent extents[EXTENTS_MAX];
	size_t extent_count;
	int mem, pagemap;
	pid_t pid;
	uid_t user;
	uint64_t pages; /* registered and seen so far */
	uint64_t every;
	bool merged;
};

struct facts_sampler *facts_sampler_new(const struct root *root, bool frames)
{
	struct facts_sampler *sampler = calloc(1, sizeof(*sampler));
	if (!sampler)
		return NULL;
	sampler->page_bytes = ctl_page_bytes();
	sampler->mem = sampler->pagemap = -1;
	sampler->frames.flags_fd = sampler->frames.count_fd = -1;
	sampler->has_frames = frames && !frames_open(&sampler->frames, root);
	return sampler;
}

static void own(struct facts_sampler *s, uint64_t frame)
{
	if (!frame) {
		s->has_frames = false; /* the kernel hides the numbers */
		return;
	}
	if (s->count == FRAMES_MAX)
		return;
	if (s->count == s->room) {
		size_t room = s->room ? s->room * 2 : 4096;
		struct owned *bigger = reallocarray(s->owned, room, sizeof(*bigger));
		if (!bigger)
			return;
		s->owned = bigger;
		s->room = room;
	}
	s->owned[s->count++] = (struct owned){ frame, s->user };
}

static void read_page(struct facts_sampler *s, uint64_t address)
{
	static char page[PAGE_MAX];
	size_t size = (size_t)s->page_bytes;
	if (size > sizeof(page) || pread(s->mem, page, size, (off_t)address) != (ssize_t)size)
		return;
	s->looked++;
	if (s->kept_count < KEPT_MAX)
		s->kept[s->kept_count++] =
			(struct kept){ s->pid, address, XXH3_64bits(page, size) };
	s->zeros += !page[0] && !memcmp(page, page + 1, size - 1);
}

static void look_into(struct facts_sampler *s, const struct extent *extent)
{
	uint64_t entries[512], page = (uint64_t)s->page_bytes;
	for (uint64_t at = extent->start / page, end = extent->end / page; at < end;) {
		size_t want = end - at < 512 ? (size_t)(end - at) : 512;
		ssize_t len = pread(s->pagemap, entries, want * 8, (off_t)(at * 8));
		if (len < 8)
			break;
		for (size_t i = 0; i < (size_t)len / 8; i++) {
			if ((entries[i] & (PAGEMAP_PRESENT | PAGEMAP_FILE)) != PAGEMAP_PRESENT)
				continue;
			if (s->merged && s->has_frames)
				own(s, entries[i] & ((UINT64_C(1) << 55) - 1));
			if (s->pages++ % s->every == 0)
				read_page(s, (at + i) * page);
		}
		at += (size_t)len / 8;
	}
}

void facts_sampler_area(struct facts_sampler *s, const struct smaps_area *area)
{
	uint64_t pages = area->kib[SMAPS_ANONYMOUS] * 1024 / (uint64_t)s->page_bytes;
	if (!(area->bits & SMAPS_MERGEABLE) || !pages || s->extent_count == EXTENTS_MAX)
		return;
	s->extents[s->extent_count++] = (struct extent){ area->start, area->end };
	s->pages += pages;
}

static void add_user(struct facts_sampler *s)
{
	for (size_t i = 0; i < s->user_count; i++) {
		if (s->users[i] == s->user)
			return;
	}
	if (s->user_count < USERS_MAX)
		s->users[s->user_count++] = s->user;
}

static void open_files(struct facts_sampler *s, const struct proc *proc)
{
	s->mem = openat(proc->fd, "mem", O_RDONLY | O_CLOEXEC);
	s->pagemap = openat(proc->fd, "pagemap", O_RDONLY | O_CLOEXEC);
}

static void close_files(struct facts_sampler *s)
{
	if (s->mem >= 0)
		close(s->mem);
	if (s->pagemap >= 0)
		close(s->pagemap);
	s->mem = s->pagemap = -1;
}

/* From the files of the process at hand to those of another; -1 both where it went. */
static void turn_to(struct facts_sampler *s, const struct root *root, pid_t pid)
{
	struct proc proc;
	close_files(s);
	if (proc_open(&proc, root, pid))
		return;
	open_files(s, &proc);
	proc_close(&proc);
}

void facts_sampler_begin(struct facts_sampler *s)
{
	s->extent_count = 0;
	s->pages = 0;
}

void facts_sampler_add(struct facts_sampler *s, const struct proc *proc)
{
	struct proc_ksm ksm;
	if (!s->pages || proc_read_uid(proc, &s->user))
		return;
	s->pid = proc->pid;
	s->merged = !proc_read_ksm_stat(proc, &ksm) && ksm.present & PROC_KSM_MERGING &&
		    ksm.merging_pages > 0;
	if (s->merged)
		add_user(s);
	open_files(s, proc);
	s->every = s->pages / READ_OF_ONE + 1;
	s->pages = 0;
	for (size_t i = 0; s->mem >= 0 && s->pagemap >= 0 && i < s->extent_count; i++)
		look_into(s, &s->extents[i]);
	close_files(s);
}

static int by_frame(const void *a, const void *b)
{
	const struct owned *x = a, *y = b;
	return x->frame != y->frame ? (x->frame > y->frame) - (x->frame < y->frame)
				    : (x->user > y->user) - (x->user < y->user);
}

/* Frames that more than one user maps, and that are so by merging: a fork may also have done it. */
static void count_together(struct facts_sampler *s, struct facts_sample *sample)
{
	size_t tried = 0;
	if (s->count)
		qsort(s->owned, s->count, sizeof(*s->owned), by_frame);
	sample->users_share_pages = 0;
	for (size_t i = 0, end; i < s->count && tried < TOGETHER_MAX; i = end) {
		for (end = i + 1; end < s->count && s->owned[end].frame == s->owned[i].frame;)
			end++;
		if (s->owned[i].user == s->owned[end - 1].user)
			continue;
		tried++;
		if (frames_is_merged(&s->frames, s->owned[i].frame) != 1)
			continue;
		sample->users_share_pages++;
		sample->user_one = s->owned[i].user;
		sample->user_two = s->owned[end - 1].user;
	}
}

/* What lies in the pages by now. One that is not resident any more is left where it is. */
static void look_again(
	struct facts_sampler *s, const struct root *root, struct facts_sample *sample)
{
	static char page[PAGE_MAX];
	size_t size = (size_t)s->page_bytes;
	uint64_t entry;
	pid_t pid = 0;
	sample->again = sample->changed = 0;
	for (size_t i = 0; i < s->kept_count; i++) {
		const struct kept *kept = &s->kept[i];
		if (kept->pid != pid)
			turn_to(s, root, pid = kept->pid);
		if (pread(s->pagemap, &entry, 8, (off_t)(kept->address / size * 8)) != 8 ||
			!(entry & PAGEMAP_PRESENT) ||
			pread(s->mem, page, size, (off_t)kept->address) != (ssize_t)size)
			continue;
		sample->again++;
		sample->changed += XXH3_64bits(page, size) != kept->hash;
	}
	close_files(s);
}

void facts_sampler_finish(
	struct facts_sampler *s, const struct root *root, struct facts_sample *sample)
{
	look_again(s, root, sample);
	sample->looked = s->looked;
	sample->zeros = s->zeros;
	sample->users = (int64_t)s->user_count;
	if (s->has_frames)
		count_together(s, sample);
	frames_close(&s->frames);
	free(s->owned);
	free(s);
}
