/* Reads processes into the list that ksmstat reports. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmstat/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Areas as they come from smaps: summed, and of those with merged pages the frames taken down. */
struct areas {
	struct entry *entry;
	const struct proc *proc;
	const struct frames *frames; /* NULL when no more are wanted */
	struct frames_list list;
	int pagemap_fd;
};

static int add_area(const struct smaps_area *area, void *data)
{
	struct areas *areas = data;
	if (areas->frames && area->seen & 1U << SMAPS_KSM && area->kib[SMAPS_KSM]) {
		if (areas->pagemap_fd < 0)
			areas->pagemap_fd =
				openat(areas->proc->fd, "pagemap", O_RDONLY | O_CLOEXEC);
		if (areas->pagemap_fd < 0 ||
			frames_add(&areas->list, areas->pagemap_fd, area->start, area->end,
				areas->frames->page_bytes))
			areas->frames = NULL;
	}
	return smaps_add(area, &areas->entry->sum);
}

static void read_memory(struct entry *entry, const struct proc *proc, const struct frames *frames)
{
	struct areas areas = { .entry = entry, .proc = proc, .frames = frames, .pagemap_fd = -1 };
	entry->smaps_error = smaps_read(proc, add_area, &areas);
	entry->frames_known = areas.frames && !entry->smaps_error &&
			      entry->sum.seen & 1U << SMAPS_KSM &&
			      frames_look_up(frames, &areas.list, &entry->frames) == 0;
	free(areas.list.frames);
	if (areas.pagemap_fd >= 0)
		close(areas.pagemap_fd);
}

#define NOT_WANTED 1

/* Read one process. Returns 0, NOT_WANTED, -ESRCH when it is gone or has no memory of its own. */
static int read_process(struct entry *entry, const struct proc *proc,
	const struct entry_request *request, struct places *places)
{
	entry->pid = proc->pid;
	int err = proc_read_stat(proc, &entry->stat);
	if (err == -ENOENT || err == -ESRCH || (!err && entry->stat.kernel_thread))
		return -ESRCH;
	if (err) /* hidden from us, as under hidepid: it is there, and unreadable */
		entry->stat.comm[0] = '?';
	if (!select_wanted(request->selection, proc, err ? NULL : &entry->stat))
		return NOT_WANTED;
	if (request->places)
		entry->place = place_read(places, proc);
	entry->uid_error = proc_read_uid(proc, &entry->uid);
	read_memory(entry, proc, request->frames);
	if (entry->smaps_error == -ESRCH)
		return -ESRCH;
	/* A zombie has no memory any more; whoever waits for it is another matter. */
	if (!entry->smaps_error && entry->sum.areas == 0)
		return -ESRCH;
	entry->ksm_error = proc_read_ksm_stat(proc, &entry->ksm);
	return 0;
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
		reading->results[i] = read_process(
			&reading->entries[i], &proc, reading->request, reading->places);
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
	while ((long)started < readers - 1 && started * 8 < list->count &&
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
	struct proc proc;
	int err = proc_walk_open(&walk, root);
	if (err)
		return err;
	while ((err = proc_walk_next(&walk, &proc)) > 0) {
		err = append(list, proc.pid);
		proc_close(&proc);
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
	int err = selection->pid_count ? 0 : list_all(list, root);
	for (size_t i = 0; i < selection->pid_count && !err; i++)
		err = append(list, selection->pids[i]);
	if (!err)
		err = read_entries(list, root, request);
	if (!selection->pid_count)
		list->missing = 0; /* nobody asked for those that went away meanwhile */
	return err;
}

void entry_free(struct entry_list *list)
{
	free(list->entries);
	places_free(&list->places);
	memset(list, 0, sizeof(*list));
	while (users) {
		struct user *next = users->next;
		free(users);
		users = next;
	}
}
