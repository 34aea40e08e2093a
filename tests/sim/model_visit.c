/* What a visit of the scanner does to a chunk: checksums, the two trees, merging. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/model.h"

/* Which rewriting of pages with this period is in them now; never 0. */
static uint32_t visit_round(const struct model *model, uint32_t period_ms)
{
	return (uint32_t)(1 + model->now_ns / 1000000 / period_ms);
}

static uint32_t visit_stamp(const struct model *model, const struct model_chunk *chunk)
{
	return chunk->class == MODEL_VOLATILE ? visit_round(model, chunk->period_ms) : chunk->stamp;
}

static uint32_t visit_levels(int64_t pages)
{
	uint32_t levels = 0;

	for (; pages > 1; pages >>= 1)
		levels++;
	return levels;
}

static uint32_t visit_search_stable(const struct model *model)
{
	return visit_levels(model->shared) * model->params.cost.stable;
}

static uint32_t visit_search_both(const struct model *model)
{
	return visit_search_stable(model) +
	       visit_levels(model->tree_pages) * model->params.cost.unstable;
}

void model_clear_unstable(struct model *model)
{
	model->rots = 0;
	model->tree_pages = 0;
	model->rotten_pages = 0;
}

/* Put a chunk into the unstable tree; remember when its content will not fit its place any more. */
static void visit_insert(struct model *model, struct model_chunk *chunk)
{
	int64_t pages = model->params.chunk_pages;
	struct model_rot *rot = model->rot;

	chunk->state = MODEL_UNSHARED;
	model->unshared += pages;
	model->tree_pages += pages;
	if (chunk->class != MODEL_VOLATILE)
		return;
	while (rot < model->rot + model->rots &&
		(rot->period_ms != chunk->period_ms || rot->round != chunk->checksum))
		rot++;
	if (rot == model->rot + MODEL_ROTS)
		return;
	if (rot == model->rot + model->rots) {
		model->rots++;
		*rot = (struct model_rot){ chunk->period_ms, chunk->checksum, 0 };
	}
	rot->pages += pages;
}

/* Whether a search in the unstable tree misses what is there. */
static bool visit_misled(struct model *model, uint32_t key)
{
	uint64_t hash = (key * 0x9e3779b97f4a7c15u) ^ (model->pass * 0xc2b2ae3d27d4eb4fu);
	int64_t percent;

	for (uint32_t i = 0; i < model->rots; i++) {
		struct model_rot *rot = &model->rot[i];

		if (visit_round(model, rot->period_ms) == rot->round)
			continue;
		model->rotten_pages += rot->pages;
		*rot = model->rot[--model->rots];
		i--;
	}
	if (!model->rotten_pages)
		return false;
	/* Seen on 6.18: a fifth of the tree rotten, two fifths of the searches in vain. */
	percent = model->rotten_pages * 150 / model->tree_pages;
	if (percent > 90)
		percent = 90;
	hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u;
	return (int64_t)((hash >> 33) % 100) < percent;
}

static void visit_merge(struct model *model, struct model_chunk *chunk)
{
	if (chunk->state == MODEL_UNSHARED)
		model_untree(model, chunk);
	chunk->state = MODEL_MERGED;
	chunk->cow = 0;
	model_listed(model, chunk->key, 1);
	model_live(model, chunk->key, 1);
}

/* The entry of this pass's unstable tree with the same content, if it can still be merged with. */
static struct model_chunk *visit_twin(struct model *model, const struct model_key *key)
{
	struct model_process *process = &model->process[key->process];
	struct model_chunk *twin;

	if (key->pass != model->pass || !process->alive)
		return NULL;
	twin = &process->chunks[key->chunk];
	if (twin->state != MODEL_UNSHARED || &model->key[twin->key] != key)
		return NULL;
	return twin;
}

/* The page is stable in time: find it a partner in the stable tree, then in the unstable one. */
static uint32_t visit_search_merge(struct model *model, uint32_t process, uint32_t number)
{
	struct model_chunk *chunk = &model->process[process].chunks[number], *twin;
	struct model_key *key = &model->key[chunk->key];
	const struct model_cost *cost = &model->params.cost;
	bool open = key->listed % model->params.max_page_sharing != 0;

	if (chunk->class == MODEL_ZERO && model->use_zero_pages) {
		chunk->state = MODEL_ZEROED;
		model->zero += model->params.chunk_pages;
		model->saved += model->params.chunk_pages;
		model->resident -= model->params.chunk_pages;
		return cost->merge;
	}
	if (chunk->key && (open || (key->alike && model->params.chunk_pages > 1))) {
		visit_merge(model, chunk);
		return cost->merge + visit_search_stable(model);
	}
	twin = chunk->key ? visit_twin(model, key) : NULL;
	if (twin && twin->cow && twin->cow == chunk->cow)
		return cost->unmatched + visit_search_both(model);
	if (twin && !visit_misled(model, chunk->key)) {
		visit_merge(model, twin);
		visit_merge(model, chunk);
		return cost->merge + visit_search_both(model);
	}
	visit_insert(model, chunk);
	key->pass = model->pass;
	key->process = process;
	key->chunk = number;
	return cost->unmatched + visit_search_both(model);
}

uint32_t model_visit(struct model *model, uint32_t process, uint32_t number)
{
	struct model_chunk *chunk = &model->process[process].chunks[number];
	uint32_t stamp = visit_stamp(model, chunk);

	if (chunk->state == MODEL_MERGED)
		return model->params.cost.known;
	if (chunk->state == MODEL_NEW || chunk->state == MODEL_INHERITED)
		model->rmap_items += model->params.chunk_pages;
	if (chunk->state == MODEL_INHERITED) {
		chunk->state = MODEL_MERGED;
		model_listed(model, chunk->key, 1);
		return model->params.cost.merge;
	}
	model_untree(model, chunk);
	chunk->state = MODEL_SEEN;
	if (chunk->checksum != stamp) {
		chunk->checksum = stamp;
		return model->params.cost.checksum;
	}
	return visit_search_merge(model, process, number);
}
