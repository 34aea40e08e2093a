#!/bin/bash
# Whether what reaches into running programs compiles for the machines that it knows, and for one that it does not.
# SPDX-License-Identifier: GPL-2.0-or-later
set -u
cd "${BASH_SOURCE%/*}/../.." || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
count=0 failed=0

# compiles NAME SYMBOL COMPILER...: every file; SYMBOL is called where the machine is known
compiles()
{
	local name=$1 want=$2 problem='' file calls
	shift 2
	count=$((count + 1))
	if ! echo '#include <errno.h>' | "$@" -c -x c -o "$dir/x.o" - 2>/dev/null; then
		echo "ok $count - $name # SKIP $* cannot compile here"
		return
	fi
	for file in inject inject_steps inject_target; do
		problem+=$("$@" -std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I. -O2 -Wall -Wextra -Wshadow \
			-Wmissing-prototypes -Wformat=2 -Wundef -Werror -c -o "$dir/$file.o" "ksmctl/$file.c" 2>&1)
	done
	calls=no
	! grep -qs 'process_vm_readv' "$dir/inject_steps.o" || calls=yes
	[ -n "$problem" ] || [ $calls = "$want" ] || problem="traces: $calls, not $want"
	if [ -z "$problem" ]; then
		echo "ok $count - $name"
	else
		failed=$((failed + 1))
		echo "not ok $count - $name"
		sed 's/^/# /' <<<"$problem"
	fi
}
compiles 'arm64' yes aarch64-linux-gnu-gcc
compiles 'a machine that is not known: i386' no "${CC:-cc}" -m32
echo "1..$count"
exit $((failed > 0))
