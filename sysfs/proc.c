/* Processes: the walk over /proc and what the kernel tells of each. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/proc.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sysfs/file.h"

/* include/linux/sched.h; told in field 9 of stat */
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000

static int open_pid(struct proc *proc, int dirfd, const char *path, pid_t pid)
{
	proc->pid = pid;
	/* O_PATH: under hidepid even the directory may be closed to us; its files then say so one by one. */
	proc->fd = openat(dirfd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc->fd >= 0)
		return 0;
	return errno == ENOENT ? -ESRCH : -errno;
}

int proc_open(struct proc *proc, const struct root *root, pid_t pid)
{
	char path[32];
	snprintf(path, sizeof(path), "proc/%d", (int)pid);
	return open_pid(proc, root->fd, path, pid);
}

void proc_close(struct proc *proc)
{
	if (proc->fd >= 0)
		close(proc->fd);
	proc->fd = -1;
}

int proc_walk_open(struct proc_walk *walk, const struct root *root)
{
	int fd = root_opendir(root, "proc");
	if (fd < 0)
		return fd;
	walk->dir = fdopendir(fd);
	if (walk->dir)
		return 0;
	int err = -errno;
	close(fd);
	return err;
}

int proc_walk_pid(struct proc_walk *walk, pid_t *pid)
{
	for (;;) {
		int64_t number;
		errno = 0;
		const struct dirent *entry = readdir(walk->dir);
		if (!entry)
			return errno ? -errno : 0;
		if (!isdigit((unsigned char)entry->d_name[0]) ||
			file_parse_i64(entry->d_name, strlen(entry->d_name), &number) ||
			number < 1 || number > INT_MAX)
			continue;
		*pid = (pid_t)number;
		return 1;
	}
}

int proc_walk_next(struct proc_walk *walk, struct proc *proc)
{
	for (;;) {
		char path[16];
		pid_t pid = 0;
		int found = proc_walk_pid(walk, &pid);
		if (found <= 0)
			return found;
		snprintf(path, sizeof(path), "%d", (int)pid);
		int err = open_pid(proc, dirfd(walk->dir), path, pid);
		if (!err)
			return 1;
		if (err != -ESRCH)
			return err;
	}
}

void proc_walk_close(struct proc_walk *walk)
{
	if (walk->dir)
		closedir(walk->dir);
	walk->dir = NULL;
}

