/* The scanner side of the model: cursor, passes, batches, sleeps, knobs and counters. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

#include "tests/sim/model.h"

/* Costs as seen on 6.18, a 2-core x86 machine; calibrate.c compares. */
const struct model_params model_defaults = {
	.chunk_pages = 1,
	.jiffy_us = 4000,
	.max_page_sharing = 256,
	.cost = {
		.batch = 50000,
		.pass = 20000,
		.checksum = 930,
		.known = 370,
		.merge = 3700,
		.unmatched = 500,
		.stable = 60,
		.unstable = 270,
		.skip = 200,
		.hole = 100,
		.drop = 150,
	},
};

struct model *model_new(const struct model_params *params)
{
	struct model *model = calloc(1, sizeof *model);

	if (!model)
		abort();
	model->params = *params;
	model->pages_to_scan = 100;
	model->sleep_ms = 20;
	model->smart_scan = true;
	model->share_ppm = 1000000;
	model->parked = true;
	model->pass = 1;
	model_memory_init(model);
	return model;
}

void model_free(struct model *model)
{
	if (!model)
		return;
	for (uint32_t i = 0; i < model->processes; i++)
		free(model->process[i].chunks);
	free(model->process);
	free(model->key);
	free(model);
}

static bool scan_should_run(const struct model *model)
{
	return model->run == 1 && model->process[0].next != 0;
}

/* Work to be paid for: the clock follows in scan_pay(). */
static void scan_owe(struct model *model, int64_t ns)
{
	model->owed_ns += ns;
}

/* The same for what pages_to_scan does not count and so cannot bound. */
static void scan_walk(struct model *model, int64_t ns)
{
	scan_owe(model, ns);
	model->batch_walk_ns += ns;
}

/* Spend CPU time on what is owed until `until_ns`. True when all is paid. */
static bool scan_pay(struct model *model, int64_t until_ns)
{
	int64_t wall = until_ns - model->now_ns;
	int64_t can = wall * model->share_ppm / 1000000;

	if (can >= model->owed_ns) {
		model->now_ns += model->owed_ns * 1000000 / model->share_ppm;
		model->cpu_ns += model->owed_ns;
		model->batch_ns += model->owed_ns;
		model->owed_ns = 0;
		return true;
	}
	model->now_ns = until_ns;
	model->cpu_ns += can;
	model->batch_ns += can;
	model->owed_ns -= can;
	return false;
}

static void scan_goto(struct model *model, uint32_t process)
{
	model->cursor = process;
	model->chunk = 0;
	model->offset = 0;
	model->entered = false;
}

/* A pass has ended: the batch does too, whatever is left of it. */
static void scan_end_pass(struct model *model)
{
	model->seqnr++;
	model->pass++;
	model->batch_left = 0;
}

static void scan_next_process(struct model *model)
{
	scan_goto(model, model->process[model->cursor].next);
	if (model->cursor == 0)
		scan_end_pass(model);
}

static void scan_bury(struct model *model)
{
	struct model_process *process = &model->process[model->cursor];
	uint32_t next = process->next;

	for (uint32_t i = 0; i < process->count; i++)
		model_forget(model, &process->chunks[i]);
	scan_walk(model,
		(int64_t)process->count * model->params.chunk_pages * model->params.cost.drop);
	model_unlink(model, model->cursor);
	free(process->chunks);
	process->chunks = NULL;
	process->count = process->room = 0;
	scan_goto(model, next);
	if (next == 0)
		scan_end_pass(model);
}

static uint32_t scan_skip_age(uint32_t age)
{
	if (age <= 3)
		return 1;
	if (age <= 5)
		return 2;
	return age <= 8 ? 4 : 8;
}

/* smart_scan: what was looked at in vain is looked at ever less often. */
static bool scan_skips(struct model *model, struct model_chunk *chunk)
{
	uint32_t age = chunk->age;

	if (!model->smart_scan || chunk->state == MODEL_MERGED || chunk->state == MODEL_INHERITED)
		return false;
	if (chunk->age != UINT8_MAX)
		chunk->age++;
	if (age < 3)
		return false;
	if (!chunk->skips) {
		chunk->skips = (uint8_t)scan_skip_age(age);
		return false;
	}
	chunk->skips--;
	return true;
}

/* At the start of a chunk: pass over it (true), or decide what a visit costs. */
static bool scan_enter(struct model *model, struct model_chunk *chunk)
{
	int64_t pages = model->params.chunk_pages;

	if (chunk->state == MODEL_ZEROED || chunk->state == MODEL_ZERO_HOLE) {
		model_forget(model, chunk);
		scan_walk(model, pages * model->params.cost.hole);
		return true;
	}
	if (chunk->state == MODEL_NEW) {
		/* A new rmap_item starts with age 0. */
		chunk->age = 0;
		chunk->skips = 0;
	}
	if (scan_skips(model, chunk)) {
		model->skipped += pages;
		model_untree(model, chunk);
		scan_walk(model, pages * model->params.cost.skip);
		return true;
	}
	model->visit_ns = model_visit(model, model->cursor, model->chunk);
	model->entered = true;
	return false;
}

static void scan_next_chunk(struct model *model)
{
	model->chunk++;
	model->offset = 0;
	model->entered = false;
}

