/* ksmstat/estimate: the arithmetic on made-up pages, and the reading of a real process's memory. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ksmstat/estimate_source.h"
#include "ksmstat/estimate_sum.h"
#include "ksmstat/progress.h"
#include "tests/tap.h"
#include "tests/unit/live.h"

#define PROCESSES 6
#define PAGES_MAX 4096

/* Processes 0 to 5 in groups 0, 0, 1, 1, 2, 2. */
static struct plan_process processes[PROCESSES];
static struct plan plan;
static struct page_store store;
static struct class_sums sums;
static struct class_rules rules;
static size_t count;

static void begin(void)
{
	memset(processes, 0, sizeof(processes));
	for (uint32_t i = 0; i < PROCESSES; i++)
		processes[i].group = i / 2;
	memset(&plan, 0, sizeof(plan));
	plan.processes = processes;
	plan.process_count = PROCESSES;
	plan.pages = PAGES_MAX;
	plan.task_count = PROCESSES;
	rules = (struct class_rules){ .max_page_sharing = 256 };
	ck_assert_int_eq(page_store_make(&store, &plan, false), 0);
	count = 0;
}

/* A page with the content `content`; 0 is zeros. Without more it is a page of its own. */
static struct page *add(uint32_t process, uint64_t content)
{
	struct page_chunk *chunk = NULL;
	size_t chunks = atomic_load(&store.chunk_count);
	for (size_t i = 0; i < chunks && !chunk; i++) {
		if (store.chunks[i].process == process && store.chunks[i].used < PAGE_CHUNK)
			chunk = &store.chunks[i];
	}
	if (!chunk)
		chunk = page_chunk_take(&store, process);
	ck_assert_ptr_nonnull(chunk);
	struct page *page = &page_chunk_pages(&store, chunk)[chunk->used++];
	*page = (struct page){
		.number = 1000 + count,
		.kind = PLAN_ANONYMOUS,
		.zero = content == 0,
		.exclusive = 1,
		.process = process & 0xffffff,
	};
	if (content)
		page->hash = XXH3_128bits(&content, sizeof(content));
	count++;
	return page;
}

static void sum(void)
{
	ck_assert_int_eq(sum_pages(&sums, &store, &plan, 3, &rules, 5, 2), 0);
}

static void end(void)
{
	class_sums_free(&sums);
	page_store_free(&store);
}

/* Parts are cut down, each by less than one of 2^20. */
static void expect_parts(int64_t parts, double pages)
{
	double is = (double)parts / (1 << CLASS_PART_SHIFT);
	ck_assert_msg(is <= pages + 0.001 && is >= pages - 0.01, "%f, not %f", is, pages);
}

START_TEST(within_and_across)
{
	begin();
	for (int i = 0; i < 3; i++)
		add(0, 7); /* saves 2 alone */
	add(1, 7);	   /* one more in its group */
	add(2, 7);	   /* and two more across groups */
	add(4, 7);
	add(5, 8); /* has no partner */
	sum();
	ck_assert_int_eq(sums.saved, 5);
	ck_assert_int_eq(sums.saved_in_process, 2);
	ck_assert_int_eq(sums.saved_in_group, 3);
	ck_assert_int_eq(sums.pages_shared, 1);
	ck_assert_int_eq(sums.pages_sharing, 5);
	ck_assert_uint_eq(sums.total.pages, 7);
	expect_parts(sums.total.saved_parts, 5);
	expect_parts(sums.processes[0].saved_parts, 2.5);
	expect_parts(sums.groups[0].saved_parts, 4 * 5 / 6.0);
	expect_parts(sums.kinds[PLAN_ANONYMOUS].saved_parts, 5);
	ck_assert_int_eq(sums.processes[5].saved_parts, 0);
	end();
}
END_TEST

