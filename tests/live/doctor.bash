# What the tests of ksmctl doctor on this kernel share: scenes, the scanner, and its first finding. To be sourced.
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034,SC2154 # used by the scripts that source it, or set in guard.bash
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
	drop_swap
	drop_group
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

# get_swap: 256 MiB of a compressed disk in memory, as swap.
zram=
get_swap()
{
	[ -r /sys/class/zram-control/hot_add ] && command -v mkswap swapon >/dev/null || return 1
	zram=$(cat /sys/class/zram-control/hot_add 2>/dev/null) || { zram=; return 1; }
	echo 256M >"/sys/block/zram$zram/disksize" && mkswap -q "/dev/zram$zram" && swapon "/dev/zram$zram"
}
drop_swap()
{
	[ -n "$zram" ] || return 0
	swapoff "/dev/zram$zram" 2>/dev/null
	echo 1 >"/sys/block/zram$zram/reset"
	echo "$zram" >/sys/class/zram-control/hot_remove
	zram=
}

# get_group MIB: a memory group of that size, in $group; limit MIB changes it.
group=
get_group()
{
	local top=/sys/fs/cgroup
	[ ! -e $top/memory/memory.limit_in_bytes ] || top=$top/memory
	[ -e $top/memory.stat ] && mkdir "$top/doctor-$$" 2>/dev/null || return 1
	group=$top/doctor-$$
	limit "$1"
}
limit()
{
	[ -e "$group/memory.max" ] || { echo "$1M" >"$group/memory.limit_in_bytes"; return; }
	echo "$1M" >"$group/memory.max"
} 2>/dev/null
drop_group()
{
	[ -n "$group" ] || return 0
	for _ in {1..50}; do rmdir "$group" 2>/dev/null && break; sleep 0.1; done
	group=
}

# said [ARGUMENT]...: the ids of all findings.
said() { "$B/ksmctl" "${root[@]}" doctor --json "$@" 2>"$work/err" | jq -r '.findings[].id'; }
says() { result "$(said "${@:3}" | grep -qx "$1"; echo $?)" "$2: says $1" "$(said "${@:3}" | tr '\n' ' ')"; }
silent() { result "$(! said "${@:3}" | grep -qx "$1"; echo $?)" "$2: no $1"; }

# pair SCENE [MIB]: two of them beside a pair that merges; their PIDs in $one and $pid.
pair()
{
	afresh
	fast
	start equal; start equal
	start "$@"; one=$pid
	start "$@"
	passes 8
}

# The end of a test.
finished()
{
	put_back "$before"
	found=$(as_found "$before")
	result $((${#found} > 0)) 'the knobs are as before' "$found"
	release
	echo "1..$n"
	exit $((bad > 0))
}

take
before=$(knobs)
guard
