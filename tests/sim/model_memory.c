/* The memory side of the model: processes, chunks, contents, and what writers do to them. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/model.h"

static void *memory_grow(void *old, uint32_t *room, uint32_t need, size_t size)
{
	void *grown = old;

	if (need > *room) {
		*room = need + need / 2 + 8;
		grown = realloc(old, *room * size);
		if (!grown)
			abort();
	}
	return grown;
}

void model_memory_init(struct model *model)
{
	model->process = memory_grow(NULL, &model->process_room, 1, sizeof *model->process);
	model->key = memory_grow(NULL, &model->key_room, 1, sizeof *model->key);
	memset(&model->process[0], 0, sizeof model->process[0]);
	memset(&model->key[0], 0, sizeof model->key[0]);
	model->processes = 1;
	model->keys = 1;
	model->zero_key = model_group(model, model->params.chunk_pages, true);
}

/* Pages that a content with `units` mappings needs: a node holds no more than max_page_sharing. */
static int64_t memory_nodes(const struct model *model, int64_t units)
{
	return (units + model->params.max_page_sharing - 1) / model->params.max_page_sharing;
}

static int64_t memory_unit(const struct model *model, const struct model_key *key)
{
	return key->alike ? 1 : model->params.chunk_pages;
}

static int64_t memory_units(const struct model *model, const struct model_key *key)
{
	return key->alike ? model->params.chunk_pages : 1;
}

static int64_t memory_saving(const struct model *model, const struct model_key *key, int64_t units)
{
	return (units - memory_nodes(model, units)) * memory_unit(model, key);
}

static void memory_present(struct model *model, uint32_t number, int sign)
{
	struct model_key *key = &model->key[number];

	if (!number)
		return;
	model->possible -= memory_saving(model, key, key->present);
	key->present += sign * memory_units(model, key);
	model->possible += memory_saving(model, key, key->present);
}

void model_live(struct model *model, uint32_t number, int sign)
{
	struct model_key *key = &model->key[number];

	model->saved -= memory_saving(model, key, key->live);
	key->live += sign * memory_units(model, key);
	model->saved += memory_saving(model, key, key->live);
}

void model_listed(struct model *model, uint32_t number, int sign)
{
	struct model_key *key = &model->key[number];
	int64_t unit = memory_unit(model, key);

	model->shared -= memory_nodes(model, key->listed) * unit;
	model->sharing -= memory_saving(model, key, key->listed);
	key->listed += sign * memory_units(model, key);
	model->shared += memory_nodes(model, key->listed) * unit;
	model->sharing += memory_saving(model, key, key->listed);
}

uint32_t model_group(struct model *model, int64_t pages, bool alike)
{
	uint32_t count =
		(uint32_t)((pages + model->params.chunk_pages - 1) / model->params.chunk_pages);
	uint32_t first = model->keys;

	if (alike)
		count = 1;
	model->key =
		memory_grow(model->key, &model->key_room, model->keys + count, sizeof *model->key);
	memset(&model->key[first], 0, count * sizeof *model->key);
	for (uint32_t i = 0; i < count; i++)
		model->key[first + i].alike = alike;
	model->keys += count;
	return first;
}

/* Put a process in the scan order before `next`. */
static void memory_link(struct model *model, uint32_t number, uint32_t next)
{
	struct model_process *process = &model->process[number];

	process->next = next;
	process->prev = model->process[next].prev;
	model->process[process->prev].next = number;
	model->process[next].prev = number;
	process->listed = true;
}

void model_unlink(struct model *model, uint32_t number)
{
	struct model_process *process = &model->process[number];

	model->process[process->prev].next = process->next;
	model->process[process->next].prev = process->prev;
	process->listed = false;
}

uint32_t model_process(struct model *model)
{
	uint32_t number = model->processes++;

	model->process = memory_grow(
		model->process, &model->process_room, model->processes, sizeof *model->process);
	memset(&model->process[number], 0, sizeof *model->process);
	model->process[number].alive = true;
	model->alive++;
	memory_link(model, number, model->cursor);
	return number;
}

static struct model_chunk *memory_chunk(struct model *model, uint32_t number)
{
	struct model_process *process = &model->process[number];
	struct model_chunk *chunk;

	process->chunks = memory_grow(
		process->chunks, &process->room, process->count + 1, sizeof *process->chunks);
	chunk = &process->chunks[process->count++];
	memset(chunk, 0, sizeof *chunk);
	model->resident += model->params.chunk_pages;
	return chunk;
}

void model_map(struct model *model, uint32_t process, enum model_class class, uint32_t group,
	int64_t offset, int64_t pages)
{
	int64_t size = model->params.chunk_pages;

	for (int64_t at = 0; at < pages; at += size) {
		struct model_chunk *chunk = memory_chunk(model, process);
		bool alike = group && model->key[group].alike;

		chunk->class = (uint8_t) class;
		chunk->stamp = 1;
		if (class == MODEL_ZERO)
			chunk->key = model->zero_key;
		else if (class == MODEL_EQUAL)
			chunk->key = group + (alike ? 0 : (uint32_t)((offset + at) / size));
		memory_present(model, chunk->key, 1);
	}
}

