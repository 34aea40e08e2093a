#!/bin/bash
# Live: ksmctl and ksmstat on the running kernel, and the demonstration, interrupted and whole.
# SPDX-License-Identifier: GPL-2.0-or-later
. "${BASH_SOURCE%/*}/../cli/lib.bash"
. "${BASH_SOURCE%/*}/guard.bash"

ctl=$B/ksmctl stat=$B/ksmstat
page=$(getconf PAGESIZE)
[ -d $ksm ] || skip_all "this kernel has no KSM"
[ "$(id -u)" -eq 0 ] || skip_all "changing the knobs needs root"
[ -w $ksm/run ] || skip_all "$ksm is read-only here"
command -v perl >/dev/null || skip_all "perl is not installed"

holds()
{
	local change
	for change; do
		[ "$(get "${change%%=*}")" = "${change#*=}" ] || echo "${change%%=*} is $(get "${change%%=*}"), not ${change#*=}"
	done
}
as_found() { diff <(echo "$1") <(knobs) | sed -n 's/^[<>]/knobs as found or now:&/p'; }
works() { also="holds ${*:2}" check "${name:-$1}" 0 '' '' -- "$ctl" $1; }
refused() { also="as_found '$(knobs)'" check "refused: $2" 5 '' "$1" -- "$ctl" $2; }

# The knobs themselves.
take
guard
before=$found
works 'start 1234 15' run=1 pages_to_scan=1234 sleep_millisecs=15
works stop run=0 pages_to_scan=1234 sleep_millisecs=15
works start run=1 pages_to_scan=1234
works 'set run=0 pages_to_scan=4321 sleep_millisecs=25' run=0 pages_to_scan=4321 sleep_millisecs=25
for change in smart_scan=0 smart_scan=1 use_zero_pages=1 use_zero_pages=0 stable_node_chains_prune_millisecs=3000 \
	advisor_max_cpu=60 advisor_min_pages_to_scan=600 advisor_max_pages_to_scan=20000 advisor_target_scan_time=100; do
	if has "${change%%=*}"; then
		works "set $change" "$change"
	else
		check "set $change: absent" 1 '' 'this kernel does not have it' -- "$ctl" set "$change"
	fi
done
if has advisor_mode; then
	works 'set advisor_mode=scan-time' advisor_mode=scan-time
	refused "the kernel's advisor" 'start 500'
	refused "the kernel's advisor" 'set pages_to_scan=500'
	name='set: the advisor goes first, whatever the order' \
		works 'set pages_to_scan=777 advisor_mode=none' advisor_mode=none pages_to_scan=777
else
	skip 'the advisor' "this kernel has none"
fi
also="as_found '$(knobs)'" check 'set: all or nothing' 2 '' 'must be a whole number' -- \
	"$ctl" set run=1 sleep_millisecs=1 pages_to_scan=-1
