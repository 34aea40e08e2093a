/* Copies what the kernel says of itself and of processes into a tree of files that --root can read. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sysfs/file.h"

#define BUFFER (64 * 1024) /* the longest line of smaps is a fourth of that */
#define FRESH ".new"	   /* what a process is called until all of it is there */
#define TRIES 5		   /* for a process that executes another program meanwhile */

enum { WHOLE = 1, LINES = 2, MEMORY = 4 };

/* Files of a process, and how they are written where names must not be told. */
static const struct task_file {
	const char *name;
	int how;
	anonym_text text; /* NULL: numbers alone */
} task_files[] = {
	{ "stat", WHOLE, anonym_stat },
	{ "status", LINES, anonym_status },
	{ "comm", WHOLE, anonym_comm },
	{ "cmdline", WHOLE, anonym_cmdline },
	{ "cgroup", LINES, anonym_cgroup },
	{ "smaps", LINES | MEMORY, anonym_smaps },
	{ "smaps_rollup", LINES, anonym_smaps },
	{ "ksm_stat", WHOLE, NULL },
	{ "ksm_merging_pages", WHOLE, NULL },
	{ "schedstat", WHOLE, NULL },
	{ "maps", LINES | MEMORY, anonym_smaps },
	{ "statm", WHOLE, NULL },
};
#define TASK_FILES (sizeof(task_files) / sizeof(*task_files))

/* One file on its way. */
struct passage {
	const struct task_file *file;
	struct anonym_process *process; /* NULL: as it is */
	int from;
	FILE *to;
	size_t bytes; /* read so far */
	char buf[BUFFER];
};

/* Write the whole lines of what is held; returns how much that was. A line that does not fit is left out. */
static size_t pass_lines(struct passage *passage, size_t held)
{
	size_t done = 0;
	const char *eol;
	while ((eol = memchr(passage->buf + done, '\n', held - done))) {
		size_t len = (size_t)(eol + 1 - (passage->buf + done));
		passage->file->text(passage->process, passage->buf + done, len, passage->to);
		done += len;
	}
	return done || held < BUFFER ? done : held;
}

/* Returns 0 or -errno of reading. */
static int pass(struct passage *passage)
{
	bool plain = !passage->process || !passage->file->text;
	size_t held = 0, done = 0;
	ssize_t n;
	for (;;) {
		n = read(passage->from, passage->buf + held, BUFFER - held);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		passage->bytes += (size_t)n;
		held += (size_t)n;
		if (plain)
			done = fwrite(passage->buf, 1, held, passage->to);
		else if (passage->file->how & LINES)
			done = pass_lines(passage, held);
		else
			done = held == BUFFER ? 1 : 0; /* the beginning is enough */
		if (plain && done < held)
			return 0; /* the stream keeps the error */
		held -= done;
		memmove(passage->buf, passage->buf + done, held);
	}
	if (!plain && (held || passage->file->how & WHOLE))
		passage->file->text(passage->process, passage->buf, held, passage->to);
	return 0;
}

/*
 * Copy one file to the same name. Returns 0, -errno of writing, or in *unread -errno of opening or
 * reading it: then there is none. *bytes is how long it was.
 */
