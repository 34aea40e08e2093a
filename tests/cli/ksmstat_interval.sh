#!/bin/bash
# ksmstat DELAY [COUNT]: arguments, and lines from counters that change meanwhile.
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154,SC2016 # set in lib.bash; quoted for jq and awk
. "${BASH_SOURCE%/*}/lib.bash"

stat=$B/ksmstat
root=$work/root
ksm=$root/sys/kernel/mm/ksm
page=$(getconf PAGESIZE)

# --- arguments
for bad in 0 0.09 86401 1x 0x1 1e3 1..5 99999999999999999999; do
	check "bad delay $bad" 2 '' "^ksmstat: DELAY wants seconds, from 0.1 to 86400, not '$bad'.*--help" -- "$stat" "$bad" 1
done
for bad in x nan inf .5; do
	check "no delay: $bad" 2 '' "unexpected argument '$bad'.*--help" -- "$stat" "$bad"
done
for bad in 0 -1 1.5 x '' 99999999999999999999; do
	check "bad count ${bad@Q}" 2 '' "^ksmstat: COUNT wants a number of lines, not '$bad'.*--help" -- "$stat" -- 1 "$bad"
done
check 'a third argument' 2 '' "unexpected argument '3'.*--help" -- "$stat" 1 2 3
for bad in '' BOGUS TIME, , TIME,,KSM +PID PID; do
	check "bad column ${bad@Q}" 2 '' "unknown column '.*' of lines with DELAY.*--help" -- "$stat" -o "$bad" 1 1
done
for bad in '--sort PID' -t '--by program' -T --estimate --classic; do
	# shellcheck disable=SC2086 # words
	check "$bad with DELAY" 2 '' '^ksmstat: .*--help' -- "$stat" $bad 1 1
done

# --- a machine that stands still
mkdir -p "$ksm" "$root/proc/37"
put() { printf '%s\n' "$2" >"$ksm/$1.new" && mv "$ksm/$1.new" "$ksm/$1"; }
cpu() { echo "$1 1 1" >"$root/proc/37/new" && mv "$root/proc/37/new" "$root/proc/37/schedstat"; }
vmstat() { printf 'nr_free_pages 1\ncow_ksm %s\nksm_swpin_copy %s\n' "$1" "$2" >"$root/proc/new" && mv "$root/proc/new" "$root/proc/vmstat"; }
echo '37 (ksmd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0' >"$root/proc/37/stat"
cpu 1000
vmstat 5 6
put run 1
put pages_shared 10
put pages_sharing 40
put full_scans 3
put general_profit -8192
put pages_scanned 1000

fake() { check "$1" "$2" "$3" "$4" -- "$stat" --root "$root" "${@:5}"; }
k=$((page / 1024))
head='SHARED SHARING SAVING  DELTA PROFIT MERGED/s BROKEN/s SCANNED/s PASSES KSMD%'
line=" *$((10 * k))K +$((40 * k))K +$((40 * k))K +0B +-8K +0 +0 +0 +0 +0.0"
also=too_long fake 'two lines with headings' 0 "^$head"$'\n'"$line"$'\n'"$line\$" '' 0.1 2
also='[ "$(grep -c SHARED "$work/out")" = 1 ] || echo "not one line of headings"' \
	fake 'in a file the headings come once' 0 . '' 0.1 30
fake '-n' 0 "^$line\$" '' -n 0.1 1
fake '-b' 0 "^ +SHARED .*"$'\n'" *$((10 * page)) +$((40 * page)) +$((40 * page)) +0 +-8192 +0 +0 +0 +0 +0.0\$" '' -b 0.1 1
fake '-r -b' 0 "^RUN SAVING ZERO MERGED"$'\n'"1 $((40 * page)) - 0.000\$" '' -rb -o run,saving,zero,merged 0.1 1
fake '-P' 0 "^RUN=\"1\" ZERO=\"-\" SAVING=\"$((40 * page))\"\$" '' -P -o run,zero,saving 0.1 1
mv "$root/sys" "$root/gone"
fake 'no KSM: said' 1 '' '^ksmstat: no KSM here: .*No such file'  0.1 1
mv "$root/gone" "$root/sys"

