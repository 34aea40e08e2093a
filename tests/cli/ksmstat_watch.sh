#!/bin/bash
# ksmstat --watch on a terminal of its own (tmux): what it draws, what its keys do, and how it leaves.
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154 # set in lib.bash
. "${BASH_SOURCE%/*}/lib.bash"

stat=$B/ksmstat
root=$work/root

# --- without a terminal
check 'no terminal: said' 1 '' '^ksmstat: --watch needs a terminal' -- "$stat" --watch
check '--watch takes no COUNT' 2 '' "unexpected argument '3'.*--help" -- "$stat" --watch 1 3
for bad in 0 0.05 86401 1x 0x1 1e9; do
	check "--watch: bad delay $bad" 2 '' "^ksmstat: DELAY wants seconds.*'$bad'.*--help" -- "$stat" --watch $bad
done
for bad in -J -r -P -t -T; do
	check "--watch $bad" 2 '' '^ksmstat: .*--help' -- "$stat" --watch $bad
done
command -v tmux >/dev/null || { skip 'on a terminal' 'tmux is not installed'; finish; }

tm() { tmux -u -S "$work/tmux" -f /dev/null "$@" </dev/null 2>>"$work/tmux.err"; }
trap 'tm kill-server; clean_up' EXIT
screen() { tm capture-pane -p -t t; }
shows() { screen | grep -qE -e "$1"; }
# expect NAME REGEX: a line of the screen is like it, within 20 s.
expect()
{
	wait_for 20 shows "$2" && verdict '' "$1" || verdict "no line is: $2"$'\n'"$(screen)" "$1"
}
keys() { tm send-keys -t t "$@"; }

# process PID COMM DATA_KIB PROFIT
process()
{
	local dir=$root/proc/$1
	mkdir -p "$dir"
	printf '%s (%b) S 1 1 1 0 -1 4194304 222 0 3 0 0 0 0 0 20 0 5 0 99 0 0\n' "$1" "$2" >"$dir/stat"
	printf 'Name:\tx\nUid:\t0\t0\t0\t0\n' >"$dir/status"
	printf 'ksm_rmap_items 10\nksm_merging_pages 5\nksm_zero_pages 2\nksm_process_profit %d\n' "$4" >"$dir/ksm_stat"
	printf '%s\n' '7f0000000000-7f0000100000 rw-p 00000000 00:00 0 ' "Rss: $3 kB" "Pss: $(($3 - 8)) kB" \
		'Shared_Clean: 0 kB' 'Shared_Dirty: 16 kB' 'Private_Clean: 0 kB' "Private_Dirty: $(($3 - 16)) kB" \
		"Anonymous: $3 kB" 'KSM: 16 kB' 'Swap: 0 kB' 'VmFlags: rd wr mr mw me ac mg ' >"$dir/smaps"
}
process 101 'alpha' 1040 3000
process 102 'beta' 3088 1000
process 103 'beta' 2064 2000
process 104 'x\033[2J\033]0;evil\007\0233Jy' 80 500
for i in {201..240}; do process "$i" "more$i" 48 10; done
mkdir -p "$root/sys/kernel/mm/ksm" "$root/proc/37"
echo '37 (ksmd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0' >"$root/proc/37/stat"
echo 1 >"$root/sys/kernel/mm/ksm/run"
echo 256 >"$root/sys/kernel/mm/ksm/pages_shared"
echo 1024 >"$root/sys/kernel/mm/ksm/pages_sharing"
echo 5000000000 1 1 >"$root/proc/37/schedstat"

tm new-session -d -s t -x 100 -y 24 "env PS1='READY> ' TERM=screen-256color LC_ALL=C.UTF-8 bash --norc --noprofile" ||
	{ skip 'on a terminal' "tmux does not start: $(head -n 1 "$work/tmux.err")"; finish; }
expect 'the shell is there' '^READY> *$'
order() { screen | grep -oE '(alpha|beta|more[0-9]+)$' | head -n 3 | tr '\n' ' '; }
# first NAME TEXT: the rows begin with these programs.
begins() { [ "$(order)" = "$1 " ]; }
first() { wait_for 20 begins "$2" && verdict '' "$1" || verdict "order: $(order), wanted $2"$'\n'"$(screen)" "$1"; }

