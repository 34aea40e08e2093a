#!/bin/bash
# What merging saves, added up over real control groups, is what the kernel says that it saves.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: B=build tests/live/groups.sh, as root, after `make tests`. Prints TAP.
# shellcheck disable=SC2154 # ksm is set in guard.bash
set -u
cd "${BASH_SOURCE%/*}/../.." || exit 1
. tests/live/guard.bash
. tests/live/scene.bash

B=${B:-build}
n=0 bad=0
id=$(printf '%064x' $$)

skip_all()
{
	echo "1..1"
	echo "ok 1 - groups # SKIP $1"
	exit 0
}

[ "$(id -u)" = 0 ] && [ -w $ksm/run ] && [ -r /proc/kpagecount ] || skip_all 'needs root, KSM and /proc/kpagecount'
grep -q '^KSM:' /proc/self/smaps || skip_all 'this kernel does not count merged pages in smaps'
command -v jq >/dev/null || skip_all 'jq is not installed'
box=
for dir in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
	[ -e $dir/cgroup.procs ] && mkdir $dir/ksm-live.$$ 2>/dev/null && box=$dir/ksm-live.$$ && break
done
[ -n "$box" ] || skip_all 'no control group can be made here'
work=$(mktemp -d)
leave()
{
	let_go
	for _ in {1..50}; do
		find "$box" -depth -type d -exec rmdir {} + 2>/dev/null
		[ -e "$box" ] || break
		sleep 0.1
	done
	rm -rf "$work"
}
trap leave EXIT
trap 'exit 1' INT TERM HUP

# start GROUP SCENE...: in that group from before it has memory.
start()
{
	mkdir -p "$box/$1"
	# shellcheck disable=SC2016 # for that shell
	hold bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$box/$1" "$B/tests/scene" "${@:2}" ||
		within 1 1 0 "scene ${*:2} starts"
}

begin_scene
echo 1 >$ksm/run
start "docker/$id" equal 16
start "docker/$id" equal 16
start lxc.payload.box equal 16
start plain equal 8
from=$(get full_scans)
for _ in {1..1200}; do
	[ "$(get full_scans)" -lt $((from + 6)) ] || break
	sleep 0.05
done
echo 0 >$ksm/run # nothing moves now

"$B/ksmstat" -J --by system -o +SAVED_BY >"$work/system" 2>/dev/null
kernel=$(jq '.groups[0].kernel_saved' "$work/system")
within $((kernel / 100 * 99)) $((kernel / 100 * 101)) "$(jq '.groups[0].saved' "$work/system")" 'SAVED of the system is what the kernel says'
within "$(($(get pages_sharing) * $(getconf PAGESIZE)))" "$(($(get pages_sharing) * $(getconf PAGESIZE)))" "$kernel" 'which is its pages_sharing'
# 16 MiB in three and 8 MiB of them in a fourth: 3 and 2 of the copies are saved, and the groups share in that.
"$B/ksmstat" -J --by container -g "/${box##*/}" -o CONTAINER,PROCS,SAVED,SAVED_BY >"$work/container"
of() { jq "[.groups[] | select(.container == $1).saved] | add" "$work/container"; }
mib=1048576
within $((39 * mib)) $((41 * mib + 65536)) "$(jq '[.groups[].saved] | add' "$work/container")" 'all containers save 2 x 8 MiB and 3 x 8 MiB'
within $((22 * mib)) $((24 * mib)) "$(of '"docker:'"${id:0:12}"'"')" 'the container of two has two thirds of the one and half of the other'
within $((11 * mib)) $((12 * mib)) "$(of '"lxc:box"')" 'the container of one has its share'
within $((5 * mib)) $((7 * mib)) "$(of null)" 'what is in no container has its own'
within 3 3 "$(jq '[.groups[] | select(.saved_by == "exact" or .saved_by == "estimated")] | length' "$work/container")" 'each says how it is known'
"$B/ksmstat" -J -T -g "/${box##*/}" >"$work/tree"
top=$(jq '.groups[0].saved' "$work/tree")
within "$top" "$top" "$("$B/ksmstat" -J -o SAVED -g "/${box##*/}" | jq '[.processes[].saved] | add')" 'the top of the tree is the sum of the processes'

end_scene