START_TEST(max_page_sharing)
{
	static const struct {
		int pages, max, shared, sharing;
	} cases[] = { { 1, 2, 0, 0 }, { 2, 2, 1, 1 }, { 3, 2, 1, 1 }, { 4, 2, 2, 2 },
		{ 256, 256, 1, 255 }, { 257, 256, 1, 255 }, { 258, 256, 2, 256 },
		{ 1000, 256, 4, 996 }, { 1025, 256, 4, 1020 } };
	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		begin();
		rules.max_page_sharing = (uint64_t)cases[c].max;
		for (int i = 0; i < cases[c].pages; i++)
			add((uint32_t)i % PROCESSES, 9);
		sum();
		ck_assert_int_eq(sums.pages_shared, cases[c].shared);
		ck_assert_int_eq(sums.pages_sharing, cases[c].sharing);
		ck_assert_int_eq(sums.saved, cases[c].sharing);
		end();
	}
}
END_TEST

/* Since a fork, three processes have one page; with frames and, by their address, without. */
START_TEST(shared_since_fork)
{
	for (int frames = 0; frames < 2; frames++) {
		begin();
		for (uint32_t i = 0; i < 3; i++) {
			struct page *page = add(i, 5);
			page->exclusive = 0;
			page->number = 4711;
			page->frame = frames ? 99 : 0;
		}
		sum();
		ck_assert_int_eq(sums.saved, 0);
		ck_assert_int_eq(sums.pages_sharing, 0);
		end();

		begin();
		for (uint32_t i = 0; i < 3; i++) {
			struct page *page = add(i, 5);
			page->exclusive = 0;
			page->number = 4711;
			page->frame = frames ? 99 : 0;
		}
		add(4, 5)->frame = frames ? 100 : 0;
		sum();
		/* The kernel counts four mappings of one page; there were two pages before. */
		ck_assert_int_eq(sums.saved, 1);
		ck_assert_int_eq(sums.pages_shared, 1);
		ck_assert_int_eq(sums.pages_sharing, 3);
		end();
	}
}
END_TEST

START_TEST(merged_already)
{
	for (int frames = 0; frames < 2; frames++) {
		begin();
		for (uint32_t i = 0; i < 4; i++) {
			struct page *page = add(i, 5);
			page->exclusive = 0;
			page->merged = 1;
			page->frame = frames ? 99 : 0;
		}
		sum();
		ck_assert_int_eq(sums.saved, 0);
		ck_assert_int_eq(sums.saved_now, 3);
		ck_assert_int_eq(sums.pages_sharing, 3);
		ck_assert_uint_eq(sums.total.merged, 4);
		end();

		begin();
		for (uint32_t i = 0; i < 4; i++) {
			struct page *page = add(i, 5);
			page->exclusive = i == 3;
			page->merged = i < 3;
			page->frame = frames ? i < 3 ? 99 : 100 : 0;
		}
		sum();
		ck_assert_int_eq(sums.saved, 1);
		ck_assert_int_eq(sums.saved_now, 2);
		ck_assert_int_eq(sums.pages_sharing, 3);
		expect_parts(sums.processes[3].saved_parts, 1);
		ck_assert_int_eq(sums.processes[0].saved_parts, 0);
		end();
	}
	/* Two merged pages with the same content stay two, though one would do. */
	begin();
	for (uint32_t i = 0; i < 4; i++) {
		struct page *page = add(i, 5);
		page->exclusive = 0;
		page->merged = 1;
		page->frame = 99 + i / 2;
	}
	sum();
	ck_assert_int_eq(sums.saved, 0);
	ck_assert_int_eq(sums.saved_now, 2);
	ck_assert_int_eq(sums.pages_shared, 2);
	end();
}
END_TEST

