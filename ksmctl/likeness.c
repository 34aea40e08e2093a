/* How alike the registered memory of two processes is: equal pages, nearly equal ones, shifted ones. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/likeness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "sysfs/smaps.h"

#define SAMPLE_BYTES (64 << 20)
#define WORDS_NEAR_PART 4 /* a page is near when fewer than one word in so many differs */
#define BLOCK 64	  /* bytes that are looked for at other places */
#define STEP 16		  /* allocators align to this */
#define BLOCKS_TRIED 8	  /* of a page */
#define PIECE 512	  /* part of a page by which near ones are found */

/* Bits of a pagemap entry: Documentation/admin-guide/mm/pagemap.rst. */
#define PAGEMAP_PRESENT (UINT64_C(1) << 63)
#define PAGEMAP_FILE (UINT64_C(1) << 61)

/* Pages that were read from one process. */
struct sample {
	size_t page, count, room; /* page in bytes */
	char *pages;
	uint64_t *addresses;
	uint64_t low, high; /* where its memory lies */
	int mem, pagemap;
	uint64_t registered, every, seen; /* pages in all; every n-th is taken */
	bool counting;
};

/* Where a piece of content is in the twin's sample. */
struct place {
	uint64_t hash;
	uint32_t page;
};

static const char *page_at(const struct sample *sample, size_t i)
{
	return sample->pages + i * sample->page;
}

static void take(struct sample *sample, uint64_t address)
{
	if (sample->count == sample->room || sample->seen++ % sample->every)
		return;
	char *to = sample->pages + sample->count * sample->page;
	if (pread(sample->mem, to, sample->page, (off_t)address) == (ssize_t)sample->page)
		sample->addresses[sample->count++] = address;
}

static int visit(const struct smaps_area *area, void *data)
{
	struct sample *sample = data;
	uint64_t entries[512];
	uint64_t at = area->start / sample->page, end = area->end / sample->page;

	if (area->start < sample->low)
		sample->low = area->start;
	/* [vsyscall] lies in the kernel's half */
	if (area->end > sample->high && area->end < UINT64_C(1) << 56)
		sample->high = area->end;
	if (!(area->bits & SMAPS_MERGEABLE))
		return 0;
	while (at < end) {
		size_t want = end - at < 512 ? (size_t)(end - at) : 512;
		ssize_t len = pread(sample->pagemap, entries, want * 8, (off_t)(at * 8));
		if (len < 8)
			break;
		for (size_t i = 0; i < (size_t)len / 8; i++) {
			if ((entries[i] & (PAGEMAP_PRESENT | PAGEMAP_FILE)) != PAGEMAP_PRESENT)
				continue;
			if (sample->counting)
				sample->registered++;
			else
				take(sample, (at + i) * sample->page);
		}
		at += (size_t)len / 8;
	}
	return 0;
}

static void sample_free(struct sample *sample)
{
	free(sample->pages);
	free(sample->addresses);
	if (sample->mem >= 0)
		close(sample->mem);
	if (sample->pagemap >= 0)
		close(sample->pagemap);
}

static int sample_read(struct sample *sample, const struct proc *proc)
{
	*sample = (struct sample){ .page = (size_t)sysconf(_SC_PAGESIZE), .low = UINT64_MAX };
	sample->mem = openat(proc->fd, "mem", O_RDONLY | O_CLOEXEC);
	int mem_err = errno;
	sample->pagemap = openat(proc->fd, "pagemap", O_RDONLY | O_CLOEXEC);
	if (sample->mem < 0 || sample->pagemap < 0)
		return sample->mem < 0 ? -mem_err : -errno;
	sample->counting = true;
	int err = smaps_read(proc, visit, sample);
	sample->counting = false;
	if (err || !sample->registered)
		return err;
	sample->room = SAMPLE_BYTES / sample->page;
	sample->every = (sample->registered + sample->room - 1) / sample->room;
	if (sample->registered < sample->room)
		sample->room = sample->registered;
	sample->pages = malloc(sample->room * sample->page);
	sample->addresses = calloc(sample->room, sizeof(*sample->addresses));
	if (!sample->pages || !sample->addresses)
		return -ENOMEM;
	return smaps_read(proc, visit, sample);
}

static bool is_zero(const char *page, size_t size)
{
	return page[0] == 0 && memcmp(page, page + 1, size - 1) == 0;
}

static int by_hash(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	return (x->hash > y->hash) - (x->hash < y->hash);
}

/* Where each stretch of `size` bytes is. Returns NULL without memory; sorted by hash. */
static struct place *index_by(const struct sample *sample, size_t size, size_t *count)
{
	size_t parts = sample->page / size;
	struct place *places = calloc(sample->count * parts + 1, sizeof(*places));
	*count = 0;
	for (size_t i = 0; places && i < sample->count * parts; i++) {
		const char *at = sample->pages + i * size;
		if (is_zero(at, size))
			continue;
		places[(*count)++] = (struct place){ XXH3_64bits(at, size), (uint32_t)(i / parts) };
	}
	if (places)
		qsort(places, *count, sizeof(*places), by_hash);
	return places;
}