int proc_each_thread(const struct proc *proc, const char *name, proc_thread_visit visit, void *data)
{
	int fd = openat(proc->fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	DIR *dir = fdopendir(fd);
	if (!dir) {
		int err = -errno;
		close(fd);
		return err;
	}
	int result = 0;
	const struct dirent *entry;
	while (result == 0 && (entry = readdir(dir))) {
		char path[64];
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%.20s/%.32s", entry->d_name, name);
		result = visit(fd, path, data);
	}
	closedir(dir);
	return result;
}

/* Places of what is read, counted from the state, which is 0; up to the resident size. */
enum {
	STAT_PPID = 1,
	STAT_FLAGS = 6,
	STAT_MINFLT = 7,
	STAT_MAJFLT = 9,
	STAT_UTIME = 11,
	STAT_STIME = 12,
	STAT_THREADS = 17,
	STAT_START = 19,
	STAT_RSS = 21,
	STAT_FIELDS = 22,
};
#define STAT_REST_MAX 1024 /* no kernel has as much behind the comm */

/* " 123", " -1": by hand, for this is read of every process there is. Returns 0 or -EINVAL. */
static int stat_field(const char **at, const char *end, int64_t *value)
{
	const char *p = *at;
	bool negative = end - p > 1 && p[0] == ' ' && p[1] == '-';
	if (end - p < 2 || *p != ' ')
		return -EINVAL;
	p += 1 + negative;
	const char *digits = p;
	uint64_t sum = 0;
	for (; p < end && isdigit((unsigned char)*p); p++) {
		if (__builtin_mul_overflow(sum, 10u, &sum) ||
			__builtin_add_overflow(sum, (uint64_t)(*p - '0'), &sum))
			return -EINVAL;
	}
	if (p == digits || (p < end && *p != ' ' && *p != '\n'))
		return -EINVAL;
	*value = negative ? (int64_t)-sum : (int64_t)sum;
	*at = p;
	return 0;
}

int proc_parse_stat(const char *text, size_t len, struct proc_stat *stat)
{
	const char *open = memchr(text, '(', len), *close = memrchr(text, ')', len);
	if (!open || !close || close < open)
		return -EINVAL;

	struct proc_stat out = { 0 };
	int64_t fields[STAT_FIELDS] = { 0 };
	const char *p = close + 1, *end = text + len;
	if (end - p < 2 || end - p >= STAT_REST_MAX || p[0] != ' ')
		return -EINVAL;
	out.state = p[1];
	p += 2;
	for (int i = STAT_PPID; i < STAT_FIELDS; i++) {
		int err = stat_field(&p, end, &fields[i]);
		if (err)
			return err;
	}
	out.ppid = (pid_t)fields[STAT_PPID];
	out.kernel_thread = fields[STAT_FLAGS] & PF_KTHREAD;
	out.exiting = fields[STAT_FLAGS] & PF_EXITING;
	out.minflt = (uint64_t)fields[STAT_MINFLT];
	out.majflt = (uint64_t)fields[STAT_MAJFLT];
	out.utime_ticks = (uint64_t)fields[STAT_UTIME];
	out.stime_ticks = (uint64_t)fields[STAT_STIME];
	out.threads = (int)fields[STAT_THREADS];
	out.start_ticks = (uint64_t)fields[STAT_START];
	out.rss_pages = (uint64_t)fields[STAT_RSS];

	size_t comm_len = (size_t)(close - open - 1);
	if (comm_len >= sizeof(out.comm))
		comm_len = sizeof(out.comm) - 1;
	memcpy(out.comm, open + 1, comm_len);
	*stat = out;
	return 0;
}

int proc_read_stat(const struct proc *proc, struct proc_stat *stat)
{
	char buf[2048];
	ssize_t len = file_read_record(proc->fd, "stat", buf, sizeof(buf));
	return len < 0 ? (int)len : proc_parse_stat(buf, (size_t)len, stat);
}

int proc_parse_uid(const char *text, size_t len, uid_t *uid)
{
	/* "Uid:\treal\teffective\tsaved\tfs". The Name: line above it escapes newlines. */
	const char *line = memmem(text, len, "\nUid:", 5);
	unsigned effective;
	char buf[64];
	if (!line)
		return -EINVAL;
	size_t rest = len - (size_t)(line + 5 - text);
	if (rest >= sizeof(buf))
		rest = sizeof(buf) - 1;
	memcpy(buf, line + 5, rest);
	buf[rest] = '\0';
	if (sscanf(buf, "%*u %u", &effective) != 1)
		return -EINVAL;
	*uid = effective;
	return 0;
}

int proc_read_uid(const struct proc *proc, uid_t *uid)
{
	char buf[8192];
	ssize_t len = file_read(proc->fd, "status", buf, sizeof(buf));
	return len < 0 ? (int)len : proc_parse_uid(buf, (size_t)len, uid);
}

int proc_parse_locked(const char *text, size_t len, struct proc_locked *locked)
{
	uint64_t lck, pin;
	int err = file_find_u64(text, len, "VmLck:", &lck);
	if (!err)
		err = file_find_u64(text, len, "VmPin:", &pin);
	if (err)
		return err;
	*locked = (struct proc_locked){ (int64_t)lck, (int64_t)pin };
	return 0;
}

int proc_read_locked(const struct proc *proc, struct proc_locked *locked)
{
	char buf[8192];
	ssize_t len = file_read(proc->fd, "status", buf, sizeof(buf));
	return len < 0 ? (int)len : proc_parse_locked(buf, (size_t)len, locked);
}

static void ksm_stat_line(const char *line, size_t len, struct proc_ksm *ksm)
{
	const struct {
		const char *key;
		unsigned bit;
		int64_t *number;
		bool *flag;
	} fields[] = {
		{ "ksm_rmap_items", PROC_KSM_RMAP_ITEMS, &ksm->rmap_items, NULL },
		{ "ksm_merging_pages", PROC_KSM_MERGING, &ksm->merging_pages, NULL },
		{ "ksm_zero_pages", PROC_KSM_ZERO, &ksm->zero_pages, NULL },
		{ "ksm_process_profit", PROC_KSM_PROFIT, &ksm->profit_bytes, NULL },
		{ "ksm_merge_any", PROC_KSM_MERGE_ANY, NULL, &ksm->merge_any },
		{ "ksm_mergeable", PROC_KSM_MERGEABLE, NULL, &ksm->mergeable },
	};
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		size_t key_len = strlen(fields[i].key);
		if (len <= key_len || memcmp(line, fields[i].key, key_len) != 0)
			continue;
		const char *p = line + key_len, *end = line + len;
		if (*p != ' ' && *p != ':')
			continue;
		while (p < end && (*p == ' ' || *p == ':'))
			p++;
		size_t rest = (size_t)(end - p);
		if (fields[i].number) {
			if (file_parse_i64(p, rest, fields[i].number))
				return;
		} else if (rest == 3 && !memcmp(p, "yes", 3)) {
			*fields[i].flag = true;
		} else if (rest == 2 && !memcmp(p, "no", 2)) {
			*fields[i].flag = false;
		} else {
			return;
		}
		ksm->present |= fields[i].bit;
		return;
	}
}