START_TEST(zeros)
{
	for (int kernels = 0; kernels < 2; kernels++) {
		begin();
		rules.max_page_sharing = 4;
		rules.zero_pages = kernels;
		for (uint32_t i = 0; i < 10; i++)
			add(i % 3, 0);
		sum();
		ck_assert_int_eq(sums.saved, 0);
		ck_assert_int_eq(sums.zero_saved, 7);
		ck_assert_int_eq(sums.zero_saved_all, 10);
		ck_assert_int_eq(sums.pages_sharing, kernels ? 0 : 7);
		ck_assert_int_eq(sums.zero_pages, kernels ? 10 : 0);
		ck_assert_uint_eq(sums.total.zero, 10);
		expect_parts(sums.total.saved_parts, kernels ? 10 : 7);
		end();
	}
	begin();
	rules.zero_pages = true;
	add(0, 0); /* alone, and yet saved */
	sum();
	ck_assert_int_eq(sums.zero_saved_all, 1);
	ck_assert_int_eq(sums.zero_pages, 1);
	end();
}
END_TEST

START_TEST(left_out)
{
	begin();
	add(0, 3);
	add(1, 3)->changed = 1;
	add(2, 3);
	add(3, 3)->mergeable = 1;
	add(4, 3)->mergeable = 1;
	add(5, 3);
	atomic_store(&processes[2].error, -EACCES);
	sum();
	ck_assert_int_eq(sums.saved, 3);
	ck_assert_int_eq(sums.saved_mergeable, 1);
	ck_assert_uint_eq(sums.total.pages, 5);
	ck_assert_uint_eq(sums.total.changed, 1);
	ck_assert_uint_eq(sums.processes[2].pages, 0);
	end();
}
END_TEST

START_TEST(together)
{
	struct together_pair pairs[8];
	begin();
	for (uint64_t c = 1; c <= 10; c++) { /* in all three groups */
		add(0, c);
		add(2, c);
		add(4, c);
	}
	for (uint64_t c = 11; c <= 15; c++) { /* in two of them; twice in one */
		add(0, c);
		add(1, c);
		add(5, c);
	}
	sum();
	ck_assert_uint_eq(sums.together.count, 2);
	ck_assert_uint_eq(sums.together.sets[0].count, 3);
	ck_assert_int_eq(sums.together.sets[0].saved_pages, 20);
	ck_assert_uint_eq(sums.together.sets[1].count, 2);
	ck_assert_int_eq(sums.together.sets[1].saved_pages, 5);
	ck_assert_int_eq(sums.saved_in_group, 5);
	ck_assert_uint_eq(together_pairs(&sums.together, 3, pairs, 8), 3);
	ck_assert_uint_eq(pairs[0].a, 0);
	ck_assert_uint_eq(pairs[0].b, 2);
	ck_assert_int_eq(pairs[0].saved_pages, 15);
	ck_assert_int_eq(pairs[1].saved_pages, 10);
	ck_assert_uint_eq(together_pairs(&sums.together, 3, pairs, 1), 1);
	ck_assert_int_eq(pairs[0].saved_pages, 15);
	end();
}
END_TEST

/* Many sets: none gets lost when the table grows, and what finds no room is in the rest. */
START_TEST(together_many)
{
	struct together table = { 0 };
	int64_t sum_pages_ = 0;
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t a = 0; a < 1500; a++) {
			const uint32_t ids[] = { a, a + 1, 2 * a + 2 };
			together_add(&table, ids, 3, 2);
		}
	}
	ck_assert_uint_eq(table.count, 1500);
	for (uint32_t a = 0; a < 400; a++) {
		uint32_t ids[3000];
		for (uint32_t i = 0; i < 3000; i++)
			ids[i] = i + (i >= 2000) * (a + 1);
		together_add(&table, ids, 3000, 1);
	}
	for (size_t i = 0; i < table.count; i++)
		sum_pages_ += table.sets[i].saved_pages;
	ck_assert_int_gt(table.rest_pages, 0);
	ck_assert_int_eq(sum_pages_ + table.rest_pages, 1500 * 4 + 400);
	together_sort(&table);
	for (size_t i = 1; i < table.count; i++)
		ck_assert_int_ge(table.sets[i - 1].saved_pages, table.sets[i].saved_pages);
	together_free(&table);
}
END_TEST

