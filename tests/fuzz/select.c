/* Fuzz target: which processes are meant: lists, patterns and paths, an argument to each of three lines. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/select.h"

#include <errno.h>

#include "tests/fuzz/fuzz.h"

typedef int (*add_list)(
	struct selection *selection, const char *list, const char **bad, size_t *len);

static void add(struct selection *selection, const char *list, add_list add_words)
{
	const char *bad = NULL;
	size_t len = 0;
	int err = add_words(selection, list, &bad, &len);

	FUZZ_MUST(err == 0 || err == -EINVAL);
	/* What is wrong is a part of what was given. */
	if (err)
		FUZZ_MUST(bad >= list && bad + len <= list + strlen(list));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_string(data, size), *rest = text;
	const char *pids = strsep(&rest, "\n"), *comms = rest ? strsep(&rest, "\n") : "";
	const char *path = rest ? rest : "";
	struct selection selection = { 0 };
	char comm[16];

	add(&selection, pids, select_add_pids);
	add(&selection, comms, select_add_comms);
	int err = select_add_cgroup(&selection, path);
	FUZZ_MUST(err == 0 || err == -EINVAL);
	for (size_t i = 0; i < selection.pid_count; i++)
		FUZZ_MUST(selection.pids[i] > 0);
	snprintf(comm, sizeof(comm), "%s", path);
	for (size_t i = 0; i < selection.comm_count; i++) {
		/* the time that patterns take grows with their stars */
		if (strlen(selection.comms[i]) < 64)
			select_comm_fits(selection.comms[i], comm);
		FUZZ_MUST(select_comm_fits(selection.comms[i], selection.comms[i]));
	}
	for (size_t i = 0; i < selection.cgroup_count; i++)
		select_cgroup_fits(selection.cgroups[i], path);
	select_free(&selection);
	FUZZ_MUST(!select_any(&selection));
	free(text);
	return 0;
}