static const struct place *find(
	const struct place *places, size_t count, const char *at, size_t size)
{
	struct place key = { .hash = XXH3_64bits(at, size) };
	return bsearch(&key, places, count, sizeof(*places), by_hash);
}

struct twin {
	const struct sample *sample;
	struct place *whole, *pieces, *blocks;
	size_t wholes, piece_count, block_count;
};

static bool is_address(uint64_t word, const struct sample *of)
{
	return word >= of->low && word < of->high;
}

/* A page of the twin that shares a piece with this one: how much else do they differ in? */
static bool count_near(
	struct likeness *out, const struct sample *mine, const char *page, const struct twin *twin)
{
	const struct place *place = NULL;
	for (size_t at = 0; at < mine->page && !place; at += PIECE)
		place = find(twin->pieces, twin->piece_count, page + at, PIECE);
	if (!place)
		return false;
	const char *other = page_at(twin->sample, place->page);
	int64_t differ = 0, addresses = 0;
	for (size_t at = 0; at < mine->page; at += 8) {
		uint64_t a, b;
		memcpy(&a, page + at, 8);
		memcpy(&b, other + at, 8);
		differ += a != b;
		addresses += a != b && is_address(a, mine) && is_address(b, twin->sample);
	}
	if (differ * WORDS_NEAR_PART >= (int64_t)mine->page / 8)
		return false;
	out->near++;
	out->near_words += differ;
	out->near_address_words += addresses;
	return true;
}

/* Blocks of the page that the twin has somewhere, at a distance that is not a whole page. */
static bool is_shifted(const struct sample *mine, const char *page, const struct twin *twin)
{
	int found = 0;
	for (size_t i = 0; i < BLOCKS_TRIED; i++) {
		const char *from = page + i * (mine->page / BLOCKS_TRIED);
		for (size_t step = 0; step < BLOCK; step += STEP) {
			if (is_zero(from + step, BLOCK))
				continue;
			if (find(twin->blocks, twin->block_count, from + step, BLOCK)) {
				found++;
				break;
			}
		}
	}
	return found * 2 > BLOCKS_TRIED;
}

static void compare_page(
	struct likeness *out, const struct sample *mine, const char *page, const struct twin *twin)
{
	if (find(twin->whole, twin->wholes, page, mine->page))
		out->equal++;
	else if (!count_near(out, mine, page, twin))
		out->shifted += is_shifted(mine, page, twin);
}

/* Look again at every page of the sample: one that is another by now changes too fast. */
static bool *find_changed(struct likeness *out, const struct sample *mine)
{
	bool *changed = calloc(mine->count + 1, sizeof(*changed));
	char *again = malloc(mine->page);
	for (size_t i = 0; changed && again && i < mine->count; i++) {
		ssize_t len = pread(mine->mem, again, mine->page, (off_t)mine->addresses[i]);
		changed[i] = len == (ssize_t)mine->page &&
			     memcmp(again, page_at(mine, i), mine->page) != 0;
		out->changing += changed[i];
	}
	if (!again) {
		free(changed);
		return NULL;
	}
	free(again);
	return changed;
}

static int compare(struct likeness *out, const struct sample *mine, const struct sample *other)
{
	struct twin twin = { .sample = other };
	bool *changed = find_changed(out, mine);
	int err = changed ? 0 : -ENOMEM;
	if (other && !err) {
		twin.whole = index_by(other, other->page, &twin.wholes);
		twin.pieces = index_by(other, PIECE, &twin.piece_count);
		twin.blocks = index_by(other, BLOCK, &twin.block_count);
		if (!twin.whole || !twin.pieces || !twin.blocks)
			err = -ENOMEM;
	}
	for (size_t i = 0; i < mine->count && !err; i++) {
		const char *page = page_at(mine, i);
		if (is_zero(page, mine->page)) {
			out->zero++;
			continue;
		}
		out->pages++;
		if (other && !changed[i])
			compare_page(out, mine, page, &twin);
	}
	free(twin.whole);
	free(twin.pieces);
	free(twin.blocks);
	free(changed);
	return err;
}

int likeness_measure(
	struct likeness *likeness, const struct proc *proc, const struct proc *twin, int wait_ms)
{
	struct sample mine, other = { .mem = -1, .pagemap = -1 };
	memset(likeness, 0, sizeof(*likeness));
	int err = sample_read(&mine, proc);
	if (!err && twin)
		err = sample_read(&other, twin);
	if (!err) {
		nanosleep(&(struct timespec){ wait_ms / 1000, wait_ms % 1000 * 1000000L }, NULL);
		err = compare(likeness, &mine, twin ? &other : NULL);
	}
	sample_free(&mine);
	sample_free(&other);
	return err;
}
