/* What can be known of a process before it is stopped: whether it can be done, with which thread, and where. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/inject_target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ksmctl/inject_arch.h"
#include "sysfs/file.h"

enum {
	/* Among so many threads there is one that serves; looking at one takes about 15 us. */
	LOOK_THREADS = 200,
	/* of flags in /proc/PID/stat, include/linux/sched.h: workers of io_uring and vhost */
	FLAG_IO_WORKER = 0x10,
	FLAG_USER_WORKER = 0x4000,
	/* How much code is searched where there is no vdso: libc holds a call within the first page or so. */
	SEARCH_MIB = 64,
	SEARCH_BYTES = 1 << 16,
};

/* Where these wait, a stop is not seen: the kernel makes the thread wait again, for the time that is left. */
static const long restarting[] = {
#ifdef SYS_poll
	SYS_poll,
	SYS_select,
	SYS_pause,
#endif
	SYS_futex,
	SYS_nanosleep,
	SYS_clock_nanosleep,
	SYS_ppoll,
	SYS_pselect6,
	SYS_wait4,
	SYS_waitid,
	SYS_rt_sigsuspend,
	SYS_restart_syscall,
};

/* These end with EINTR after any stop, see signal(7). */
static const long interrupted[] = {
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
#ifdef SYS_epoll_pwait2
	SYS_epoll_pwait2,
#endif
#ifdef SYS_semop
	SYS_semop,
	SYS_semtimedop,
#endif
#ifdef SYS_io_uring_enter
	SYS_io_uring_enter,
#endif
	SYS_epoll_pwait,
	SYS_rt_sigtimedwait,
	SYS_io_getevents,
};

static const long forking[] = {
#ifdef SYS_vfork
	SYS_vfork,
#endif
	SYS_clone,
#ifdef SYS_clone3
	SYS_clone3,
#endif
};

#define ONE_OF(call, list) one_of(call, list, sizeof(list) / sizeof(*(list)))

static bool one_of(long call, const long *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (list[i] == call)
			return true;
	}
	return false;
}

enum inject_rank inject_rank_call(char state, const char *text, long *call)
{
	char *end;
	*call = INJECT_UNKNOWN;
	if (state == 'Z' || state == 'X' || state == 'x')
		return RANK_USELESS;
	if (!strncmp(text, "running", 7)) {
		*call = INJECT_RUNNING;
		return RANK_RUNNING;
	}
	long number = strtol(text, &end, 10);
	if (end != text && number >= -1)
		*call = number;
	if (state == 'D')
		return RANK_STUCK;
	if (*call < 0)
		return state == 'R' ? RANK_RUNNING : RANK_OTHER;
	if (ONE_OF(*call, forking))
		return RANK_STUCK;
	if (ONE_OF(*call, interrupted))
		return RANK_INTERRUPTED;
	return ONE_OF(*call, restarting) ? RANK_RESTARTS : RANK_OTHER;
}

struct choice {
	struct inject_target *target;
	struct inject_report *report;
	int looked;
	int err; /* of the last thread that could not be looked into */
};

/* A thread's state and flags. */
static int read_stat(int task_fd, pid_t tid, char *state, unsigned *flags)
{
	char path[32], text[2048];
	snprintf(path, sizeof(path), "%d/stat", (int)tid);
	ssize_t len = file_read(task_fd, path, text, sizeof(text));
	if (len < 0)
		return (int)len;
	const char *comm_end = strrchr(text, ')');
	if (!comm_end || sscanf(comm_end + 1, " %c %*d %*d %*d %*d %*d %u", state, flags) != 2)
		return -EINVAL;
	return 0;
}

static int look_at(int task_fd, const char *path, void *data)
{
	struct choice *choice = data;
	char text[256] = "", state;
	unsigned flags;
	long call;
	pid_t tid = (pid_t)strtol(path, NULL, 10);

	if (read_stat(task_fd, tid, &state, &flags))
		return 0; /* has just ended */
	ssize_t len = file_read(task_fd, path, text, sizeof(text));
	/* Without that file in this kernel any thread is as good as another. */
	if (len < 0 && len != -ENOENT) {
		if (len != -ESRCH)
			choice->err = (int)len;
		return 0;
	}
	enum inject_rank rank = inject_rank_call(state, len < 0 ? "" : text, &call);
	if (flags & (FLAG_IO_WORKER | FLAG_USER_WORKER))
		rank = RANK_USELESS;
	if (rank < choice->target->rank) {
		choice->target->rank = rank;
		choice->target->tid = choice->report->tid = tid;
		choice->report->state = state;
		choice->report->call = call;
	}
	return rank == RANK_RESTARTS || ++choice->looked == LOOK_THREADS;
}

/* Of the thread chosen: who traces it, has it a filter? */
static enum inject_result read_status(struct inject_target *target, struct inject_report *report)
{
	char path[64], text[16384];
	uint64_t tracer = 0, seccomp = 1; /* unless known better */
	snprintf(path, sizeof(path), "task/%d/status", (int)target->tid);
	ssize_t len = file_read(target->proc->fd, path, text, sizeof(text));
	if (len == -ENOENT || len == -ESRCH)
		return INJECT_GONE;
	if (len >= 0) {
		file_find_u64(text, (size_t)len, "TracerPid:", &tracer);
		if (file_find_u64(text, (size_t)len, "Seccomp:", &seccomp) == -ENOENT)
			seccomp = 0; /* a kernel without it */
	}
	target->seccomp = seccomp != 0;
	report->tracer = (pid_t)tracer;
	return tracer ? INJECT_TRACED : INJECT_DONE;
}

