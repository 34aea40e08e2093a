#!/bin/bash
# ksmctl doctor on this kernel: in each situation its first finding is the right one, and on a healthy machine none.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: B=build tests/live/doctor.sh, as root, after `make tests`. Prints TAP.
# shellcheck disable=SC2154 # ksm is set in guard.bash
set -u
cd "${BASH_SOURCE%/*}/../.." || exit 1
. tests/live/guard.bash
. tests/live/scene.bash

B=${B:-build}
n=0 bad=0
passes_s=30

result()
{
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		bad=$((bad + 1))
		echo "not ok $n - $2"
		echo "# ${3:-}"
	fi
}

skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }

if [ "$(id -u)" != 0 ] || [ ! -w $ksm/run ]; then
	echo "1..1"
	echo "ok 1 - doctor # SKIP KSM cannot be used here: $ksm/run is not writable"
	exit 0
fi

work=$(mktemp -d)
before=
finish()
{
	let_go
	rm -rf "$work"
	[ ! -e "$work.hugetlb" ] || { cat "$work.hugetlb" >/proc/sys/vm/nr_hugepages; rm "$work.hugetlb"; }
}
trap finish EXIT
trap 'exit 1' INT TERM HUP

# start SCENE [MIB]: a process in that situation; its PID is then in $pid.
start() { hold "$B/tests/scene" "$@" || { result 1 "scene $*" 'it did not start'; false; }; }

# fast: many passes a second. slowly PAGES SLEEP_MS.
fast() { slowly 100000 0; }
slowly()
{
	! has advisor_mode || echo none >$ksm/advisor_mode
	! has smart_scan || echo 0 >$ksm/smart_scan
	echo "$1" >$ksm/pages_to_scan
	echo "$2" >$ksm/sleep_millisecs
	echo 1 >$ksm/run
}

afresh()
{
	let_go
	put_back "$before"
	echo 2 >$ksm/run
}

