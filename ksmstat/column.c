/* The columns of ksmstat: one table that feeds output, JSON, sorting and help. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/column.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* A column that shows a KiB sum of smaps, known when the field it comes from was there. */
#define SMAPS_COLUMN(name, expression, fields) \
	static bool name(const struct entry *e, int64_t *value) \
	{ \
		uint64_t kib = (expression); \
		*value = (int64_t)(kib * 1024); \
		return !e->smaps_error && (e->sum.seen & (fields)) == (fields) && \
		       kib <= INT64_MAX / 1024; \
	}
#define SEEN(field) (1u << (field))

SMAPS_COLUMN(code_private, e->sum.code_private_kib, SEEN(SMAPS_PRIVATE_DIRTY))
SMAPS_COLUMN(code_shared, e->sum.code_shared_kib, SEEN(SMAPS_SHARED_DIRTY))
SMAPS_COLUMN(data_private, e->sum.data_private_kib, SEEN(SMAPS_PRIVATE_DIRTY))
SMAPS_COLUMN(data_shared, e->sum.data_shared_kib, SEEN(SMAPS_SHARED_DIRTY))
SMAPS_COLUMN(total,
	e->sum.code_private_kib + e->sum.code_shared_kib + e->sum.data_private_kib +
		e->sum.data_shared_kib,
	SEEN(SMAPS_PRIVATE_DIRTY) | SEEN(SMAPS_SHARED_DIRTY))
SMAPS_COLUMN(rss, e->sum.rss_kib, SEEN(SMAPS_RSS))
SMAPS_COLUMN(pss, e->sum.pss_kib, SEEN(SMAPS_PSS))
SMAPS_COLUMN(uss, e->sum.uss_kib, SEEN(SMAPS_PRIVATE_DIRTY))
SMAPS_COLUMN(swap, e->sum.swap_kib, SEEN(SMAPS_SWAP))
SMAPS_COLUMN(huge, e->sum.huge_kib, SEEN(SMAPS_ANON_HUGE))
SMAPS_COLUMN(anonymous, e->sum.anonymous_kib, SEEN(SMAPS_ANONYMOUS))

static bool dirty(const struct entry *e, int64_t *value)
{
	*value = (int64_t)e->sum.dirty_kib * 1024;
	return !e->smaps_error && e->sum.seen & SEEN(SMAPS_PRIVATE_DIRTY) && !e->sum.no_dirty;
}

static bool ksm_field(const struct entry *e, unsigned bit)
{
	return !e->ksm_error && e->ksm.present & bit;
}

/* What no machine has is not known either. */
static bool bytes_of(int64_t pages, int64_t *bytes)
{
	return pages >= 0 && !__builtin_mul_overflow(pages, (int64_t)sysconf(_SC_PAGESIZE), bytes);
}

/* smaps counts KSM pages since 6.6; before that the kernel's count per process is the same thing. */
static bool ksm(const struct entry *e, int64_t *value)
{
	if (!e->smaps_error && e->sum.seen & SEEN(SMAPS_KSM)) {
		*value = (int64_t)e->sum.ksm_kib * 1024;
		return true;
	}
	return ksm_field(e, PROC_KSM_MERGING) && bytes_of(e->ksm.merging_pages, value);
}

/* Exact where page frames could be looked at, else as smaps lets it be estimated. */
static bool saved(const struct entry *e, int64_t *value)
{
	*value =
		e->frames_known ? (int64_t)e->frames.saved_bytes : (int64_t)e->sum.saved_kib * 1024;
	return !e->smaps_error && e->sum.seen & SEEN(SMAPS_KSM);
}

static const char *saved_by(const struct entry *e)
{
	if (e->smaps_error || !(e->sum.seen & SEEN(SMAPS_KSM)))
		return NULL;
	return e->frames_known ? "exact" : "estimated";
}

static bool self(const struct entry *e, int64_t *value)
{
	*value = (int64_t)e->frames.self_pages * sysconf(_SC_PAGESIZE);
	return !e->smaps_error && e->frames_known;
}

