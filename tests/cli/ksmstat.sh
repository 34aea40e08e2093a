#!/bin/bash
# Command-line scenarios of ksmstat, on made-up processes and on real ones: options -> code, stdout, stderr.
# SPDX-License-Identifier: GPL-2.0-or-later
. "${BASH_SOURCE%/*}/lib.bash"

stat=$B/ksmstat
root=$work/root

# process PID COMM CODE_KIB DATA_KIB KSM_KIB PSS_KIB: code is private; of the data, KSM is shared.
process()
{
	local dir=$root/proc/$1
	mkdir -p "$dir"
	printf '%s (%s) S 1 1 1 0 -1 4194304 222 0 3 0 0 0 0 0 20 0 5 0 99 0 0\n' "$1" "$2" >"$dir/stat"
	printf 'Name:\tx\nUid:\t0\t0\t0\t0\n' >"$dir/status"
	printf 'ksm_rmap_items 1000\nksm_merging_pages %d\nksm_zero_pages 2\nksm_process_profit -%d\n' \
		$(($5 / 4)) "$1" >"$dir/ksm_stat"
	{
		printf '00400000-00500000 r-xp 00000000 fe:00 5    /bin/%s\n' x
		printf '%s kB\n' 'Size: 1024' "Rss: $3" "Pss: $3" 'Shared_Clean: 0' 'Shared_Dirty: 0' \
			"Private_Clean: $3" 'Private_Dirty: 0' 'Anonymous: 0' 'KSM: 0' 'Swap: 0'
		echo 'VmFlags: rd ex mr mw me '
		printf '7f0000000000-7f0000100000 rw-p 00000000 00:00 0 \n'
		printf '%s kB\n' 'Size: 1024' "Rss: $4" "Pss: $6" 'Shared_Clean: 0' "Shared_Dirty: $5" \
			'Private_Clean: 0' "Private_Dirty: $(($4 - $5))" "Anonymous: $4" "KSM: $5" 'Swap: 8'
		if [ "$5" -gt 0 ]; then echo 'VmFlags: rd wr mr mw me ac mg '; else echo 'VmFlags: rd wr mr mw me ac '; fi
	} >"$dir/smaps"
}

process 100 alpha 40 400 200 300
process 200 beta 20 800 400 600
process 300 gamma 60 100 0 100
process 400 hidden 0 0 0 0
rm "$root/proc/400/smaps" && mkdir "$root/proc/400/smaps" # there, and unreadable even for root
mkdir "$root/proc/2" "$root/proc/self" "$root/proc/0"
echo '2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0' >"$root/proc/2/stat"
unread='^ksmstat: 1 of 4 processes could not be read[^'$'\n'']*$'
page=$(getconf PAGESIZE)

fake() { check "$1" "$2" "$3" "$4" -- "$stat" --root "$root" "${@:5}"; }
# rows NAME OPTIONS LINE...: the whole output, line by line, each a regular expression; blanks around it do not count.
rows()
{
	local want
	want=$(printf ' *%s *\n' "${@:3}")
	fake "$1" 0 "^${want%$'\n'}\$" "$unread" $2
}

# Help, version, usage.
also='too_long' check 'help in 80 columns' 0 '^Usage: ksmstat ' '' -- "$stat" --help
check 'help, short' 0 '^Usage: ksmstat ' '' -- "$stat" -h
check 'version' 0 '^ksmstat [0-9]+\.[0-9]+\.[0-9]+$' '' -- "$stat" --version
check 'version, short' 0 '^ksmstat [0-9]' '' -- "$stat" -V
also='sed -n "/^Columns:/,/^$/s/^  \([A-Z_]*\) .*/\1/p" "$work/out" | grep . | grep -v "^KERNEL_\|^KSMD_" >"$work/names"' \
	check 'help lists the columns' 0 'SAVED' '' -- "$stat" --help
for bad in --bogus -x --pid --sort --output --root -p -o; do
	check "bad option $bad" 2 '' "^ksmstat: .*(${bad##*-}|argument).*--help" -- "$stat" $bad
done
check 'unexpected argument' 2 '' "unexpected argument 'x'.*--help" -- "$stat" x
for bad in 0 -1 x '' 1, ,1 1,,2 1.5 2147483648 99999999999999999999 '1 2' 0x1; do
	check "bad PID ${bad@Q}" 2 '' "is not a process ID.*--help" -- \
		"$stat" --root "$root" -p "$bad"
