/* Reads processes into the list that ksmstat reports. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/entry.h"

#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ksmstat/memory.h"

/* More readers than this gain nothing, and would be felt by others. */
#define READERS_MAX 8

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

/* Results of reading a process that are no errors. */
enum { NOT_WANTED = 1, TOO_LARGE = 2 };

/* A program that is replaced by another (exec) loses its memory and is not gone. */
#define TRIES 5

/* Of the running system, /proc/PID belongs to its effective user; a captured one to whoever has it. */
static int read_uid(const struct proc *proc, const struct root *root, uid_t *uid)
{
	struct stat st;
	if (root->foreign)
		return proc_read_uid(proc, uid);
	if (fstat(proc->fd, &st) < 0)
		return -errno;
	*uid = st.st_uid;
	return 0;
}

static bool too_large(const struct entry *entry, uint64_t max_rss_bytes)
{
	return max_rss_bytes &&
	       entry->stat.rss_pages > max_rss_bytes / (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Memory, and what the kernel counts of it. Returns 0, or -ESRCH when there is none any more. */
static int read_memory(
	struct entry *entry, const struct proc *proc, const struct entry_request *request)
{
	struct proc_stat stat = entry->stat;
	for (int i = 0; i < TRIES; i++) {
		memset(&entry->sum, 0, sizeof(entry->sum));
		entry->ksm_error = proc_read_ksm_stat(proc, &entry->ksm);
		entry->smaps_error = memory_read(entry, proc, request);
		if (entry->smaps_error != -ESRCH)
			break;
		int err = proc_read_stat(proc, &stat);
		if (err || stat.exiting || stat.state == 'Z' || stat.state == 'X')
			return -ESRCH;
		entry->stat = stat;
	}
	/*
	 * A zombie has no memory any more; whoever waits for it is another matter. One that lives and has no
	 * smaps could not be read: in a captured tree, where it is absent, or on a kernel without it.
	 */
	return !entry->smaps_error && !entry->sum.areas ? -ESRCH : 0;
}

/* Read one process. Returns 0, NOT_WANTED, TOO_LARGE, -ESRCH when it is gone or has no memory. */
static int read_process(struct entry *entry, const struct proc *proc, const struct root *root,
	const struct entry_request *request, struct places *places)
{
	entry->pid = proc->pid;
	int err = proc_read_stat(proc, &entry->stat);
	if (err == -ENOENT || err == -ESRCH || (!err && entry->stat.kernel_thread))
		return -ESRCH;
	if (err) /* hidden from us, as under hidepid: it is there, and unreadable */
		entry->stat.comm[0] = '?';
	entry->selected = select_wanted(request->selection, proc, err ? NULL : &entry->stat);
	if (!entry->selected && !request->all)
		return NOT_WANTED;
	if (too_large(entry, request->max_rss_bytes))
		return TOO_LARGE;
	if (request->places)
		entry->place = place_read(places, proc);
	entry->uid_error = read_uid(proc, root, &entry->uid);
	return read_memory(entry, proc, request);
}

/* The work that the readers share: each takes the next process that none has taken. */
struct reading {
	const struct root *root;
	const struct entry_request *request;
	struct places *places;
	struct entry *entries;
	int *results; /* of read_process, or of opening it */
	size_t count;
	atomic_size_t next;
};

static void *reader(void *data)
{
	struct reading *reading = data;
	for (;;) {
		size_t i = atomic_fetch_add(&reading->next, 1);
		if (i >= reading->count)
			return NULL;
		struct proc proc;
		reading->results[i] = proc_open(&proc, reading->root, reading->entries[i].pid);
		if (reading->results[i])
			continue;
		reading->results[i] = read_process(&reading->entries[i], &proc, reading->root,
			reading->request, reading->places);
		proc_close(&proc);
	}
}

/*
 * Read the processes whose PIDs are in the list, with as many readers as there are CPUs: the time
 * goes into the kernel's walks over page tables, each under a lock of its own process.
 */
static int read_entries(
	struct entry_list *list, const struct root *root, const struct entry_request *request)
{
	struct reading reading = { .root = root,
		.request = request,
		.places = &list->places,
		.entries = list->entries,
		.count = list->count };
	pthread_t threads[READERS_MAX];
	size_t started = 0;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	long readers = cpus < READERS_MAX ? cpus : READERS_MAX;

	reading.results = calloc(list->count ? list->count : 1, sizeof(*reading.results));
	if (!reading.results)
		return -ENOMEM;
	/* This thread reads too, so a thread that cannot be had is not missed. */
	while ((long)started < readers - 1 && started + 1 < list->count &&
		pthread_create(&threads[started], NULL, reader, &reading) == 0)
		started++;
	reader(&reading);
	while (started)
		pthread_join(threads[--started], NULL);

	size_t kept = 0;
	int err = 0;
	for (size_t i = 0; i < list->count; i++) {
		struct entry *entry = &list->entries[i];
		if (reading.results[i] == -ESRCH)
			list->missing++;
		else if (reading.results[i] == TOO_LARGE)
			list->too_large++;
		else if (reading.results[i] < 0)
			err = reading.results[i];
		if (reading.results[i])
			continue;
		entry->user = entry->uid_error ? NULL : user_name(entry->uid);
		list->unreadable += entry->smaps_error != 0;
		list->entries[kept++] = *entry;
	}
	list->count = kept;
	free(reading.results);
	return err;
}

static int append(struct entry_list *list, pid_t pid)
{
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 256;
		struct entry *entries = reallocarray(list->entries, room, sizeof(*entries));
		if (!entries)
			return -ENOMEM;
		list->entries = entries;
		list->room = room;
	}
	list->entries[list->count++] = (struct entry){ .pid = pid };
	return 0;
}

/* Take down the PIDs of all processes. */
static int list_all(struct entry_list *list, const struct root *root)
{
	struct proc_walk walk;
	pid_t pid;
	int err = proc_walk_open(&walk, root);
	if (err)
		return err;
	while ((err = proc_walk_pid(&walk, &pid)) > 0) {
		err = append(list, pid);
		if (err)
			break;
	}
	proc_walk_close(&walk);
	return err;
}

int entry_read(
	struct entry_list *list, const struct root *root, const struct entry_request *request)
{
	const struct selection *selection = request->selection;
	*list = (struct entry_list){ 0 };
	places_init(&list->places);
	bool by_pid = selection->pid_count && !request->all;
	int err = by_pid ? 0 : list_all(list, root);
	for (size_t i = 0; by_pid && i < selection->pid_count && !err; i++)
		err = append(list, selection->pids[i]);
	if (!err)
		err = read_entries(list, root, request);
	if (!by_pid)
		list->missing = 0; /* nobody asked for those that went away meanwhile */
	return err;
}

void entry_free(struct entry_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->entries[i].merged.frames);
	free(list->entries);
	places_free(&list->places);
	memset(list, 0, sizeof(*list));
	while (users) {
		struct user *next = users->next;
		free(users);
		users = next;
	}
}
