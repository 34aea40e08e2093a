# Processes that live tests in Bash look at, and the scanner's passes over them. To be sourced after guard.bash.
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034,SC2154 # used by, or set in, the scripts that source it

pids=() holds=()

# hold COMMAND...: start one that prints "ready PID" and stays until its standard input ends. The PID that it
# named is then in $pid. Fails when it says nothing in 20 s. Files go to $work.
hold()
{
	local line=
	rm -f "$work/in" "$work/out"
	mkfifo "$work/in"
	"$@" <"$work/in" >"$work/out" &
	pids+=($!)
	exec {hold}>"$work/in"
	holds+=("$hold")
	for _ in {1..400}; do
		[ ! -e "$work/out" ] || read -r line <"$work/out"
		[ -z "$line" ] || break
		sleep 0.05
	done
	pid=${line#ready }
	[ -n "$line" ]
}

let_go()
{
	local fd
	for fd in "${holds[@]}"; do exec {fd}>&-; done
	[ ${#pids[@]} = 0 ] || { kill "${pids[@]}"; wait "${pids[@]}"; } 2>/dev/null
	holds=() pids=()
}

# passes N: wait until ksmd has ended so many more, for at most $passes_s seconds.
passes_s=60
passes()
{
	local from try
	from=$(get full_scans)
	for ((try = 0; try < passes_s * 20; try++)); do
		[ "$(get full_scans)" -lt $((from + $1)) ] || return 0
		sleep 0.05
	done
	echo "# no $1 passes in $passes_s s"
}

# within LOW HIGH GOT NAME: one test, of a whole number. Counts in $n and $bad.
within()
{
	n=$((n + 1))
	if awk -v low="$1" -v high="$2" -v got="$3" 'BEGIN { exit !(got ~ /^[0-9]+$/ && got >= low && got <= high) }'; then
		echo "ok $n - $4: $3 of $1 to $2"
	else
		bad=$((bad + 1))
		echo "not ok $n - $4: ${3:-nothing}, wanted $1 to $2"
	fi
}

# begin_scene: from here on the machine is ours, and ksmd fast once it is started.
begin_scene()
{
	take
	before=$(knobs)
	guard
	! has advisor_mode || echo none >$ksm/advisor_mode
	! has smart_scan || echo 0 >$ksm/smart_scan
	! has use_zero_pages || echo 0 >$ksm/use_zero_pages
	echo 100000 >$ksm/pages_to_scan
	echo 1 >$ksm/sleep_millisecs
}

# end_scene: all as it was, which is the last test. Exits.
end_scene()
{
	local found
	let_go
	put_back "$before"
	found=$(as_found "$before")
	n=$((n + 1))
	if [ -z "$found" ]; then echo "ok $n - the knobs are as before"; else bad=$((bad + 1)); echo "not ok $n - $found"; fi
	release
	echo "1..$n"
	exit $((bad > 0))
}
