#!/bin/bash
# The exact saving adds up to what the kernel saves, and is 0 for a process whose twin has gone.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: B=build tests/live/exact.sh, as root, after `make tests`. Prints TAP.
# shellcheck disable=SC2154 # ksm is set in guard.bash
set -u
cd "${BASH_SOURCE%/*}/../.." || exit 1
. tests/live/guard.bash
. tests/live/scene.bash

B=${B:-build}
n=0 bad=0

if [ "$(id -u)" != 0 ] || [ ! -w $ksm/run ] || [ ! -r /proc/kpagecount ]; then
	echo "1..1"
	echo "ok 1 - exact saving # SKIP needs root, KSM and /proc/kpagecount"
	exit 0
fi
if ! grep -q '^KSM:' /proc/self/smaps; then
	echo "1..1"
	echo "ok 1 - exact saving # SKIP this kernel does not count merged pages in smaps"
	exit 0
fi
work=$(mktemp -d)
start() { hold "$B/tests/scene" "$@" || within 1 1 0 "scene $* starts"; }
trap 'let_go; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

# column NAME PID: in bytes.
column() { "$B/ksmstat" -b -n -r -o "$1" -p "$2"; }

begin_scene
echo 1 >$ksm/run
start equal 16
start equal 16
start equal 8
start loss 4
start zero 4
passes 6
echo 0 >$ksm/run # nothing moves now

sharing=$(($(get pages_sharing) * $(getconf PAGESIZE)))
sum=$("$B/ksmstat" -J -o SAVED | jq '[.processes[].saved | values] | add')
within $((sharing / 100 * 99)) $((sharing / 100 * 101)) "$sum" 'SAVED of all processes is pages_sharing, in bytes'
within 9700000 10100000 "$(column SAVED "${pids[0]}")" 'three share 8 MiB and two of them 8 more'
within 0 0 "$(column KSM_SELF "${pids[0]}")" 'none of it is merged with itself'
self=$(column KSM_SELF "${pids[4]}")
# A page has at most max_page_sharing mappings, 1 MiB of them: one may be another process's too.
within 2900000 4200000 "$self" 'zeros are merged with themselves'
n=$((n + 1))
kind=$(column SAVED_BY "${pids[0]}")
if [ "$kind" = exact ]; then echo "ok $n - and is called exact"; else bad=$((bad + 1)); echo "not ok $n - called '$kind'"; fi

kill "${pids[0]}" "${pids[2]}" "${pids[3]}" "${pids[4]}"
wait "${pids[0]}" "${pids[2]}" "${pids[3]}" "${pids[4]}" 2>/dev/null
within 0 65536 "$(column SAVED "${pids[1]}")" 'its twins have gone: nothing is saved'
profit=$(column PROFIT "${pids[1]}")
[ "$profit" = - ] || within 15000000 17000000 "$profit" "and the kernel's profit claims it still"

end_scene
