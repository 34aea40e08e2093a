/* Preloaded into a program by tests/fault: at the Nth call that reaches the kernel, or for memory, a fault comes. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#undef _FILE_OFFSET_BITS /* both names of each call are wrapped here */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/*
 * $FAULT_CALLS   "io", "memory", or names of calls with commas between: which calls count
 * $FAULT_AT      the first of them to fail, counted from 1
 * $FAULT_TIMES   how many fail; 0: all from there on; 1 where it is not set
 * $FAULT_ERRNO   the number that they give; 0: a read or write does a part only, and others are spared
 * $FAULT_SIGNAL  instead of failing, this signal comes first, and then the call is made
 * $FAULT_SINCE   counting begins when a message with this beginning was sent (READY=1)
 * $FAULT_LOG_FD  a descriptor that gets a line for each call that failed
 * $FAULT_FILES   how many descriptors it may have, from its start on
 * $FAULT_CLOCK   "REALTIME MONOTONIC AT": seconds that these clocks jump, at the ATth question for the time
 *
 * What the played kernel (tests/cli/kernel.c, preloaded after this) calls itself does not count. The
 * declarations are our own: those of the C library are wrapped, inlined or have other attributes.
 */
enum { CALLS_MAX = 512, JUMP_CLOCKS = 2 };

static struct {
	bool on, io, memory;
	char calls[CALLS_MAX];
	const char *since;
	long at, times;
	int err, signal, log_fd;
	atomic_long count, clock_count;
	atomic_bool since_met;
	long long jump_s[JUMP_CLOCKS];
	long jump_at;
} fault = { .log_fd = -1 };

static _Thread_local int inside;    /* a call that another one makes */
static _Thread_local int resolving; /* where the next one is */

static long number(const char *name, long missing)
{
	const char *text = getenv(name);
	return text && *text ? strtol(text, NULL, 10) : missing;
}

__attribute__((constructor)) static void begin(void)
{
	const char *calls = getenv("FAULT_CALLS"), *jump = getenv("FAULT_CLOCK");
	if (jump && sscanf(jump, "%lld %lld %ld", &fault.jump_s[0], &fault.jump_s[1],
			    &fault.jump_at) != 3)
		abort();
	long files = number("FAULT_FILES", 0);
	if (files) { /* here, as the loader needs descriptors too */
		const unsigned long few[2] = { (unsigned long)files, (unsigned long)files };
		syscall(SYS_prlimit64, 0, 7 /* RLIMIT_NOFILE */, few, NULL);
	}
	if (!calls)
		return;
	snprintf(fault.calls, sizeof(fault.calls), ",%s,", calls);
	fault.io = strstr(fault.calls, ",io,");
	fault.memory = strstr(fault.calls, ",memory,");
	fault.since = getenv("FAULT_SINCE");
	fault.since_met = !fault.since || !*fault.since;
	fault.at = number("FAULT_AT", 1);
	fault.times = number("FAULT_TIMES", 1);
	fault.err = (int)number("FAULT_ERRNO", EIO);
	fault.signal = (int)number("FAULT_SIGNAL", 0);
	fault.log_fd = (int)number("FAULT_LOG_FD", -1);
	fault.on = true;
}

static bool counts(const char *call, bool memory)
{
	if (!fault.on || resolving || (inside && !memory) || !fault.since_met)
		return false;
	if (memory ? fault.memory : fault.io)
		return true;
	size_t len = strlen(call);
	for (const char *p = fault.calls; (p = strstr(p, call)); p += len) {
		if (p[-1] == ',' && p[len] == ',')
			return true;
	}
	return false;
}

/* Whether this call is one that shall fail. It has been told then, and errno is set. */
static bool hit(const char *call, bool memory)
{
	char line[80];
	if (!counts(call, memory))
		return false;
	if (fault.err == ENOENT && (!strcmp(call, "read") || !strcmp(call, "write")))
		return false; /* a file that is open is there */
	long n = atomic_fetch_add(&fault.count, 1) + 1;
	if (n < fault.at || (fault.times && n >= fault.at + fault.times))
		return false;
	int len = snprintf(line, sizeof(line), "%s %ld %s %d\n", call, n,
		fault.signal ? "signal" : "errno", fault.signal ? fault.signal : fault.err);
	if (fault.log_fd >= 0)
		syscall(SYS_write, fault.log_fd, line, (size_t)len);
	if (fault.signal) {
		int before = errno;
		syscall(SYS_tgkill, getpid(), gettid(), fault.signal);
		errno = before;
		return false;
	}
	errno = fault.err;
	return true;
}