START_TEST(top)
{
	begin();
	for (uint64_t c = 0; c < 9; c++) {
		for (uint64_t i = 0; i <= c; i++)
			add((uint32_t)i % PROCESSES, 100 + c)->kind = PLAN_HEAP;
	}
	sum();
	ck_assert_uint_eq(sums.top_count, 5);
	for (size_t i = 0; i < 5; i++)
		ck_assert_uint_eq(sums.top[i].pages, 9 - i);
	ck_assert_uint_eq(sums.top[0].kinds[PLAN_HEAP], 9);
	ck_assert_uint_eq(sums.top[0].processes, 6);
	ck_assert_uint_eq(sums.top[0].groups, 3);
	end();
}
END_TEST

/* Against counting in the plainest way, on random memory. */
START_TEST(random_memory)
{
	static struct page all[600];
	unsigned seed = (unsigned)_i + 1;
	int64_t saved = 0, sharing = 0;
	begin();
	rules.max_page_sharing = 2 + (uint64_t)rand_r(&seed) % 5;
	for (size_t i = 0; i < 600; i++) {
		/* A frame has one content. Half of the frames are mapped more than once. */
		uint64_t frame = 1 + (uint64_t)rand_r(&seed) % 500;
		struct page *page = add((uint32_t)rand_r(&seed) % PROCESSES, 1 + frame % 40);
		page->frame = frame;
		all[i] = *page;
	}
	for (size_t i = 0; i < store.chunk_count; i++) {
		for (size_t k = 0; k < store.chunks[i].used; k++) {
			struct page *page = &page_chunk_pages(&store, &store.chunks[i])[k];
			int same = 0;
			for (size_t n = 0; n < 600; n++)
				same += all[n].frame == page->frame;
			page->exclusive = same == 1;
		}
	}
	for (uint64_t content = 1; content <= 40; content++) {
		bool met[501] = { false };
		int64_t mappings = 0, frames = 0, max = (int64_t)rules.max_page_sharing;
		for (size_t i = 0; i < 600; i++) {
			if (1 + all[i].frame % 40 != content)
				continue;
			mappings++;
			frames += !met[all[i].frame];
			met[all[i].frame] = true;
		}
		int64_t left = (mappings + max - 1) / max;
		saved += frames > 1 ? frames - left : 0;
		sharing += frames > 1 ? mappings - left : 0;
	}
	sum();
	ck_assert_int_eq(sums.saved, saved);
	ck_assert_int_eq(sums.pages_sharing, sharing);
	ck_assert_int_le(sums.saved_in_process, sums.saved_in_group);
	ck_assert_int_le(sums.saved_in_group, sums.saved);
	end();
}
END_TEST

START_TEST(kinds)
{
	ck_assert_int_eq(plan_kind_of("[heap]", 0), PLAN_HEAP);
	ck_assert_int_eq(plan_kind_of("[stack]", 0), PLAN_STACK);
	ck_assert_int_eq(plan_kind_of("[stack:12]", 0), PLAN_STACK);
	ck_assert_int_eq(plan_kind_of("[anon: glibc: malloc]", 0), PLAN_NAMED);
	ck_assert_int_eq(plan_kind_of("", 0), PLAN_ANONYMOUS);
	ck_assert_int_eq(plan_kind_of("/usr/lib/x.so", 5), PLAN_FILE);
}
END_TEST

START_TEST(seen)
{
	struct plan big = { .pages = 20000 };
	struct page_store s;
	size_t wrong = 0;
	ck_assert_int_eq(page_store_make(&s, &big, true), 0);
	for (uint64_t i = 0; i < 20000; i++) {
		page_seen(&s, XXH3_128bits(&i, sizeof(i)));
		if (i % 2)
			page_seen(&s, XXH3_128bits(&i, sizeof(i)));
	}
	for (uint64_t i = 0; i < 20000; i++) {
		bool repeats = page_repeats(&s, XXH3_128bits(&i, sizeof(i)));
		if (i % 2)
			ck_assert(repeats);
		else
			wrong += repeats;
	}
	ck_assert_uint_lt(wrong, 10000 / 3);
	page_store_free(&s);
}
END_TEST