done
for bad in '' BOGUS PID, +BOGUS , 'PID KSM' PID,,KSM PI; do
	check "bad column ${bad@Q}" 2 '' "unknown column '.*--help" -- \
		"$stat" --root "$root" -o "$bad"
done
check 'one column 65 times' '2|32' '' '^ksmstat: (more than|1 of)' -- \
	"$stat" -p 2147483646 -o "$(printf 'PID,%.0s' {1..64})PID"
for bad in '' BOGUS - PID,KSM --PID; do
	check "bad --sort ${bad@Q}" 2 '' "unknown column '.*' to sort by.*--help" -- \
		"$stat" --root "$root" --sort "$bad"
done
check '--root that is not there' 1 '' "cannot open $work/nowhere: No such file" -- \
	"$stat" --root "$work/nowhere"
mkdir "$work/empty"
check '--root without /proc' 1 '' 'cannot read /proc: No such file' -- "$stat" --root "$work/empty"

# The table.
rows 'table, sorted by what was saved' '-o PID,COMMAND,CODE_P,CODE_S,DATA_P,DATA_S,TOTAL,KSM,SAVED' \
	'PID COMMAND +CODE_P CODE_S DATA_P DATA_S TOTAL +KSM SAVED' \
	'200 beta +20K +0B +400K +400K +820K 400K +200K' \
	'100 alpha +40K +0B +200K +200K +440K 200K +100K' \
	'300 gamma +60K +0B +100K +0B +160K +0B +0B'
rows '-b: bytes' '-b -o pid,total,saved' 'PID +TOTAL +SAVED' "200 $((820 * 1024)) $((200 * 1024))" \
	"100 $((440 * 1024)) $((100 * 1024))" "300 $((160 * 1024)) +0"
rows '-n: no headings' '-n -o PID' 200 100 300
rows '-r: raw' '-r -o PID,COMMAND,OPTED' 'PID COMMAND OPTED' '200 beta madvise' '100 alpha madvise' '300 gamma no'
rows '-P: pairs' '-P -o PID,COMMAND,KSM' 'PID="200" COMMAND="beta" KSM="400K"' \
	'PID="100" COMMAND="alpha" KSM="200K"' 'PID="300" COMMAND="gamma" KSM="0B"'
rows '--classic' --classic 'beta\(200\) code:\(p=20, s=0\) data:\(p=400, s=400\) total=820' \
	'alpha\(100\) code:\(p=40, s=0\) data:\(p=200, s=200\) total=440' \
	'gamma\(300\) code:\(p=60, s=0\) data:\(p=100, s=0\) total=160'
rows '-t: totals only of what adds up' '-t -o PID,CODE_P,PSS,SAVED,ZERO,RSS,PROFIT,DIRTY' 'PID .*' '200 .*' '100 .*' '300 .*' \
	"total +120K +1.1M +300K +$((3 * 2 * page / 1024))K"
rows 'other columns' '-n -o PID,PPID,USER,THREADS,RSS,PSS,USS,SWAP,ANON,SCANNED,AREAS,MERGEABLE,MINFLT,MAJFLT --sort -PID' \
	'100 +1 root +5 440K 340K 240K +8K 400K +1000 +2 +1 +222 +3' \
	'200 +1 root +5 820K 620K 420K +8K 800K +1000 +2 +1 +222 +3' \
	'300 +1 root +5 160K 160K 160K +8K 100K +1000 +2 +0 +222 +3'
also='[ "$(head -n 1 "$work/out" | wc -w)" -eq "$(wc -w <"$work/names")" ] || echo "not every column of the help"' \
	fake '-o all' 0 '^ *PID .*COMMAND' "$unread" -o all
also='[ "$(head -n 1 "$work/out" | wc -w)" -eq 12 ] || echo "not twelve columns"' \
	fake '-o +COLUMN' 0 '^ *PID .*RSS' "$unread" -o +RSS

