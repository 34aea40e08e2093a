#!/bin/bash
# ksmstat DELAY against the real kernel: pages merge and the lines tell it; they break, and the lines tell that.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: B=build tests/live/interval.sh, as root, after `make tests`. Prints TAP.
# shellcheck disable=SC2154 # ksm is set in guard.bash
set -u
cd "${BASH_SOURCE%/*}/../.." || exit 1
. tests/live/guard.bash
. tests/live/scene.bash

B=${B:-build}
n=0 bad=0 mine=()
mib=16
page=$(getconf PAGESIZE)
pages=$((mib * 1048576 / page))

skip_all()
{
	echo "1..1"
	echo "ok 1 - lines by the interval # SKIP $1"
	exit 0
}

[ "$(id -u)" = 0 ] && [ -w $ksm/run ] || skip_all 'needs root and KSM'
command -v jq >/dev/null || skip_all 'jq is not installed'
work=$(mktemp -d)
follower=
leave()
{
	[ -z "$follower" ] || kill "$follower" 2>/dev/null
	let_go
	rm -rf "$work"
}
trap leave EXIT
trap 'exit 1' INT TERM HUP

# follow OPTIONS: lines into $work/lines; it goes on when the first is there.
follow()
{
	rm -f "$work/lines"
	"$B/ksmstat" -J "$@" 0.2 >"$work/lines" &
	follower=$!
	for _ in {1..100}; do
		[ ! -s "$work/lines" ] || break
		sleep 0.1
	done
}
# Ends with a line that was read after all that happened.
enough()
{
	sleep 0.5
	kill "$follower"
	wait "$follower"
	follower=
}
# total FILTER: summed over the lines, a rate by its seconds; in whole numbers.
total() { jq -s "map($1) | add | round" "$work/lines"; }

begin_scene
echo 2 >$ksm/run
echo 0 >$ksm/run
echo 20000 >$ksm/pages_to_scan

for _ in 1 2 3; do hold "$B/tests/scene" equal $mib || within 1 1 0 'scene equal starts'; mine+=("$pid"); done
list=$(IFS=,; echo "${mine[*]}")
was=$(($(get pages_sharing) + $(get pages_shared)))
sharing=$(get pages_sharing)
scanned=$(! has pages_scanned || get pages_scanned)
follow
echo 1 >$ksm/run
passes 4
echo 0 >$ksm/run # nothing moves now
now=$(($(get pages_sharing) + $(get pages_shared)))
enough

# Other processes may be open to merging as well: counters tell how much there was.
within $((3 * pages * 98 / 100)) 100000000 $((now - was)) 'the pages of three processes merge'
within $(((now - was) * 98 / 100)) $(((now - was) * 110 / 100 + 100)) "$(total '.merged_per_s * .seconds')" 'MERGED, summed, is what came to the counters'
within $((2 * pages * page * 98 / 100)) 1000000000000 "$(total .delta)" 'the saving of two of them arrives in DELTA'
within $((($(get pages_sharing) - sharing) * page)) $((($(get pages_sharing) - sharing) * page)) "$(total .delta)" 'which is what pages_sharing grew by'
within 4 1000 "$(total .passes)" 'PASSES counts the passes'
within 10 "$((100 * 100 * 1000))" "$(total '.ksmd_percent * .seconds * 100')" 'ksmd took CPU time'
within 0 100 "$(jq -s 'map(.ksmd_percent) | max | floor' "$work/lines")" 'of one CPU at most'
if has pages_scanned; then
	grew=$(($(get pages_scanned) - scanned))
	within $((grew * 98 / 100)) $((grew * 102 / 100)) "$(total '.scanned_per_s * .seconds')" 'SCANNED, summed, is what pages_scanned grew by'
fi

follow -p "$list"
enough
if grep -q '^KSM:' /proc/self/smaps; then
	within $((2 * pages * page * 98 / 100)) $((3 * pages * page)) "$(jq -s '.[0].saving' "$work/lines")" 'SAVING of the three'
	within $((3 * pages * page * 98 / 100)) $((3 * pages * page * 102 / 100)) "$(jq -s '.[0].ksm' "$work/lines")" 'KSM of the three'
fi
within 3 3 "$(jq -s '.[0].processes' "$work/lines")" 'which are three'

if grep -q '^cow_ksm' /proc/vmstat; then
	follow
	broke=$(awk '$1 == "cow_ksm" { print $2 }' /proc/vmstat)
	echo 2 >$ksm/run
	echo 0 >$ksm/run
	broke=$(($(awk '$1 == "cow_ksm" { print $2 }' /proc/vmstat) - broke))
	enough
	within $((3 * pages * 98 / 100)) 100000000 "$broke" 'unmerging copies the pages of the three'
	within $((broke * 98 / 100)) $((broke * 102 / 100 + 100)) "$(total '.broken_per_s * .seconds')" 'BROKEN, summed, is as much'
	within 0 0 "$(jq -s '.[-1].saving' "$work/lines")" 'nothing is saved any more'
	within 1 1 "$(jq -s 'any(.[]; .passes == null) | if . then 1 else 0 end' "$work/lines")" 'and passes begin anew, which is no number'
else
	n=$((n + 1))
	echo "ok $n - BROKEN # SKIP this kernel does not count copies"
fi

end_scene