int proc_parse_ksm_stat(const char *text, size_t len, struct proc_ksm *ksm)
{
	struct proc_ksm out = { 0 };
	const char *p = text, *end = text + len;
	while (p < end) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		if (!eol)
			eol = end;
		ksm_stat_line(p, (size_t)(eol - p), &out);
		p = eol + 1;
	}
	if (!out.present)
		return -EINVAL;
	if (out.zero_pages < 0)
		out.zero_pages = 0;
	*ksm = out;
	return 0;
}

struct ksm_text {
	char *buf;
	size_t size;
	ssize_t len;
};

/* A visitor that ends at the first thread whose file is not empty. */
static int first_text(int task_fd, const char *path, void *data)
{
	struct ksm_text *text = data;
	text->len = file_read(task_fd, path, text->buf, text->size);
	return text->len > 0;
}

int proc_read_ksm_stat(const struct proc *proc, struct proc_ksm *ksm)
{
	char buf[1024];
	struct proc_ksm out = { 0 };
	ssize_t len = file_read_record(proc->fd, "ksm_stat", buf, sizeof(buf));
	if (len < 0 && len != -ENOENT)
		return (int)len;
	/* Empty where the main thread has exited; and for kernel threads, where all threads' are. */
	struct ksm_text text = { buf, sizeof(buf), 0 };
	if (len == 0 && proc_each_thread(proc, "ksm_stat", first_text, &text) > 0)
		len = text.len;
	int err = len > 0 ? proc_parse_ksm_stat(buf, (size_t)len, &out) : 0;
	if (err)
		return err;
	if (!(out.present & PROC_KSM_MERGING)) {
		ssize_t pages_len = file_read(proc->fd, "ksm_merging_pages", buf, sizeof(buf));
		if (pages_len == 0 &&
			proc_each_thread(proc, "ksm_merging_pages", first_text, &text) > 0)
			pages_len = text.len;
		if (pages_len < 0 && len < 0)
			return (int)pages_len;
		if (pages_len > 0 && !file_parse_i64(buf, (size_t)pages_len, &out.merging_pages))
			out.present |= PROC_KSM_MERGING;
	}
	*ksm = out;
	return 0;
}