# Sorting, both ways; what is not known comes last either way.
rows '--sort TOTAL: large first' '-n -o PID --sort TOTAL' 200 100 300
rows '--sort -TOTAL: small first' '-n -o PID --sort -TOTAL' 300 100 200
rows '--sort PID' '-n -o PID --sort PID' 300 200 100
rows '--sort=-pid' '-n -o PID --sort=-pid' 100 200 300
rows '--sort COMMAND: from A' '-n -o COMMAND --sort COMMAND' alpha beta gamma
rows '--sort -COMMAND' '-n -o COMMAND --sort -COMMAND' gamma beta alpha
rows '--sort: equal values by PID' '-n -o PID --sort PPID' 100 200 300
for order in CODE_P -CODE_P; do
	fake "--sort $order: not known is last" 64 $'\n'' *400 +- *$' "$unread" -n -o PID,CODE_P --sort $order -p 400,100,200,300
done

# -p
fake '-p: one' 0 '^ *100 *$' '' -n -o PID -p 100
fake '-p: two, and again' 0 $'^ *200 *\n *100 *\n *300 *$' '' -n -o PID -p 300,100 -p 200
fake '-p: none found is 32' 32 '' '^ksmstat: 1 of the processes asked for is not there$' -p 12345
fake '-p: no name but a number' 32 '' 'is not there' -n -p 3
fake '-p: some found is 64' 64 '^ *100 *$' '^ksmstat: 2 of the processes asked for are not there$' -n -o PID -p 12345,100,12346
fake '-p: unreadable is a dash' 32 '^ *400 +- +- +222 +hidden$' '^ksmstat: 1 of 1 processes could not be read' \
	-n -o PID,CODE_P,SAVED,MINFLT,COMMAND -p 400
fake '-p: unreadable, --classic' 32 '' '^ksmstat: 1 of 1 processes could not be read' --classic -p 400

# JSON
check_json 'JSON: the values' '.processes | length == 4 and .[0] == {pid: 200, command: "beta", code_p: 20480,
	total: 839680, saved: 204800, ksm: 409600, profit: -200, opted: "madvise"}' "$unread" -- \
	"$stat" --root "$root" -J -o PID,COMMAND,CODE_P,TOTAL,SAVED,KSM,PROFIT,OPTED
check_json 'JSON: unreadable is null' '.processes[] | select(.pid == 400) | .code_p == null and .total == null and
	.rss == null and .opted == null and .areas == null and .minflt == 222 and .command == "hidden" and
	(has("code_p") and has("total"))' "$unread" -- "$stat" --root "$root" -J -o all
check_json 'JSON: types' 'all(.processes[]; (.user, .command | type == "string") and
	(del(.user, .command, .opted, .saved_by, .cgroup, .unit, .container, .pod) | all(. == null or type == "number")))' "$unread" -- "$stat" --root "$root" -J -o all
check_json 'JSON: no totals, no headings' '.processes | length == 4' "$unread" -- \
	"$stat" --root "$root" -J -t -n
want_code=32 check_json 'JSON: none' '.processes == []' 'not there' -- \
	"$stat" --root "$root" -J -p 12345
want_code=64 check_json 'JSON: some' '.processes | map(.pid) == [100]' 'not there' -- \
	"$stat" --root "$root" -J -p 1,100
also='grep -c "\"pid\"" "$work/out" | grep -qx 1 || echo "one key more than once"' \
	fake 'JSON: a column asked for twice is one key' 0 pid '' -J -o PID,KSM,PID -p 100

# Hostile names, as text of the kernel and of real programs. A name takes 15 bytes.
hostile=($'\e[31mred' $'new\nline' 'quo"te' "apo'strophe" 'back\slash' 'back\x41' ' blanks ' ') S 1 (' '(((' $'bad\xff\xfe' \
	$'\xc3\xa4\xe2\x82\xac' $'\xc2\x9b31m' '$(id)' '`id`' '{"a":1}' $'tab\there' $'rtl\xe2\x80\xae' $'half\xe2\x82' '%s%n')
for i in "${!hostile[@]}"; do
	process $((1000 + i)) "${hostile[i]}" 8 8 0 8
