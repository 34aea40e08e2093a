#!/bin/bash
# The object in front of glibc's malloc: what it marks, in how few areas, and what it must leave alone.
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154 # work and B are of lib.bash
. "${BASH_SOURCE%/*}/lib.bash"
cd "${BASH_SOURCE%/*}/../.." || exit 1

object=$(realpath "$B")/libksmreg-glibc.so
CC=${CC:-gcc}
[ -e /sys/kernel/mm/ksm ] || skip_all "this kernel has no KSM"
if nm -D -u "$object" | grep -q '__asan_\|__tsan_'; then
	skip "the object in front of glibc's malloc" "a sanitizer's runtime must come before any preload"
	finish
fi

# Each job prints, in per cent, how much of its own anonymous memory is marked, and how many areas it has.
cat >"$work/job.c" <<'END_C'
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void (*volatile give_back)(void *);

static void *get(size_t size)
{
	void *block = malloc(size);

	if (!block)
		exit(3);
	memset(block, 1, size);
	return block;
}

static void say(void)
{
	static char line[512];
	long anonymous = 0, all = 0, marked = 0, areas = 0, skipped = 0;
	FILE *f = fopen("/proc/self/smaps", "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (line[0] >= 'a' || (line[0] >= '0' && line[0] <= '9')) {
			areas++;
			skipped = strchr(line, '/') || strstr(line, "[stack");
		} else if (sscanf(line, "Anonymous: %ld", &anonymous) == 1) {
			all += skipped ? 0 : anonymous;
		} else if (!strncmp(line, "VmFlags:", 8) && strstr(line, " mg") && !skipped) {
			marked += anonymous;
		}
	}
	if (f)
		fclose(f);
	printf("%ld %ld\n", 100 * marked / all, areas);
	fflush(stdout);
}

static char *blocks[4000];

/* Goes about the end of a heap, so that glibc gives the next one back and takes it again. */
static void *thread(void *data)
{
	for (int i = 0; i < 900; i++)
		blocks[i] = get(64 << 10);
	for (int round = 0; round < 5; round++) {
		for (int i = 900; i < 2500; i++)
			blocks[i] = get((64 << 10) - 1000 * round);
		if (round < 4)
			for (int i = 2499; i >= 900; i--)
				give_back(blocks[i]);
	}
	say();
	return data;
}

static void trimmed(void)
{
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 400; i++)
			blocks[i] = get(100000);
		if (round == 3)
			break;
		for (int i = 399; i >= 0; i--)
			give_back(blocks[i]);
		malloc_trim(0);
	}
	say();
}

/* Whatever is asked for, the answer is that of malloc(3). */
static int answers(void)
{
	void *block = NULL;

	for (size_t alignment = 16; alignment <= 4 << 20; alignment *= 2) {
		size_t size = alignment % 3 * 100000 + 1000;

		errno = 7;
		if (posix_memalign(&block, alignment, size) || (uintptr_t)block % alignment || errno != 7)
			return 10;
		memset(block, 1, size);
		give_back(block);
		block = memalign(alignment, size);
		if (!block || (uintptr_t)block % alignment)
			return 11;
		give_back(block);
		block = aligned_alloc(alignment, size / alignment * alignment + alignment);
		if (!block || (uintptr_t)block % alignment)
			return 12;
		give_back(block);
	}
	if (posix_memalign(&block, 24, 100) != EINVAL || errno != 7)
		return 13;
	errno = 0;
	if (malloc(SIZE_MAX / 2) || errno != ENOMEM || calloc(SIZE_MAX / 2, 3) || pvalloc(SIZE_MAX - 1))
		return 14;
	errno = 7;
	for (size_t size = 1; size < 100 << 20; size = size * 3 + 1) {
		char *zeros = calloc(size, 1);

		if (!zeros || zeros[0] || zeros[size - 1])
			return 15;
		zeros = realloc(zeros, 2 * size);
		if (!zeros || errno != 7)
			return 16;
		give_back(zeros);
	}
	block = valloc(100);
	if ((uintptr_t)block % sysconf(_SC_PAGESIZE))
		return 17;
	give_back(block);
	return 0;
}

static int forks(void)
{
	int status = 0;

	for (int i = 0; i < 50; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			for (int k = 0; k < 100; k++)
				give_back(get(300000));
			_exit(0);
		}
		if (waitpid(pid, &status, 0) != pid || status)
			return 20;
	}
	return 0;
}

static void *busy(void *data)
{
	for (int i = 0; i < 20000; i++)
		give_back(get(100 + i % 5 * 50000));
	return data;
}

