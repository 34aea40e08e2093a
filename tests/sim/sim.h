/* The policy and the model of ksmd in one loop, with what a daemon sees in between. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ksmctl/policy.h"
#include "tests/sim/model.h"

enum { SIM_SECONDS = 6 * 3600, SIM_FAILURE = 200, SIM_FAILURES = 8 };

/* What was true at each whole second. */
struct sim_second {
	int64_t cpu_ns, saved_pages, possible_pages, news;
	int64_t budget_ns; /* what the decisions so far allowed */
	uint32_t looks, writes;
	uint32_t turns, rises; /* changes of phase; those from rest to work */
	uint8_t phase, reason;
	bool foreign; /* somebody else wrote a knob in it */
};

/* What a daemon knows of the opted-in processes, and since when. */
struct sim_view {
	int64_t at_ms, processes, pages, news;
};

struct sim;
struct sim_scenario {
	const char *name;
	const char *story; /* one line for people */
	uint32_t seeds;	   /* how many random starts the suite makes */
	/* Random start: memory, policy_config, model_params, who sees what. */
	void (*setup)(struct sim *sim);
	/* Something happens. Returns when it shall be called next, in ms; INT64_MAX for never. */
	int64_t (*event)(struct sim *sim);
	/* The properties special to it; sim_fail() tells. */
	void (*check)(struct sim *sim);
};

struct sim {
	const struct sim_scenario *scenario;
	uint64_t seed, random;
	bool verbose;
	/* Broken properties, each once; told apart by their format. */
	struct sim_failure {
		const char *format;
		char text[SIM_FAILURE];
	} failure[SIM_FAILURES];
	uint32_t failures;

	struct model_params params;
	struct model *model;
	struct policy_config config;
	struct policy_state state,
		shadow; /* the shadow proves that equal inputs give equal outputs */
	struct policy_decision decision;

	/* What the daemon can see, and how late. */
	bool no_psi, no_scanned, no_cpu, no_connector, no_smart_scan, no_profit;
	bool stale, look_now, found_running;
	int64_t rest_percent; /* of the steady budget that resting may cost */
	int64_t news_delay_ms, walk_ms;
	int64_t memory_psi_centi, cpu_psi_centi, mem_total_kib, mem_other_kib;
	int64_t advisor;

	/* The story. */
	int64_t end_ms, event_ms, look_ms, last_look_ms, budget_from_ms;
	int64_t allowed_ppm; /* by the last decision that was written */
	int64_t news, processes;
	struct sim_view views[64];
	uint32_t view_count;
	struct sim_view seen;
	int64_t seen_ms;
	int64_t quiet_ms;   /* the last event that a policy may answer to */
	int64_t reached_ms; /* 95 % of what can be saved is saved, so long after it; -1: not yet */
	int64_t reached_first_ms; /* free for the scenario */
	int64_t step;		  /* free for the scenario */
	uint32_t list[16384], listed, group;
	int64_t pages; /* mapped so far */

	/* The record. */
	struct sim_second second[SIM_SECONDS];
	int64_t seconds;
	int64_t foreign_ms;
	uint32_t writes, looks, writes_after_foreign, turns, rises;
};

/* Random numbers: the seed decides all. */
uint64_t sim_random(struct sim *sim);
int64_t sim_between(struct sim *sim, int64_t low, int64_t high);
bool sim_chance(struct sim *sim, int percent);

/* Make the model, with random costs, ticks and knobs; a setup calls this before it adds memory. */
void sim_begin(struct sim *sim);

/* What scenarios do to the world; each is news to the daemon where it would be in life. */
uint32_t sim_start(struct sim *sim);
void sim_exit(struct sim *sim, uint32_t process);
uint32_t sim_fork(struct sim *sim, uint32_t parent);
void sim_map(struct sim *sim, uint32_t process, enum model_class class, uint32_t group,
	int64_t offset, int64_t pages);
void sim_map_volatile(struct sim *sim, uint32_t process, int64_t pages, uint32_t period_ms);
void sim_foreign(struct sim *sim, int64_t run, int64_t pages, int64_t sleep_ms);
/* A job of so many pages: parts in permille equal to others, zero, volatile; the rest unique. */
uint32_t sim_job(struct sim *sim, int64_t pages, int equal, int zero, int vol, uint32_t period_ms);

/* Take in what the daemon can know by now (called by the loop). */
void sim_see(struct sim *sim, int64_t now_ms);

int64_t sim_now_ms(const struct sim *sim);
__attribute__((format(printf, 2, 3))) void sim_fail(struct sim *sim, const char *format, ...);

/* Run a scenario to its end and check it. Free with sim_free(). */
struct sim *sim_run(const struct sim_scenario *scenario, uint64_t seed, bool verbose);
void sim_free(struct sim *sim);

/* Properties over the record (properties.c). Times in seconds. */
void sim_check_always(struct sim *sim);
int64_t sim_converged_s(const struct sim *sim, int64_t from, int permille);
void sim_check_converges(struct sim *sim, int64_t from, int64_t within);
int64_t sim_average_ppm(const struct sim *sim, int64_t from, int64_t to);
void sim_check_average(struct sim *sim, int64_t from, int64_t to, int64_t ppm);
/* At most the steady budget, and one pass that was saved up for before. */
void sim_check_rest(struct sim *sim, int64_t from, int64_t to);
void sim_check_calm(struct sim *sim, int64_t from, int64_t to, uint32_t per_hour);
int64_t sim_reasonable_s(const struct sim *sim, int64_t pages);

extern const struct sim_scenario *const sim_scenarios[]; /* ends with NULL */

#endif
