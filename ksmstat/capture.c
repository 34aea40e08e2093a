/* --capture: a tree of the files that our programs read, of this machine now, to be read elsewhere. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/capture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "ksmstat/copy.h"
#include "sysfs/ksmd.h"

#define ABOUT "capture" /* what the tree is, for people */

static int is_empty(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;
	int err = dir ? 0 : -errno;
	while (dir && !err && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			err = -ENOTEMPTY;
	}
	if (dir)
		closedir(dir);
	else if (copy >= 0)
		close(copy);
	return err;
}

int capture_begin(const char *path)
{
	int err = mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
	int fd = err ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (!err)
		err = fd < 0 ? -errno : is_empty(fd);
	int mark =
		err ? -1 : openat(fd, CAPTURE_MARK, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (!err && mark < 0)
		err = -errno;
	if (mark >= 0)
		close(mark);
	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	error("cannot capture into %s: %s", path, strerror(-err));
	return err;
}

struct capture {
	struct copy copy;
	size_t copied,
		unreadable; /* the latter: of the former those without memory, and those not copied at all */
	size_t met;  /* processes that are meant */
	size_t gone; /* while they were copied */
};

/* One process more. Returns 0, or -errno when the tree cannot be written. */
static int add(const struct proc *proc, const struct proc_stat *stat, void *data)
{
	struct capture *capture = data;
	int result = stat ? copy_process(&capture->copy, proc) : -EACCES;
	capture->met++;
	if (result == -ESRCH)
		capture->gone++;
	else if (result == -EACCES || result == -EPERM || result == 1)
		capture->unreadable++;
	else if (result < 0)
		return result;
	capture->copied += result >= 0;
	return 0;
}

/* ksmctl looks for it. */
static int add_ksmd(const struct capture *capture, const struct root *root)
{
	struct ksmd ksmd;
	if (ksmd_open(&ksmd, root))
		return 0;
	int result = copy_process(&capture->copy, &(struct proc){ .pid = ksmd.pid, .fd = ksmd.fd });
	ksmd_close(&ksmd);
	return result >= 0 || result == -ESRCH || result == -EACCES ? 0 : result;
}

static int write_about(
	const struct capture *capture, const struct options *options, const struct root *root)
{
	struct utsname name;
	int fd = openat(capture->copy.dir, ABOUT, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file) {
		int err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	fputs("ksmstat " KSM_VERSION "\n", file);
	/* What follows the version proper names a builder, not a kernel. */
	if (!root->foreign && !uname(&name))
		fprintf(file, "kernel %.*s\n",
			options->anonymise ? (int)strcspn(name.release, "+-") : 64, name.release);
	fprintf(file, "page_size %ld\nanonymised %d\nprocesses %zu\nunreadable %zu\ngone %zu\n",
		sysconf(_SC_PAGESIZE), options->anonymise, capture->copied, capture->unreadable,
		capture->gone);
	int err = ferror(file) ? -EIO : 0;
	return fclose(file) ? -errno : err;
}

void capture_give_up(const char *path, int dir)
{
	static const char *const made[] = { "proc", "sys", ABOUT, CAPTURE_MARK };
	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++)
		copy_remove(dir, made[i]);
	rmdir(path);
	close(dir);
}

/* Returns an exit code, as the report does. */
static int tell(const struct capture *capture, const struct options *options, size_t missing)
{
	printf("%s: %zu process%s captured\n", options->capture, capture->copied,
		capture->copied == 1 ? "" : "es");
	if (capture->unreadable)
		error("%zu of %zu processes could not be read%s", capture->unreadable, capture->met,
			geteuid() ? "; as root more can be" : "");
	if (missing)
		error("%zu of the processes asked for %s not there", missing,
			missing == 1 ? "is" : "are");
	if (capture->gone)
		error("%zu ended meanwhile and %s left out", capture->gone,
			capture->gone == 1 ? "is" : "are");
	if (!select_any(&options->selection))
		return STAT_OK;
	if (capture->copied && !capture->unreadable && !missing)
		return STAT_OK;
	return capture->met > capture->unreadable + capture->gone ? STAT_SOME_FOUND
								  : STAT_NONE_FOUND;
}

int capture(const struct options *options, const struct root *root, int dir)
{
	struct anonym anonym;
	struct capture capture = { .copy.dir = dir };
	size_t missing = 0;

	anonym_init(&anonym);
	if (options->anonymise)
		capture.copy.anonym = &anonym;
	int err = copy_system(&capture.copy, root);
	if (!err)
		err = select_each(&options->selection, root, add, &capture, &missing);
	if (!err)
		err = add_ksmd(&capture, root);
	if (!err)
		err = write_about(&capture, options, root);
	if (!err && unlinkat(dir, CAPTURE_MARK, 0) < 0)
		err = -errno;
	anonym_free(&anonym);
	if (err) {
		error("cannot capture into %s: %s", options->capture, strerror(-err));
		capture_give_up(options->capture, dir);
		return STAT_FAILED;
	}
	close(dir);
	return tell(&capture, options, missing);
}

bool capture_is_incomplete(const struct root *root)
{
	return root->foreign && faccessat(root->fd, CAPTURE_MARK, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}
