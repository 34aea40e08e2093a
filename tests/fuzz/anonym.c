/* Fuzz target: the kernel's files without names. Sums of memory stay, and no text of a stranger is left. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/anonym.h"

#include "sysfs/cgroup.h"
#include "sysfs/proc.h"
#include "sysfs/smaps.h"
#include "tests/fuzz/fuzz.h"

static const struct {
	anonym_text write;
	bool lines;
} ways[] = {
	{ anonym_stat, false },
	{ anonym_comm, false },
	{ anonym_cmdline, false },
	{ anonym_status, true },
	{ anonym_cgroup, true },
	{ anonym_smaps, true },
};
enum { STAT, COMM, CMDLINE, STATUS, CGROUP, SMAPS, WAYS };

/* As copy.c gives it: whole, or line by line. The caller frees it. */
static char *rewrite(struct anonym *anonym, int way, const char *text, size_t len, size_t *out_len)
{
	struct anonym_process process;
	char *written = NULL;
	FILE *out = open_memstream(&written, out_len);

	FUZZ_MUST(out != NULL);
	anonym_begin(&process, anonym, "someone", 0);
	for (size_t at = 0; at < len;) {
		const char *eol = memchr(text + at, '\n', len - at);
		size_t n = ways[way].lines && eol ? (size_t)(eol + 1 - (text + at)) : len - at;
		char *line = fuzz_copy((const uint8_t *)text + at, n);
		ways[way].write(&process, line, n, out);
		free(line);
		at += n;
	}
	FUZZ_MUST(fclose(out) == 0);
	FUZZ_MUST(!anonym->failed);
	return written;
}

static int sum(const char *text, size_t len, struct smaps_sum *sum)
{
	struct smaps_parser parser = { 0 };
	int err = smaps_parse(&parser, text, len, smaps_add, sum);
	return err ? err : smaps_finish(&parser, smaps_add, sum);
}

/* What is read of the one is read of the other. */
static void check_smaps(const char *text, size_t len, const char *written, size_t written_len)
{
	struct smaps_sum before = { 0 }, after = { 0 };
	if (sum(text, len, &before))
		return;
	FUZZ_MUST(sum(written, written_len, &after) == 0);
	FUZZ_MUST(before.rss_kib == after.rss_kib && before.pss_kib == after.pss_kib);
	FUZZ_MUST(before.code_private_kib == after.code_private_kib);
	FUZZ_MUST(before.data_shared_kib == after.data_shared_kib);
	FUZZ_MUST(before.areas == after.areas);
	FUZZ_MUST(before.mergeable_areas == after.mergeable_areas);
}

static void check_stat(const char *text, size_t len, const char *written, size_t written_len)
{
	struct proc_stat before, after;
	if (proc_parse_stat(text, len, &before))
		return;
	FUZZ_MUST(proc_parse_stat(written, written_len, &after) == 0);
	FUZZ_MUST(after.comm[0] == 'p' && before.minflt == after.minflt);
	FUZZ_MUST(before.rss_pages == after.rss_pages && before.ppid == after.ppid);
	FUZZ_MUST(before.start_ticks == after.start_ticks && before.state == after.state);
}

static void check_cgroup(const char *written, size_t len)
{
	for (size_t i = 0; i < len; i++)
		FUZZ_MUST((unsigned char)written[i] < 0x80);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size);
	struct anonym anonym;

	anonym_init(&anonym);
	for (int way = 0; way < WAYS; way++) {
		size_t len = 0, again_len = 0;
		char *written = rewrite(&anonym, way, text, size, &len);
		char *again = rewrite(&anonym, way, text, size, &again_len);
		FUZZ_MUST(len == again_len && !memcmp(written, again, len));
		if (way == SMAPS)
			check_smaps(text, size, written, len);
		if (way == STAT)
			check_stat(text, size, written, len);
		if (way == CGROUP)
			check_cgroup(written, len);
		free(again);
		free(written);
	}
	anonym_free(&anonym);
	free(text);
	return 0;
}
