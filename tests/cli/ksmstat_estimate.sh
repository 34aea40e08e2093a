#!/bin/bash
# Command line: ksmstat --estimate on processes with known contents; KSM itself is not needed for it.
# SPDX-License-Identifier: GPL-2.0-or-later
. "${BASH_SOURCE%/*}/lib.bash"
stat=$B/ksmstat
page=$(getconf PAGESIZE)
user_programs
user_stat=$work/bin/ksmstat

# Wrong arguments.
for bad in -1 x '' 1e9 nan 2s; do
	check "--settle '$bad'" 2 '' '--settle wants seconds' -- "$stat" --estimate --settle "$bad"
done
for bad in 0 -1 x 1001 ''; do
	check "--top-pages '$bad'" 2 '' '--top-pages wants a number' -- "$stat" --estimate --top-pages "$bad"
done
for form in -r -P; do
	check "--estimate $form" 2 '' 'does not go with --estimate' -- "$stat" --estimate $form
done
check '--estimate --root' 2 '' 'running processes, not of a tree' -- "$stat" --estimate --root "$work"
check '--estimate of nobody' 32 '' '^ksmstat: 1 of the processes asked for is not there$' -- "$stat" --estimate --settle 0 -p 2147483647
check_json '--estimate of nobody: JSON' '.estimate.processes == 0 and .estimate.read == 0' 'not there' -- \
	bash -c "'$stat' --estimate --settle 0 -J -p 2147483647; [ \$? -eq 32 ]"

command -v perl >/dev/null || { skip '--estimate' 'perl is not installed'; finish; }
if [ -n "${no_user-}" ]; then
	as_user=(env)
fi
mkdir -m 777 "$work/ready"
# holder NAME CODE [COMM]: a process that holds what CODE makes, and says so in a file. Sets child.
holder()
{
	start_child "${as_user[@]}" perl -e "\$0 = '${3-holder}'; $2; open(my \$f, '>', '$work/ready/$1'); close \$f; sleep 120" "$page"
	wait_for 20 test -e "$work/ready/$1" || echo "# $1 did not get ready"
}
same='$x .= pack("N", $_) x ($ARGV[0] / 4) for 1 .. 2000'
zeros='vec($z, 500 * $ARGV[0] - 1, 8) = 0'
holder a "$same; $zeros" one
first=$child
holder b "$same; $zeros" two
second=$child
holder c '$y .= chr(0xa5) x $ARGV[0] for 1 .. 600' three
third=$child
all=$first,$second,$third

