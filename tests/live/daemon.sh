#!/bin/bash
# Live: the adaptive service on the running kernel, with the demonstration's jobs; killed, disturbed, and at rest.
# SPDX-License-Identifier: GPL-2.0-or-later
. "${BASH_SOURCE%/*}/../cli/lib.bash"
. "${BASH_SOURCE%/*}/guard.bash"

ctl=$B/ksmctl job=$B/tests/job
conf=$work/conf state=$work/state
[ -d $ksm ] || skip_all "this kernel has no KSM"
[ "$(id -u)" -eq 0 ] || skip_all "the service needs root"
[ -w $ksm/run ] || skip_all "$ksm is read-only here"
[ -x "$job" ] || skip_all "$job is not built"
unset NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID
jobs=3 equal_mib=120 zero_mib=20 # as tests/demo/job.h has them
available_mib=$(($(sed -n 's/^MemAvailable: *\([0-9]*\).*/\1/p' /proc/meminfo) / 1024))
[ $available_mib -gt $((jobs * 200 + 400)) ] || skip_all "too little memory: $available_mib MiB"
sanitized=$(grep -q __asan_init "$ctl" && echo yes)

config() { printf '%s\n' "state-dir = $state" "$@" >"$conf"; }

# begin [LAUNCHER]...: the service; what it says comes to $work/said. Sets daemon.
begin()
{
	"$@" "$ctl" daemon -c "$conf" >"$work/said" 2>&1 </dev/null 8>&- 9>&- &
	daemon=$!
	children+=("$daemon")
}

# end [SIGNAL]: sets ended to what is wrong of how it ends.
end()
{
	local from=${EPOCHREALTIME/./} code want=0
	[ "${1-TERM}" = TERM ] || want=137
	kill -"${1-TERM}" "$daemon"
	wait "$daemon" 2>/dev/null
	code=$?
	ended=''
	[ $code -eq $want ] || ended="exit code $code, not $want: $(cat "$work/said")"$'\n'
	[ $((${EPOCHREALTIME/./} - from)) -lt 1500000 ] || ended+="its end took $((${EPOCHREALTIME/./} - from)) us"$'\n'
}

shows() { grep -qsx "$1" "$state/status"; }
wants()
{
	local seconds=$1
	shift
	wait_for "$seconds" "$@" || echo "after $seconds s not yet: $*; $(tr '\n' ' ' <"$state/status"); $(cat "$work/said")"
}
saved_pages() { echo $(($(get pages_sharing) + $(cat $ksm/ksm_zero_pages 2>/dev/null || echo 0))); }
saved() { [ "$(saved_pages)" -ge "$1" ]; }
status_of() { sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status"; }

# What every program merges: the equal pages of all jobs but one, and the zero pages of all.
page=$(getconf PAGESIZE)
expected=$((((jobs - 1) * equal_mib + jobs * zero_mib) * 1048576 / page))
[ -e $ksm/ksm_zero_pages ] || expected=$(((jobs - 1) * equal_mib * 1048576 / page))

take
guard
untouched=$found
"$ctl" unmerge >/dev/null 2>&1
echo 0 >$ksm/run
! has advisor_mode || echo scan-time >$ksm/advisor_mode
before=$(knobs) # of the time before the service: stopped, and the advisor at work where there is one
config

truncate -s 4096 "$work/report"
exec 7<>"$work/report"
for ((i = 0; i < jobs; i++)); do
	start_child "$job" $i 7
done
ready() { [ "$(od -An -v -t u8 -w40 -N $((jobs * 40)) "$work/report" | awk '$1 == 1' | wc -l)" -eq $jobs ]; }
begin
problem=$(wants 15 ready)
verdict "$problem$(wants 10 saved $((expected * 95 / 100)))" "the equal pages of $jobs jobs merge within 10 s"
if has advisor_mode; then
	verdict "$([ "$(get advisor_mode)" = none ] || get advisor_mode)" "the kernel's advisor is taken over"
else
	skip "the kernel's advisor is taken over" 'this kernel has none'
fi
parked() { [ "$(get run)" = 0 ] && shows phase=parked; }
verdict "$(wants 15 parked; saved $((expected * 95 / 100)) || echo "only $(saved_pages) of $expected pages")" \
	'then it rests, with ksmd stopped and the pages merged'
check 'status says so' 0 "^State +parked for [0-9]+ s: .*
Scanner +stopped.*
Saved +[23][0-9]{2}\.[0-9] MiB
Registered +$jobs processes with [0-9.]+ MiB" '' -- "$ctl" status -c "$conf"

# What it may do, and what it needs.
keeps=0000000000000004 # CAP_DAC_READ_SEARCH
grep -qs '^ksm_mergeable' /proc/self/ksm_stat || keeps=0000000000080004 # and CAP_SYS_PTRACE, for smaps
verdict "$(for set in CapInh CapPrm CapEff CapBnd CapAmb; do
	want=$keeps
	case $set in CapInh | CapAmb) want=0000000000000000 ;; esac
	[ "$(status_of "$daemon" $set)" = $want ] || echo "$set is $(status_of "$daemon" $set), not $want"