static int copy_file(int from_dir, int to_dir, const struct task_file *file,
	struct anonym_process *process, int *unread, size_t *bytes)
{
	int from = openat(from_dir, file->name, O_RDONLY | O_CLOEXEC | O_NOCTTY), err;
	*bytes = 0;
	*unread = from < 0 ? -errno : 0;
	if (from < 0)
		return 0;
	int to = openat(
		to_dir, file->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *out = to < 0 ? NULL : fdopen(to, "w");
	struct passage *passage = out ? malloc(sizeof(*passage)) : NULL;
	err = passage ? 0 : -errno;
	if (passage) {
		passage->file = file;
		passage->process = process;
		passage->from = from;
		passage->to = out;
		passage->bytes = 0;
		*unread = pass(passage);
		*bytes = passage->bytes;
		/* Where the memory goes while it is read the file just ends. */
		char c;
		if (!*unread && *bytes && file->how & MEMORY && pread(from, &c, 1, 0) == 0)
			*unread = -ESRCH;
		err = ferror(out) ? -EIO : 0;
	}
	if (out && fclose(out) && (!err || err == -EIO))
		err = -errno;
	else if (!out && to >= 0)
		close(to);
	free(passage);
	close(from);
	if (!err && *unread)
		unlinkat(to_dir, file->name, 0);
	return err;
}

/* Make a folder, or take the one that is there already. Returns a descriptor or -errno. */
static int make_dir(int dirfd, const char *name)
{
	if (mkdirat(dirfd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int copy_remove(int dirfd, const char *name)
{
	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	if (!dir) {
		int err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			copy_remove(fd, entry->d_name);
	}
	closedir(dir);
	return unlinkat(dirfd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* What came of the files of a process or a thread. */
struct task {
	struct proc_stat stat;
	int stat_error, memory_error;
	bool empty; /* its memory */
};

static int copy_task(const struct copy *copy, int from, int to, struct task *task)
{
	const struct proc proc = { .fd = from };
	struct anonym_process process;
	*task = (struct task){ .empty = true };
	task->stat_error = proc_read_stat(&proc, &task->stat);
	if (task->stat_error)
		return 0;
	for (size_t i = 0; i < TASK_FILES; i++) {
		size_t bytes;
		int unread;
		if (copy->anonym) /* each file begins at the first address */
			anonym_begin(
				&process, copy->anonym, task->stat.comm, task->stat.kernel_thread);
		int err = copy_file(
			from, to, &task_files[i], copy->anonym ? &process : NULL, &unread, &bytes);
		if (err)
			return err;
		if (!strcmp(task_files[i].name, "smaps")) {
			task->memory_error = unread;
			task->empty = !bytes;
		}
	}
	return 0;
}

struct threads {
	const struct copy *copy;
	int to; /* the folder "task" */
	int err;
};

/* `path` is that of a thread's stat. */
static int copy_thread(int task_fd, const char *path, void *data)
{
	struct threads *threads = data;
	struct task task;
	char tid[32];
	snprintf(tid, sizeof(tid), "%.*s", (int)strcspn(path, "/"), path);
	int from = openat(task_fd, tid, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (from < 0)
		return 0; /* has just ended */
	int to = make_dir(threads->to, tid);
	threads->err = to < 0 ? to : copy_task(threads->copy, from, to, &task);
	if (to >= 0)
		close(to);
	close(from);
	return threads->err;
}

static int copy_threads(const struct copy *copy, const struct proc *proc, int to)
{
	struct threads threads = { copy, make_dir(to, "task"), 0 };
	if (threads.to < 0)
		return threads.to;
	proc_each_thread(proc, "stat", copy_thread, &threads);
	close(threads.to);
	return threads.err;
}

/* One try. Returns as copy_process does; what it left in FRESH is of no use but for 0 and 1. */
static int try_process(const struct copy *copy, const struct proc *proc, int to)
{
	struct proc_stat after;
	struct task task;
	int err = copy_task(copy, proc->fd, to, &task);
	if (err)
		return err;
	if (task.stat_error)
		return task.stat_error == -ENOENT ? -ESRCH : task.stat_error;
	bool ended = task.stat.state == 'Z' || task.stat.state == 'X';
	if (ended && task.stat.threads <= 1)
		return -ESRCH; /* a zombie has no memory */
	if (ended && task.empty)
		err = copy_threads(copy, proc, to);
	if (err)
		return err;
	/* One that ended meanwhile may have had a part of its files only. */
	if (proc_read_stat(proc, &after) || (!ended && (after.state == 'Z' || after.state == 'X')))
		return -ESRCH;
	if (task.memory_error == -ESRCH)
		return task.stat.kernel_thread ? 0 : -EAGAIN;
	return task.memory_error != 0;
}

int copy_process(const struct copy *copy, const struct proc *proc)
{
	char name[16];
	int result = -EAGAIN, parent = make_dir(copy->dir, "proc");
	if (parent < 0)
		return parent;
	snprintf(name, sizeof(name), "%d", (int)proc->pid);
	for (int i = 0; i < TRIES && result == -EAGAIN; i++) {
		copy_remove(parent, FRESH);
		int to = make_dir(parent, FRESH);
		result = to < 0 ? to : try_process(copy, proc, to);
		if (to >= 0)
			close(to);
	}
	if (result >= 0 && copy->anonym && copy->anonym->failed)
		result = copy->anonym->failed;
	if (result >= 0 && renameat(parent, FRESH, parent, name) < 0)
		result = -errno;
	if (result < 0)
		copy_remove(parent, FRESH);
	close(parent);
	return result == -EAGAIN ? -ESRCH : result;
}

/* Copy files below `path` of the root, which is made folder by folder. */
static int copy_below(const struct copy *copy, const struct root *root, const char *path,
	const char *const *names, size_t count)
{
	char part[256];
	int err = 0, from = root_opendir(root, path);
	if (from < 0)
		return 0; /* absent here, and so in the tree */
	int to = dup(copy->dir);
	for (const char *p = path; to >= 0 && *p; p += strspn(p, "/")) {
		int len = (int)strcspn(p, "/"), parent = to;
		snprintf(part, sizeof(part), "%.*s", len, p);
		to = make_dir(parent, part);
		close(parent);
		p += len;
	}
	for (size_t i = 0; i < count && to >= 0 && !err; i++) {
		const struct task_file file = { names[i], WHOLE, NULL };
		size_t bytes;
		int unread;
		err = copy_file(from, to, &file, NULL, &unread, &bytes);
	}
	close(from);
	if (to >= 0)
		close(to);
	return to < 0 ? to : err;
}

/* Every value of KSM, also those that we do not know. */
static int copy_ksm(const struct copy *copy, const struct root *root)
{
	int err = 0, fd = root_opendir(root, "sys/kernel/mm/ksm");
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	if (!dir && fd >= 0)
		close(fd);
	while (dir && !err && (entry = readdir(dir))) {
		const char *name = entry->d_name;
		if (*name != '.')
			err = copy_below(copy, root, "sys/kernel/mm/ksm", &name, 1);
	}
	if (dir)
		closedir(dir);
	return err;
}

int copy_system(const struct copy *copy, const struct root *root)
{
	static const struct {
		const char *path, *names[4];
	} files[] = {
		{ "proc", { "meminfo", "vmstat", "uptime" } },
		{ "proc/pressure", { "memory", "cpu", "io" } },
		{ "proc/sys/vm", { "max_map_count" } },
		{ "proc/sys/kernel/yama", { "ptrace_scope" } },
		{ "sys/kernel/mm/transparent_hugepage", { "enabled" } },
		{ "sys/kernel/mm/transparent_hugepage/khugepaged", { "max_ptes_shared" } },
		{ "sys/devices/system/node", { "has_memory" } },
	};
	int err = copy_ksm(copy, root);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files) && !err; i++) {
		size_t count = 0;
		while (count < 4 && files[i].names[count])
			count++;
		err = copy_below(copy, root, files[i].path, files[i].names, count);
	}
	return err;
}
