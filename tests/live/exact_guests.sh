#!/bin/bash
# Live: over two guests with the same files, SAVED of all processes is what the kernel saves, to one per cent.
# SPDX-License-Identifier: GPL-2.0-or-later
. "${BASH_SOURCE%/*}/../cli/lib.bash"
. "${BASH_SOURCE%/*}/guard.bash"
ctl=$B/ksmctl stat=$B/ksmstat
. "${BASH_SOURCE%/*}/../bench/estimate_workload.bash"
. "${BASH_SOURCE%/*}/../bench/estimate_truth.bash"

[ "$(id -u)" -eq 0 ] || skip_all "changing the knobs needs root"
[ -w $ksm/run ] || skip_all "KSM cannot be used here: $ksm/run is not writable"
[ -r /proc/kpagecount ] || skip_all "this kernel has no /proc/kpagecount"
for tool in qemu-system-x86_64 busybox cpio jq; do
	command -v $tool >/dev/null || skip_all "$tool is not installed"
done
# Nothing is fetched for a test of every day.
image=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ksmctl-kernels/6.12/vmlinuz
[ -s "$image" ] || skip_all "there is no kernel for the guests yet: tests/vm/kernel 6.12 gets one"
! grep -q __asan_init "$B/ksmctl" || skip_all "built with a sanitizer, which is too slow next to emulated machines"
trap 'end_all; clean_up' EXIT

page=$(getconf PAGESIZE)
take
before=$(knobs)
guard
: >"$work/log"
start_qemu
verdict "$([ "$(grep -cx ready "$work/log")" -eq 2 ] || tail -n 5 "$work/log")" 'two guests start' || finish
! has advisor_mode || echo none >$ksm/advisor_mode
! has smart_scan || echo 0 >$ksm/smart_scan
! has use_zero_pages || echo 0 >$ksm/use_zero_pages
echo 10000 >$ksm/pages_to_scan
echo 1 >$ksm/sleep_millisecs
echo 1 >$ksm/run
converge_s=40 converge
echo 0 >$ksm/run
# Nothing moves from here on: a guest that writes takes pages back.
mapfile -t pids < <(family "${started[@]}")
kill -STOP "${pids[@]}"
sharing=$(($(get pages_sharing) * page))
sum=$("$stat" -b -J -o SAVED | jq '[.processes[].saved | values] | add')
guests=$("$stat" -b -J -o SAVED -p "$(IFS=,; echo "${pids[*]}")" | jq '[.processes[].saved | values] | add')
kill -CONT "${pids[@]}"

# Each guest read 24 MiB that the other has read too.
verdict "$([ "${guests%.*}" -ge $((24 << 20)) ] || echo "$guests bytes")" "the guests merged what they both read: $((${guests%.*} >> 20)) MiB saved"
verdict "$(awk -v a="$sharing" -v b="$sum" 'BEGIN { if (b < a * 0.99 || b > a * 1.01) print b " bytes of " a }')" \
	"SAVED of all processes is pages_sharing: $sum of $sharing bytes"

end_all
put_back "$before"
verdict "$(as_found "$before")" 'the knobs are as before'
release
finish
