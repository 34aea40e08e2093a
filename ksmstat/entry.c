/* Reads processes into the list that ksmstat reports. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/entry.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Names of users met so far: asking the user database can be slow, and most processes share few. */
struct user {
	struct user *next;
	uid_t uid;
	char name[];
};
static struct user *users;

static const char *user_name(uid_t uid)
{
	for (const struct user *user = users; user; user = user->next) {
		if (user->uid == uid)
			return user->name;
	}
	char number[16];
	const struct passwd *pw = getpwuid(uid);
	const char *name = pw ? pw->pw_name : number;
	snprintf(number, sizeof(number), "%u", (unsigned)uid);
	size_t name_size = strlen(name) + 1;
	struct user *user = malloc(sizeof(*user) + name_size);
	if (!user)
		return NULL;
	user->uid = uid;
	memcpy(user->name, name, name_size);
	user->next = users;
	users = user;
	return user->name;
}

static struct entry *append(struct entry_list *list)
{
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 256;
		struct entry *entries = reallocarray(list->entries, room, sizeof(*entries));
		if (!entries)
			return NULL;
		list->entries = entries;
		list->room = room;
	}
	struct entry *entry = &list->entries[list->count];
	memset(entry, 0, sizeof(*entry));
	return entry;
}

/* Read one process. Returns 0, -ESRCH when it is gone or has no memory of its own, or -ENOMEM. */
static int read_process(struct entry_list *list, const struct proc *proc)
{
	struct entry *entry = append(list);
	uid_t uid;

	if (!entry)
		return -ENOMEM;
	entry->pid = proc->pid;
	int err = proc_read_stat(proc, &entry->stat);
	if (err == -ENOENT || err == -ESRCH || (!err && entry->stat.kernel_thread))
		return -ESRCH;
	if (err) /* hidden from us, as under hidepid: it is there, and unreadable */
		entry->stat.comm[0] = '?';
	if (!proc_read_uid(proc, &uid))
		entry->user = user_name(uid);
	entry->smaps_error = smaps_read(proc, smaps_add, &entry->sum);
	if (entry->smaps_error == -ESRCH)
		return -ESRCH;
	/* A zombie has no memory any more; whoever waits for it is another matter. */
	if (!entry->smaps_error && entry->sum.areas == 0)
		return -ESRCH;
	entry->ksm_error = proc_read_ksm_stat(proc, &entry->ksm);
	list->unreadable += entry->smaps_error != 0;
	list->count++;
	return 0;
}

int entry_read_all(struct entry_list *list, const struct root *root)
{
	struct proc_walk walk;
	struct proc proc;
	int err = proc_walk_open(&walk, root);
	if (err)
		return err;
	while ((err = proc_walk_next(&walk, &proc)) > 0) {
		err = read_process(list, &proc);
		proc_close(&proc);
		if (err && err != -ESRCH)
			break;
	}
	proc_walk_close(&walk);
	return err;
}

int entry_read_pids(
	struct entry_list *list, const struct root *root, const pid_t *pids, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct proc proc;
		int err = proc_open(&proc, root, pids[i]);
		if (!err) {
			err = read_process(list, &proc);
			proc_close(&proc);
		}
		if (err == -ESRCH)
			list->missing++;
		else if (err)
			return err;
	}
	return 0;
}

void entry_free(struct entry_list *list)
{
	free(list->entries);
	memset(list, 0, sizeof(*list));
	while (users) {
		struct user *next = users->next;
		free(users);
		users = next;
	}
}