done)" "its capabilities are $keeps"
verdict "$([ "$(status_of "$daemon" NoNewPrivs)" = 1 ] || echo 'not set')" 'no_new_privs is set'
rss() { status_of "$daemon" VmRSS | sed "s/ kB//"; }
events() { for ((i = 0; i < $1; i++)); do /bin/true; done; }
if ! shows connector=1; then
	skip 'it does not grow with events' 'no process connector here'
elif [ -n "$sanitized" ]; then
	skip 'its memory' 'the sanitizer keeps freed memory'
else
	verdict "$([ "$(rss)" -le 8192 ] || echo "$(rss) KiB")" 'it takes no more than 8 MiB'
	events 200
	sleep 0.5
	first=$(rss)
	events 2000
	sleep 0.5
	verdict "$([ "$(rss)" -le $((first + 128)) ] || echo "from $first to $(rss) KiB")" 'it does not grow over 2000 processes'
fi
end
verdict "$ended$(as_found "$before")" 'SIGTERM: the kernel is as it was, its advisor too'

# Killed in the middle of the boost: nothing but the first values can tell what was there before.
problem='' changed=0
for i in {1..10}; do
	begin
	sleep "0.$(printf %03d $((RANDOM % 400)))"
	end KILL
	[ -z "$(as_found "$before")" ] || changed=$((changed + 1))
	"$ctl" daemon -c "$conf" --restore >"$work/said" 2>&1 || ended+="--restore: $(cat "$work/said")"
	now=$(as_found "$before")
	[ -z "$now$ended" ] || problem+="kill $i: $ended$now"$'\n'
done
[ $changed -ge 4 ] || problem+="only $changed of 10 left the kernel changed: it proves little"
verdict "$problem" '10 times SIGKILL, then --restore: all as found'

# Somebody else writes.
begin
problem=$(wants 5 shows phase=boost)
echo 1234 >$ksm/pages_to_scan
problem+=$(wants 5 shows phase=hold)
sleep 1.5
[ "$(get pages_to_scan)" = 1234 ] || problem+="pages_to_scan is $(get pages_to_scan)"
[ "$(grep -c 'another controller' "$work/said")" = 1 ] || problem+=$(cat "$work/said")
end
[ "$(get pages_to_scan)" = 1234 ] || problem+="restored over somebody else: pages_to_scan is $(get pages_to_scan)"
verdict "$problem$ended" 'a foreign write is left alone and told once'
put_back "$before"

# ksmd's niceness, and the privilege that it takes to put it back.
ksmd=$(grep -lsx ksmd /proc/[0-9]*/comm | sed 's/[^0-9]//g;q')
nice_of() { ps -o ni= -p "$ksmd" | tr -d ' '; }
nice=$(nice_of)
config "ksmd-nice = $((nice == 7 ? 8 : 7))"
begin
problem=$(wants 5 shows "pid=$daemon"; [ "$(nice_of)" = $((nice == 7 ? 8 : 7)) ] || echo "ksmd's niceness is $(nice_of)")
end
verdict "$problem$ended$([ "$(nice_of)" = "$nice" ] || echo "ksmd's niceness stays $(nice_of)")" \
	"ksmd-nice is set and put back"
config
if unshare -n true 2>/dev/null; then
	begin unshare -n
	problem=$(wants 5 shows phase=boost; shows connector=0 || echo 'it has a connector'
		grep -q 'no process connector' "$work/said" || cat "$work/said")
	end
	verdict "$problem$ended$(as_found "$before")" 'without the process connector it works, and says so'
else
	skip 'without the process connector' 'no right to leave the network'
fi
verdict "$(od -An -v -t u8 -w40 -N $((jobs * 40)) "$work/report" | awk '$2 < 10 || $5 > 0 { print "a job: " $0 }')" \
	'the jobs read back what they wrote'
kill -KILL "${children[@]:0:jobs}"
release
take # waits for the one who puts the knobs back
verdict "$(as_found "$untouched")" 'the knobs are as they were found'
release
finish