/* Room for a plan: what more there is comes to an end, and nothing is written behind it. */
START_TEST(room)
{
	begin();
	size_t taken = 0;
	while (page_chunk_take(&store, 0))
		taken++;
	ck_assert_uint_ge(taken, 64);
	ck_assert_ptr_null(page_chunk_take(&store, 0));
	ck_assert_uint_eq(store.chunk_count, taken);
	page_store_free(&store);
}
END_TEST

START_TEST(progress)
{
	char line[160];
	progress_line(line, sizeof(line), "reading", 0, 100 << 20, 0);
	ck_assert_str_eq(line, "reading [....................]   0 %  0B of 100M");
	progress_line(line, sizeof(line), "reading", 50 << 20, 100 << 20, 1000000000);
	ck_assert_str_eq(
		line, "reading [##########..........]  50 %  50M of 100M  50M/s  0:01 left");
	progress_line(line, sizeof(line), "reading", 1 << 20, 200 << 20, 1000000000);
	ck_assert_ptr_nonnull(strstr(line, "1M/s  3:19 left"));
	/* More than was expected, and nothing at all. */
	progress_line(line, sizeof(line), "x", 300 << 20, 200 << 20, 1000000000);
	ck_assert_ptr_nonnull(strstr(line, "100 %"));
	progress_line(line, sizeof(line), "x", 0, 0, 1000000000);
	ck_assert_ptr_nonnull(strstr(line, "100 %"));
}
END_TEST

/* A child with 8 pages: two written, one only read, one never touched, and again; kept until killed. */
static pid_t start_child(char **area, size_t page)
{
	int ready[2];
	char byte;
	*area = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(*area, MAP_FAILED);
	madvise(*area, 8 * page, MADV_NOHUGEPAGE);
	ck_assert_int_eq(pipe(ready), 0);
	/* Page 0 is shared since the fork. */
	memset(*area, 'a', page);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		memset(*area + page, 'b', page);
		if (*(volatile char *)(*area + 2 * page))
			_exit(1);
		memset(*area + 4 * page, 'e', page);
		memset(*area + 5 * page, 0, page);
		ck_assert_int_eq(mprotect(*area + 5 * page, page, PROT_NONE), 0);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return child;
}

struct found {
	uint64_t numbers[16], entries[16];
	size_t count;
};

static int note(uint64_t number, uint64_t entry, void *data)
{
	struct found *found = data;
	ck_assert_uint_lt(found->count, 16);
	found->numbers[found->count] = number;
	found->entries[found->count++] = entry;
	return 0;
}

static void open_child(struct source *source, struct root *root, pid_t child, size_t page)
{
	struct plan_process process = { .pid = child };
	struct proc proc;
	struct proc_stat stat;
	ck_assert_int_eq(proc_open(&proc, root, child), 0);
	ck_assert_int_eq(proc_read_stat(&proc, &stat), 0);
	proc_close(&proc);
	process.start_ticks = stat.start_ticks + 1;
	ck_assert_int_eq(source_open(source, root, &process, page), -ESRCH);
	process.start_ticks = stat.start_ticks;
	ck_assert_int_eq(source_open(source, root, &process, page), 0);
}