static bool with_others(const struct entry *e, int64_t *value)
{
	uint64_t pages = e->frames.merged_pages - e->frames.self_pages;
	*value = (int64_t)pages * sysconf(_SC_PAGESIZE);
	return !e->smaps_error && e->frames_known;
}

static bool shared_file(const struct entry *e, int64_t *value)
{
	*value = (int64_t)e->shared.file_kib * 1024;
	return !e->smaps_error && e->shared_known;
}

/* What is shared, anonymous and not merged. The two were read one after the other. */
static bool shared_cow(const struct entry *e, int64_t *value)
{
	uint64_t merged = e->frames.merged_pages - e->frames.alone_pages;
	*value = (int64_t)e->shared.anon_kib * 1024 - (int64_t)merged * sysconf(_SC_PAGESIZE);
	if (*value < 0)
		*value = 0;
	return !e->smaps_error && e->shared_known && e->frames_known;
}

static bool zero(const struct entry *e, int64_t *value)
{
	return ksm_field(e, PROC_KSM_ZERO) && bytes_of(e->ksm.zero_pages, value);
}

static bool profit(const struct entry *e, int64_t *value)
{
	*value = e->ksm.profit_bytes;
	return ksm_field(e, PROC_KSM_PROFIT);
}

static bool scanned(const struct entry *e, int64_t *value)
{
	*value = e->ksm.rmap_items;
	return ksm_field(e, PROC_KSM_RMAP_ITEMS);
}

static bool areas(const struct entry *e, int64_t *value)
{
	*value = e->sum.areas;
	return !e->smaps_error;
}

static bool mergeable_areas(const struct entry *e, int64_t *value)
{
	*value = e->sum.mergeable_areas;
	return !e->smaps_error && e->sum.has_vmflags;
}

static bool pid(const struct entry *e, int64_t *value)
{
	*value = e->pid;
	return true;
}

static bool ppid(const struct entry *e, int64_t *value)
{
	*value = e->stat.ppid;
	return e->stat.state != 0;
}

static bool threads(const struct entry *e, int64_t *value)
{
	*value = e->stat.threads;
	return e->stat.state != 0;
}

static bool minflt(const struct entry *e, int64_t *value)
{
	*value = (int64_t)e->stat.minflt;
	return e->stat.state != 0;
}

static bool majflt(const struct entry *e, int64_t *value)
{
	*value = (int64_t)e->stat.majflt;
	return e->stat.state != 0;
}

static const char *user(const struct entry *e)
{
	return e->user;
}

static const char *command(const struct entry *e)
{
	return e->stat.comm;
}

/* "prctl": the whole process; "madvise": some areas; "no". */
static const char *opted(const struct entry *e)
{
	if (ksm_field(e, PROC_KSM_MERGE_ANY) && e->ksm.merge_any)
		return "prctl";
	if (e->smaps_error)
		return NULL;
	if (e->sum.has_vmflags)
		return e->sum.mergeable_areas ? "madvise" : "no";
	if (ksm_field(e, PROC_KSM_MERGEABLE))
		return e->ksm.mergeable ? "madvise" : "no";
	return NULL;
}

/* Where a process is: NULL when there is no such thing, as when it is not known. */
static const char *cgroup(const struct entry *e)
{
	return e->place ? e->place->cgroup : NULL;
}

static const char *unit(const struct entry *e)
{
	return e->place ? e->place->unit : NULL;
}

static const char *container(const struct entry *e)
{
	return e->place ? e->place->container : NULL;
}

static const char *pod(const struct entry *e)
{
	return e->place ? e->place->pod : NULL;
}

static bool processes(const struct entry *e, int64_t *value)
{
	(void)e;
	*value = 1;
	return true;
}

/* A sum lacks what could not be read. A kernel that has no ksm_stat is no fault of a process. */
static bool unreadable(const struct entry *e, int64_t *value)
{
	*value = e->smaps_error || (e->ksm_error && e->ksm_error != -ENOENT);
	return true;
}

static bool of_machine(const struct entry *e, int64_t *value)
{
	(void)e, (void)value;
	return false;
}

