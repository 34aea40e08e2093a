/* libksmreg: marks memory as mergeable for the kernel's same-page merging (KSM), from inside any allocator. */
/* SPDX-License-Identifier: MIT */
#ifndef KSMREG_H
#define KSMREG_H

/*
 * The kernel merges equal pages of anonymous memory, but only of memory that was offered to it. An
 * allocator offers its memory with one line where it gets a new region from the system, before it
 * hands out any of it:
 *
 *	ksmreg_register(region, size);
 *
 * The contract of every function here, unless its own text says otherwise: it may be called at any
 * moment - before main, in a signal handler, between fork and exec, from many threads, by an
 * allocator that holds its own locks. It does not allocate, lock, print or exit, and leaves errno
 * alone. Errors are returned as negative errno values; ignoring them is safe.
 *
 * Environment, read once by the first call that needs it (KSMREG_STATS at start-up), and not at all
 * where the program runs with privileges of its own (AT_SECURE):
 *	KSMREG=off           nothing is registered; the hook costs a load and a branch
 *	KSMREG_MIN=BYTES     smallest range that is registered, decimal, default 32768
 *	KSMREG_NOHUGEPAGE=1  no huge pages in what is registered; see KSMREG_NOHUGEPAGE
 *	KSMREG_STATS=FD      when the program exits, one line of counts is written to this file
 *	                     descriptor, if it is still open on the file that it was at start-up
 *
 * Why before the first touch: a page that is touched first gives its area a private anon_vma, and
 * an area marked after that never joins its neighbours again. 1000 growths of 256 KiB cost 1 area
 * when marked at once and 1000 when marked late, and a program has 65530 in all.
 *
 * Why not for secrets: the time of a write tells another process whether a page was merged, and so
 * what was in it. Memory with keys should not be registered; see ksmreg_unregister.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KSMREG_API __attribute__((visibility("default")))

/*
 * The hook: offer [addr, addr + len) for merging.
 * addr, len in bytes, of any alignment: only the pages that lie wholly inside are registered.
 * Registering a range twice, or one that overlaps another, is allowed.
 * Returns
 *	0            the kernel took the range, or it is shorter than KSMREG_MIN and was skipped.
 *	             Not a promise that it merges: the kernel says 0 and does nothing for shared
 *	             and hugetlb memory, and only equal pages ever merge
 *	-EINVAL      addr is NULL, the range wraps around or is longer than an address space: no
 *	             system call was made
 *	-ENOMEM      part of the range is not mapped; the mapped part is registered
 *	-ENOSPC      refused: the program has so many areas that further ones could use up
 *	             vm.max_map_count, after which its own mmap and munmap would fail
 *	-EAGAIN      the kernel is at that limit already
 *	-EOPNOTSUPP  the library is off: KSMREG=off, ksmreg_set_enabled(0), or a kernel or a seccomp
 *	             filter without MADV_MERGEABLE, which is found out by the first call
 *	other        of madvise(2)
 */
KSMREG_API int ksmreg_register(void *addr, size_t len);

/* ksmreg_register under its historic name and without a result: ptr, size in bytes. */
KSMREG_API void ksm_register_memory(void *ptr, size_t size);

/* Flags of ksmreg_register_with. */
/*
 * The kernel shall not use huge pages for the range (MADV_NOHUGEPAGE). Marking alone does not keep
 * them away: where less than half of a huge page merges, khugepaged puts it together again and
 * undoes the merging, for ever. What it costs is what huge pages gain, 0 to 3 % of CPU time in many
 * programs, more with large tables. Without it the program's own choice of huge pages stays.
 */
#define KSMREG_NOHUGEPAGE 1U
/*
 * Also a range that is shorter than KSMREG_MIN. For memory that was mapped anew over a part of a
 * registered range: left unmarked it would split that in two.
 */
#define KSMREG_ANY_SIZE 2U

/* As ksmreg_register, with flags or'ed together; -EINVAL also for unknown ones. */
KSMREG_API int ksmreg_register_with(void *addr, size_t len, unsigned flags);

/*
 * Register n ranges, each as by ksmreg_register, in order; an error does not end the rest.
 * Returns 0 or the first error. ranges may be NULL when n is 0.
 */
KSMREG_API int ksmreg_registerv(const struct iovec *ranges, size_t n);

/* What ksmreg_register_existing takes; private memory only, never stacks that the kernel made. */
#define KSMREG_HEAP 1U /* the break: [heap] */
#define KSMREG_ANON 2U /* anonymous mappings, .bss and the stacks of threads among them */
#define KSMREG_DATA 4U /* writable private mappings of files: .data; merges what was written */

/*
 * Register what the process has now, for memory from before the hook was in place: each area of
 * these kinds (or'ed together) as by ksmreg_register. Not in a hook: it reads /proc/self/maps, some
 * 0.5 us an area, and memory that another thread maps meanwhile may be taken or missed. Areas
 * marked this late do not join what is registered later.
 * Returns 0, -EINVAL (kinds), -EOPNOTSUPP as ksmreg_register, the first error of an area, or a
 * negative errno of open(2) or read(2).
 */
KSMREG_API int ksmreg_register_existing(unsigned kinds);

