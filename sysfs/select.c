/* Which processes are meant: by PID, name, user and control group. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sysfs/select.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "sysfs/cgroup.h"
#include "sysfs/file.h"

#define KERNEL_COMM_MAX 15 /* TASK_COMM_LEN - 1: longer names are cut by the kernel */
/* Where control groups are mounted, and below it, with version 1, the hierarchies that tell a place. */
static const char *const mounts[] = { "/sys/fs/cgroup/unified/", "/sys/fs/cgroup/systemd/",
	"/sys/fs/cgroup/memory/", "/sys/fs/cgroup/" };

/* One more place at the end of *array. Returns it, zeroed, or NULL. */
static void *append(void *array, size_t *count, size_t size)
{
	void **where = array;
	char *grown = reallocarray(*where, *count + 1, size);
	if (!grown)
		return NULL;
	*where = grown;
	return memset(grown + size * (*count)++, 0, size);
}

static int add_pid(struct selection *selection, const char *word, size_t len)
{
	int64_t pid;
	if (file_parse_i64(word, len, &pid) || pid < 1 || pid > INT_MAX)
		return -EINVAL;
	for (size_t i = 0; i < selection->pid_count; i++) {
		if (selection->pids[i] == pid)
			return 0; /* named twice, and still one process */
	}
	pid_t *place = append(&selection->pids, &selection->pid_count, sizeof(*place));
	if (!place)
		return -ENOMEM;
	*place = (pid_t)pid;
	return 0;
}

static int add_text(char ***array, size_t *count, const char *word, size_t len)
{
	char *copy = strndup(word, len);
	char **place = copy ? append(array, count, sizeof(*place)) : NULL;
	if (!place) {
		free(copy);
		return -ENOMEM;
	}
	*place = copy;
	return 0;
}

static int add_comm(struct selection *selection, const char *word, size_t len)
{
	return add_text(&selection->comms, &selection->comm_count, word, len);
}

/* A user's name; where there is none of it, his number. */
static int add_user(struct selection *selection, const char *word, size_t len)
{
	char *name = strndup(word, len);
	int64_t uid;
	if (!name)
		return -ENOMEM;
	const struct passwd *pw = getpwnam(name);
	free(name);
	if (pw)
		uid = pw->pw_uid;
	else if (file_parse_i64(word, len, &uid) || uid < 0 || uid >= UINT_MAX)
		return -EINVAL;
	uid_t *place = append(&selection->users, &selection->user_count, sizeof(*place));
	if (!place)
		return -ENOMEM;
	*place = (uid_t)uid;
	return 0;
}

static int add_list(struct selection *selection, const char *list, const char **bad,
	size_t *bad_len, int (*add)(struct selection *selection, const char *word, size_t len))
{
	for (;;) {
		size_t len = strcspn(list, ",");
		int err = len ? add(selection, list, len) : -EINVAL;
		if (err) {
			*bad = list;
			*bad_len = len;
			return err;
		}
		if (!list[len])
			return 0;
		list += len + 1;
	}
}

int select_add_pids(struct selection *selection, const char *list, const char **bad, size_t *len)
{
	return add_list(selection, list, bad, len, add_pid);
}

int select_add_comms(struct selection *selection, const char *list, const char **bad, size_t *len)
{
	return add_list(selection, list, bad, len, add_comm);
}

int select_add_users(struct selection *selection, const char *list, const char **bad, size_t *len)
{
	return add_list(selection, list, bad, len, add_user);
}

int select_add_cgroup(struct selection *selection, const char *path)
{
	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		size_t mount = strlen(mounts[i]);
		if (strncmp(path, mounts[i], mount) != 0)
			continue;
		path += mount - 1;
		break;
	}
	size_t len = strlen(path);
	if (!len)
		return -EINVAL;
	while (len > 1 && path[len - 1] == '/')
		len--;
	return add_text(&selection->cgroups, &selection->cgroup_count, path, len);
}

static void free_texts(char **texts, size_t count)
{
	while (count)
		free(texts[--count]);
	free(texts);
}

