/* Fuzz target: the service's status and decisions, as `ksmctl status` and `why` show them. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <getopt.h>
#include <sys/types.h>

#include "ksmctl/ksmctl.h"
#include "ksmctl/state.h"
#include "tests/fuzz/fuzz.h"

static struct {
	const uint8_t *data;
	size_t size;
} file;

ssize_t __wrap_state_read(const struct state_dir *dir, const char *name, char *buf, size_t size);
int __wrap_state_open(struct state_dir *dir, const char *path, bool create);
void __wrap_state_close(struct state_dir *dir);
pid_t __wrap_state_holder(const struct state_dir *dir);
int __wrap_ctl_read_config(struct config *config, const char *path, bool given);

ssize_t __wrap_state_read(const struct state_dir *dir, const char *name, char *buf, size_t size)
{
	(void)dir, (void)name;
	if (file.size >= size)
		return -EFBIG;
	memcpy(buf, file.data, file.size);
	buf[file.size] = '\0';
	return (ssize_t)file.size;
}

/* A folder that is there, and a service that runs. */
int __wrap_state_open(struct state_dir *dir, const char *path, bool create)
{
	(void)path, (void)create;
	dir->fd = 77;
	return 0;
}

void __wrap_state_close(struct state_dir *dir)
{
	dir->fd = -1;
}

pid_t __wrap_state_holder(const struct state_dir *dir)
{
	(void)dir;
	return 1;
}

int __wrap_ctl_read_config(struct config *config, const char *path, bool given)
{
	(void)path, (void)given;
	config_defaults(config);
	return CTL_OK;
}

static void run(
	int (*verb)(struct ctl *ctl, int argc, char **argv), const char *name, const char *option)
{
	struct ctl ctl = { .root = { .fd = -1 }, .ksm = { .fd = -1 } };
	char *argv[] = { strdup(name), option ? strdup(option) : NULL, NULL };

	optind = 0;
	int code = verb(&ctl, option ? 2 : 1, argv);
	FUZZ_MUST(code == CTL_OK || code == CTL_FAILED);
	free(argv[0]);
	free(argv[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	fuzz_silence();
	file.data = data;
	file.size = size;
	run(status_run, "status", NULL);
	run(status_run, "status", "--json");
	run(why_run, "why", NULL);
	return 0;
}