# Yama lets a user read only his own children: then only root can see this.
reader=("${as_user[@]}" "$user_stat")
[ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" -eq 0 ] || reader=("$stat")

# The interpreter's own pages are equal too: a little more is right.
near() { echo "(. >= $1 * $page and . <= ($1 + ${2:-1200}) * $page)"; }
check_json 'equal pages of two processes, and zeros apart' ".estimate | (.saved_across_processes | $(near 1990)) and
	(.saved_zero_with_use_zero_pages | $(near 998)) and .processes == 2 and .unreadable == 0 and
	.saved_within_processes < 700 * $page and (.partial | not) and .by == \"program\"" -- \
	"${reader[@]}" --estimate --settle 0 -J -p "$first,$second"
check_json 'one named twice is read once' ".estimate | .processes == 1 and .saved_across_processes == 0" -- \
	"${reader[@]}" --estimate --settle 0 -J -p "$first,$first"
check_json 'within one process' ".estimate | .saved_within_processes | $(near 590)" -- \
	"${reader[@]}" --estimate --settle 0 -J -p "$third"
check_json 'by program: who saves with whom' ".estimate | (.groups | map(.group) | sort) == [\"one\", \"three\", \"two\"] and
	(.pairs[0].groups | sort) == [\"one\", \"two\"] and (.pairs[0].saved | $(near 1990)) and
	(.together | any((.groups | sort) == [\"one\", \"two\"] and (.saved | $(near 1900))))" -- \
	"${reader[@]}" --estimate --settle 0 -J -p $all
check_json 'the sums of kinds, groups and processes are that of all' ".estimate as \$e | [\$e.kinds, \$e.groups, \$e.by_process] |
	map((map(.read) | add) == \$e.read and (map(.saved) | add | . <= \$e.saved and . > \$e.saved - 8 * $page)) | all" -- \
	"${reader[@]}" --estimate --settle 0 -J -p $all
check_json '--top-pages: a constant byte is told, other contents are not' ".estimate.top_pages | length == 4 and
	any(.content == \"0xa5\" and .pages >= 599 and .processes == 1) and any(.content == \"zeros\") and
	all(.content == null or .content == \"zeros\" or .content == \"0xa5\")" -- \
	"${reader[@]}" --estimate --settle 0 --top-pages 4 -J -p $all
check '--by system: a table' 0 'SYSTEM +PROCESSES.*all +3 ' '' -- "${reader[@]}" --estimate --settle 0 --by system -p $all
check 'tables' 0 "^3 processes with .* read twice .*would save .*KIND +READ.*PROGRAM +PROCESSES.*SAVED +GROUPS +TOGETHER.*SAVED +PAIR" '' -- \
	"${reader[@]}" --estimate --settle 0.2 -p $all
check 'tables in bytes' 0 "would save [0-9]{7,} \(" '' -- "${reader[@]}" --estimate --settle 0 -b -p $all
check 'one of two is not there' 64 '^1 process with' '1 of the processes asked for is not there' -- \
	"${reader[@]}" --estimate --settle 0 -p "$first,2147483647"
check_json 'by name' '.estimate.processes == 1' -- "${reader[@]}" --estimate --settle 0 -J -c two
check_json 'everything that can be read' ".estimate.processes >= 3 and .estimate.read > 4000 * $page" '.*' -- \
	"${reader[@]}" --estimate --settle 0 -J

# A page that changes is left out at the second look: rewritten 100 times in a second, and the rest is not.
holder d "$same; \$c = pack('N', 7) x (300 * \$ARGV[0] / 4); open(my \$r, '>', '$work/ready/d'); close \$r;
	for (my \$n = 0; \$n < 12000; \$n++) { substr(\$c, \$_ * \$ARGV[0] + 40, 4) = pack('N', \$n) for 0 .. 298; select(undef, undef, undef, 0.01) }" four
check_json 'changing pages are left out' ".estimate | (.changed | $(near 250 100)) and .saved_within_processes < 900 * $page" -- \
	"${reader[@]}" --estimate --settle 1 -J -p "$child"

# Pages shared since a fork save nothing, and to read them does not part them.
holder e "$same; \$pid = fork; sleep 120 unless \$pid" five
fork_parent=$child
fork_child=$(cat "/proc/$fork_parent/task/$fork_parent/children")
children+=("${fork_child% }")
pss() { awk '/^Pss:/ { print $2 }' "/proc/$fork_parent/smaps_rollup"; }
before=$(pss)
check_json 'shared since a fork: nothing to save' ".estimate.saved_across_processes < 700 * $page and .estimate.read > 4000 * $page" -- \
	"${reader[@]}" --estimate --settle 0.1 -J -p "$fork_parent,${fork_child% }"
after=$(pss)
verdict "$([ "$after" -le $((before + before / 20)) ] || echo "Pss was $before kB and is $after kB")" 'to look does not part shared pages'

# Ctrl-C: the result so far.
"${reader[@]}" --estimate --settle 60 -p "$first,$second" >"$work/partial" 2>"$work/partial.err" &
estimate=$!
sleep 1.5
kill -INT $estimate
wait $estimate
code=$?
verdict "$([ $code -eq 130 ] || echo "exit code $code"; grep -q '^PARTIAL' "$work/partial" || cat "$work/partial" "$work/partial.err"
	grep -q 'would save' "$work/partial" || echo 'no result')" 'SIGINT: exit code 130 and a partial result'

# On a terminal there is progress, and the line is empty in the end.
if script -qec true /dev/null >/dev/null 2>&1; then
	script -qec "'$stat' --estimate --settle 0.3 -p $first >/dev/null" /dev/null </dev/null >"$work/terminal" 2>&1
	verdict "$(grep -q 'to look again' "$work/terminal" || cat -v "$work/terminal"
		[ "$(tail -c 4 "$work/terminal")" = $'\r\e[K' ] || tail -c 20 "$work/terminal" | cat -v)" 'progress on a terminal, which is left clean'
else
	skip 'progress on a terminal' 'no pseudo-terminal can be had here'
fi

# Memory of its own: at most 2 % of what it reads, on top of what any run takes.
holder g '$big = ""; $big .= pack("N", $_) x ($ARGV[0] / 4) for 1 .. 50000' seven
# own_kib PID: the largest resident size of the run, with its result in $work/out.
own_kib()
{
	# A sanitizer that keeps what was freed would be counted too.
	ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=0 /usr/bin/time -f %M -o "$work/rss" \
		"$stat" --estimate --settle 0.1 -J -p "$1" >"$work/out"
	tail -n 1 "$work/rss"
}
if [ -x /usr/bin/time ] && command -v jq >/dev/null; then
	small=$(own_kib "$third") small_read=$(jq .estimate.read "$work/out")
	big=$(own_kib "$child") big_read=$(jq .estimate.read "$work/out")
	verdict "$([ "$big_read" -gt $((small_read + 150000000)) ] || echo "only $big_read bytes were read"
		awk -v is=$(((big - small) * 1024)) -v read=$((big_read - small_read)) \
			'BEGIN { if (is > read / 50) print is " bytes for " read }')" 'own memory: at most 2 % of what is read'
else
	skip 'own memory' '/usr/bin/time or jq is not installed'
fi

finish