bool column_is_of_machine(const struct column *column)
{
	return column->number == of_machine;
}

enum { SMAPS = ENTRY_NEEDS_SMAPS, SHARED = ENTRY_NEEDS_SHARED };

const struct column columns[] = {
	{ "PID", COLUMN_COUNT, false, "process ID", pid, NULL, 0 },
	{ "PPID", COLUMN_COUNT, false, "parent's process ID", ppid, NULL, 0 },
	{ "USER", COLUMN_TEXT, false, "effective user", NULL, user, 0 },
	{ "THREADS", COLUMN_COUNT, true, "threads", threads, NULL, 0 },
	{ "CODE_P", COLUMN_BYTES, true, "code of its own (resident, executable mappings)",
		code_private, NULL, 0 },
	{ "CODE_S", COLUMN_BYTES, false, "code shared with other mappings", code_shared, NULL, 0 },
	{ "DATA_P", COLUMN_BYTES, true, "data of its own", data_private, NULL, 0 },
	{ "DATA_S", COLUMN_BYTES, false, "data shared, by merging, fork or file", data_shared, NULL,
		0 },
	{ "SHARED_FILE", COLUMN_BYTES, false, "shared pages of files and of shared memory",
		shared_file, NULL, SHARED },
	{ "SHARED_COW", COLUMN_BYTES, false, "shared since a fork, and not merged (root)",
		shared_cow, NULL, SHARED },
	{ "TOTAL", COLUMN_BYTES, false, "sum of the four", total, NULL, 0 },
	{ "RSS", COLUMN_BYTES, false, "resident memory", rss, NULL, 0 },
	{ "PSS", COLUMN_BYTES, true, "resident memory, shared pages divided by their users", pss,
		NULL, SMAPS },
	{ "USS", COLUMN_BYTES, true, "resident memory of its own: freed when it ends", uss, NULL,
		0 },
	{ "SWAP", COLUMN_BYTES, true, "swapped out", swap, NULL, SMAPS },
	{ "HUGE", COLUMN_BYTES, false, "on huge pages, transparent or hugetlb", huge, NULL, SMAPS },
	{ "ANON", COLUMN_BYTES, false, "anonymous memory: what merging can work on", anonymous,
		NULL, 0 },
	{ "DIRTY", COLUMN_BYTES, false, "dirty memory; merged pages count as dirty", dirty, NULL,
		SMAPS },
	{ "KSM", COLUMN_BYTES, false, "mapped merged pages", ksm, NULL, 0 },
	{ "ZERO", COLUMN_BYTES, true, "zero pages merged away; not in RSS, PSS, KSM or SAVED", zero,
		NULL, 0 },
	{ "SAVED", COLUMN_BYTES, true, "its share of what merging saves; exact for root", saved,
		NULL, 0 },
	{ "SAVED_BY", COLUMN_TEXT, false, "how SAVED is known: exact or estimated", NULL, saved_by,
		0 },
	{ "KSM_OTHERS", COLUMN_BYTES, false, "memory merged with other processes (root)",
		with_others, NULL, 0 },
	{ "KSM_SELF", COLUMN_BYTES, true, "memory merged with nothing but itself (root)", self,
		NULL, 0 },
	{ "PROFIT", COLUMN_BYTES, false, "the kernel's claim for it: merged less bookkeeping",
		profit, NULL, 0 },
	{ "SCANNED", COLUMN_COUNT, true, "pages that ksmd tracks in it", scanned, NULL, 0 },
	{ "OPTED", COLUMN_TEXT, false, "how it is open to merging: prctl, madvise, no", NULL, opted,
		0 },
	{ "AREAS", COLUMN_COUNT, true, "memory areas", areas, NULL, 0 },
	{ "MERGEABLE", COLUMN_COUNT, true, "memory areas open to merging", mergeable_areas, NULL,
		SMAPS },
	{ "MINFLT", COLUMN_COUNT, true, "minor page faults since its start", minflt, NULL, 0 },
	{ "MAJFLT", COLUMN_COUNT, true, "major page faults since its start", majflt, NULL, 0 },
	{ "COMMAND", COLUMN_TEXT, false, "name of the program", NULL, command, 0 },
	{ "CGROUP", COLUMN_PLACE, false, "control group", NULL, cgroup, 0 },
	{ "UNIT", COLUMN_PLACE, false, "unit of systemd", NULL, unit, 0 },
	{ "CONTAINER", COLUMN_PLACE, false, "container or guest, as RUNTIME:NAME", NULL, container,
		0 },
	{ "POD", COLUMN_PLACE, false, "UID of the Kubernetes pod", NULL, pod, 0 },
	{ "PROCS", COLUMN_COUNT, true, "processes", processes, NULL, 0 },
	{ "UNREADABLE", COLUMN_COUNT, true, "of these, processes that could not be read",
		unreadable, NULL, 0 },
	{ "KERNEL_SAVED", COLUMN_BYTES, false, "--by system: pages_sharing, as bytes", of_machine,
		NULL, 0 },
	{ "KERNEL_ZERO", COLUMN_BYTES, false, "--by system: ksm_zero_pages, as bytes", of_machine,
		NULL, 0 },
	{ "KERNEL_PROFIT", COLUMN_BYTES, false, "--by system: general_profit", of_machine, NULL,
		0 },
	{ "KSMD_MS", COLUMN_COUNT, false, "--by system: CPU time of ksmd in milliseconds",
		of_machine, NULL, 0 },
};
const size_t columns_count = sizeof(columns) / sizeof(*columns);