void select_free(struct selection *selection)
{
	free(selection->pids);
	free(selection->users);
	free_texts(selection->comms, selection->comm_count);
	free_texts(selection->cgroups, selection->cgroup_count);
	memset(selection, 0, sizeof(*selection));
}

bool select_comm_fits(const char *wanted, const char *comm)
{
	if (!strcmp(wanted, comm) || !fnmatch(wanted, comm, 0))
		return true;
	return strlen(wanted) > KERNEL_COMM_MAX && strlen(comm) == KERNEL_COMM_MAX &&
	       !memcmp(wanted, comm, KERNEL_COMM_MAX);
}

bool select_cgroup_fits(const char *wanted, const char *path)
{
	size_t len = strlen(wanted);
	if (!strcmp(wanted, "/"))
		return true;
	if (*wanted == '/')
		return !strncmp(path, wanted, len) && (path[len] == '/' || !path[len]);
	for (const char *at = path; (at = strstr(at, wanted)); at++) {
		if (at > path && at[-1] == '/' && (at[len] == '/' || !at[len]))
			return true;
	}
	return false;
}

static bool pid_wanted(const struct selection *selection, pid_t pid)
{
	for (size_t i = 0; i < selection->pid_count; i++) {
		if (selection->pids[i] == pid)
			return true;
	}
	return !selection->pid_count;
}

static bool comm_wanted(const struct selection *selection, const struct proc_stat *stat)
{
	for (size_t i = 0; i < selection->comm_count && stat; i++) {
		if (select_comm_fits(selection->comms[i], stat->comm))
			return true;
	}
	return !selection->comm_count;
}

static bool user_wanted(const struct selection *selection, const struct proc *proc)
{
	uid_t uid;
	if (!selection->user_count)
		return true;
	if (proc_read_uid(proc, &uid))
		return false;
	for (size_t i = 0; i < selection->user_count; i++) {
		if (selection->users[i] == uid)
			return true;
	}
	return false;
}

static bool cgroup_wanted(const struct selection *selection, const struct proc *proc)
{
	char path[CGROUP_PATH_MAX];
	if (!selection->cgroup_count)
		return true;
	if (cgroup_read(proc, path, sizeof(path)) < 0)
		return false;
	for (size_t i = 0; i < selection->cgroup_count; i++) {
		if (select_cgroup_fits(selection->cgroups[i], path))
			return true;
	}
	return false;
}

bool select_wanted(
	const struct selection *selection, const struct proc *proc, const struct proc_stat *stat)
{
	return pid_wanted(selection, proc->pid) && comm_wanted(selection, stat) &&
	       user_wanted(selection, proc) && cgroup_wanted(selection, proc);
}

/* Visit one process if it is meant. Adds to *missing one that is not there any more. */
static int visit_one(const struct selection *selection, const struct proc *proc, select_visit visit,
	void *data, size_t *missing)
{
	struct proc_stat stat;
	int err = proc_read_stat(proc, &stat);
	if (err == -ENOENT || err == -ESRCH) {
		++*missing;
		return 0;
	}
	const struct proc_stat *known = err ? NULL : &stat;
	if ((known && known->kernel_thread) || !select_wanted(selection, proc, known))
		return 0;
	return visit(proc, known, data);
}

int select_each(const struct selection *selection, const struct root *root, select_visit visit,
	void *data, size_t *missing)
{
	struct proc_walk walk;
	struct proc proc;
	size_t gone = 0; /* during a walk: nobody asked for those */
	int result = 0;

	*missing = 0;
	for (size_t i = 0; i < selection->pid_count && !result; i++) {
		result = proc_open(&proc, root, selection->pids[i]);
		if (result == -ESRCH) {
			++*missing;
			result = 0;
		} else if (!result) {
			result = visit_one(selection, &proc, visit, data, missing);
			proc_close(&proc);
		}
	}
	if (selection->pid_count)
		return result;
	result = proc_walk_open(&walk, root);
	if (result)
		return result;
	while ((result = proc_walk_next(&walk, &proc)) > 0) {
		result = visit_one(selection, &proc, visit, data, &gone);
		proc_close(&proc);
		if (result)
			break;
	}
	proc_walk_close(&walk);
	return result;
}