static int races(void)
{
	pthread_t threads[4];
	int status;

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, busy, NULL);
	status = forks();
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return status;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t other;

	/* in a program that is not position-independent this makes free a stub in the program itself */
	give_back = free;
	if (!strcmp(what, "thread")) {
		pthread_create(&other, NULL, thread, NULL);
		pthread_join(other, NULL);
	} else if (!strcmp(what, "trimmed")) {
		trimmed();
	} else if (!strcmp(what, "answers")) {
		return answers();
	} else if (!strcmp(what, "races")) {
		return races();
	} else {
		for (int i = 0; i < 1500; i++)
			get(what[0] == 'l' ? 200000 : 3000);
		say();
	}
	return 0;
}
END_C
$CC -w -O1 -pthread -fPIE -pie -o "$work/pie" "$work/job.c" &&
	$CC -w -O1 -pthread -fno-pie -no-pie -o "$work/fixed" "$work/job.c" || exit 1
if [ "$(uname -m)" = x86_64 ]; then
	stub=$(readelf -W --dyn-syms "$work/fixed" | awk '$8 ~ /^free(@|$)/ { print $2 }')
	verdict "$([ "$((16#${stub:-0}))" != 0 ] || echo "free is at ${stub:-nowhere}")" 'the program has a stub for free'
fi

# marked LOW MOST NAME [VARIABLE=VALUE...] COMMAND...: per cent marked, and the most areas.
marked()
{
	local low=$1 most=$2 name=$3 per_cent areas problem=
	shift 3
	read -r per_cent areas < <(LD_PRELOAD=${inside:-$object} timeout 60 env "$@" 2>&1)
	{ [ "${per_cent:-x}" -ge "$low" ] && [ "$areas" -le "$most" ]; } 2>/dev/null ||
		problem="wanted $low % or more in at most $most areas, got: ${per_cent:-nothing} ${areas:-}"
	verdict "$problem" "$name"
}

# succeeds NAME [VARIABLE=VALUE...] COMMAND...
succeeds()
{
	local name=$1 said code
	shift
	said=$(LD_PRELOAD=${inside:-$object} timeout 120 env "$@" 2>&1)
	code=$?
	verdict "$([ $code = 0 ] || echo "exit code $code: $said")" "$name"
}

for program in pie fixed; do
	marked 90 60 "$program: small blocks" "$work/$program" small
	marked 95 80 "$program: 1500 blocks of 200 kB do not lie in an area each" "$work/$program" large
	marked 95 80 "$program: heaps of a thread that come and go" "$work/$program" thread
	marked 95 80 "$program: a break that goes down and up again" "$work/$program" trimmed
	succeeds "$program: what malloc and the others answer" "$work/$program" answers
done
succeeds 'threads and forks' "$work/pie" races
marked 95 1600 'what the environment says of growth stands' MALLOC_TOP_PAD_=131072 "$work/pie" thread
read -r per_cent areas < <(LD_PRELOAD=$object KSMREG=off "$work/pie" large)
verdict "$([ "$per_cent" = 0 ] || echo "$per_cent % marked")" 'off: nothing is marked'
for pages in 1 2; do
	succeeds "heaps of another size, glibc.malloc.hugetlb=$pages" GLIBC_TUNABLES=glibc.malloc.hugetlb=$pages \
		"$work/pie" thread
done

# Another malloc: nothing is marked, nothing breaks, wherever the object stands.
for allocator in tcmalloc_minimal:libgoogle-perftools-dev jemalloc:libjemalloc-dev mimalloc:libmimalloc-dev; do
	package=${allocator#*:} allocator=${allocator%:*}
	for program in pie fixed; do
		how="-fno-pie -no-pie"
		[ $program = fixed ] || how="-fPIE -pie"
		# shellcheck disable=SC2086 # several words
		if ! $CC -w -O1 -pthread $how -o "$work/$allocator" "$work/job.c" -Wl,--no-as-needed "-l$allocator" 2>/dev/null ||
			! $CC -w -O1 -pthread -Ilibksmreg $how -o "$work/linked" "$work/job.c" libksmreg/adapters/glibc.c \
				libksmreg/{ksmreg,probe,environment,areas}.c -Wl,--no-as-needed "-l$allocator"; then
			skip "$program with $allocator" "$package is not installed"
			continue
		fi
		for where in preloaded linked; do
			command=("$work/$allocator") inside=$object
			[ $where = preloaded ] || { command=("$work/linked"); inside=' '; }
			succeeds "$program with $allocator, $where" "${command[@]}" races
			counts=$(LD_PRELOAD=$inside KSMREG_STATS=3 "${command[@]}" large 3>&1 >/dev/null)
			verdict "$([[ $counts == *' registered=0 '* ]] || echo "counts: $counts")" \
				"$program with $allocator, $where: nothing is marked"
		done
		inside=
	done
done
if command -v valgrind >/dev/null; then
	succeeds 'under valgrind, which has a malloc of its own' valgrind -q "$work/pie" small
else
	skip 'under valgrind' 'valgrind is not installed'
fi
finish