static int64_t scan_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Go on with the batch by as much as is decided at once. */
static void scan_step(struct model *model, int64_t until_ns)
{
	struct model_process *process;
	int64_t pages;

	if (model->cursor == 0) {
		scan_owe(model, model->params.cost.pass);
		model_clear_unstable(model);
		scan_goto(model, model->process[0].next);
		if (model->cursor == 0) {
			model->batch_left = 0;
			return;
		}
	}
	process = &model->process[model->cursor];
	if (!process->alive) {
		scan_bury(model);
		return;
	}
	if (model->chunk >= process->count) {
		scan_next_process(model);
		return;
	}
	if (!model->entered && scan_enter(model, &process->chunks[model->chunk])) {
		scan_next_chunk(model);
		return;
	}
	pages = scan_min(model->batch_left, model->params.chunk_pages - model->offset);
	pages = scan_min(pages, 1 + (until_ns - model->now_ns) / (model->visit_ns + 1));
	scan_owe(model, pages * model->visit_ns);
	model->scanned += pages;
	model->batch_left -= pages;
	model->offset += (uint32_t)pages;
	if (model->offset >= model->params.chunk_pages)
		scan_next_chunk(model);
}

/* Sleeps are counted in ticks, and the one under way does not count. */
static int64_t scan_sleep_end(const struct model *model)
{
	int64_t tick = (int64_t)model->params.jiffy_us * 1000;
	int64_t ticks = (model->sleep_ms * 1000000 + tick - 1) / tick;

	if (!ticks)
		return model->now_ns;
	return (model->now_ns / tick + ticks + 1) * tick;
}

static void scan_start_batch(struct model *model)
{
	model->in_batch = true;
	model->parked = false;
	model->batch_left = model->pages_to_scan;
	model->batch_ns = 0;
	model->batch_walk_ns = 0;
	scan_owe(model, model->params.cost.batch);
}

static void scan_end_batch(struct model *model)
{
	model->in_batch = false;
	if (model->batch_ns - model->batch_walk_ns > model->longest_batch_ns)
		model->longest_batch_ns = model->batch_ns - model->batch_walk_ns;
	if (scan_should_run(model))
		model->wake_ns = scan_sleep_end(model);
	else
		model->parked = true;
}

void model_advance(struct model *model, int64_t until_ns)
{
	while (model->now_ns < until_ns) {
		if (model->owed_ns && !scan_pay(model, until_ns))
			return;
		if (model->in_batch && model->batch_left > 0) {
			scan_step(model, until_ns);
			continue;
		}
		if (model->in_batch) {
			scan_end_batch(model);
			continue;
		}
		if (model->parked && scan_should_run(model)) {
			scan_start_batch(model);
			continue;
		}
		if (model->parked || model->wake_ns > until_ns) {
			model->now_ns = until_ns;
			return;
		}
		if (model->wake_ns > model->now_ns)
			model->now_ns = model->wake_ns;
		if (scan_should_run(model))
			scan_start_batch(model);
		else
			model->parked = true;
	}
}

static void scan_finish_batch(struct model *model)
{
	while (model->in_batch)
		model_advance(model, model->now_ns + 1000000);
}

static void scan_unmerge(struct model *model)
{
	for (uint32_t i = 1; i < model->processes; i++) {
		struct model_process *process = &model->process[i];

		if (!process->listed)
			continue;
		if (!process->alive) {
			scan_goto(model, i);
			scan_bury(model);
			continue;
		}
		for (uint32_t c = 0; c < process->count; c++) {
			model_write(model, i, c, process->chunks[c].key);
			model_forget(model, &process->chunks[c]);
		}
	}
	scan_goto(model, 0);
	model->seqnr = 0;
	model->pass++;
}

void model_set_run(struct model *model, int64_t run)
{
	scan_finish_batch(model);
	if (run == model->run)
		return;
	model->run = run;
	if (run == 2)
		scan_unmerge(model);
}

void model_set_pages(struct model *model, int64_t pages)
{
	model->pages_to_scan = pages;
}

void model_set_sleep(struct model *model, int64_t sleep_ms)
{
	if (sleep_ms == model->sleep_ms)
		return;
	model->sleep_ms = sleep_ms;
	/* A sleeping scanner wakes at once. */
	if (!model->in_batch && !model->parked)
		model->wake_ns = model->now_ns;
}

void model_counters(const struct model *model, struct model_counters *counters)
{
	int64_t in_trees = model->shared + model->sharing + model->unshared;

	*counters = (struct model_counters){
		.pages_shared = model->shared,
		.pages_sharing = model->sharing,
		.pages_unshared = model->unshared,
		.pages_volatile = model->rmap_items > in_trees ? model->rmap_items - in_trees : 0,
		.zero_pages = model->zero,
		.pages_skipped = model->skipped,
		.pages_scanned = model->scanned,
		.full_scans = model->seqnr,
		.profit_bytes = (model->sharing + model->zero) * 4096 - model->rmap_items * 64,
		.cpu_ns = model->cpu_ns,
		.saved_pages = model->saved,
		.possible_pages = model->possible,
		.resident_pages = model->resident,
		.processes = model->alive,
	};
}
