#!/bin/bash
# ksmctl doctor on this kernel: for each state of the machine its first finding is the right one; none where all is well.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: B=build tests/live/doctor.sh, as root, after `make tests`. Prints TAP.
# shellcheck disable=SC2154 # set in doctor.bash
set -u
cd "${BASH_SOURCE%/*}/../.." || exit 1
. tests/live/doctor.bash

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
first none 0 'healthy, with advice' --all

# It changes nothing: no setting, and no area of a process.
state() { knobs; grep -h '^VmFlags' "/proc/$pid/smaps"; grep -vs 'pages\|items\|profit' "/proc/$pid/ksm_stat"; }
saved=$(state)
"$B/ksmctl" doctor --all "$pid" >/dev/null
result "$([ "$(state)" = "$saved" ]; echo $?)" 'it changes neither settings nor areas' "$(diff <(echo "$saved") <(state))"

# Without root it says what it could not see, and takes what it sees for neither good nor bad.
cp "$B/ksmctl" "$work/ksmctl" && chmod 755 "$work" "$work/ksmctl"
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
said=$("${nobody[@]}" "$work/ksmctl" doctor 2>&1)
code=$?
result $((code != 0)) 'without root: exit code 0' "$code: $said"
result "$([[ $said == *"could not be asked; as root more can be"* ]]; echo $?)" 'without root: says what it cannot see' "$said"
said=$("${nobody[@]}" "$work/ksmctl" doctor --json "$pid" 2>/dev/null | jq -r '.findings[0].id')
result "$([ "$said" = process-unreadable ]; echo $?)" 'without root: a process of root' "$said"
cp "$(command -v sleep)" "$work/ksmtuned"
"$work/ksmtuned" 60 &
pids+=($!)
first another-controller 1 'ksmtuned runs'
kill $! && wait $! 2>/dev/null
if has advisor_mode; then
	echo scan-time >$ksm/advisor_mode
	"$work/ksmtuned" 60 &
	pids+=($!)
	first advisor-fights 1 "ksmtuned beside the kernel's advisor"
	kill $! && wait $! 2>/dev/null
	fast
else
	skip "ksmtuned beside the kernel's advisor" "this kernel has none"
fi
for ((i = 20; i < 1000; i++)); do echo $i >$ksm/stable_node_chains_prune_millisecs; sleep 0.05; done &
writer=$!
pids+=("$writer")
first another-controller 1 'somebody writes settings'
kill $writer && wait $writer 2>/dev/null
first none 0 'nobody writes any more'
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
# With smart_scan the kernel counts pages that it passes over among those that change.
if has smart_scan; then
	afresh
	fast
	echo 1 >$ksm/smart_scan
	start change; start change
	passes 12
	first pages-change 1 'all pages change, smart_scan'
	afresh
	fast
	echo 1 >$ksm/smart_scan
	start unique; start unique
	passes 12
	first nothing-equal 1 'nothing is equal, smart_scan'
	start equal 8; start equal 8
	passes 4
	first none 0 'most is alone and passed over'
else
	skip 'pages that are passed over' 'this kernel has no smart_scan'
fi
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

if has smart_scan; then
	afresh
	start equal 64
	fast
	echo 1 >$ksm/smart_scan
	passes 12
	echo 20 >$ksm/sleep_millisecs
	echo 50 >$ksm/pages_to_scan
	start equal 64
	sleep 0.5 # the batch of before is over
	first smart-scan 1 'a late twin'
	echo 0 >$ksm/smart_scan
	silent smart-scan 'a late twin, and all are looked at'
else
	skip 'a late twin' "this kernel has no smart_scan"
fi

afresh
fast
start equal; start equal
if get_swap; then
	start swapped 64
	passes 4
	first swapped-out 1 'registered memory in swap'
	let_go
	start equal; start equal
	if get_group 400; then
		readers=()
		for _ in 1 2; do
			# shellcheck disable=SC2016 # for that shell
			hold sh -c 'echo $$ >"$1/cgroup.procs" && exec "$2" reads 64' sh "$group" "$B/tests/scene"
			readers+=("$pid")
		done
		passes 8
		silent swap-breaks 'they read what is merged'
		# all of it goes to swap, and comes back while doctor looks
		kill -STOP "${readers[@]}"
		for _ in {1..40}; do
			limit 20
			out=$(awk '/^VmSwap/ { print $2 }' "/proc/${readers[0]}/status")
			[ "$out" -lt 32768 ] || break
		done
		limit 400
		if [ "$out" -ge 32768 ]; then
			{ sleep 0.2; kill -CONT "${readers[@]}"; } &
			first swap-breaks 1 'they read it from swap'
		else
			skip 'they read it from swap' "this kernel swapped out $out KiB of 64 MiB of merged pages"
			kill -CONT "${readers[@]}"
		fi
	else
		skip 'they read it from swap' 'memory is in no control group here'
	fi
	let_go
	start equal; start equal
	drop_group
	passes 4
	first none 0 'swap, and nothing in it'
	drop_swap