/* What became of a range. */
struct ksmreg_range {
	size_t size;		  /* set it to sizeof(struct ksmreg_range) before the call */
	uint64_t mapped_bytes;	  /* of the range */
	uint64_t mergeable_bytes; /* of the range: the kernel's flag is really set */
	uint64_t merged_bytes;	  /* of all areas that the range touches, whole; merged zero pages
				   * are not counted, and before Linux 6.7 it is 0 */
	uint64_t areas;		  /* that the range touches */
};

/*
 * Ask the kernel whether [addr, addr + len) really is mergeable, whoever marked it: the answer 0 of
 * ksmreg_register does not prove it. For tests and diagnosis, not for a hook: it reads
 * /proc/self/smaps, which walks all pages of the process.
 * Fills *range up to range->size and sets range->size to the bytes filled.
 * Returns 0, -EINVAL (addr or range NULL, a range that wraps, range->size too small), -ENODATA
 * (a kernel that does not tell, before 3.8), or a negative errno of open(2) or read(2).
 */
KSMREG_API int ksmreg_verify(const void *addr, size_t len, struct ksmreg_range *range);

/*
 * Take [addr, addr + len) back, however it was offered, also by ksmreg_process; pages merged by now
 * are made private again, at about 50 us per MiB, touched or not.
 * addr, len in bytes, of any alignment: every page that the range touches is taken back, so that
 * no part of a secret stays mergeable. Works also while the library is off.
 * Returns 0, -EINVAL as above, -ENOMEM (part not mapped, or no memory for the private copies), or
 * another negative errno of madvise(2).
 */
KSMREG_API int ksmreg_unregister(void *addr, size_t len);

/*
 * Offer all memory of the calling process, present and future, and of its children (on != 0), or
 * take it all back (on == 0). Taking back unmerges and also forgets what ksmreg_register offered; it
 * takes about 50 us per MiB of address space, also where nothing was ever touched, which is minutes
 * for a process that reserves terabytes.
 * Source: prctl(PR_SET_MEMORY_MERGE), kernel 6.4 and later; no privilege needed. On some kernels
 * areas no longer join while this is on: ask ksmreg_probe. With KSMREG_NOHUGEPAGE=1 in the
 * environment huge pages are refused for the whole process (PR_SET_THP_DISABLE).
 * Returns 0, -EINVAL (kernel without it), -EOPNOTSUPP (on != 0 while the library is off), or
 * another negative errno of prctl(2).
 */
KSMREG_API int ksmreg_process(int on);

/* What this kernel can do for this process. */
struct ksmreg_caps {
	size_t size;	  /* set it to sizeof(struct ksmreg_caps) before the call */
	size_t page_size; /* bytes */
	int madvise;	  /* MADV_MERGEABLE: 0 works, else a negative errno */
	int prctl;	  /* PR_SET_MEMORY_MERGE: 0 works, else a negative errno */
	int prctl_on;	  /* 1: it is on for this process */
	int areas_merge;  /* with it on, neighbouring areas join: 1 yes, 0 no, -1 not known */
};

/*
 * Ask the kernel by trying, on pages of its own which it unmaps again. Settings of the process
 * stay as they are: where PR_SET_MEMORY_MERGE is off, areas_merge is tried in a short-lived child
 * that raises no SIGCHLD. That costs as much as a fork, so call this at start-up, not in a hook; it
 * is the one function here that is not for signal handlers.
 * Fills *caps up to caps->size and sets caps->size to the bytes filled.
 * Returns 0, or -EINVAL (caps NULL or caps->size too small). Works also while the library is off.
 */
KSMREG_API int ksmreg_probe(struct ksmreg_caps *caps);

/*
 * Switch registering off (on == 0) and on again for this process, for example around the set-up of
 * memory that holds secrets. Ranges registered before stay registered. Switching on does not
 * override KSMREG=off or a kernel that cannot.
 */
KSMREG_API void ksmreg_set_enabled(int on);

/* Why the library registers, or does not. */
enum ksmreg_state {
	KSMREG_ON = 0,
	KSMREG_OFF_ENVIRONMENT = 1, /* KSMREG=off */
	KSMREG_OFF_CALLER = 2,	    /* ksmreg_set_enabled(0) */
	KSMREG_OFF_KERNEL = 3	    /* the kernel or a seccomp filter refuses */
};

/*
 * Counts since the program started; a forked child goes on with those of its parent. Each is exact,
 * but they are read one after the other while other threads may count on. On 32-bit machines they
 * wrap at 2^32 (registered_bytes at 2^32 pages).
 */
struct ksmreg_stats {
	size_t size;		   /* set it to sizeof(struct ksmreg_stats) before the call */
	uint64_t registered;	   /* ranges that the kernel took */
	uint64_t registered_bytes; /* their sum; a range registered twice counts twice */
	uint64_t skipped;	   /* ranges shorter than the minimum */
	uint64_t refused;	   /* ranges refused to bound the number of areas */
	uint64_t failed;	   /* ranges with another error */
	uint64_t calls;		   /* sum of the four: calls made while the library was on */
	int32_t last_error;	   /* negative errno of the last failure, 0 when there was none */
	int32_t state;		   /* enum ksmreg_state */
};

/*
 * Fills *stats up to stats->size and sets stats->size to the bytes filled, so that programs built
 * against a shorter or longer struct work with every version of the library.
 * Returns 0, or -EINVAL (stats NULL or stats->size too small for any version).
 */
KSMREG_API int ksmreg_get_stats(struct ksmreg_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