static bool hit_whole(const char *call)
{
	return hit(call, false) && fault.err;
}

static void *next(const char *name)
{
	resolving++;
	void *found = dlsym(RTLD_NEXT, name);
	resolving--;
	if (!found)
		abort();
	return found;
}

#define EXPORT __attribute__((visibility("default")))
#define NEXT(name, type, ...) \
	static type (*real)(__VA_ARGS__); \
	if (!real) \
	real = (type(*)(__VA_ARGS__))next(#name)

/* NOLINTBEGIN(bugprone-macro-parentheses): what is in these are types, names and lists */
/* A call with fixed arguments. */
#define WRAP(type, failed, name, params, args) \
	EXPORT type name params; \
	type name params \
	{ \
		static type(*real) params; \
		if (!real) \
			real = (type(*) params)next(#name); \
		if (hit_whole(#name)) \
			return failed; \
		inside++; \
		type result = real args; \
		inside--; \
		return result; \
	}
/* clang-format off */
#define POINTER_FAILED ((void *)-1)
WRAP(int, -1, access, (const char *path, int mode), (path, mode))
WRAP(int, -1, bind, (int fd, const void *address, unsigned len), (fd, address, len))
WRAP(int, -1, epoll_create1, (int flags), (flags))
WRAP(int, -1, epoll_ctl, (int fd, int op, int target, void *event), (fd, op, target, event))
WRAP(int, -1, epoll_wait, (int fd, void *events, int most, int timeout), (fd, events, most, timeout))
WRAP(int, -1, faccessat, (int fd, const char *path, int mode, int flags), (fd, path, mode, flags))
WRAP(int, -1, fstat, (int fd, void *st), (fd, st))
WRAP(int, -1, fstat64, (int fd, void *st), (fd, st))
WRAP(int, -1, fstatfs64, (int fd, void *st), (fd, st))
WRAP(int, -1, stat64, (const char *path, void *st), (path, st))
WRAP(int, -1, getpriority, (int which, unsigned who), (which, who))
WRAP(int, -1, setpriority, (int which, unsigned who, int value), (which, who, value))
WRAP(int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(int, -1, renameat, (int from, const char *a, int to, const char *b), (from, a, to, b))
WRAP(int, -1, unlinkat, (int fd, const char *path, int flags), (fd, path, flags))
WRAP(int, -1, setsockopt, (int fd, int level, int name, const void *value, unsigned len), (fd, level, name, value, len))
WRAP(int, -1, signalfd, (int fd, const void *mask, int flags), (fd, mask, flags))
WRAP(int, -1, socket, (int domain, int type, int protocol), (domain, type, protocol))
WRAP(int, -1, tcsetattr, (int fd, int when, const void *settings), (fd, when, settings))
WRAP(int, -1, timerfd_create, (int clock, int flags), (clock, flags))
WRAP(int, -1, poll, (void *fds, unsigned long count, int timeout), (fds, count, timeout))
WRAP(int, -1, uname, (void *name), (name))
WRAP(pid_t, -1, fork, (void), ())
WRAP(ssize_t, -1, readlink, (const char *path, char *buf, size_t size), (path, buf, size))
WRAP(ssize_t, -1, recvmsg, (int fd, void *message, int flags), (fd, message, flags))
WRAP(ssize_t, -1, recvfrom, (int fd, void *buf, size_t len, int flags, void *from, void *size), (fd, buf, len, flags, from, size))
WRAP(ssize_t, -1, sendmsg, (int fd, const void *message, int flags), (fd, message, flags))
WRAP(ssize_t, -1, process_vm_readv, (pid_t pid, const void *to, unsigned long tos, const void *from, unsigned long froms, unsigned long flags), (pid, to, tos, from, froms, flags))
WRAP(void *, NULL, fdopendir, (int fd), (fd))
WRAP(FILE *, NULL, fopen, (const char *path, const char *mode), (path, mode))
WRAP(FILE *, NULL, fopen64, (const char *path, const char *mode), (path, mode))
WRAP(void *, NULL, readdir, (void *dir), (dir))
WRAP(void *, NULL, readdir64, (void *dir), (dir))
WRAP(void *, POINTER_FAILED, mmap, (void *at, size_t len, int prot, int flags, int fd, off_t offset), (at, len, prot, flags, fd, offset))
WRAP(void *, POINTER_FAILED, mmap64, (void *at, size_t len, int prot, int flags, int fd, off_t offset), (at, len, prot, flags, fd, offset))
/* clang-format on */

/* Whoever is waited for has ended also where the answer is an error: so two do not speak at once. */
EXPORT pid_t waitpid(pid_t pid, int *status, int options);
pid_t waitpid(pid_t pid, int *status, int options)
{
	NEXT(waitpid, pid_t, pid_t, int *, int);
	bool failed = hit_whole("waitpid");
	int unused;
	pid_t result = real(pid, failed ? &unused : status, options);
	if (failed)
		errno = fault.err;
	return failed ? -1 : result;
}

/* Open in its four forms, which take a mode or not. */
#define WRAP_OPEN(name, params, args) \
	EXPORT int name params; \
	int name params \
	{ \
		va_list rest; \
		va_start(rest, flags); \
		mode_t mode = va_arg(rest, mode_t); \
		va_end(rest); \
		static int(*real) params; \
		if (!real) \
			real = (int(*) params)next(#name); \
		if (hit_whole(#name)) \
			return -1; \
		inside++; \
		int result = real args; \
		inside--; \
		return result; \
	}
WRAP_OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
WRAP_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
WRAP_OPEN(openat, (int dirfd, const char *path, int flags, ...), (dirfd, path, flags, mode))
WRAP_OPEN(openat64, (int dirfd, const char *path, int flags, ...), (dirfd, path, flags, mode))

/* Calls with one argument more, or none; the kernel takes it as a word. */
#define WRAP_WORD(type, name, first, flag) \
	EXPORT int name(int first, type flag, ...); \
	int name(int first, type flag, ...) \
	{ \
		va_list rest; \
		va_start(rest, flag); \
		void *word = va_arg(rest, void *); \
		va_end(rest); \
		static int (*real)(int, type, ...); \
		if (!real) \
			real = (int (*)(int, type, ...))next(#name); \
		if (hit_whole(#name)) \
			return -1; \
		inside++; \
		int result = real(first, flag, word); \
		inside--; \
		return result; \
	}
WRAP_WORD(unsigned long, ioctl, fd, request)
WRAP_WORD(int, fcntl, fd, command)
WRAP_WORD(int, fcntl64, fd, command)

/* NOLINTEND(bugprone-macro-parentheses) */

/* A part of what was asked for, in whole words, as pagemap wants it. */
static size_t part(size_t len)
{
	return len < 16 ? len : len / 2 & ~(size_t)7;
}

EXPORT ssize_t read(int fd, void *buf, size_t len);
ssize_t read(int fd, void *buf, size_t len)
{
	NEXT(read, ssize_t, int, void *, size_t);
	bool failed = hit("read", false);
	if (failed && fault.err)
		return -1;
	return real(fd, buf, failed ? part(len) : len);
}

EXPORT ssize_t pread64(int fd, void *buf, size_t len, off_t offset);
ssize_t pread64(int fd, void *buf, size_t len, off_t offset)
{
	NEXT(pread64, ssize_t, int, void *, size_t, off_t);
	bool failed = hit("pread64", false);
	if (failed && fault.err)
		return -1;
	return real(fd, buf, failed ? part(len) : len, offset);
}

EXPORT ssize_t write(int fd, const void *buf, size_t len);
ssize_t write(int fd, const void *buf, size_t len)
{
	NEXT(write, ssize_t, int, const void *, size_t);
	bool failed = hit("write", false);
	if (failed && fault.err)
		return -1;
	inside++;
	ssize_t n = real(fd, buf, len); /* no file of the kernel takes a part; it may say so */
	inside--;
	return failed && n > 0 ? n / 2 : n;
}

EXPORT int close(int fd);
int close(int fd)
{
	NEXT(close, int, int);
	bool failed = hit("close", false) && fault.err;
	int result = real(fd); /* a descriptor is gone also where that fails */
	if (failed)
		errno = fault.err;
	return failed ? -1 : result;
}

static void meet(const void *buf, size_t len)
{
	if (fault.since && !fault.since_met && len >= strlen(fault.since) &&
		!memcmp(buf, fault.since, strlen(fault.since)))
		fault.since_met = true;
}

EXPORT ssize_t sendto(
	int fd, const void *buf, size_t len, int flags, const void *address, unsigned size);
ssize_t sendto(int fd, const void *buf, size_t len, int flags, const void *address, unsigned size)
{
	NEXT(sendto, ssize_t, int, const void *, size_t, int, const void *, unsigned);
	ssize_t n = hit_whole("sendto") ? -1 : real(fd, buf, len, flags, address, size);
	meet(buf, len);
	return n;
}

static long long jumped(clockid_t clock)
{
	if (clock > CLOCK_MONOTONIC || fault.clock_count < fault.jump_at)
		return 0;
	return fault.jump_s[clock];
}

struct timer {
	struct timespec interval, value;
};

static int (*set_timer)(int, int, const struct timer *, struct timer *);
static struct {
	bool is;
	int fd, flags;
	struct timer timer;
} armed; /* last; a program here has one */

/* Whoever waits for a moment on the clock that jumped means that clock. */
static int arm(struct timer *old)
{
	struct timer timer = armed.timer;
	long long less = jumped(CLOCK_MONOTONIC), at = timer.value.tv_sec;
	if (armed.flags && at)
		timer.value.tv_sec = at > less ? at - less : 1; /* long ago */
	return set_timer(armed.fd, armed.flags, &timer, old);
}

EXPORT int timerfd_settime(int fd, int flags, const struct timer *asked, struct timer *old);
int timerfd_settime(int fd, int flags, const struct timer *asked, struct timer *old)
{
	NEXT(timerfd_settime, int, int, int, const struct timer *, struct timer *);
	if (hit_whole("timerfd_settime"))
		return -1;
	set_timer = real;
	armed.is = true;
	armed.fd = fd;
	armed.flags = flags;
	armed.timer = *asked;
	return arm(old);
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *t);
int clock_gettime(clockid_t clock, struct timespec *t)
{
	NEXT(clock_gettime, int, clockid_t, struct timespec *);
	bool now = ++fault.clock_count == fault.jump_at;
	if (now && armed.is)
		arm(NULL);
	int result = real(clock, t);
	t->tv_sec += jumped(clock);
	return result;
}

EXPORT int pthread_create(void *thread, const void *how, void *(*start)(void *), void *data);
int pthread_create(void *thread, const void *how, void *(*start)(void *), void *data)
{
	NEXT(pthread_create, int, void *, const void *, void *(*)(void *), void *);
	return hit_whole("pthread_create") ? EAGAIN : real(thread, how, start, data);
}

/* The C library's look-up of users asserts that it has memory, and is not what is tested here. */
EXPORT void *getpwuid(uid_t uid);
void *getpwuid(uid_t uid)
{
	NEXT(getpwuid, void *, uid_t);
	resolving++;
	void *found = real(uid);
	resolving--;
	return found;
}

/* Memory: dlsym itself allocates, so the C library's own names are used. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

#ifndef FAULT_NO_MEMORY
EXPORT void *malloc(size_t size)
{
	return hit("malloc", true) ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
	return hit("calloc", true) ? NULL : __libc_calloc(count, size);
}

EXPORT void *realloc(void *old, size_t size)
{
	return hit("realloc", true) ? NULL : __libc_realloc(old, size);
}

EXPORT void *reallocarray(void *old, size_t count, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return hit("reallocarray", true) ? NULL : __libc_realloc(old, bytes);
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
	return hit("aligned_alloc", true) ? NULL : __libc_memalign(align, size);
}
#endif
