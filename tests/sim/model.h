/* A model of ksmd and of the memory it scans: what the kernel's counters and clock would show. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_SIM_MODEL_H
#define TESTS_SIM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Memory is modelled in chunks of chunk_pages neighbouring pages that live the same life; one page
 * a chunk is exact, more make a terabyte affordable. A chunk's fate is decided when the cursor
 * enters it, its pages take their time and their share of the batch one by one.
 * Nothing is random inside: callers bring their own random numbers.
 */

/* What one page costs ksmd, in ns of CPU time. */
struct model_cost {
	uint32_t batch;	    /* start of a batch: waking up to cold caches */
	uint32_t pass;	    /* start of a pass */
	uint32_t checksum;  /* first visit, or content changed since the last one */
	uint32_t known;	    /* merged before */
	uint32_t merge;	    /* being merged now, checksum included */
	uint32_t unmatched; /* looked up in vain, checksum included; to this and to merge add ... */
	uint32_t stable;    /* ... this for each doubling of the stable tree */
	uint32_t unstable;  /* ... this for each of the unstable tree, when that is searched */
	uint32_t skip;	    /* passed over by smart_scan */
	uint32_t hole;	    /* nothing there to scan */
	uint32_t drop;	    /* forgetting a page of a process that is gone */
};

struct model_params {
	uint32_t chunk_pages;
	uint32_t jiffy_us; /* 4000 with HZ=250: sleeps end on ticks */
	uint32_t max_page_sharing;
	struct model_cost cost;
};

enum model_class { MODEL_EQUAL, MODEL_UNIQUE, MODEL_ZERO, MODEL_VOLATILE };

enum model_state {
	MODEL_NEW,	/* not seen yet: no rmap_item */
	MODEL_SEEN,	/* checksum stored */
	MODEL_UNSHARED, /* in the unstable tree, or left over from the last pass's */
	MODEL_MERGED,
	MODEL_BROKEN,	 /* merged, written since: still counted until the scanner comes by */
	MODEL_ZEROED,	 /* replaced by the zero page, rmap_item not freed yet */
	MODEL_ZERO_HOLE, /* the same, freed */
	MODEL_INHERITED	 /* a merged page got by fork, not seen yet */
};

struct model_chunk {
	uint32_t key;	    /* content; 0: like no other */
	uint32_t stamp;	    /* counts writes */
	uint32_t checksum;  /* the stamp at the last look */
	uint32_t period_ms; /* volatile: rewritten this often */
	uint32_t cow;	    /* shared by fork with chunks of the same number; 0: own */
	uint8_t class, state, age, skips;
};

/* Volatile pages of one period that lie in this pass's unstable tree. */
struct model_rot {
	uint32_t period_ms, round; /* of rewriting, when they were put there */
	int64_t pages;
};
enum { MODEL_ROTS = 16 };

/* One content that several chunks may have. Units: chunks, or pages where all are alike. */
struct model_key {
	int64_t present;	       /* in living memory */
	int64_t live;		       /* merged and not written since */
	int64_t listed;		       /* what the counters believe is merged */
	uint32_t pass, process, chunk; /* the entry of the unstable tree, and of which pass */
	bool alike;		       /* all pages of the chunk are the same */
};

struct model_process {
	struct model_chunk *chunks;
	uint32_t count, room;
	uint32_t prev, next; /* scan order; 0 is the head */
	bool alive, listed;
};

struct model_counters {
	int64_t pages_shared, pages_sharing, pages_unshared, pages_volatile, zero_pages;
	int64_t pages_skipped, pages_scanned, full_scans, profit_bytes, cpu_ns;
	/* What no kernel shows: the truth. */
	int64_t saved_pages, possible_pages, resident_pages, processes;
};

struct model {
	struct model_params params;
	int64_t now_ns;

	/* knobs */
	int64_t run, pages_to_scan, sleep_ms;
	bool smart_scan, use_zero_pages;
	uint32_t share_ppm; /* how much of a core ksmd gets when it wants one */

	/* ksmd */
	bool in_batch, parked;
	int64_t batch_left, wake_ns, owed_ns, batch_ns, longest_batch_ns;
	int64_t batch_walk_ns;
	uint32_t cursor, chunk, offset; /* process 0: at the pass boundary */
	bool entered;			/* the chunk's fate is decided */
	uint32_t visit_ns;
	uint32_t seqnr; /* full scans */
	uint32_t pass;	/* the same, never reset: which unstable tree is this */

	/*
	 * Pages of the unstable tree that were rewritten in it lead searches astray. Who comes to
	 * harm is decided by a hash of content and pass.
	 */
	struct model_rot rot[MODEL_ROTS];
	uint32_t rots;
	int64_t tree_pages, rotten_pages;

	/* counters */
	int64_t shared, sharing, unshared, zero, skipped, scanned, cpu_ns, rmap_items;
	int64_t saved, possible, resident, alive;

	struct model_process *process;
	struct model_key *key;
	uint32_t processes, process_room, keys, key_room, zero_key, cows;
};

extern const struct model_params model_defaults;

struct model *model_new(const struct model_params *params);
void model_free(struct model *model);

/* Opt a new process in; its number stays valid. It is put just behind the cursor. */
uint32_t model_process(struct model *model);
void model_exit(struct model *model, uint32_t process);
/* A child that shares all memory until written. */
uint32_t model_fork(struct model *model, uint32_t parent);

/* Reserve contents for pages that several processes may map. `alike`: all pages the same. */
uint32_t model_group(struct model *model, int64_t pages, bool alike);
/* Give a process pages (whole chunks). `group` and `offset` (pages) are for MODEL_EQUAL. */
void model_map(struct model *model, uint32_t process, enum model_class class, uint32_t group,
	int64_t offset, int64_t pages);
/* As model_map for pages that are rewritten every period. */
void model_map_volatile(struct model *model, uint32_t process, int64_t pages, uint32_t period_ms);
/* Write to a chunk: it becomes unique, or takes the content of `key` when that is not 0. */
void model_write(struct model *model, uint32_t process, uint32_t chunk, uint32_t key);

/* The knobs. A write of run waits for the end of the batch, so that time passes. */
void model_set_run(struct model *model, int64_t run);
void model_set_pages(struct model *model, int64_t pages);
void model_set_sleep(struct model *model, int64_t sleep_ms);

/* Let time pass until `until_ns`. */
void model_advance(struct model *model, int64_t until_ns);
void model_counters(const struct model *model, struct model_counters *counters);

/* Between memory (model_memory.c), visits (model_visit.c) and scanner (model.c). */
void model_memory_init(struct model *model);
void model_unlink(struct model *model, uint32_t process);
/* A chunk of this content is merged (1) or no longer (-1): truly, and for the counters. */
void model_live(struct model *model, uint32_t key, int sign);
void model_listed(struct model *model, uint32_t key, int sign);
/* One visit to a chunk by the scanner that did not skip it. Returns ns a page. */
uint32_t model_visit(struct model *model, uint32_t process, uint32_t chunk);
/* Drop what the trees know of a chunk. */
void model_untree(struct model *model, struct model_chunk *chunk);
/* Free its rmap_item, too. */
void model_forget(struct model *model, struct model_chunk *chunk);
/* A new pass begins with an empty unstable tree. */
void model_clear_unstable(struct model *model);

#endif
