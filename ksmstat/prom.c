/* ksmstat --prom: the machine, groups and processes as metrics of Prometheus. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/prom.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ksmstat/outfile.h"

static int read_list(
	struct entry_list *list, const struct options *options, const struct root *root)
{
	struct frames frames;
	bool exact = frames_open(&frames, root) == 0;
	int pagemap_err = pagemap_probe(root);
	const unsigned places =
		1U << GROUP_CGROUP | 1U << GROUP_UNIT | 1U << GROUP_CONTAINER | 1U << GROUP_POD;
	const struct entry_request request = {
		.selection = &options->selection,
		.places = options->by_all & places,
		.frames = exact ? &frames : NULL,
		.pagemap = pagemap_err == 0,
		.gentle = options->gentle,
		.max_rss_bytes = options->max_rss_bytes,
	};
	int err = entry_read(list, root, &request);
	frames_close(&frames);
	return err;
}

/* Groups and processes; without any of them asked for no process is looked at. */
static int write_processes(
	FILE *f, const struct options *options, const struct root *root, int *code)
{
	struct entry_list list;
	if (!options->by_all && !options->per_process)
		return 0;
	int err = read_list(&list, options, root);
	if (!err)
		prom_processes(f, &list);
	for (unsigned by = 0; by <= GROUP_POD && !err; by++) {
		if (options->by_all >> by & 1)
			err = prom_groups(f, &list, (enum group_by)by);
	}
	if (!err && options->per_process)
		prom_each(f, &list);
	if (select_any(&options->selection) && list.count <= list.unreadable)
		*code = STAT_NONE_FOUND;
	else if (select_any(&options->selection) && (list.missing || list.unreadable))
		*code = STAT_SOME_FOUND;
	entry_free(&list);
	return err;
}

/* Returns an exit code. */
static int put_out(const struct options *options, const char *text, size_t len)
{
	if (!options->output_file) {
		fwrite(text, 1, len, stdout); /* main looks whether it could be written */
		return STAT_OK;
	}
	int err = outfile_write(options->output_file, text, len);
	if (!err)
		return STAT_OK;
	error("cannot write %s: %s", options->output_file,
		err == -EINVAL ? "it is no regular file" : strerror(-err));
	return STAT_FAILED;
}

int prom(const struct options *options, const struct root *root)
{
	char *text = NULL;
	size_t len = 0;
	int code = STAT_OK;
	FILE *f = open_memstream(&text, &len);
	int err = f ? prom_machine(f, root) : -errno;

	if (err == -ENOENT)
		error("this kernel has no KSM");
	else if (err)
		error("cannot read what the kernel counts: %s", strerror(-err));
	if (err)
		code = STAT_FAILED;
	if (!err) {
		err = write_processes(f, options, root, &code);
		if (err) {
			error("cannot read /proc: %s", strerror(-err));
			code = STAT_FAILED;
		}
	}
	if (f && fclose(f) != 0 && !err) {
		error("out of memory");
		err = -ENOMEM;
		code = STAT_FAILED;
	}
	if (!err) {
		int written = put_out(options, text, len);
		code = written ? written : code;
	}
	free(text);
	return code;
}
