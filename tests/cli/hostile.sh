#!/bin/bash
# Names that strangers choose, in every form of output: nothing in them reaches a terminal or a parser.
# SPDX-License-Identifier: GPL-2.0-or-later
. "${BASH_SOURCE%/*}/lib.bash"

stat=$B/ksmstat ctl=$B/ksmctl root=$work/root
cp -r tests/fixtures/linux-6.18 "$root"
rm -rf "$root"/proc/[0-9]*

# Each kind of byte that does harm somewhere: to a terminal, a table, JSON, pairs, a shell, labels, formats.
hostile=($'\e[31mred' $'new\nline' 'quo"te" A="1' 'back\slash' $'bad\xff\xfe' $'\xc2\x9b31m' '$(id)`id`' $'tab\there' \
	$'rtl\xe2\x80\xaeb' $'cr\rx' '%s%n' 'a"} 1' ' ' ') S 1 (' $'\x7f\b')
names=${#hostile[@]}

# process PID NAME: that is its name, its group (but for the line ends and slashes), and the file that it maps.
process()
{
	local dir=$root/proc/$1 path=${2//[$'\n'\/]/_}
	mkdir -p "$dir/task/$1"
	printf '%s (%.15s) S 1 1 1 0 -1 4194304 222 0 3 0 0 0 0 0 20 0 5 0 99 0 0\n' "$1" "$2" >"$dir/stat"
	printf 'Name:\t%s\nState:\tS\nUid:\t%s\t%s\t%s\t%s\nVmLck:\t 0 kB\nVmPin:\t 0 kB\n' x $1 $1 $1 $1 >"$dir/status"
	printf '0::/lxc.payload.%s/%s\n' "$path" "$path" >"$dir/cgroup"
	printf 'ksm_rmap_items 1000\nksm_merging_pages 5\nksm_zero_pages 2\nksm_process_profit -1\nksm_merge_any: no\nksm_mergeable: yes\n' >"$dir/ksm_stat"
	{
		printf '00400000-00500000 r-xp 00000000 fe:00 5    /tmp/%s\n' "$path"
		printf '%s kB\n' 'Size: 1024' 'Rss: 8' 'Pss: 8' 'Shared_Clean: 0' 'Shared_Dirty: 0' 'Private_Clean: 8' \
			'Private_Dirty: 0' 'Anonymous: 0' 'KSM: 0' 'Swap: 0'
		echo 'VmFlags: rd ex mr mw me '
		printf '7f0000000000-7f0006400000 rw-p 00000000 00:00 0 [anon:%s]\n' "$path"
		printf '%s kB\n' 'Size: 102400' 'Rss: 80000' 'Pss: 50000' 'Shared_Clean: 0' 'Shared_Dirty: 40000' 'Private_Clean: 0' \
			'Private_Dirty: 40000' 'Anonymous: 80000' 'KSM: 40000' 'Swap: 0'
		echo 'VmFlags: rd wr mr mw me ac mg '
	} >"$dir/smaps"
	cp "$dir/smaps" "$dir/maps"
	printf '%s\0-x\0' "$2" >"$dir/cmdline"
	printf '%.15s\n' "$2" >"$dir/comm"
}
for i in "${!hostile[@]}"; do
	process $((1000 + i)) "${hostile[i]}"
done

# What is wrong of $work/out as text for people or for a reader of lines.
controls()
{
	LC_ALL=C grep -na '[[:cntrl:]]' "$work/out" | sed 's/^/a control character: /'
	LC_ALL=C.UTF-8 grep -naxv '.*' "$work/out" | sed 's/^/no UTF-8: /'
	LC_ALL=C grep -na $'\xc2[\x80-\x9f]\|\xe2\x80[\x8e\x8f\xa8-\xae]' "$work/out" | sed 's/^/a character that is none to see: /'
}
lines() { [ "$(wc -l <"$work/out")" -eq "$1" ] || echo "$(wc -l <"$work/out") lines, not $1: a name breaks them, or was lost"; }
at_least() { [ "$(wc -l <"$work/out")" -ge "$1" ] || echo "$(wc -l <"$work/out") lines, not $1: names were lost"; }
# Words of a line, or KEY="VALUE" and nothing else.
words() { awk -v n="$1" 'NF != n { print "not " n " words: " $0 }' "$work/out"; }
pairs() { grep -vE '^([A-Z_]+="([^"\\]|\\.)*" ?)+$' "$work/out" | sed 's/^/no pairs: /'; }
# One document, and in no string of it what a terminal would take for more than text.
json()
{
	jq -es 'length == 1 and ([.[0] | .. | strings | select(test("[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e]"))] | . == [])' \
		<"$work/out" >"$work/jq" 2>&1 || { echo 'no JSON, or a raw character in it'; cat "$work/jq" "$work/out" | head -n 5; }
	[ "$(jq "[.. | strings | select(contains(\"31mred\"))] | length" "$work/out")" -ge 1 ] || echo 'no name is in it'
}

# shows NAME CHECKS CODE ERR COMMAND...: as text, in plain and in UTF-8 surroundings.
shows()
{
	local locale
	for locale in C C.UTF-8; do
		also="controls; $2" LC_ALL=$locale check "$1, $locale" "$3" . "$4" -- "${@:5}"
	done
}

command -v jq >/dev/null || skip_all 'jq is not installed'
report() { shows "ksmstat $*" "$checks" 0 '' "$stat" --root "$root" "$@"; }
checks="lines $names" report -n
checks="lines $names; words 4" report -n -r -o PID,COMMAND,CGROUP,CONTAINER
checks="lines $names; pairs" report -P -o PID,COMMAND,CGROUP,CONTAINER,UNIT
checks="lines $names" report --classic
checks="lines $((names + 2))" report -t -o +COMMAND,CGROUP,CONTAINER,POD
checks="lines $((names + 1))" report -o all
checks=json report -J -o all
checks=at_least\ $names report --prom --per-process --by program --by user --by cgroup --by unit --by container --by pod
for by in program cgroup container; do
	checks="lines $names" report -n --by $by
	checks="lines $names" report -n -r --by $by
	checks="lines $names; pairs" report -P --by $by
	checks=json report -J --by $by
done
for by in user unit pod system; do
	checks='at_least 1' report -n --by $by
done
checks="at_least $names" report -n -T
checks="at_least $names; pairs" report -P -T
checks=json report -J -T

enable() { shows "ksmctl $*" "$checks" 0 '' "$ctl" --root "$root" "$@"; }
checks="lines $names" enable enable --dry-run --cgroup /
checks="lines $names" enable enable --dry-run --comm '*'
# What there is to find has the names in it: memory that is not offered, while ksmd works.
sed -i 's/ mg / /; s/^\(KSM:\) .*/\1 0 kB/' "$root"/proc/*/smaps
sed -i 's/^ksm_mergeable: yes/ksm_mergeable: no/; s/^ksm_merging_pages.*/ksm_merging_pages 0/' "$root"/proc/*/ksm_stat
echo 1 >"$root/sys/kernel/mm/ksm/run"
echo 20 >"$root/sys/kernel/mm/ksm/sleep_millisecs"
doctor() { shows "ksmctl doctor $*" "$checks" '0|1' '.*' "$ctl" --root "$root" doctor "$@"; }
for i in "${!hostile[@]}"; do
	checks='grep -q "has registered no memory" "$work/out" || echo "no finding"' doctor -a $((1000 + i))
done
checks=json doctor --json -a 1000

# Programs as they are, whose pages can be read.
program=$work/${hostile[0]}$'\r"\\\xff'
cp "$(command -v sleep)" "$program"
start_child "$program" 60
wait_for 5 grep -qa 'red' "/proc/$child/comm"
if "$stat" --estimate --settle 0 -p "$child" >/dev/null 2>&1; then
	shows 'ksmstat --estimate' 'at_least 2' 0 '.*' "$stat" --estimate --settle 0 -p "$child"
	for by in program cgroup; do
		shows "ksmstat --estimate --by $by" 'at_least 2' 0 '.*' "$stat" --estimate --settle 0 --by $by -p "$child"
	done
	also=json check 'ksmstat --estimate -J' 0 . '.*' -- "$stat" --estimate --settle 0 -J --by program -p "$child"
else
	skip 'ksmstat --estimate' 'pages cannot be read here'
fi
"$ctl" enable -n "$child" 99999999 >"$work/out" 2>&1
verdict "$(controls; lines 2)" 'ksmctl enable: what it says of one'

# Every way to print is here, or has no names in it.
tried=' noheadings raw pairs json classic total output by tree prom per-process estimate '
without=' pid comm user cgroup sort bytes settle top-pages gentle max-rss capture output-file anonymise root help version '
elsewhere=' watch audit ' # ksmstat_watch.sh, live/audit.sh
unknown=$("$stat" --help | sed -n 's/^  .*--\([a-z-]*\) .*/\1/p' | while read -r option; do
	[[ "$tried$without$elsewhere" = *" $option "* ]] || echo "--$option: does it print names?"
done)
verdict "$unknown" 'every option that prints names is tried'
finish
