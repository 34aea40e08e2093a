/* Reads the pages of a plan with several threads: once, and a second time to see which change. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/estimate_read.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "ksmstat/estimate_source.h"

/* More than these wait for memory, not for a CPU. */
#define THREADS_MAX 16
#define NEIGHBOURS 512
#define DRAW_MS 100

/* A thread, and the pages that it is about to copy. */
struct reader {
	struct reading *reading;
	struct source source;
	const struct plan_area *area;
	uint32_t process;
	struct page_chunk *chunk; /* that its pages go to */
	char *buffer;
	size_t count;
	uint64_t numbers[SOURCE_BATCH];
	uint64_t entries[SOURCE_BATCH]; /* first reading */
	const struct plan_area *areas[SOURCE_BATCH];
	struct page *pages[SOURCE_BATCH]; /* second reading */
	bool there[SOURCE_BATCH];
};

static bool is_zero(const char *page, size_t page_bytes)
{
	const uint64_t *words = (const uint64_t *)(const void *)page;
	for (size_t i = 0; i < page_bytes / sizeof(*words); i += 8) {
		if (words[i] | words[i + 1] | words[i + 2] | words[i + 3] | words[i + 4] |
			words[i + 5] | words[i + 6] | words[i + 7])
			return false;
	}
	return true;
}

/* Merged pages are mapped more than once, or look like any other page and are worth as much. */
static bool is_merged(const struct reading *reading, uint64_t entry, const struct plan_area *area)
{
	uint64_t frame = entry & SOURCE_FRAME;
	if (entry & SOURCE_EXCLUSIVE || !area->maybe_merged)
		return false;
	if (!frame || reading->frames.flags_fd < 0)
		return true; /* by the area alone */
	return frames_is_merged(&reading->frames, frame) == 1;
}

static bool is_kernels_zero(const struct reader *reader, uint64_t entry, bool zero)
{
	uint64_t frame = entry & SOURCE_FRAME;
	if (!zero || source_knows_zero(&reader->source))
		return false;
	return frame ? frame == reader->reading->zero_frame : !(entry & SOURCE_EXCLUSIVE);
}

static int keep_page(struct reader *reader, size_t i)
{
	struct reading *reading = reader->reading;
	struct page_store *store = reading->store;
	const char *content = reader->buffer + i * reading->page_bytes;
	const struct plan_area *area = reader->areas[i];
	uint64_t entry = reader->entries[i];
	bool zero = is_zero(content, reading->page_bytes);

	if (is_kernels_zero(reader, entry, zero))
		return 0;
	if (!reader->chunk || reader->chunk->used == PAGE_CHUNK)
		reader->chunk = page_chunk_take(store, reader->process);
	if (!reader->chunk) {
		atomic_store(&reading->out_of_room, true);
		return -ENOSPC;
	}
	struct page page = {
		.number = reader->numbers[i],
		.kind = area->kind & 7,
		.zero = zero,
		.exclusive = (entry & SOURCE_EXCLUSIVE) != 0,
		.merged = is_merged(reading, entry, area),
		.mergeable = area->mergeable,
		.frame = entry & SOURCE_FRAME,
		.process = reader->process & ((1u << PLAN_PROCESS_BITS) - 1),
	};
	/* Zeros are known as such; a hash of them would be work for nothing. */
	if (!zero)
		page.hash = XXH3_128bits(content, reading->page_bytes);
	if (store->seen && !zero)
		page_seen(store, page.hash);
	page_chunk_pages(store, reader->chunk)[reader->chunk->used++] = page;
	return 0;
}

static void compare_page(struct reader *reader, size_t i)
{
	const char *content = reader->buffer + i * reader->reading->page_bytes;
	struct page *page = reader->pages[i];
	bool same = reader->there[i];
	if (same && page->zero)
		same = is_zero(content, reader->reading->page_bytes);
	else if (same)
		same = XXH128_isEqual(
			XXH3_128bits(content, reader->reading->page_bytes), page->hash);
	page->changed = !same;
}

