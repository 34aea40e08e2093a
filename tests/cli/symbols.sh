#!/bin/sh
# libksmreg from outside: what it needs, what it exports, and that C++ and static musl programs can use it.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: B=build tests/cli/symbols.sh, in the top folder after `make`. Prints TAP.
# shellcheck disable=SC2317 # the functions are called through ok
set -u

B=${B:-build}
CC=${CC:-cc}
CXX=${CXX:-c++}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
n=0 bad=0

# ok NAME COMMAND...: one test; what the command prints is shown when it fails.
ok() {
	n=$((n + 1))
	name=$1
	shift
	if "$@" >"$tmp/said" 2>&1; then
		echo "ok $n - $name"
	else
		bad=$((bad + 1))
		echo "not ok $n - $name"
		sed 's/^/# /' "$tmp/said"
	fi
}

skip() {
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

# Lines of stdin that are not words of $1; succeeds when there are none.
only() {
	! grep -Fxv -e "$(printf '%s' "$1" | tr -s ' \t' '\n')"
}

# What the compiler's start-up files refer to, if present.
startup='__cxa_finalize __gmon_start__ _ITM_deregisterTMCloneTable _ITM_registerTMCloneTable'
# A sanitizer build needs its runtime; nothing else is let through for it.
sanitizer='^(__asan_|__ubsan_|__tsan_|__sanitizer_)'
# The whole of what may run inside an allocator's hook: no malloc, no stdio, no lock, no exit.
needs="$startup __errno_location syscall getauxval secure_getenv environ __environ strcmp strncmp strstr
	strlen strspn strcspn memcpy memset"
# And this once, when the program exits, where KSMREG_STATS asks for a report.
at_exit='fstat fstat64 snprintf getpid'

needed() {
	nm -D -u "$1" | sed 's/^ *[Uw] //; s/@.*//' | grep -Ev "$sanitizer" | only "$2"
}

# The names in an export map.
in_map() {
	sed -n '/global:/,/local:/s/^[[:space:]]*\([a-z0-9_]*\);$/\1/p' "$1" | sort
}

exported() {
	nm -D --defined-only "$1" | sed 's/^[0-9a-f]* [A-Za-z] //; s/@@*KSMREG_0$//' |
		grep -Ev "^KSMREG_0$|$sanitizer" | sort >"$tmp/exported"
	in_map "$2" >"$tmp/map"
	test -s "$tmp/map" && diff "$tmp/map" "$tmp/exported"
}

all_versioned() {
	! nm -D --defined-only "$1" | grep -v 'KSMREG_0$'
}

declared() {
	sed -n 's/^KSMREG_API .*[ *]\(ksm[a-z_]*\)(.*/\1/p' libksmreg/ksmreg.h | sort >"$tmp/declared"
	in_map libksmreg/ksmreg.map >"$tmp/map"
	test -s "$tmp/declared" && diff "$tmp/declared" "$tmp/map"
}

libc_alone() {
	readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
		grep -Ev '^lib(asan|ubsan|tsan)\.so' | only 'libc.so.6'
}

named() {
	readelf -d "$1" | grep 'SONAME' | grep -F "[$2]"
}

no_text_relocations() {
	! readelf -d "$1" | grep -E 'TEXTREL' && readelf -lW "$1" | grep 'GNU_STACK' | grep -v 'RWE'
}

cat >"$tmp/use.c" <<'END'
#include "libksmreg/ksmreg.h"
int main(void)
{
	static char region[1 << 20];
	struct ksmreg_caps caps;
	struct ksmreg_stats stats;

	caps.size = sizeof(caps);
	stats.size = sizeof(stats);
	ksm_register_memory(region, sizeof(region));
	if (ksmreg_get_stats(&stats) || stats.calls + (stats.state != KSMREG_ON) == 0)
		return 1;
	if (ksmreg_unregister(region, sizeof(region)) && stats.registered)
		return 2;
	return ksmreg_probe(&caps) || caps.page_size == 0;
}
END
cp "$tmp/use.c" "$tmp/use.cc"
sources='libksmreg/ksmreg.c libksmreg/probe.c libksmreg/environment.c libksmreg/areas.c'

cxx() {
	for std in 98 11 20; do
		$CXX "-std=c++$std" -Wall -Wextra -Werror -pedantic -I. -c -o "$tmp/use.o" "$tmp/use.cc" ||
			return 1
	done
	$CXX -o "$tmp/use" "$tmp/use.o" -L"$B" -lksmreg &&
		LD_LIBRARY_PATH=$B "$tmp/use"
}

c() {
	for std in 99 11 17; do
		$CC "-std=c$std" -Wall -Wextra -Werror -pedantic -I. -c -o "$tmp/use.o" "$tmp/use.c" ||
			return 1
	done
}

static() {
	# shellcheck disable=SC2086 # a list of files
	"$@" -static -O2 -Wall -Wextra -Werror -I. -o "$tmp/static" "$tmp/use.c" $sources &&
		"$tmp/static"
}

musl_preload() {
	# shellcheck disable=SC2086 # a list of files
	musl-gcc -shared -fPIC -O2 -Wall -Wextra -Werror -fvisibility=hidden -o "$tmp/preload.so" \
		-Wl,--version-script=libksmreg/preload.map libksmreg/ksmreg-preload.c $sources
}

lib=$B/libksmreg.so
preload=$B/libksmreg-preload.so
ok "libksmreg.so needs nothing beyond the list" needed "$lib" "$needs $at_exit"
ok "the preload needs nothing beyond the list" needed "$preload" "$needs $at_exit __sbrk getenv putenv memmove"
ok "libksmreg.so exports its map" exported "$lib" libksmreg/ksmreg.map
ok "the preload exports its map" exported "$preload" libksmreg/preload.map
ok "the object for glibc exports its map" exported "$B/libksmreg-glibc.so" libksmreg/adapters/glibc.map
ok "every exported symbol has a version" all_versioned "$lib"
ok "the map is what the header declares" declared
ok "libksmreg.so depends on libc alone" libc_alone "$lib"
ok "the preload depends on libc alone" libc_alone "$preload"
ok "libksmreg.so is named with its version" named "$lib" libksmreg.so.0
ok "no text relocations, no executable stack" no_text_relocations "$lib"
ok "the header compiles as C99, C11 and C17" c
if nm -D -u "$lib" | grep -q __asan_; then
	skip "a C++ program" "the library is built with a sanitizer"
elif command -v "$CXX" >/dev/null; then
	ok "a C++ program compiles, links and runs" cxx
else
	skip "a C++ program" "$CXX not installed"
fi
ok "a static program builds and runs" static "$CC"
if command -v musl-gcc >/dev/null; then
	ok "a static musl program builds and runs" static musl-gcc
	ok "the preload builds with musl" musl_preload
else
	skip "static musl" "musl-gcc not installed"
	skip "preload with musl" "musl-gcc not installed"
fi
echo "1..$n"
exit $((bad > 0))