/* Is the program of this machine's own kind? The head of its file tells. */
static enum inject_result check_machine(
	const struct inject_target *target, struct inject_report *report)
{
	char path[64];
	unsigned char head[20];
	snprintf(path, sizeof(path), "task/%d/exe", (int)target->tid);
	int fd = openat(target->proc->fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT)
		return INJECT_GONE;
	if (fd < 0) {
		report->err = -errno;
		return errno == EACCES || errno == EPERM ? INJECT_DENIED : INJECT_FAILED;
	}
	ssize_t n = read(fd, head, sizeof(head));
	close(fd);
	/* What starts without such a head is no program of this machine either. */
	if (n != sizeof(head) || memcmp(head, ELFMAG, SELFMAG) != 0 ||
		head[EI_CLASS] != ELFCLASS64 || (head[18] | head[19] << 8) != ARCH_MACHINE)
		return INJECT_FOREIGN;
	return INJECT_DONE;
}

enum inject_result inject_choose(
	const struct proc *proc, struct inject_target *target, struct inject_report *report)
{
	struct proc_stat stat;
	struct choice choice = { .target = target, .report = report };

	*report = (struct inject_report){ .call = INJECT_UNKNOWN };
	*target = (struct inject_target){ .proc = proc, .rank = RANK_USELESS };
	if (!ARCH_KNOWN)
		return INJECT_ARCH;
	if (proc->pid == getpid())
		return INJECT_SELF;
	if (proc_read_stat(proc, &stat))
		return INJECT_GONE;
	if (stat.kernel_thread)
		return INJECT_KERNEL_THREAD;
	if (strchr("ZXx", stat.state) && stat.threads <= 1)
		return INJECT_ZOMBIE;
	int err = proc_each_thread(proc, "syscall", look_at, &choice);
	if (err >= 0)
		err = choice.err;
	if (!target->tid) {
		report->err = err;
		if (err == -EACCES || err == -EPERM)
			return INJECT_DENIED;
		return err ? INJECT_FAILED : INJECT_GONE;
	}
	report->state = report->state ? report->state : stat.state;
	enum inject_result result = read_status(target, report);
	return result == INJECT_DONE ? check_machine(target, report) : result;
}

bool inject_code_area(const char *line, uint64_t *start, uint64_t *end, bool *vdso)
{
	char permissions[5] = ""; /* the text may hold fewer */
	int name = 0;
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %n", start, end, permissions,
		    &name) != 3 ||
		!name || permissions[2] != 'x' || permissions[0] != 'r')
		return false;
	*vdso = !strncmp(line + name, "[vdso]", 6);
	/* Code of files; other areas in brackets hold no code, or code that traps. */
	return *vdso || line[name] == '/';
}

/* Search [start, end) of the memory for a call. Returns its address, or 0; adds to *searched, in bytes. */
static uint64_t search_area(int mem, uint64_t start, uint64_t end, uint64_t *searched)
{
	static unsigned char code[SEARCH_BYTES];
	while (start < end && start <= (uint64_t)INT64_MAX) {
		size_t want = end - start < sizeof(code) ? (size_t)(end - start) : sizeof(code);
		ssize_t n = pread(mem, code, want, (off_t)start);
		if (n < (ssize_t)sizeof(arch_call))
			return 0;
		*searched += (uint64_t)n;
		for (size_t i = 0; i + sizeof(arch_call) <= (size_t)n; i += ARCH_CALL_ALIGN) {
			if (!memcmp(code + i, arch_call, sizeof(arch_call)))
				return start + i;
		}
		if ((size_t)n == want && start + want == end)
			return 0;
		start += (uint64_t)n - (sizeof(arch_call) - 1) / ARCH_CALL_ALIGN * ARCH_CALL_ALIGN;
	}
	return 0;
}

/*
 * In the vdso, which is last and in every program; else in the first code of a file that has one.
 * Returns its address or 0; *searched is how much code could be read, in bytes.
 */
static uint64_t search_maps(FILE *maps, int mem, uint64_t *searched)
{
	char *line = NULL;
	size_t size = 0;
	uint64_t found = 0, start, end;
	bool vdso = false;

	*searched = 0;
	while (!vdso && getline(&line, &size, maps) > 0) {
		if (!inject_code_area(line, &start, &end, &vdso))
			continue;
		if (!vdso && (found || *searched >= (uint64_t)SEARCH_MIB << 20))
			continue;
		uint64_t here = search_area(mem, start, end, searched);
		if (here)
			found = here;
	}
	free(line);
	return found;
}

enum inject_result inject_find_call(struct inject_target *target, struct inject_report *report)
{
	char path[64];
	snprintf(path, sizeof(path), "task/%d/mem", (int)target->tid);
	int mem = openat(target->proc->fd, path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "task/%d/maps", (int)target->tid);
	int fd = mem < 0 ? -1 : openat(target->proc->fd, path, O_RDONLY | O_CLOEXEC);
	FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");
	enum inject_result result = INJECT_DONE;
	uint64_t searched;

	if (!maps) {
		report->err = -errno;
		result = errno == EACCES || errno == EPERM   ? INJECT_DENIED
			 : errno == ENOENT || errno == ESRCH ? INJECT_GONE
							     : INJECT_FAILED;
	} else {
		target->call_at = search_maps(maps, mem, &searched);
		/* Without any code it is just ending, or executes another program. */
		if (!target->call_at)
			result = searched ? INJECT_NO_CALL : INJECT_GONE;
		fclose(maps);
	}
	if (!maps && fd >= 0)
		close(fd);
	if (mem >= 0)
		close(mem);
	return result;
}

enum inject_result inject_look(const struct proc *proc, struct inject_report *report)
{
	struct inject_target target;
	enum inject_result result = inject_choose(proc, &target, report);
	if (result == INJECT_DONE)
		result = inject_find_call(&target, report);
	return report->result = result;
}