numbers=$(for key in "${tunables[@]}"; do
	[[ $key = advisor_mode || $key = /* ]] || ! has "$key" || echo "(.ksm[0].$key == $(get "$key"))"
done | paste -sd, | sed 's/,/ and /g')
check_json 'info --json says what the kernel says' "$numbers and .ksm[0].ksmd_cpu_ns > 0" -- "$ctl" info --json

# Merging: two programs started by ksmctl run, with the same pages, and one started without it.
pages=8000
program='$x .= pack("N", $_) x ('$page' / 4) for 1 .. '$pages';
	sub sum { my $s = 0; $s += unpack("N", substr($x, ($_ - 1) * '$page' + 8, 4)) for 1 .. '$pages'; $s }
	$SIG{USR1} = sub { open(my $f, ">", $ARGV[0]); print $f sum() };
	$parent = getppid; kill("USR1", $$); sleep 1 while getppid == $parent'
sharing() { [ "$(get pages_sharing)" -ge $((pages * 98 / 100)) ]; }
intact()
{
	local i sum=$((pages * (pages + 1) / 2))
	for i in 0 1 2; do
		rm -f "$work/sum$i"
		kill -USR1 "${program_pids[i]}"
		wait_for 10 grep -qsx $sum "$work/sum$i" || echo "program $i: its memory is not what it was"
	done
}

also='holds run=2 pages_sharing=0' check 'unmerge' 0 '' '' -- "$ctl" unmerge
works 'set sleep_millisecs=1' sleep_millisecs=1
has smart_scan && works 'set smart_scan=0 use_zero_pages=0' smart_scan=0 use_zero_pages=0
program_pids=()
# Where whole processes cannot be opened, nothing that ksmctl run preloads reaches the malloc of glibc.
way=$("$ctl" run -v true 2>&1 | grep -q 'by prctl' && echo prctl || echo madvise)
opener=(env "LD_PRELOAD=$B/libksmreg-glibc.so" KSMREG=madvise) opened_by=libksmreg-glibc.so
[ $way = madvise ] || opener=("$ctl" run --) opened_by='ksmctl run'
for i in 0 1; do
	start_child "${opener[@]}" perl -e "$program" "$work/sum$i"
	program_pids+=("$child")
done
start_child perl -e "$program" "$work/sum2"
program_pids+=("$child")
wait_for 20 test -s "$work/sum0" -a -s "$work/sum1" -a -s "$work/sum2"
works 'start 5000' run=1 pages_to_scan=5000
verdict "$(wait_for 120 sharing || echo "only $(get pages_sharing) pages of $pages")" "$opened_by: the pages of a plain program merge"
works stop run=0
verdict "$(sharing || echo "only $(get pages_sharing)")" 'stop: what is merged stays merged'
verdict "$(intact)" 'merged memory reads as before'
list=$(IFS=,; echo "${program_pids[*]}")
check_json 'ksmstat: who is open to merging, and how' ".processes | map(.opted) == [\"$way\", \"$way\", \"no\"]" -- \
	"$stat" -J -o PID,OPTED --sort -PID -p "$list"
if "$stat" -n -o SAVED -p "$$" | grep -q -- -; then
	skip 'ksmstat: KSM and SAVED' "this kernel does not say in smaps what is merged (6.6 does)"
else
	bytes=$((pages * page))
	check_json 'ksmstat: KSM and SAVED are as expected' ".processes | (.[0], .[1] | .ksm >= $bytes * 0.98) and
		(.[0].saved + .[1].saved | . >= $bytes * 0.97 and . <= $bytes * 1.1) and
		.[2].ksm == 0 and .[2].saved == 0" -- "$stat" -J -o KSM,SAVED,PID --sort -PID -p "$list"
	check_json 'ksmstat: SAVED of all processes is what the kernel saved' "[.processes[].saved // 0] | add / $page
		/ $(get pages_sharing) | . > 0.97 and . < 1.03" '.*' -- "$stat" -J -o PID,SAVED
fi
check_json 'info: the saving' ".ksm[0] | .saved_bytes == (.pages_sharing + .ksm_zero_pages) * $page and
	.pages_sharing == $(get pages_sharing)" -- "$ctl" info --json

# The tunables that want nothing merged, while pages are merged.
works start run=1
other=$(($(get max_page_sharing) == 300 ? 400 : 300))
refused 'only while nothing is merged' "set max_page_sharing=$other"
name='set --unmerge-first: done, and run as before' \
	works "set --unmerge-first max_page_sharing=$other" max_page_sharing=$other run=1
verdict "$(wait_for 120 sharing || echo "only $(get pages_sharing)")" 'afterwards the pages merge again'
if has merge_across_nodes; then
	other=$((1 - $(get merge_across_nodes)))
	refused 'only while nothing is merged' "set merge_across_nodes=$other"
	name='set --unmerge-first: merge_across_nodes, and more' \
		works "set --unmerge-first merge_across_nodes=$other sleep_millisecs=2" merge_across_nodes=$other run=1 sleep_millisecs=2
else
	skip 'merge_across_nodes' "this kernel knows no NUMA nodes"
fi
wait_for 120 sharing
also='holds run=2 pages_sharing=0 pages_shared=0' check 'unmerge, of merged pages' 0 '' '' -- "$ctl" unmerge
verdict "$(intact)" 'unmerged memory reads as before'
kill -KILL "${program_pids[@]}"
release
take # waits for the one who puts the knobs back
verdict "$(as_found "$before")" 'the knobs are as they were found'
release

# demo_case NAME CODE MOMENT COMMAND...: starts the demonstration as a terminal would, waits until it
# prints MOMENT, and runs COMMAND, in which $demo is its process. It takes the lock itself.
demo_case()
{
	local name=$1 want=$2 moment=$3 demo code folder='' problem=''
	shift 3
	env --default-signal=INT,QUIT setsid "$B/tests/demo" >"$work/demo" 2>&1 &
	demo=$!
	children+=("$demo")
	wait_for 200 eval "grep -qs '$moment' '$work/demo' || ! kill -0 $demo 2>/dev/null"
	grep -q "$moment" "$work/demo" || problem+="it never got to: $moment"$'\n'
	"$@"
	wait "$demo" 2>/dev/null
	code=$?
	[ $code -eq "$want" ] || problem+="exit code $code, not $want"$'\n'
	take
	# The lock is free only when nobody writes any more.
	none ksmctl || problem+="the service is still at work"$'\n'
	problem+=$(as_found "$before")
	wait_for 5 none tests/job || problem+="jobs are left"$'\n'
	# Nobody is left to remove its folder after SIGKILL; this one is known to be its own.
	if [ -n "$folder" ] && [ -d "$folder" ]; then
		[ "$want" -eq 137 ] || problem+="it left $folder"$'\n'
		rm -r "$folder"
	fi
	release
	[ -z "$problem" ] || problem+=$(tr '\r' '\n' <"$work/demo" | tail -n 8 | sed 's/^/demo: /')
	verdict "$problem" "$name"
}
running() { find /proc -maxdepth 2 -path '/proc/[0-9]*/exe' -lname "$B/$1" 2>/dev/null | sed 's/[^0-9]//g'; }
none() { [ -z "$(running "$1")" ]; }
after() { sleep "$1"; "${@:2}"; }
kill_job() { kill -KILL "$(running tests/job | sed -n 2p)"; }
# The folder of the service that this demonstration started, from its command line.
service_folder()
{
	local pid
	for pid in $(running ksmctl); do
		[ "$(awk '$1 == "PPid:" { print $2 }' "/proc/$pid/status")" = "$demo" ] || continue
		tr '\0' '\n' <"/proc/$pid/cmdline" | sed -n 's/^\(\/tmp\/ksmctl-demo-[A-Za-z0-9]*\)\/ksmctl\.conf$/\1/p'
	done
}
demo_kill()
{
	folder=$(service_folder)
	kill "-$1" -- "${2-}$demo"
}

demo_case 'demo: Ctrl-C while the jobs start' 130 '^Starting' demo_kill INT -
demo_case 'demo: a job is killed' 1 'The jobs work' after 0.5 kill_job
demo_case 'demo: SIGTERM while it merges' 143 '^\$ ksmctl [sd]' after 1.5 demo_kill TERM
demo_case 'demo: SIGKILL while it merges' 137 '^\$ ksmctl [sd]' after 1.5 demo_kill KILL
demo_case 'demo: whole' 0 'The kernel is as it was found' true
share=$(sed -nE 's/^Saved .* possible \(([0-9.]+) %\).*/\1/p' "$work/demo")
verdict "$(awk -v s="${share:-0}" 'BEGIN { if (s < 95) print s " %" }')" "demo: at least 95 % of what is possible is saved (${share:-?} %)"

finish
