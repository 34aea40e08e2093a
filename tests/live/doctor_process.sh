#!/bin/bash
# ksmctl doctor on this kernel, asked about a process: in each situation its first finding is the right one.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: B=build tests/live/doctor_process.sh, as root, after `make tests`. Prints TAP.
# shellcheck disable=SC2154 # set in doctor.bash
set -u
cd "${BASH_SOURCE%/*}/../.." || exit 1
. tests/live/doctor.bash

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
if start secret; then first secret-memory 1 'memfd_secret' "$pid"; else skip memfd_secret 'this kernel has none'; fi
if [ -c /dev/mem ]; then
	start device && first device-memory 1 'addresses of a device' "$pid"
else
	skip 'addresses of a device' 'there is no /dev/mem'
fi
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

afresh
fast
start equal; start equal
if start pinned; then
	passes 8
	first pinned 1 'a buffer of io_uring' "$pid"
else
	skip 'a buffer of io_uring' 'it cannot be had'
fi
start forked
passes 4
first shared-by-fork 1 'shared since a fork' "$pid"
start areas
passes 4
first many-areas 0 'many areas' "$pid"
silent many-areas 'few areas' $$
start locked
passes 4
first none 0 'locked memory merges' "$pid"
first locked-too 0 'locked memory, with advice' --all "$pid"
pair inner
first itself-only 1 'merges with itself' "$one"
afresh
fast
start equal; start equal
# Twins of their own content: the same seed, by a fork before they fill it.
start twins
passes 8
first none 0 'with its twin' "$pid"
kill "$(pgrep -P "$pid")"
sleep 0.3
first twins-gone 1 'its twin is gone' "$pid"
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

finished