const struct column *column_find(const char *name, size_t len)
{
	for (size_t i = 0; i < columns_count; i++) {
		if (strlen(columns[i].name) == len && !strncasecmp(columns[i].name, name, len))
			return &columns[i];
	}
	return NULL;
}

void column_default(struct column_choice *choice)
{
	const char *bad;
	size_t bad_len;
	column_parse(choice, "PID,USER,CODE_P,CODE_S,DATA_P,DATA_S,TOTAL,KSM,SAVED,PROFIT,COMMAND",
		&bad, &bad_len);
}

static int add_column(struct column_choice *choice, const struct column *column)
{
	if (choice->count == COLUMN_CHOICE_MAX)
		return -E2BIG;
	choice->column[choice->count++] = column;
	return 0;
}

int column_parse(struct column_choice *choice, const char *list, const char **bad, size_t *bad_len)
{
	struct column_choice out = { .count = 0 };
	int err = 0;
	if (!strcasecmp(list, "all")) {
		for (size_t i = 0; i < columns_count && !err; i++) {
			if (!column_is_of_machine(&columns[i]))
				err = add_column(&out, &columns[i]);
		}
		*choice = out;
		return err;
	}
	if (*list == '+') {
		column_default(&out);
		list++;
	}
	while (!err) {
		size_t len = strcspn(list, ",");
		const struct column *column = column_find(list, len);
		if (!column) {
			*bad = list;
			*bad_len = len;
			return -EINVAL;
		}
		err = add_column(&out, column);
		if (!list[len])
			break;
		list += len + 1;
	}
	if (!err)
		*choice = out;
	return err;
}

int64_t column_add(int64_t a, int64_t b)
{
	int64_t sum;
	return !__builtin_add_overflow(a, b, &sum) ? sum : a < 0 ? INT64_MIN : INT64_MAX;
}

int column_compare_texts(bool reverse, const char *a, const char *b)
{
	if (!a || !b)
		return (a == NULL) - (b == NULL);
	int order = strcmp(a, b);
	return reverse ? -order : order;
}

int column_compare_numbers(bool reverse, const int64_t *a, const int64_t *b)
{
	if (!a || !b)
		return (a == NULL) - (b == NULL);
	int order = (*a < *b) - (*a > *b);
	return reverse ? -order : order;
}

int column_compare(
	const struct column *column, bool reverse, const struct entry *a, const struct entry *b)
{
	if (column->text)
		return column_compare_texts(reverse, column->text(a), column->text(b));
	int64_t x, y;
	return column_compare_numbers(
		reverse, column->number(a, &x) ? &x : NULL, column->number(b, &y) ? &y : NULL);
}