else
	skip 'registered memory in swap' 'no compressed swap can be had'
	skip 'they read it from swap' 'no compressed swap can be had'
fi

afresh
fast
start equal; start equal
if get_group 100; then
	passes 4
	# shellcheck disable=SC2016 # for that shell
	hold sh -c 'echo $$ >"$1/cgroup.procs" && exec "$2" unique 94' sh "$group" "$B/tests/scene"
	passes 4
	first group-limit 1 'a group near its limit'
	limit 400
	first none 0 'a group with room'
	let_go
	drop_group
else
	skip 'a group near its limit' 'memory is in no control group here'
fi

afresh
fast
start equal; start equal; start lazy
passes 4
first madv-free 0 'MADV_FREE in registered memory'
let_go
start equal; start equal; start zero; start zero
passes 4
first none 0 'zeros are no fault'
first zeros-apart 0 'zeros, with advice' --all
echo 1 >$ksm/use_zero_pages
first none 0 'zeros merge to the zero page' --all
afresh
fast
start equal
cp "$B/tests/scene" "$work/scene"
hold "${nobody[@]}" "$work/scene" equal
passes 4
first none 0 'two users are no fault'
first users-share 0 'two users, with advice' --all
result "$("$B/ksmctl" doctor --all | grep -q 'user IDs 0 and 65534'; echo $?)" 'it names them'
let_go
hold "${nobody[@]}" "$work/scene" equal
hold "${nobody[@]}" "$work/scene" equal
passes 4
silent users-share 'one user' --all

# --- how long it takes
if grep -q __asan_init "$B/ksmctl"; then
	skip '500 processes' 'built with a sanitizer'
else
	afresh
	fast
	mkfifo "$work/hold"
	for _ in {1..500}; do "$B/tests/scene" equal 1 <"$work/hold" >>"$work/many" & done
	exec {hold}>"$work/hold"
	holds+=("$hold")
	for _ in {1..300}; do [ "$(wc -l <"$work/many")" -lt 500 ] || break; sleep 0.1; done
	for options in '' --all; do
		took=$(date +%s%N)
		# shellcheck disable=SC2086 # none or one
		"$B/ksmctl" doctor $options >/dev/null 2>&1
		within 0 2000 $((($(date +%s%N) - took) / 1000000)) "500 processes, ms, doctor $options"
	done
	exec {hold}>&-
	wait_for_none=$(($(date +%s) + 10))
	while pgrep -P $$ scene >/dev/null && [ "$(date +%s)" -lt $wait_for_none ]; do sleep 0.1; done
	let_go
fi

# --- made-up machines
# A captured one says of what kernel it is.
captured() { rm -rf "$work/kernel" && cp -r tests/fixtures/linux-6.12 "$work/kernel" && echo "$1" >"$work/kernel/proc/version"; }
root=(--root "$work/kernel")
captured 'Linux version 6.12.43 (me@host) (gcc) #1 SMP'
says kernel-flags 'Linux 6.12.43' --all
captured 'Linux version 6.1.0-39-amd64 (d@d.org) (gcc) #1 SMP PREEMPT_DYNAMIC Debian 6.1.148-1 (2025-08-26)'
says kernel-flags 'Debian 6.1.148' --all
silent kernel-flags 'Debian 6.1.148, not asked for advice'
captured 'Linux version 6.1.0-42-amd64 (d@d.org) (gcc) #1 SMP PREEMPT_DYNAMIC Debian 6.1.159-1 (2025-12-30)'
silent kernel-flags 'Debian 6.1.159' --all
mkdir -p "$work/tree/proc" "$work/tree/sys/kernel/mm" "$work/bare/proc"
root=(--root "$work/tree")
first no-ksm 1 'a kernel without KSM'
root=(--root "$work/bare")
first no-sys 1 'no /sys'
root=()

finished
