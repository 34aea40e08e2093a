/* All rules of ksmctl doctor about one process, in their order. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/findings.h"

bool findings_merges_well(const struct findings_look *l)
{
	int64_t registered = l->p->registered_kib * 1024 / l->machine->page_bytes;
	return l->p->merged_pages > 0 && l->p->merged_pages * 2 >= registered;
}

/* Most likely cause first. */
static const struct findings_process_rule *const tables[] = { findings_offered, findings_content,
	findings_offered_rest, NULL };

static const struct findings_process_rule *rule_at(size_t i)
{
	for (const struct findings_process_rule *const *table = tables; *table; table++) {
		for (const struct findings_process_rule *rule = *table; rule->id; rule++) {
			if (i-- == 0)
				return rule;
		}
	}
	return NULL;
}

const char *findings_process_id(size_t i)
{
	const struct findings_process_rule *rule = rule_at(i);
	return rule ? rule->id : NULL;
}

size_t findings_of_process(const struct facts *machine, const struct process_facts *process,
	struct finding *findings, size_t room)
{
	const struct findings_look look = { machine, process };
	const struct findings_process_rule *rule;
	size_t count = 0;
	for (size_t i = 0; count < room && (rule = rule_at(i)); i++) {
		findings[count] = (struct finding){ .id = rule->id, .severity = rule->severity };
		if (!rule->applies(&look, &findings[count]))
			continue;
		count++;
		if (process->error)
			break; /* nothing else is known */
	}
	return count;
}