keys "stty -a >$work/stty; $stat --root $root --watch 0.3 -o PID,DATA_P,PROFIT,COMMAND --sort DATA_P" Enter
expect 'its headings' '^ *PID +DATA_P +PROFIT +COMMAND *$'
first 'sorted as asked for' 'beta beta alpha'
page=$(getconf PAGESIZE)
expect 'figures of the machine' "^saving $((page / 1024))(.0)?M \(0B\)  profit -  shared $((page / 4096))(.0)?M  sharing/shared 4.00\$"
expect 'what is absent is a dash' '^ksmd 0.0%  scanned -/s  merged 0/s  broken -/s  scans -  run 1, merging$'
expect 'the graph is of blocks' '█'
echo 2048 >"$root/sys/kernel/mm/ksm/pages_sharing"
expect 'it follows the counters' "^saving $((page / 512))(.0)?M "
expect 'a hostile name is escaped' 'x\\x1b\[2J\\x1b\]0;evil\\x07\\x9bJy'
verdict "$([ "$(tm display -p -t t '#{pane_title}')" != evil ] || echo 'the title was set')" 'and did nothing to the terminal'
keys '>'
first '> sorts by the next column' 'alpha beta beta'
expect 'which the title says' '^ksmstat [0-9:]{8}  every 0.3 s  by PROFIT  44 processes'
keys r
first 'r turns it round' 'more201 more202 more203'
keys r '<'
first '< goes back' 'beta beta alpha'
keys Down Down
first 'an arrow moves the table' 'alpha more201 more202'
keys NPage
wait_for 20 begins 'beta beta alpha' && problem='it did not move' || problem=
verdict "$(shows 'more2(1|2)[0-9]$' || echo 'other rows are not there')$problem" 'Page Down moves it further'
keys End
expect 'End goes to the last' 'more240$'
keys Home
first 'Home to the first' 'beta beta alpha'
keys b
expect 'b: by program' '^PROCS '
keys b
expect 'b again: by process' '^ *PID +DATA_P'
keys '?'
expect '? shows help' '^r +turn the order round'
keys '?'
keys Space
expect 'space pauses' 'PAUSED'
echo 1024 >"$root/sys/kernel/mm/ksm/pages_sharing"
sleep 1
verdict "$(shows "^saving $((page / 512))(.0)?M " || echo 'it went on')" 'and nothing is read'
keys Space
expect 'space goes on' "^saving $((page / 1024))(.0)?M "
keys +
expect '+ waits longer' 'every 0.5 s'
keys -
expect '- waits shorter' 'every 0.2 s'

tm resize-window -t t -x 20 -y 5
fits() { screen | awk 'length($0) > 20 { bad = 1 } /PID/ { head = 1 } END { exit !(head && NR == 5 && !bad) }'; }
wait_for 20 fits && verdict '' '20x5 has headings and rows' || verdict "$(screen)" '20x5 has headings and rows'
tm resize-window -t t -x 1 -y 1
sleep 0.5
tm resize-window -t t -x 200 -y 50
expect 'and 200x50 after 1x1' '^ *PID +DATA_P'
tm resize-window -t t -x 80 -y 24
expect 'and 80x24' '^q quit '

# left CODE NAME: the shell is back, with its screen, its cursor and its settings.
left()
{
	local problem=
	wait_for 20 shows '^code=' || problem='it does not end'$'\n'
	shows "^code=$1\$" || problem+="not code=$1"$'\n'
	[ "$(tm display -p -t t '#{alternate_on}')" = 0 ] || problem+='the other screen is still there'$'\n'
	[ "$(tm display -p -t t '#{cursor_flag}')" = 1 ] || problem+='the cursor is hidden'$'\n'
	keys "stty -a >$work/stty.after; echo settings" Enter
	wait_for 20 shows '^settings$' || problem+='no shell'$'\n'
	problem+=$(diff <(sed 's/rows.*columns [0-9]*//' "$work/stty") <(sed 's/rows.*columns [0-9]*//' "$work/stty.after"))
	[ -z "$problem" ] || problem+=$'\n'$(screen)
	verdict "$problem" "$2"
	keys clear Enter
	wait_for 20 shows '^READY> *$'
}
# The command behind it comes from a variable, so that the screen shows its result and not the words.
keys q
expect 'q ends it' '^READY> *$'
keys "s() { $stat --root $root --watch \"\$@\"; echo code=\$?; }; clear" Enter
begin() { keys "s $*" Enter && expect "it runs again: $*" '^q quit '; }
begin
keys q
left 0 'q leaves all as it was'
begin
keys Escape
left 0 'Escape too'
begin 1
keys C-c
left 0 'Ctrl-C too'
begin 1
# The shell's child: there is one on this terminal.
child_pid() { pgrep -P "$(tm display -p -t t '#{pane_pid}')" -x ksmstat; }
kill -TERM "$(child_pid)"
left 0 'SIGTERM too'
begin 1
kill -HUP "$(child_pid)"
left 0 'SIGHUP too'
begin 1
keys C-z
expect 'Ctrl-Z stops it' 'Stopped'
verdict "$([ "$(tm display -p -t t '#{alternate_on}')" = 0 ] || echo 'the other screen')" 'on the screen of the shell'
keys fg Enter
expect 'and fg goes on' '^q quit '
keys q
expect 'until q' '^READY> *$'
keys clear Enter
mv "$root/proc" "$root/gone"
keys "s 0.2" Enter
wait_for 20 shows '^code=1'
verdict "$(shows '^ksmstat: ' || screen)" 'an error is said on the screen of the shell'
mv "$root/gone" "$root/proc"
keys clear Enter
keys 'export LC_ALL=C; s 0.2' Enter
expect 'without UTF-8 the graph is of letters' '#'
expect 'and the hostile name escaped' 'x\\x(5cx)?1b\[2J'
keys q
left 0 'and it ends'
for term in nonsense dumb ''; do
	keys "TERM=$term s" Enter
	wait_for 20 shows '^code='
	verdict "$(shows "^ksmstat: --watch .*TERM is '$term'\$" && shows '^code=1$' || screen)" "TERM='$term' is said"
	keys clear Enter
	wait_for 20 shows '^READY> *$'
done
finish