/* Both ways to find pages: by PAGEMAP_SCAN where there is one, and by pagemap alone. */
START_TEST(reading)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *area, *buffer = aligned_alloc(page, SOURCE_BATCH * page);
	pid_t child = start_child(&area, page);
	struct source source;
	struct root root;
	struct found found = { .count = 0 }, after = { .count = 0 };
	bool there[16];
	uint64_t first = (uintptr_t)area / page;

	ck_assert_int_eq(root_open(&root, NULL), 0);
	open_child(&source, &root, child, page);
	if (_i)
		source.no_scan = true;
	ck_assert_int_eq(source_find(&source, first * page, (first + 8) * page, note, &found), 0);
	bool knows = source_knows_zero(&source);
	ck_assert_uint_eq(found.count, knows ? 4 : 5);
	uint64_t want[] = { 0, 1, 4, 5 }, want_all[] = { 0, 1, 2, 4, 5 };
	for (size_t i = 0; i < found.count; i++)
		ck_assert_uint_eq(found.numbers[i], first + (knows ? want : want_all)[i]);
	ck_assert(!(found.entries[0] & SOURCE_EXCLUSIVE));
	ck_assert(found.entries[1] & SOURCE_EXCLUSIVE);

	source_copy(&source, found.numbers, found.count, buffer, there);
	for (size_t i = 0; i < found.count; i++)
		ck_assert(there[i]);
	ck_assert_int_eq(buffer[0], 'a');
	ck_assert_int_eq(buffer[page + 1], 'b');
	ck_assert_int_eq(buffer[(found.count - 2) * page], 'e');
	ck_assert_int_eq(buffer[(found.count - 1) * page], 0);

	/* Nothing changed by it: the same pages are there, and what was shared still is. */
	ck_assert_int_eq(source_find(&source, first * page, (first + 8) * page, note, &after), 0);
	ck_assert_uint_eq(after.count, found.count);
	ck_assert_mem_eq(after.entries, found.entries, sizeof(*after.entries) * after.count);

	/* A page that is not there any more does not hide those behind it. */
	uint64_t gap[] = { first, first + 1, 1, first + 4 };
	source_copy(&source, gap, 4, buffer, there);
	ck_assert(there[0] && there[1] && !there[2] && there[3]);
	ck_assert(source_alive(&source));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ck_assert(!source_alive(&source));
	source_close(&source);
	root_close(&root);
	munmap(area, 8 * page);
	free(buffer);
}
END_TEST

/* A process whose main thread has exited is read through another. */
START_TEST(main_thread_exited)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *area = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(area, MAP_FAILED);
	memset(area, 'x', page);
	pid_t child = live_start(NULL, true);
	char *buffer = aligned_alloc(page, page);
	uint64_t number = (uintptr_t)area / page;
	struct source source;
	struct root root;
	struct proc proc;
	struct found found = { .count = 0 };
	bool there;

	ck_assert_int_eq(root_open(&root, NULL), 0);
	ck_assert_int_eq(proc_open(&proc, &root, child), 0);
	live_until(&proc, 'Z');
	proc_close(&proc);
	open_child(&source, &root, child, page);
	ck_assert_int_eq(source_find(&source, number * page, (number + 1) * page, note, &found), 0);
	ck_assert_uint_eq(found.count, 1);
	source_copy(&source, &number, 1, buffer, &there);
	ck_assert(there);
	ck_assert_int_eq(buffer[page - 1], 'x');
	live_end(child);
	source_close(&source);
	root_close(&root);
	free(buffer);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("estimate");
	TCase *tcase = tcase_create("estimate");

	tcase_add_test(tcase, within_and_across);
	tcase_add_test(tcase, max_page_sharing);
	tcase_add_test(tcase, shared_since_fork);
	tcase_add_test(tcase, merged_already);
	tcase_add_test(tcase, zeros);
	tcase_add_test(tcase, left_out);
	tcase_add_test(tcase, together);
	tcase_add_test(tcase, together_many);
	tcase_add_test(tcase, top);
	tcase_add_loop_test(tcase, random_memory, 0, 20);
	tcase_add_test(tcase, kinds);
	tcase_add_test(tcase, seen);
	tcase_add_test(tcase, room);
	tcase_add_test(tcase, progress);
	tcase_add_loop_test(tcase, reading, 0, 2);
	tcase_add_test(tcase, main_thread_exited);
	suite_add_tcase(suite, tcase);
	return tap_run(suite);
}