static void add_done(struct reading *reading, size_t pages, size_t copied)
{
	atomic_fetch_add_explicit(
		&reading->done_bytes, pages * reading->page_bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(
		&reading->copied_bytes, copied * reading->page_bytes, memory_order_relaxed);
}

/* Copy what has been gathered and use it. Returns 0, or why this process is not read further. */
static int flush(struct reader *reader, bool second)
{
	size_t count = reader->count;
	if (!count)
		return 0;
	reader->count = 0;
	int err = 0;
	source_copy(&reader->source, reader->numbers, count, reader->buffer, reader->there);
	for (size_t i = 0; i < count && !err; i++) {
		if (second)
			compare_page(reader, i);
		else if (reader->there[i])
			err = keep_page(reader, i);
	}
	add_done(reader->reading, count, count);
	if (!err && atomic_load_explicit(reader->reading->stop, memory_order_relaxed))
		err = -EINTR;
	return err;
}

/* A visitor of pages. */
static int gather(uint64_t number, uint64_t entry, void *data)
{
	struct reader *reader = data;
	if (entry & SOURCE_FRAME)
		atomic_store_explicit(&reader->reading->knows_frames, true, memory_order_relaxed);
	reader->numbers[reader->count] = number;
	reader->entries[reader->count] = entry;
	reader->areas[reader->count++] = reader->area;
	return reader->count == SOURCE_BATCH ? flush(reader, false) : 0;
}

static int read_task(struct reader *reader, const struct plan_task *task)
{
	struct reading *reading = reader->reading;
	const struct plan *plan = reading->plan;
	int err = source_open(&reader->source, reading->root, &plan->processes[task->process],
		reading->page_bytes);
	if (err)
		return err;
	reader->process = task->process;
	reader->chunk = NULL;
	reader->count = 0;
	for (size_t i = 0; i < task->areas && !err; i++) {
		reader->area = &plan->areas[task->first_area + i];
		uint64_t start = reader->area->start, end = reader->area->end;
		err = source_find(&reader->source, start > task->start ? start : task->start,
			end < task->end ? end : task->end, gather, reader);
	}
	if (!err)
		err = flush(reader, false);
	if (!err && !source_alive(&reader->source))
		err = -ESRCH;
	source_close(&reader->source);
	return err;
}

/* Look again at `count` pages, at most NEIGHBOURS, that stand one behind the other in memory. */
static int gather_again(struct reader *reader, struct page *pages, size_t count)
{
	uint64_t entries[NEIGHBOURS];
	size_t got = source_entries(&reader->source, pages->number, entries, count);
	for (size_t i = 0; i < count; i++) {
		struct page *page = &pages[i];
		if (!page->zero && !page_repeats(reader->reading->store, page->hash)) {
			add_done(reader->reading, 1, 0);
			continue;
		}
		if (i >= got || (entries[i] & (SOURCE_PRESENT | SOURCE_FILE)) != SOURCE_PRESENT) {
			page->changed = true;
			continue;
		}
		reader->numbers[reader->count] = page->number;
		reader->pages[reader->count++] = page;
		int err = reader->count == SOURCE_BATCH ? flush(reader, true) : 0;
		if (err)
			return err;
	}
	return 0;
}

static int read_chunk(struct reader *reader, const struct page_chunk *chunk)
{
	struct reading *reading = reader->reading;
	struct page *pages = page_chunk_pages(reading->store, chunk);
	int err = source_open(&reader->source, reading->root,
		&reading->plan->processes[chunk->process], reading->page_bytes);
	if (err)
		return err;
	reader->count = 0;
	for (size_t at = 0, run; at < chunk->used && !err; at += run) {
		run = 1;
		while (at + run < chunk->used && run < NEIGHBOURS &&
			pages[at + run].number == pages[at].number + run)
			run++;
		err = gather_again(reader, pages + at, run);
	}
	if (!err)
		err = flush(reader, true);
	source_close(&reader->source);
	return err;
}

/* What could not be read at all does not count; what was merely left off stays. */
static void note(struct reading *reading, uint32_t process, int err)
{
	if (err && err != -EINTR && err != -ENOSPC)
		atomic_store(&reading->plan->processes[process].error, err);
}

static void read_all(struct reader *reader, bool second)
{
	struct reading *reading = reader->reading;
	size_t count =
		second ? atomic_load(&reading->store->chunk_count) : reading->plan->task_count;
	while (!atomic_load(reading->stop)) {
		size_t i = atomic_fetch_add(&reading->next, 1);
		if (i >= count)
			return;
		if (second) {
			const struct page_chunk *chunk = &reading->store->chunks[i];
			note(reading, chunk->process, read_chunk(reader, chunk));
		} else {
			const struct plan_task *task = &reading->plan->tasks[i];
			note(reading, task->process, read_task(reader, task));
		}
	}
}

struct thread {
	pthread_t thread;
	struct reading *reading;
	bool second;
};

static void *thread_main(void *data)
{
	struct thread *thread = data;
	struct reading *reading = thread->reading;
	struct timespec cpu;
	struct reader *reader = calloc(1, sizeof(*reader));
	if (reader)
		reader->buffer =
			aligned_alloc(reading->page_bytes, SOURCE_BATCH * reading->page_bytes);
	if (!reader || !reader->buffer) {
		atomic_store(&reading->failed, true);
	} else {
		reader->reading = reading;
		read_all(reader, thread->second);
		free(reader->buffer);
	}
	free(reader);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	atomic_fetch_add(
		&reading->cpu_ns, (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec);
	atomic_fetch_sub(&reading->running, 1);
	return NULL;
}

/* The frame of the page that stands for memory which was only read. */
static uint64_t find_zero_frame(size_t page_bytes)
{
	uint64_t entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	const volatile char *p =
		mmap(NULL, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fd >= 0 && p != MAP_FAILED && *p == 0 &&
		pread(fd, &entry, sizeof(entry),
			(off_t)((uintptr_t)p / page_bytes * sizeof(entry))) != sizeof(entry))
		entry = 0;
	if (p != MAP_FAILED)
		munmap((void *)(uintptr_t)p, page_bytes);
	if (fd >= 0)
		close(fd);
	return entry & SOURCE_FRAME;
}

/* As many threads as there are CPUs for us, and no more than there is work. */
static unsigned thread_count(const struct reading *reading, size_t work)
{
	cpu_set_t allowed;
	unsigned cpus = sched_getaffinity(0, sizeof(allowed), &allowed)
				? (unsigned)sysconf(_SC_NPROCESSORS_ONLN)
				: (unsigned)CPU_COUNT(&allowed);
	unsigned most = reading->threads_max ? reading->threads_max : THREADS_MAX;
	if (cpus > most)
		cpus = most;
	return work < cpus ? (unsigned)work : cpus;
}

/* Draw the progress until the threads have left. */
static void watch(struct reading *reading)
{
	struct timespec pause = { 0, DRAW_MS * 1000000 };
	while (reading->progress.shown && atomic_load(&reading->running)) {
		nanosleep(&pause, NULL);
		progress_draw(&reading->progress, atomic_load(&reading->done_bytes));
	}
}

static int run(struct reading *reading, bool second, size_t work, struct read_cost *cost)
{
	struct thread threads[THREADS_MAX];
	unsigned wanted = thread_count(reading, work), started = 0;

	atomic_store(&reading->next, 0);
	atomic_store(&reading->done_bytes, 0);
	atomic_store(&reading->copied_bytes, 0);
	atomic_store(&reading->cpu_ns, 0);
	uint64_t begin = progress_now_ns();
	atomic_store(&reading->running, wanted);
	for (; started < wanted; started++) {
		threads[started].reading = reading;
		threads[started].second = second;
		if (pthread_create(&threads[started].thread, NULL, thread_main, &threads[started]))
			break;
	}
	atomic_fetch_sub(&reading->running, wanted - started);
	watch(reading);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i].thread, NULL);
	progress_end(&reading->progress);
	cost->bytes = atomic_load(&reading->copied_bytes);
	cost->wall_ns = progress_now_ns() - begin;
	cost->cpu_ns = atomic_load(&reading->cpu_ns);
	cost->threads = started;
	return (wanted && !started) || atomic_load(&reading->failed) ? -ENOMEM : 0;
}

int read_first(struct reading *reading)
{
	frames_open(&reading->frames, reading->root);
	reading->zero_frame = find_zero_frame(reading->page_bytes);
	progress_begin(&reading->progress, "reading",
		reading->plan->pages * (uint64_t)reading->page_bytes);
	int err = run(reading, false, reading->plan->task_count, &reading->first);
	reading->knows_merged = reading->frames.flags_fd >= 0 && reading->knows_frames;
	frames_close(&reading->frames);
	reading->first_partial = atomic_load(reading->stop) || reading->out_of_room;
	return err;
}

int read_second(struct reading *reading)
{
	size_t chunks = atomic_load(&reading->store->chunk_count);
	uint64_t pages = 0;
	for (size_t i = 0; i < chunks; i++)
		pages += reading->store->chunks[i].used;
	progress_begin(&reading->progress, "looking again", pages * (uint64_t)reading->page_bytes);
	int err = run(reading, true, chunks, &reading->second);
	reading->second_partial = atomic_load(reading->stop);
	return err;
}