# first WANTED CODE NAME ARGUMENT...: the id of the first finding ("none") and the exit code.
first()
{
	local wanted=$1 code=$2 name=$3 said got got_code
	shift 3
	said=$("${in[@]}" "$B/ksmctl" "${root[@]}" doctor --json "$@" 2>"$work/err")
	got_code=$?
	got=$(echo "$said" | jq -r '.findings[0].id // "none"')
	result $((!(${#got} && got_code == code) || $([ "$got" = "$wanted" ]; echo $?))) "$name: $wanted" \
		"wanted $wanted and exit code $code, got $got and $got_code: $(echo "$said" | jq -rc '[.findings[] | .id + ": " + .evidence]') $(cat "$work/err")"
}
in=() root=()

take
before=$(knobs)
guard

# --- the machine
afresh
start equal; start equal
first run-off 1 'switched off'
echo 2 >$ksm/run
first run-off 1 'unmerged'
slowly 0 20
first no-pages-to-scan 1 'no pages per batch'
slowly 100 3600000
first sleeps-long 1 'an hour between batches'
echo 20 >$ksm/sleep_millisecs
echo 2 >$ksm/run
slowly 1 1000
first slow-pass 1 'a page a second'
echo 2 >$ksm/run
slowly 100 100
first too-early 1 'the first pass goes on'
if has advisor_mode; then
	echo 2 >$ksm/run
	echo 1000 >$ksm/sleep_millisecs
	echo 10 >$ksm/advisor_min_pages_to_scan
	echo 10 >$ksm/advisor_max_pages_to_scan
	echo scan-time >$ksm/advisor_mode
	echo 1 >$ksm/run
	sleep 1.2
	first advisor-stuck 1 "the kernel's advisor at 10 pages"
	echo none >$ksm/advisor_mode
else
	skip "the kernel's advisor" "this kernel has none"
fi
fast
passes 4
first none 0 'healthy'
said=$("$B/ksmctl" doctor 2>&1)
result $((${#said} > 0)) 'healthy: not a word' "$said"
first none 0 'healthy, a process' "$pid"
cp "$(command -v sleep)" "$work/ksmtuned"
"$work/ksmtuned" 60 &
pids+=($!)
first another-controller 1 'ksmtuned runs'
kill $! && wait $! 2>/dev/null
in=(unshare --mount sh -c 'mount -o remount,bind,ro /sys && exec "$@"' ro)
if "${in[@]}" true 2>/dev/null; then
	first read-only 0 '/sys is read-only'
else
	skip '/sys is read-only' 'it cannot be mounted so here'
fi
in=()

afresh
fast
first nothing-registered 1 'nobody has registered'
start unique; start unique
passes 4
first nothing-equal 1 'nothing is equal'
first nothing-equal 1 'nothing is equal, a process' "$pid"
afresh
fast
start change; start change
passes 6
first pages-change 1 'all pages change'
afresh
fast
start loss 128; start loss 128
passes 4
first profit-negative 1 'bookkeeping above saving'
afresh
echo 2 >$ksm/max_page_sharing
fast
for _ in 1 2 3 4 5 6; do start equal 4; done
passes 6
first sharing-limited 1 'two sharers at most'
afresh
if grep -q '\[never\]' /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null; then
	skip 'huge pages' 'they are switched off'
else
	fast
	start huge 32; start huge 32
	passes 4
	first huge-pages 1 'huge pages without twins'
fi

# --- made-up machines
mkdir -p "$work/tree/proc" "$work/tree/sys/kernel/mm" "$work/bare/proc"
root=(--root "$work/tree")
first no-ksm 1 'a kernel without KSM'
root=(--root "$work/bare")
first no-sys 1 'no /sys'
root=()

# --- processes, on a machine that is well
afresh
fast
start equal; start equal
passes 4
first process-gone 1 'no such process' 4194304
first kernel-thread 1 'a kernel thread' 2
start plain
first not-registered 1 'nothing registered' "$pid"
start shared
first mapped-shared 1 'shared memory' "$pid"
start lost
first flag-lost 1 'the parent has the flag' "$pid"
cat /proc/sys/vm/nr_hugepages >"$work.hugetlb"
echo 16 >/proc/sys/vm/nr_hugepages
if [ "$(cat /proc/sys/vm/nr_hugepages)" -ge 8 ] && start hugetlb 16; then
	first hugetlb 1 'hugetlb memory' "$pid"
else
	skip 'hugetlb memory' 'no huge pages can be had'
fi
let_go
cat "$work.hugetlb" >/proc/sys/vm/nr_hugepages
rm "$work.hugetlb"

# pair SCENE: two of them beside a pair that merges; their PIDs in $one and $pid.
pair()
{
	afresh
	fast
	start equal; start equal
	start "$@"; one=$pid
	start "$@"
	passes 8
}
pair change 4
first keeps-changing 1 'pages change' "$one"
pair zero
first zero-pages 1 'zeros' "$one"
pair addresses
first few-words-differ 1 'addresses differ' "$one" "$pid"
pair values
first few-words-differ 1 'values differ' "$one" "$pid"
pair shifted
first shifted 1 'shifted content' "$one" "$pid"
pair unique
first nothing-alike 1 'nothing in common' "$one" "$pid"
pair part 64
first part-registered 1 'a part registered' "$one" "$pid"
afresh
start equal; start equal
fast
passes 4
cp "$B/tests/scene" "$work/alone"
slowly 10 200
saved=$B
B=$work
mkdir "$work/tests" && cp "$work/alone" "$work/tests/scene"
start unique 1
B=$saved
first not-scanned-yet 1 'registered just now' "$pid"
let_go

put_back "$before"
found=$(as_found "$before")
result $((${#found} > 0)) 'the knobs are as before' "$found"
release
echo "1..$n"
exit $((bad > 0))
