#!/bin/bash
# The live tests on another kernel: in an emulated Debian, their results in one list.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: tests/vm/live.sh [-n NODES] [KERNEL [TEST]...], see tests/vm/boot; from the top of the tree, after
# `make tests`. A TEST is the name of one in tests/live, without its ending. Prints TAP.
set -u
B=${B:-build}
nodes=1
if [ "${1-}" = -n ]; then
	nodes=$2
	shift 2
fi
kernel=${1:-6.12}
[ $# -eq 0 ] || shift
# Not daemon: its limits of time are those of a real processor, tests/vm/daemon.sh is for here.
tests=(memory exact groups reg_merge cli_ksm cli_classic exits)
[ $# -eq 0 ] || tests=("$@")
. "${BASH_SOURCE%/*}/guest.bash"

mkdir -p "$files/build/tests/live" "$files/tests"
cp -a tests/cli tests/live tests/bench "$files/tests/"
cp -a "$B"/{ksmctl,ksmstat} "$B"/*.so* "$files/build/"
cp -a "$B"/tests/{job,scene,demo} "$files/build/tests/"
for t in "${tests[@]}"; do
	[ ! -x "$B/tests/live/$t" ] || cp "$B/tests/live/$t" "$files/build/tests/live/"
done
[ ! -d "$B/examples" ] || cp -a "$B/examples" "$files/build/"
find "$files/build" -type f -perm -u+x -exec strip -g {} + 2>/dev/null

# What runs there: a test that ends without its plan, or otherwise than its results say, has failed.
cat >"$files/guest" <<'END'
count=0 failed=0
uname -r | sed 's/^/# Linux /'
export B=build
for name; do
	program=$B/tests/live/$name
	[ -x "$program" ] || program=tests/live/$name.sh
	start=$SECONDS
	timeout -k 5 "$TEST_TIMEOUT_S" "$program" >/run/said 2>&1
	code=$?
	ok=$(grep -c '^ok ' /run/said) bad=$(grep -c '^not ok ' /run/said)
	planned=$(sed -n 's/^1\.\.\([0-9]*\).*/\1/p' /run/said | tail -n 1)
	echo "# $name: $((SECONDS - start)) s"
	if [ $code = 77 ]; then
		count=$((count + 1))
		echo "ok $count - $name $(grep -m 1 '^# SKIP' /run/said)"
		continue
	fi
	awk -v n=$count -v name="$name" '/^(not )?ok / { n++; sub(/ok [0-9]+( -)?/, "ok " n " - " name ":") } !/^1\.\./' /run/said
	count=$((count + ok + bad))
	if [ $((ok + bad)) != "$planned" ] || { [ "$bad" = 0 ] && [ $code != 0 ]; }; then
		count=$((count + 1)) bad=1
		echo "not ok $count - $name: ended with code $code after $((ok + bad)) of ${planned:-?} tests"
	fi
	failed=$((failed + bad))
done
echo "1..$count"
[ $failed = 0 ]
END
boot=(-m 3072 -n "$nodes" -d "$(. /etc/os-release && echo "${VERSION_CODENAME:-none}")")
in_guest 2400 env TEST_TIMEOUT_S=600 CK_TIMEOUT_MULTIPLIER=5 bash guest "${tests[@]}"