done
pids=$(seq -s, 1000 $((999 + ${#hostile[@]})))
# Escaped in JSON so that the text is valid and harmless, and gives the name back.
given_back()
{
	local i=0 line
	while IFS= read -r line; do
		[ "$(printf '%b.' "$line")" = "${hostile[i]}." ] || echo "${hostile[i]@Q} became $line"
		i=$((i + 1))
	done < <(jq -r '.processes[].command' <"$work/out")
	[ $i -eq ${#hostile[@]} ] || echo "$i names"
	jq -r '.processes[].command' <"$work/out" >"$work/shown"
	LC_ALL=C grep -n '[[:cntrl:]]' "$work/shown"
}
also_json=given_back check_json 'hostile names: JSON gives them back' true -- \
	"$stat" --root "$root" -J -o PID,COMMAND --sort -PID -p "$pids"
plain='[ "$(wc -l <"$work/out")" -eq ${#hostile[@]} ] || echo "a name breaks the line"
	LC_ALL=C grep -n "[[:cntrl:]]" "$work/out"
	LC_ALL=C.UTF-8 grep -naxv ".*" "$work/out" | sed "s/^/no UTF-8: /"'
for form in '' -r -P; do
	also=$plain fake "hostile names: ${form:-table}" 0 . '' -n $form -o PID,COMMAND --sort -PID -p "$pids"
	LC_ALL=C.UTF-8 also=$plain fake "hostile names: ${form:-table}, UTF-8" 0 . '' -n $form -o PID,COMMAND --sort -PID -p "$pids"
done
also='sed "s/([0-9]*) code.*//" "$work/out" | diff "$work/shown" - | head -n 4' \
	fake 'hostile names: escaped once, --classic' 0 . '' --classic --sort -PID -p "$pids"
for i in 0 1 2 4 9; do
	rm -f "$work/fifo"
	mkfifo "$work/fifo"
	program=$work/${hostile[i]}
	cp "$(command -v bash)" "$program"
	start_child "$program" -c 'read -r -t 60 <>"$0"' "$work/fifo"
	wait_for 5 grep -qaz "fifo" "/proc/$child/cmdline"
	name=$(sed -n "$((i + 1))p" "$work/shown" | jq -R .)
	check_json "hostile program ${hostile[i]@Q}" ".processes | length == 1 and .[0].command == $name" \
		-- "$stat" -J -p "$child"
done

# Real processes.
check_json 'the whole machine as JSON' ".processes | any(.pid == $$ and .total > 0 and .pss > 0)" '.*' -- \
	"$stat" -J -o PID,TOTAL,PSS,COMMAND
check_json 'every column as JSON' ".processes | length == 1 and .[0].pid == $$ and .[0].ppid == $PPID and
	.[0].command == \"$(</proc/$$/comm)\" and .[0].minflt > 0" -- "$stat" -J -o all -p $$
check 'itself is in the table' 0 'ksmstat' '.*' -- "$stat" -o COMMAND
wide() { awk -v RS='\r?\n' 'length($0) > 80 { print "longer than 80: " $0 }' "$work/out"; }
if script -qec true /dev/null >/dev/null 2>&1; then
	also=wide check 'a terminal of 80 columns' 0 'COMMAND' '' -- \
		script -qec "stty cols 80; $stat" /dev/null
else
	skip "a terminal of 80 columns" "no pseudo-terminal can be had here"
fi
start_child bash -c 'sleep 0.2 & echo $! >"$1"; exec sleep 60' - "$work/zombie"
wait_for 5 eval 'grep -qs "^State:.Z" "/proc/$(cat "$work/zombie" 2>/dev/null)/status"'
check 'a zombie has no memory: not found' 32 '' 'not there|no memory' -- \
	"$stat" -n -p "$(cat "$work/zombie")"

# Ordinary users.
user_programs
user_stat=$work/bin/ksmstat
if [ -n "${no_user-}" ]; then
	skip 'ordinary users' "$no_user"
elif [ "$(id -u)" -ne 0 ]; then
	skip 'processes of other users' "not run as root: who they belong to is not known"
else
	counted='^ksmstat: [1-9][0-9]* of [0-9]+ processes could not be read; as root more can be$'
	also='grep -E " - +- " "$work/out"' check 'user: unreadable ones are counted, not shown' 0 'ksmstat' "$counted" -- \
		"${as_user[@]}" "$user_stat"
	check_json 'user: unreadable ones are null' '.processes | any(.code_p == null and .saved == null) and
		any(.total > 0)' "$counted" -- "${as_user[@]}" "$user_stat" -J
	check 'user: asked for, it is a row of dashes' 32 "^ *$$ +root +- +- +- +- " "^ksmstat: 1 of 1 .*as root" -- \
		"${as_user[@]}" "$user_stat" -n -p $$
	check 'user: --classic has no line for it' 32 '' "^ksmstat: 1 of 1 .*as root" -- \
		"${as_user[@]}" "$user_stat" --classic -p $$
	check 'user: --estimate of what is not his' 32 '' '1 of 1 processes could not be read' -- \
		"${as_user[@]}" "$user_stat" --estimate -p $$
fi

# By which way it is read, and how much of it.
for bad in '' 0 -1 q 1x 1KK 1KiX 99999999999999999999 9000000000G ' 1'; do
	check "bad --max-rss ${bad@Q}" 2 '' '--max-rss wants a size as 512M or 4G.*--help' -- "$stat" --max-rss "$bad"
done
check '--estimate has no --gentle' 2 '' '--gentle does not go with --estimate.*--help' -- "$stat" --estimate --gentle
check '--estimate has no --max-rss' 2 '' '--max-rss does not go with --estimate.*--help' -- "$stat" --estimate --max-rss 1G
start_child sleep 1000
wait_for 10 grep -q sleep "/proc/$child/comm"
check '--max-rss leaves out, says so' 32 '' '^ksmstat: 1 process is larger than --max-rss and left out$' -- \
	"$stat" -n -p "$child" --max-rss 4096
check '--max-rss, some of them' 64 'sleep' '^ksmstat: 1 process is larger' -- "$stat" -p "$child,$$" --max-rss 3M
check '--max-rss that all are below' 0 'sleep' '' -- "$stat" -p "$child" --max-rss 1TiB
if grep -qs 'ksm_mergeable: no' "/proc/$child/ksm_stat"; then
	columns=pid,code_p,code_s,data_p,data_s,total,rss,uss,anon,ksm,saved,saved_by,areas,opted,command
	# Nobody but root knows from smaps alone that nothing at all is merged.
	[ "$(id -u)" = 0 ] || columns=${columns/saved_by,/}
	also="diff '$work/out' <('$stat' -r -b -o $columns,pss -p $child | sed 's/ [^ ]*\$//')" \
		check 'the numbers are the same by smaps' 0 . '' -- "$stat" -r -b -o $columns -p "$child"
	also="diff '$work/out' <('$stat' -r -b -o $columns -p $child)" \
		check 'and gently' 0 . '' -- "$stat" --gentle -r -b -o $columns -p "$child"
	check_json 'gently, what needs smaps is not known' \
		'.processes[0] | .pss == null and .huge == null and .dirty == null and .mergeable == null and .total > 0' -- \
		"$stat" --gentle -J -o all -p "$child"
	check_json 'what is shared is of files, forked or merged' \
		'.processes[0] | .shared_file + .shared_cow + .ksm_others == .code_s + .data_s' -- \
		"$stat" -J -o +shared_file,shared_cow,ksm_others -p "$child"
else
	skip 'the numbers are the same by smaps' 'ksm_stat does not say that it is not open to merging'
fi
check_json '--gentle of a captured tree' '.processes | any(.total > 0)' '^ksmstat: 1 of ' -- "$stat" --root "$root" --gentle -J

# Output that cannot be written.
for form in '' -J -r -P --classic --help; do
	call="--root '$root' $form -p 100"
	check "${form:-table} into a full disk" 1 '' '^ksmstat: cannot write the output: No space left on device$' -- \
		bash -c "exec '$stat' $call >/dev/full"
	check "${form:-table} with stdout closed" 1 '' '^ksmstat: cannot write the output: ' -- \
		bash -c "exec '$stat' $call >&-"
	check "${form:-table} into a closed pipe" 141 '' '' -- \
		bash -c "{ sleep 0.1; exec '$stat' $call; } | true; exit \${PIPESTATUS[0]}"
	check "${form:-table} into a closed pipe, SIGPIPE ignored" 1 '' '' -- \
		bash -c "trap '' PIPE; { sleep 0.1; exec '$stat' $call; } | true; exit \${PIPESTATUS[0]}"
done
check 'much into a full disk' 1 '' $'^(ksmstat: 1 of [^\n]*\n)?ksmstat: cannot write the output: No space left' -- \
	bash -c "exec '$stat' --root '$root' -J -o all >/dev/full"

finish
