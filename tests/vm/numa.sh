#!/bin/bash
# A machine of two NUMA nodes: merging across them and only within each, under the service, and what ksmstat says of it.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: tests/vm/numa.sh [KERNEL], see tests/vm/boot; from the top of the tree, after `make tests`. Prints TAP.
set -u
B=${B:-build}
kernel=${1:-6.12}
. "${BASH_SOURCE%/*}/guest.bash"
mkdir -p "$files"/build/tests "$files"/tests/{cli,live}
cp "$B"/ksmctl "$B"/ksmstat "$files/build/" || exit 1
cp "$B/tests/scene" "$files/build/tests/" || exit 1
cp tests/cli/lib.bash "$files/tests/cli/" || exit 1
cp tests/live/{guard,scene}.bash "$files/tests/live/" || exit 1

# What runs there.
cat >"$files/guest" <<'END'
. tests/cli/lib.bash
. tests/live/guard.bash
. tests/live/scene.bash
ctl=$B/ksmctl page=$(getconf PAGESIZE) mib=16
echo "# Linux $(uname -r)"
before=$(knobs)
verdict "$([ -d /sys/devices/system/node/node1 ] || ls /sys/devices/system/node)" 'the machine has two nodes'

on() { awk -v key="N$2=" '{ for (i = 1; i <= NF; i++) if (index($i, key) == 1) n += substr($i, length(key) + 1) } END { print n + 0 }' "/proc/$1/numa_maps"; }
# Two processes on each node, all with the same memory.
four()
{
	local node i n problem=''
	for node in 0 0 1 1; do
		hold numactl --membind=$node "$B/tests/scene" equal $mib || problem+="a process on node $node did not start"$'\n'
	done
	list=$(IFS=,; echo "${pids[*]}")
	for i in 0 1 2 3; do
		n=$(on "${pids[i]}" $((i / 2)))
		[ "$n" -ge $((mib * 256)) ] || problem+="process $i has $n pages on node $((i / 2))"$'\n'
	done
	verdict "$problem" 'each of four has its memory on its node'
}

printf '%s\n' "state-dir = $work/state" >"$work/conf"
shows() { grep -qsx "$1" "$work/state/status"; }
# under_service COPIES NAME [MORE ERR]: of each page so many are saved, then it rests, and ksmstat knows as much.
under_service()
{
	local want=$(($1 * mib * 256)) problem daemon sharing
	"$ctl" daemon -c "$work/conf" >"$work/said" 2>&1 </dev/null &
	daemon=$!
	enough() { [ "$(get pages_sharing)" -ge $((want * 98 / 100)) ]; }
	problem=$(wait_for 120 enough || echo "only $(get pages_sharing) pages of $want"
		wait_for 120 shows phase=parked || { echo 'it does not rest'; cat "$work/state/status" "$work/said"; })
	sharing=$(get pages_sharing)
	[ "$sharing" -le $((want * 102 / 100)) ] || problem+="$sharing pages are too many"
	verdict "$problem" "$2: $sharing pages of $want are saved, then the service rests"
	check_json "$2: ksmstat's SAVED is what the kernel says" "[.processes[].saved] | add / $page / $sharing |
		. > 0.98 and . < 1.02" -- "$B/ksmstat" -J -o SAVED -p "$list"
	check_json "$2: ksmstat --estimate recognises what is merged$3" ".estimate |
		.saved_already / $page / $sharing > 0.97 and .saved / $page < $sharing * 0.03" ${4:+"$4"} -- \
		"$B/ksmstat" --estimate --settle 0 -J -p "$list"
	kill -TERM $daemon
	wait $daemon
	verdict "$([ $? = 0 ] || cat "$work/said")" "$2: it ends in order"
}
four
under_service 3 'across nodes' ', and promises nothing more'
check 'merge_across_nodes is refused while pages are merged' 5 '' 'only while nothing is merged' -- "$ctl" set merge_across_nodes=0
check 'set --unmerge-first merge_across_nodes=0' 0 '' '' -- "$ctl" set --unmerge-first merge_across_nodes=0
# New ones: what is unmerged lies on the node of the one who did that.
let_go
four
under_service 2 'within each node' ', and says what it does not know' 'merge_across_nodes is 0: pages of different NUMA nodes will not merge'
check 'set --unmerge-first merge_across_nodes=1' 0 '' '' -- "$ctl" set --unmerge-first merge_across_nodes=1
let_go
put_back "$before"
verdict "$(as_found "$before")" 'the knobs are as before'
finish
END
boot=(-m 2048 -n 2 -d "$(. /etc/os-release && echo "${VERSION_CODENAME:-none}")")
in_guest 600 bash guest
