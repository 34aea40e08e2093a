#!/bin/bash
# Whether ksmstat misses nobody: thousands of processes with hostile names, many areas, hidden and other PID spaces.
# SPDX-License-Identifier: GPL-2.0-or-later
# KSM_TEST_LONG=1: ten thousand processes instead of one.
# shellcheck disable=SC2154,SC2016 # work is set in lib.bash; what is quoted is meant so
. "${BASH_SOURCE%/*}/../cli/lib.bash"

stat=$B/ksmstat ctl=$B/ksmctl crowd=$B/tests/crowd
[ -x "$crowd" ] || skip_all "$crowd is not built: make tests"

# start_crowd ARGUMENT...: until "ready"; what it prints is in $work/crowd. Ended by end_crowd.
start_crowd()
{
	rm -f "$work/hold"
	mkfifo "$work/hold"
	"$crowd" "$@" <"$work/hold" >"$work/crowd" 2>"$work/crowd.err" &
	crowd_pid=$!
	disown
	children+=("$crowd_pid")
	exec 7>"$work/hold"
	wait_for 60 grep -q '^ready' "$work/crowd"
}
end_crowd()
{
	exec 7>&-
	wait_for 30 eval '! kill -0 $crowd_pid 2>/dev/null'
}

# --- many processes with names of any bytes
many=1000 kib=2000000
[ -z "${KSM_TEST_LONG-}" ] || many=10000 kib=6000000
seed=$RANDOM
if ! command -v python3 >/dev/null; then
	skip 'many processes' 'python3 is not installed'
elif [ "$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)" -lt $kib ] || [ "$(</proc/sys/kernel/pid_max)" -lt $((many * 2)) ]; then
	skip "$many processes" "not enough memory or PIDs"
elif ! start_crowd names $many $seed; then
	skip "$many processes" "they cannot be started: $(head -n 1 "$work/crowd.err")"
	end_crowd
else
	# A strict reader: UTF-8, no control characters in strings, no key twice, no NaN.
	cat >"$work/strict.py" <<-'END'
		import json, re, sys
		def object(pairs):
		    if len(dict(pairs)) != len(pairs): raise ValueError("a key twice")
		    return dict(pairs)
		def constant(word): raise ValueError(word)
		def load(path):
		    with open(path, "rb") as file: text = file.read().decode("utf-8", "strict")
		    return json.loads(text, object_pairs_hook=object, parse_constant=constant)
		def raw(text):
		    return b"".join(bytes([int(part[2:], 16)]) if re.fullmatch(r"\\x[0-9a-f]{2}", part) else part.encode()
		                    for part in re.split(r"(\\x[0-9a-f]{2})", text))
		data = load(sys.argv[1])
		if len(sys.argv) > 2:
		    want = {int(pid): bytes.fromhex(name) for pid, name in (line.split() for line in open(sys.argv[2]) if "ready" not in line)}
		    got, twice = {}, 0
		    for row in data["processes"]:
		        twice += row["pid"] in got
		        got[row["pid"]] = row
		    missing = [pid for pid in want if pid not in got]
		    wrong = [pid for pid in want if pid in got and raw(got[pid]["command"]) != want[pid]]
		    unread = [pid for pid in want if pid in got and not got[pid]["total"]]
		    for what, pids in ("missing", missing), ("with another name", wrong), ("of no memory", unread):
		        if pids: print(f"{len(pids)} of {len(want)} are {what}, as {pids[0]}: {want[pids[0]]!r} {got.get(pids[0])}")
		    if twice or len(want) < int(sys.argv[3]): print(f"{twice} are there twice; {len(want)} were wanted")
	END
	strict='python3 "$work/strict.py" "$work/out" 2>&1 | tail -n 1'
	also='python3 "$work/strict.py" "$work/out" "$work/crowd" $many 2>&1 | tail -n 4' \
		check "$many processes, each once, with its name and memory (seed $seed)" 0 . '.*' -- \
		timeout 120 "$stat" -J -o pid,total,command
	also='[ "$(awk "{ n += \$1 } END { print n }" "$work/out")" -ge $many ] || echo "groups have fewer"' \
		check 'groups of programs have them all' 0 . '.*' -- timeout 120 "$stat" --by program -r -n -o procs
	for mode in '-o all' '--by program' '--by user' '--by cgroup' '--by unit' '--by container' '--by pod' '--by system' -T; do
		also=$strict check "JSON is strict with such names: $mode" 0 . '.*' -- timeout 120 "$stat" -J $mode
	done
	few=$(awk '!/ready/ { print $1 }' "$work/crowd" | head -n 50 | paste -sd, -)
	for mode in '' '--by program' '--top-pages 5'; do
		also=$strict check "JSON is strict: --estimate $mode" 0 . '.*' -- timeout 120 "$stat" --estimate --settle 0 -J $mode -p "$few"
	done
	also=$strict check 'JSON is strict: ksmctl info' '0|3' . '.*' -- "$ctl" info --json
	also=$strict check 'JSON is strict: ksmctl doctor' '[0-5]' . '.*' -- timeout 120 "$ctl" doctor --json ${few%%,*}
	for form in -r -P --classic ''; do
		also='[ "$(wc -l <"$work/out")" -eq 50 ] || echo "not a line for each of 50"
			LC_ALL=C grep -n "[[:cntrl:]]" "$work/out" | head -n 3' \
			check "a line for each such name: ${form:-table}" 0 . '' -- "$stat" -n $form -p "$few"
	done
	end_crowd
