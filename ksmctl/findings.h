/* For the rules of ksmctl doctor: their tables, and what they ask of the facts. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_FINDINGS_H
#define KSMCTL_FINDINGS_H

#include "ksmctl/doctor.h"

/* Looks at the facts and says one thing, or nothing: then false, with *out undefined but for id and severity. */
struct findings_rule {
	const char *id; /* NULL ends a table */
	enum severity severity;
	bool (*applies)(const struct facts *facts, struct finding *out);
};
extern const struct findings_rule findings_scanner[], findings_memory[], findings_host[];

/* The same of one process. */
struct findings_look {
	const struct facts *machine;
	const struct process_facts *p;
};
struct findings_process_rule {
	const char *id;
	enum severity severity;
	bool (*applies)(const struct findings_look *look, struct finding *out);
};
extern const struct findings_process_rule findings_offered[], findings_content[],
	findings_offered_rest[];

/* In a rule: texts of the finding `out`. */
#define TITLE(...) FINDING_SET(out->title, __VA_ARGS__)
#define SEEN(...) FINDING_SET(out->evidence, __VA_ARGS__)
#define REMEDY(...) FINDING_SET(out->remedy, __VA_ARGS__)
#define KSM_DIR "/sys/kernel/mm/ksm"

/* No machine has so much of anything, and a thousand times this still fits. */
#define FINDINGS_MOST (INT64_C(1) << 50)

enum {
	FINDINGS_PASSES = 3,		  /* a page merges in the second pass that sees it */
	FINDINGS_SMALL_KIB = 4 << 10,	  /* less registered memory is not worth a word */
	FINDINGS_SMALL_OF_ONE_KIB = 1024, /* the same of one process */
	FINDINGS_ENOUGH_PAGES = 64,	  /* a sample of fewer says nothing */
};

/* The value of a key, or `unknown`. */
int64_t findings_value(const struct facts *f, enum ksm_key key, int64_t unknown);
bool findings_known(const struct facts *f, enum ksm_key key);
/* What a counter gained between the two looks; -1 where that is not known. */
int64_t findings_gained(const struct facts *f, enum ksm_key key);

/* Our own service parks the scanner between passes and sets the rate: then these knobs tell nothing. */
bool findings_service_at_work(const struct facts *f);
bool findings_scanning(const struct facts *f);
/* Pages that merging saves now; -1 not known. */
int64_t findings_saved_pages(const struct facts *f);
/* Pages per second that the scanner gets through, by its settings or as seen; -1 not known. */
int64_t findings_rate(const struct facts *f);

/* "5 minutes". Returns buf. */
const char *findings_duration(int64_t s, char *buf, size_t size);
double findings_mib(int64_t kib);

/* At least half of what the process registered is merged by now: all is well. */
bool findings_merges_well(const struct findings_look *l);

#endif
