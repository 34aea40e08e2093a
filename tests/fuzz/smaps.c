/* Fuzz target: smaps, at once and in pieces of any size; sums stay within bounds. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/smaps.h"

#include <errno.h>
#include <sys/types.h>

#include "tests/fuzz/show.h"

#define PLAYED_FD (-77)
#define LONGEST_LINE (32 * 1024) /* longer ones are refused when they are read */

/* A file that is read in pieces: of any size, or of `piece` bytes. */
static struct {
	const char *text;
	size_t len, at, piece;
	uint32_t seed;
} file;

ssize_t __wrap_read(int fd, void *buf, size_t size);
ssize_t __real_read(int fd, void *buf, size_t size);
ssize_t __wrap_pread64(int fd, void *buf, size_t size, off_t at);
ssize_t __real_pread64(int fd, void *buf, size_t size, off_t at);

ssize_t __wrap_read(int fd, void *buf, size_t size)
{
	if (fd != PLAYED_FD)
		return __real_read(fd, buf, size);
	size_t len = file.piece ? file.piece : 1 + fuzz_next(&file.seed) % 300;
	if (len > size)
		len = size;
	if (len > file.len - file.at)
		len = file.len - file.at;
	if (len)
		memcpy(buf, file.text + file.at, len);
	file.at += len;
	return (ssize_t)len;
}

/* Asked after the end, whether what was there at the beginning is still there. */
ssize_t __wrap_pread64(int fd, void *buf, size_t size, off_t at)
{
	if (fd != PLAYED_FD)
		return __real_pread64(fd, buf, size, at);
	FUZZ_MUST(at == 0 && size > 0);
	return file.len > 0;
}

/* What came of a text: the areas, one by one, in a few numbers, and their sum. */
struct outcome {
	int err;
	uint64_t hash;
	struct smaps_sum sum;
};

static void mix(uint64_t *hash, uint64_t value)
{
	*hash = (*hash << 7 | *hash >> 57) + value;
	*hash ^= *hash >> 29;
}

static int visit(const struct smaps_area *area, void *data)
{
	struct outcome *outcome = data;

	FUZZ_MUST(area->start <= area->end);
	FUZZ_MUST(memchr(area->name, '\0', sizeof(area->name)) != NULL);
	FUZZ_MUST(!memchr(area->name, '\n', strlen(area->name)));
	FUZZ_MUST(!(area->seen >> SMAPS_FIELDS));
	mix(&outcome->hash, area->start);
	mix(&outcome->hash, area->end);
	mix(&outcome->hash, area->offset);
	mix(&outcome->hash, area->inode);
	mix(&outcome->hash, (uint64_t)area->bits << 32 | area->seen);
	for (unsigned f = 0; f < SMAPS_FIELDS; f++)
		mix(&outcome->hash, area->seen & 1u << f ? area->kib[f] : f);
	for (const char *c = area->name; *c; c++)
		mix(&outcome->hash, (unsigned char)*c);
	return smaps_add(area, &outcome->sum);
}

static struct outcome at_once(const char *text, size_t len)
{
	struct outcome outcome = { 0 };
	struct smaps_parser parser = { 0 };

	outcome.err = smaps_parse(&parser, text, len, visit, &outcome);
	if (!outcome.err)
		outcome.err = smaps_finish(&parser, visit, &outcome);
	return outcome;
}

static struct outcome in_pieces(const char *text, size_t len, size_t piece, uint32_t seed)
{
	struct outcome outcome = { 0 };
	bool empty;

	file.text = text;
	file.len = len;
	file.at = 0;
	file.piece = piece;
	file.seed = seed;
	outcome.err = smaps_read_fd(PLAYED_FD, visit, &outcome, &empty);
	FUZZ_MUST(empty == (len == 0));
	return outcome;
}

static void same(const struct outcome *a, const struct outcome *b)
{
	FUZZ_MUST(a->err == b->err);
	FUZZ_MUST(a->hash == b->hash);
	FUZZ_MUST(a->sum.areas == b->sum.areas && a->sum.seen == b->sum.seen);
	FUZZ_MUST(a->sum.rss_kib == b->sum.rss_kib && a->sum.saved_kib == b->sum.saved_kib);
}

static void check_sum(const struct smaps_sum *sum)
{
	const uint64_t all[] = { sum->code_private_kib, sum->code_shared_kib, sum->data_private_kib,
		sum->data_shared_kib, sum->rss_kib, sum->pss_kib, sum->uss_kib, sum->swap_kib,
		sum->dirty_kib, sum->anonymous_kib, sum->huge_kib, sum->ksm_kib, sum->saved_kib };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		FUZZ_MUST(all[i] <= SMAPS_KIB_MAX);
	FUZZ_MUST(sum->saved_kib <= sum->ksm_kib);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size);
	struct outcome whole = at_once(text, size);
	struct entry entry = { .pid = 1, .sum = whole.sum };

	FUZZ_MUST(whole.err == 0 || whole.err == -EINVAL);
	check_sum(&whole.sum);
	show_columns(&entry);
	if (size < LONGEST_LINE) {
		struct outcome pieces = in_pieces(text, size, 0, fuzz_seed(data, size));
		same(&whole, &pieces);
		pieces = in_pieces(text, size, 1, 0);
		same(&whole, &pieces);
	}
	free(text);
	return 0;
}