fi

# --- as many areas as a process may have
limit=$(</proc/sys/vm/max_map_count) areas=60000
if [ "$limit" -lt 61000 ] || ! start_crowd areas $areas; then
	skip "$areas areas" "vm.max_map_count is $limit"
else
	there=$(grep -vc 'vsyscall' "/proc/$crowd_pid/maps")
	[ "$there" -ge $areas ] || there="$areas at least"
	for columns in areas,rss areas,rss,pss; do
		also='[ "$(awk "{ print \$2 }" "$work/out")" -ge $((areas / 2 * 4096)) ] || echo "memory is missing"' \
			check "$areas areas are all counted: $columns" 0 "^$there [0-9]+" '' -- "$stat" -r -b -n -o $columns -p "$crowd_pid"
	done
fi
end_crowd

# --- /proc that hides processes, and PID namespaces
user_programs
start_child sleep 1000
other=$child
# Of other users' processes there is a row, and nothing in it that was not read.
never_zero()
{
	jq -e 'all(.processes[]; .user == "nobody" or .user == "65534" or (.total == null and .rss == null and .saved == null))' \
		"$work/out" >/dev/null || echo "numbers of what cannot be read"
}
if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null || [ -n "${no_user-}" ] || ! command -v jq >/dev/null; then
	for what in hidepid=1 hidepid=2 'hidepid=2, root' 'PID namespace'; do skip "$what" 'no root, namespaces, users or jq'; done
else
	in_proc='mount -t proc -o "$0" proc /proc && exec "$@"'
	also='never_zero; jq -e "any(.processes[]; .pid == $other)" "$work/out" >/dev/null || echo "it is not among them"' \
		check 'hidepid=1: others are there, counted, and never 0' 0 . '^ksmstat: [1-9][0-9]* of [0-9]+ processes could not be read' -- \
		unshare -m sh -c "$in_proc" hidepid=1 "${as_user[@]}" "$work/bin/ksmstat" -J
	also=never_zero check 'hidepid=2: no row for what is hidden' 0 . '.*' -- \
		unshare -m sh -c "$in_proc" hidepid=2 "${as_user[@]}" "$work/bin/ksmstat" -J
	check 'hidepid=2: asked for, it is not there' 32 '' '1 of the processes asked for is not there' -- \
		unshare -m sh -c "$in_proc" hidepid=2 "${as_user[@]}" "$work/bin/ksmstat" -n -p "$other"
	check 'hidepid=2: root sees it' 0 "^ *$other root" '' -- unshare -m sh -c "$in_proc" hidepid=2 "$stat" -n -p "$other"
	also='[ "$(jq -c "[.processes[].pid] | sort" "$work/out")" = "[1,2,3]" ] || cat "$work/out"' \
		check 'in a PID namespace: those in it and no others' 0 . '.*' -- \
		unshare -fp --mount-proc bash -c 'sleep 1000 & "$0" -J -o pid,command; kill $!' "$stat"
	start_child unshare -fp --mount-proc sleep 1001
	wait_for 5 pgrep -P "$child" >/dev/null
	inner=$(pgrep -P "$child")
	check 'from outside it has its PID here' 0 "^$inner [1-9][0-9]* sleep\$" '' -- "$stat" -r -n -b -o pid,total,command -p "$inner"
	kill "$inner"
fi
finish