void model_map_volatile(struct model *model, uint32_t process, int64_t pages, uint32_t period_ms)
{
	for (int64_t at = 0; at < pages; at += model->params.chunk_pages) {
		struct model_chunk *chunk = memory_chunk(model, process);

		chunk->class = MODEL_VOLATILE;
		chunk->period_ms = period_ms;
	}
}

void model_untree(struct model *model, struct model_chunk *chunk)
{
	switch ((enum model_state)chunk->state) {
	case MODEL_MERGED:
		model_live(model, chunk->key, -1);
		model_listed(model, chunk->key, -1);
		break;
	case MODEL_BROKEN:
		model_listed(model, chunk->checksum, -1);
		break;
	case MODEL_UNSHARED:
		model->unshared -= model->params.chunk_pages;
		break;
	default:
		return;
	}
	if (chunk->state == MODEL_BROKEN)
		chunk->checksum = 0;
	chunk->state = MODEL_SEEN;
}

void model_forget(struct model *model, struct model_chunk *chunk)
{
	model_untree(model, chunk);
	if (chunk->state == MODEL_SEEN || chunk->state == MODEL_ZEROED)
		model->rmap_items -= model->params.chunk_pages;
	chunk->state = chunk->state == MODEL_ZEROED || chunk->state == MODEL_ZERO_HOLE
			       ? MODEL_ZERO_HOLE
			       : MODEL_NEW;
	chunk->age = 0;
	chunk->skips = 0;
	chunk->checksum = 0;
}

/* The physical side of a write or an exit: at once, whatever the counters still believe. */
static void memory_break(struct model *model, struct model_chunk *chunk)
{
	switch ((enum model_state)chunk->state) {
	case MODEL_MERGED:
		model_live(model, chunk->key, -1);
		chunk->state = MODEL_BROKEN;
		chunk->checksum = chunk->key; /* where the counters still list it */
		break;
	case MODEL_INHERITED:
		model_live(model, chunk->key, -1);
		chunk->state = MODEL_NEW;
		break;
	case MODEL_ZEROED:
	case MODEL_ZERO_HOLE:
		model->zero -= model->params.chunk_pages;
		model->saved -= model->params.chunk_pages;
		model->resident += model->params.chunk_pages;
		/* The page that was the zero page's stand-in is a new one to the scanner. */
		if (chunk->state == MODEL_ZEROED)
			chunk->state = MODEL_SEEN;
		else
			chunk->state = MODEL_NEW;
		break;
	default:
		break;
	}
}

void model_write(struct model *model, uint32_t process, uint32_t number, uint32_t key)
{
	struct model_chunk *chunk = &model->process[process].chunks[number];

	memory_break(model, chunk);
	memory_present(model, chunk->key, -1);
	chunk->key = key;
	memory_present(model, key, 1);
	if (chunk->class == MODEL_ZERO && key != model->zero_key)
		chunk->class = MODEL_EQUAL;
	chunk->stamp++;
	chunk->cow = 0;
}

void model_exit(struct model *model, uint32_t number)
{
	struct model_process *process = &model->process[number];
	bool seen = false;

	if (!process->alive)
		return;
	for (uint32_t i = 0; i < process->count; i++) {
		struct model_chunk *chunk = &process->chunks[i];

		memory_break(model, chunk);
		memory_present(model, chunk->key, -1);
		model->resident -= model->params.chunk_pages;
		if (chunk->state != MODEL_NEW)
			seen = true;
	}
	process->alive = false;
	model->alive--;
	/* One that was never seen leaves at once; else the scanner meets it next and cleans up. */
	if (model->cursor == number)
		return;
	model_unlink(model, number);
	if (seen) {
		memory_link(model, number, model->process[model->cursor].next);
	} else {
		free(process->chunks);
		process->chunks = NULL;
		process->count = process->room = 0;
	}
}

uint32_t model_fork(struct model *model, uint32_t parent)
{
	uint32_t child = model_process(model);
	uint32_t count = model->process[parent].count;

	for (uint32_t i = 0; i < count; i++) {
		struct model_chunk *chunk = memory_chunk(model, child);
		struct model_chunk *from = &model->process[parent].chunks[i];

		chunk->class = from->class;
		chunk->key = from->key;
		chunk->stamp = 1;
		chunk->period_ms = from->period_ms;
		memory_present(model, chunk->key, 1);
		if (from->state == MODEL_MERGED || from->state == MODEL_INHERITED) {
			chunk->state = MODEL_INHERITED;
			model_live(model, chunk->key, 1);
		} else if (from->state == MODEL_ZEROED || from->state == MODEL_ZERO_HOLE) {
			chunk->state = MODEL_ZERO_HOLE;
			model->zero += model->params.chunk_pages;
			model->saved += model->params.chunk_pages;
			model->resident -= model->params.chunk_pages;
		} else {
			if (!from->cow)
				from->cow = ++model->cows;
			chunk->cow = from->cow;
		}
	}
	return child;
}