# --- JSON, a line for each, at once
keys='["time","epoch","seconds","run","processes","unreadable","ksm","shared","sharing","zero","saving","delta","profit","merged_per_s","broken_per_s","scanned_per_s","skipped_per_s","passes","full_scans","ksmd_percent"]'
if command -v jq >/dev/null; then
	# json NAME FILTER -- OPTIONS: of all lines as one array.
	json()
	{
		also='[ "$(wc -l <"$work/out")" = "$(jq -c . "$work/out" | wc -l)" ] || echo "not an object a line"
			jq -se "$filter" "$work/out" >/dev/null || { echo "not true: $filter"; cat "$work/out"; }' \
			filter=$2 fake "$1" 0 . '' "${@:4}"
	}
	json 'all members, in order' "length == 3 and all(.[]; keys_unsorted == $keys)" -- -J 0.1 3
	json 'numbers, and null for what is not known' "all(.[]; .saving == $((40 * page)) and .profit == -8192 and .zero == null
		and .skipped_per_s == null and .processes == null and .scanned_per_s == 0 and .passes == 0 and .run == 1)" -- -J 0.1 2
	json 'the time is there in both ways' '.[0] | (.time | test("^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9][.][0-9]{3}Z$"))
		and ((.time[0:19] + "Z" | fromdate) == (.epoch | floor))' -- -J 0.1 1
	json 'and with columns chosen too' 'all(.[]; keys_unsorted == ["time","epoch","saving"])' -- -J -o saving 0.1 2
	json 'moments are evenly spaced' '(.[-1].epoch - .[0].epoch) as $all | $all > 1.85 and $all < 2.15' -- -J -o saving 0.2 11
	json 'seconds are measured' 'all(.[]; .seconds > 0) and (map(.seconds) | add) > 1.85 and (map(.seconds) | add) < 2.35' -- \
		-J -o seconds 0.2 10

	# --- counters that change
	# follow OPTIONS: in the background, into $work/lines; begun once it has read.
	follow()
	{
		rm -f "$work/lines" # a first line means that it is no copy of this shell any more
		env --default-signal=INT "$stat" --root "$root" "$@" >"$work/lines" 2>"$work/err" &
		child=$! # env becomes ksmstat
		children+=("$child")
		wait_for 20 test -s "$work/lines"
	}
	lines() { wc -l <"$work/lines"; }
	at_least() { [ "$(lines)" -ge "$1" ]; }
	more() { wait_for 20 at_least $(($(lines) + $1)); }
	# holds NAME FILTER: of the lines so far.
	holds() { verdict "$(jq -se "$2" "$work/lines" >/dev/null 2>"$work/jq" || { echo "not true: $2"; cat "$work/jq" "$work/lines"; })" "$1"; }
	follow -J 0.2
	# Between two lines these are one change, or two where a line comes in between: sums are the same.
	put pages_shared 20
	put pages_sharing 90
	put pages_scanned 6000
	put full_scans 5
	vmstat 105 106
	cpu 200001000
	more 2
	holds 'the change of the saving' "map(.delta) | add == $((50 * page))"
	sum() { echo "(map($1 * .seconds) | add | . > $2 * 0.98 and . < $2 * 1.02)"; }
	holds 'merged: pages shared and sharing' "$(sum .merged_per_s 60)"
	holds 'broken: both kinds of copies' "$(sum .broken_per_s 200)"
	holds 'scanned' "$(sum .scanned_per_s 5000)"
	holds 'passes' 'map(.passes) | add == 2'
	holds 'CPU time of ksmd' "$(sum .ksmd_percent 20)"
	put pages_shared 0
	put pages_sharing 0
	put full_scans 0
	put run 2
	more 2
	holds 'unmerged: the saving falls' "(map(.delta) | add == $((-40 * page))) and .[-1].saving == 0 and .[-1].run == 2"
	holds 'nothing is merged, and passes begin anew' 'any(.[]; .passes == null) and .[-1].passes == 0 and all(.[]; .merged_per_s >= 0)'
	rm "$ksm/pages_scanned" "$root/proc/37/schedstat" "$root/proc/37/stat"
	rm "$root/proc/vmstat"
	more 2
	holds 'what vanishes is null' '.[-1] | .scanned_per_s == null and .ksmd_percent == null and .broken_per_s == null and .delta == 0'
	kill -INT "$child"
	wait "$child"
	verdict "$([ $? = 0 ] || echo "exit code not 0"; cat "$work/err")" 'SIGINT ends it well'
	holds 'with whole lines' 'length > 5'
	follow -J 0.1 1000
	kill -INT "$child"
	wait "$child"
	verdict "$([ $? = 130 ] || echo "exit code not 130"; cat "$work/err")" 'but not all lines were printed'
	follow -J 0.1
	kill -TERM "$child"
	wait "$child"
	verdict "$([ $? = 0 ] || echo "exit code not 0"; cat "$work/err")" 'SIGTERM ends it too'
else
	skip 'JSON' 'jq is not installed'
fi

# --- processes
process()
{
	mkdir -p "$root/proc/$1"
	printf '%s (%s) S 1 1 1 0 -1 4194304 222 0 3 0 0 0 0 0 20 0 5 0 99 0 0\n' "$1" "$2" >"$root/proc/$1/stat"
	printf 'ksm_rmap_items 10\nksm_merging_pages 8\nksm_zero_pages 2\nksm_process_profit 1\n' >"$root/proc/$1/ksm_stat"
	printf '%s\n' '7f0000000000-7f0000100000 rw-p 00000000 00:00 0 ' 'Rss: 400 kB' 'Pss: 390 kB' 'Shared_Dirty: 20 kB' \
		'Private_Clean: 0 kB' 'Private_Dirty: 380 kB' 'KSM: 20 kB' 'VmFlags: rd wr mg ' >"$root/proc/$1/smaps"
}
process 100 alpha
process 200 alpha
process 300 beta
fake 'of processes: sums' 0 "^PROCS UNREADABLE KSM ZERO SAVING DELTA SHARED BROKEN"$'\n'"2 0 40960 $((4 * page)) $((20480 + 4 * page)) 0 - -\$" '' \
	-c alpha -rb -o procs,unreadable,ksm,zero,saving,delta,shared,broken 0.1 1
fake 'none of that name' 0 '0 0 0 0$' '' -c nobody -rb -o procs,ksm,saving,delta 0.1 1
# Whoever reads it goes away.
"$stat" --root "$root" 0.1 2>"$work/err" | head -n 2 >"$work/out"
code=${PIPESTATUS[0]}
verdict "$(cat "$work/err"; [ "$(wc -l <"$work/out")" = 2 ] || echo 'not two lines'; [[ $code =~ ^(0|141)$ ]] || echo "exit code $code")" \
	'a closed pipe ends it silently'
if [ -w /dev/full ]; then
	also='' check 'a full disk is said' 1 '' '^ksmstat: cannot write the output: No space' -- \
		bash -c 'exec "$@" >/dev/full' . "$stat" --root "$root" 0.1 5
else
	skip 'a full disk is said' 'no /dev/full'
fi
finish
