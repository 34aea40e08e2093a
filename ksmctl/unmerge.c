/* ksmctl unmerge: every merged page back to a copy of its own, if memory suffices. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ksmctl/ksmctl.h"
#include "sysfs/mem.h"

static int64_t saved_mib(struct ctl *ctl)
{
	struct ksm_state state;
	int64_t pages;
	ksm_read(&ctl->ksm, &state);
	return ksm_saved_pages(&state, &pages) ? pages * ctl_page_bytes() >> 20 : -1;
}

/* Unmerging needs a new page for each saved one. Returns an exit code. */
static int check_room(struct ctl *ctl)
{
	struct ksm_state state;
	struct mem_info mem;
	int64_t pages;

	ksm_read(&ctl->ksm, &state);
	int err = mem_read_info(&ctl->root, &mem);
	if (err || !ksm_saved_pages(&state, &pages)) {
		ctl_error(
			"refused: cannot tell whether memory suffices to unmerge; --force insists");
		return CTL_REFUSED;
	}
	int64_t need_kib = pages * (ctl_page_bytes() >> 10);
	if ((uint64_t)need_kib < mem.available_kib)
		return CTL_OK;
	ctl_error("refused: unmerging needs %" PRId64 " MiB but only %" PRIu64
		  " MiB are available; --force insists",
		need_kib >> 10, mem.available_kib >> 10);
	return CTL_REFUSED;
}

/*
 * Wait for the child that writes, showing what is left on a terminal. Returns 0 with its wait status,
 * or -errno.
 */
static int watch(struct ctl *ctl, pid_t child, int *status)
{
	int err = 0;
	bool terminal = isatty(STDERR_FILENO);
	int64_t first = saved_mib(ctl);
	bool shown = false;
	for (;;) {
		pid_t done = waitpid(child, status, terminal ? WNOHANG : 0);
		if (done < 0 && errno != EINTR)
			err = -errno;
		if (done == child || err)
			break;
		if (!terminal)
			continue;
		usleep(200 * 1000);
		fprintf(stderr, "\rUnmerging: %" PRId64 " of %" PRId64 " MiB left ", saved_mib(ctl),
			first);
		shown = true;
	}
	if (shown)
		fputs("\r\033[K", stderr);
	return err;
}

int unmerge_all(struct ctl *ctl, bool force)
{
	int code = force ? CTL_OK : check_room(ctl);
	if (code)
		return code;

	/*
	 * The kernel makes the writer of run=2 the first victim when memory runs out: let that be a
	 * child, so that somebody is left to say what happened. A signal from the terminal reaches
	 * the child and ends the write with EINTR; this process waits to tell it.
	 */
	void (*old)(int) = signal(SIGINT, SIG_IGN);
	pid_t child = fork();
	if (child < 0) {
		signal(SIGINT, old);
		return ctl_fail("cannot start", "a child process", -errno);
	}
	if (child == 0) {
		struct sigaction interrupt = { .sa_handler = SIG_DFL };
		sigaction(SIGINT, &interrupt, NULL);
		ctl_let_signals();
		_exit(-ksm_set(&ctl->ksm, KSM_RUN, KSM_RUN_UNMERGE)); /* one of us speaks */
	}
	int status = 0, err = watch(ctl, child, &status);
	signal(SIGINT, old);
	if (err)
		return ctl_fail("cannot wait for", "the child process that unmerges", err);
	if (WIFEXITED(status))
		return WEXITSTATUS(status) ? ctl_fail("cannot write", "run", -WEXITSTATUS(status))
					   : CTL_OK;
	ctl_error("unmerging was ended by signal %d: part of the memory may still be merged; "
		  "'ksmctl info' shows how much",
		WTERMSIG(status));
	return CTL_FAILED;
}

int unmerge_run(struct ctl *ctl, int argc, char **argv)
{
	static const struct option options[] = {
		{ "force", no_argument, NULL, 'f' },
		{ NULL, 0, NULL, 0 },
	};
	bool force = false;
	int c;
	while ((c = getopt_long(argc, argv, "+:f", options, NULL)) != -1) {
		if (c != 'f')
			return ctl_bad_option("unmerge", c, argv);
		force = true;
	}
	if (optind < argc)
		return ctl_usage("unmerge", "unmerge takes no arguments");
	int code = ctl_open(ctl);
	return code ? code : unmerge_all(ctl, force);
}
