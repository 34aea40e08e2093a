#!/bin/bash
# Command-line scenarios of ksmctl, on made-up kernel trees: arguments -> exit code, stdout, stderr.
# SPDX-License-Identifier: GPL-2.0-or-later
. "${BASH_SOURCE%/*}/lib.bash"

ctl=$B/ksmctl
root=$work/root
ksm=$root/sys/kernel/mm/ksm
keys=(run pages_to_scan sleep_millisecs smart_scan use_zero_pages merge_across_nodes max_page_sharing
	stable_node_chains_prune_millisecs advisor_mode advisor_max_cpu advisor_min_pages_to_scan
	advisor_max_pages_to_scan advisor_target_scan_time pages_shared pages_sharing ksm_zero_pages
	pages_unshared pages_volatile pages_skipped pages_scanned full_scans stable_node_chains
	stable_node_dups general_profit)
values=(0 100 20 1 0 1 256 2000 '[none] scan-time' 70 500 30000 200 0 0 0 0 0 0 0 0 0 0 0)

# tree [KEY=VALUE|-KEY]...: a fresh tree with these changes. A write into a file does not shorten it
# here, so scenarios write values that are as long as the old ones.
tree()
{
	local i change
	rm -rf "$root"
	mkdir -p "$ksm" "$root/proc"
	for i in "${!keys[@]}"; do
		echo "${values[i]}" >"$ksm/${keys[i]}"
	done
	for change; do
		case $change in
		-*) rm "$ksm/${change#-}" ;;
		*) echo "${change#*=}" >"$ksm/${change%%=*}" ;;
		esac
	done
	memory 4194304
	find "$root" -type f -exec touch -d @1000000000 {} + # so that every later write shows
	snapshot >"$work/before"
}

# memory KIB: what is available
memory()
{
	printf '%-15s %8d kB\n' MemTotal: 8388608 MemFree: 1024 MemAvailable: "$1" SwapTotal: 0 SwapFree: 0 \
		>"$root/proc/meminfo"
	touch -d @1000000000 "$root/proc/meminfo"
	snapshot >"$work/before"
}

contents() { grep -r '' "$root" | sort; }
snapshot() { contents; find "$root" -printf '%p %s %m %T@\n' | sort; }
untouched()
{
	snapshot >"$work/now"
	diff "$work/before" "$work/now" | sed 's/^/the tree changed: /' | head -n 4
	mv "$work/now" "$work/before" # said once, not by every later scenario too
}
put_back() { diff <(grep -v '^/[^:]*$\| [0-9]*\.[0-9]*$' "$work/before") <(contents); }
holds()
{
	local change
	for change; do
		[ "$(cat "$ksm/${change%%=*}")" = "${change#*=}" ] ||
			echo "${change%%=*} is $(cat "$ksm/${change%%=*}"), not ${change#*=}"
	done
}

# What all of these share: the tree, silence on stdout, and for a refusal that nothing was written.
works() { also="holds ${*:2}" check "${name:-$1}" 0 '' '' -- "$ctl" --root "$root" $1; }
refused() { also=untouched check "${4-$3}" "$1" '' "$2" -- "$ctl" --root "$root" $3; }

# Help and version.
also='for verb in info start stop unmerge set run; do grep -q "^  $verb" "$work/out" || echo "no $verb"; done
	too_long' check 'help names every verb in 80 columns' 0 '^Usage: ksmctl ' '' -- "$ctl" --help
check 'help, short' 0 '^Usage: ksmctl ' '' -- "$ctl" -h
check 'version' 0 '^ksmctl [0-9]+\.[0-9]+\.[0-9]+$' '' -- "$ctl" --version
check 'version, short' 0 '^ksmctl [0-9]' '' -- "$ctl" -V
speaker='' check 'no verb: the help, on stderr' 2 '' '^Usage: ksmctl ' -- "$ctl"
mapfile -t verbs < <("$ctl" --help | sed -n '/^Verbs:/,/^Options:/s/^  \([a-z][a-z]*\).*/\1/p')
for verb in "${verbs[@]}"; do
	also='too_long' check "$verb --help" 0 "^Usage: ksmctl $verb" '' -- "$ctl" "$verb" --help
	check "$verb -h" 0 "^Usage: ksmctl $verb" '' -- "$ctl" "$verb" -h
done
check 'unknown verb' 2 '' "unknown verb 'bogus'.*--help" -- "$ctl" bogus
check 'empty verb' 2 '' "unknown verb ''" -- "$ctl" ''
check 'unknown option' 2 '' "--bogus'.*--help" -- "$ctl" --bogus
check '--root without a folder' 2 '' "--root'? requires|requires an argument" -- "$ctl" --root
check '--root that is not there' 1 '' '/nowhere: No such file' -- "$ctl" --root "$work/nowhere" info
: >"$work/plain"
check '--root that is no folder' 1 '' 'Not a directory' -- "$ctl" --root "$work/plain" info

# No KSM in this kernel.
tree
rm -rf "$ksm"
for call in info 'info --json' start 'start 100 20' stop unmerge 'unmerge --force' 'set run=1'; do
	check "no KSM: $call" 3 '' '^ksmctl: no KSM: [^'$'\n'']*$' -- "$ctl" --root "$root" $call
done
: >"$ksm"
check 'no KSM: a file in its place' 3 '' 'no KSM' -- "$ctl" --root "$root" info

# info
tree run=1 pages_shared=256 pages_sharing=1024 ksm_zero_pages=256 general_profit=-12345
mkdir "$root/proc/37"
echo '37 (ksmd) S 2 0 0 0 -1 2097216 0 0 0 0 0 5 0 0 25 5 1 0 35 0 0' >"$root/proc/37/stat"
echo '2500000000 33 44' >"$root/proc/37/schedstat"
snapshot >"$work/before"
page=$(getconf PAGESIZE)
also='for key in "${keys[@]}"; do grep -q "^$key " "$work/out" || echo "no $key"; done' \
	check 'info shows every key' 0 'merging \(run=1\), 100 pages every 20 ms' '' -- \
		"$ctl" --root "$root" info
check 'info: saving with zero pages' 0 "Saved +$((1280 * page >> 20)).0 MiB, of which zero pages $((page >> 12)).0" '' \
	-- "$ctl" --root "$root" info
check 'info: cost' 0 'Cost +2.50 s of CPU .*PID 37' '' -- "$ctl" --root "$root" info
check_json 'info --json: one object of numbers' \
	'.ksm | length == 1 and (.[0] | del(.advisor_mode) | all(type == "number"))' -- "$ctl" --root "$root" info --json
check_json 'info --json: values' '.ksm[0] | .run == 1 and .pages_shared == 256 and .general_profit == -12345 and
	.advisor_mode == "none" and .saved_bytes == 1280 * .page_bytes and .ksmd_pid == 37 and
	.ksmd_cpu_ns == 2500000000' -- "$ctl" --root "$root" info -J
for key in "${keys[@]}"; do
	echo ".ksm[0] | has(\"$key\")"
done >"$work/has"
check_json 'info --json: every key' "$(sed 's/.*/(&)/' "$work/has" | paste -sd ' ' | sed 's/) (/) and (/g')" \
	-- "$ctl" --root "$root" info --json
refused 2 'info takes no arguments' 'info run'
refused 2 "--bogus'" 'info --bogus'
refused 2 "x'" 'info -x'
tree -smart_scan -ksm_zero_pages -advisor_mode -general_profit -merge_across_nodes pages_sharing=7
check_json 'info --json: null for what this kernel lacks' '.ksm[0] | .smart_scan == null and
	.ksm_zero_pages == null and .advisor_mode == null and .general_profit == null and
	.merge_across_nodes == null and .pages_sharing == 7 and .saved_bytes == 7 * .page_bytes and
	.ksmd_pid == null and .ksmd_cpu_ns == null and has("smart_scan")' -- "$ctl" --root "$root" info --json
check 'info: absent, and ksmd not seen' 0 'Cost +unknown.*smart_scan +absent' '' -- \
	"$ctl" --root "$root" info
tree pages_sharing=garbage pages_to_scan=
mkdir "$ksm/new" && rm "$ksm/pages_shared" && mkdir "$ksm/pages_shared"
check_json 'info --json: null for what is no number' '.ksm[0] | .pages_sharing == null and .saved_bytes == null and
	.pages_to_scan == null and .pages_shared == null and .run == 0' -- "$ctl" --root "$root" info --json
check 'info: unreadable is not 0' 0 'pages_sharing +unreadable' '' -- "$ctl" --root "$root" info
for state in '0 stopped' '1 merging' '2 everything unmerged' '5 memory goes offline'; do
	tree "run=${state%% *}"
	check "info: run=${state%% *}" 0 "State .*${state#* }" '' -- "$ctl" --root "$root" info
done
tree 'advisor_mode=none [scan-time]'
check_json 'info --json: the advisor' '.ksm[0].advisor_mode == "scan-time"' -- \
	"$ctl" --root "$root" info --json
check 'info: the advisor' 0 "advisor"$'\n' '' -- "$ctl" --root "$root" info
tree "advisor_mode=none [magic]"
check_json 'info --json: an advisor of the future' '.ksm[0].advisor_mode == "other"' -- \
	"$ctl" --root "$root" info -J

# start and stop
tree
works start run=1 pages_to_scan=100
works stop run=0
tree
works 'start 500' run=1 pages_to_scan=500 sleep_millisecs=20
works 'start 999 50' run=1 pages_to_scan=999 sleep_millisecs=50
tree pages_to_scan=1234567890
works 'start 4294967295' run=1 pages_to_scan=4294967295
tree
also='holds run=1 pages_to_scan=000' check 'start 0: done, with a note' 0 '' 'note: pages_to_scan is 0' -- \
	"$ctl" --root "$root" start 0
tree
for bad in -1 +5 1e3 0x10 1.5 4294967296 9223372036854775808 99999999999999999999999999 text --json; do
	refused 2 "pages_to_scan must be a whole number from 0 to 4294967295, not '[^ ]*'" "start $bad"
	refused 2 "sleep_millisecs must be a whole number from 0 to 4294967295" "start 100 $bad"
done
for bad in '' ' ' ' 5' '5 ' '5;6'; do
	also=untouched check "start ${bad@Q}" 2 '' 'must be a whole number' -- \
		"$ctl" --root "$root" start "$bad"
done
refused 2 'at most PAGES and SLEEP_MS' 'start 100 20 30'
refused 2 'takes no arguments' 'stop now'
tree 'advisor_mode=none [scan-time]'
refused 5 'refused: .*advisor.*set advisor_mode=none' 'start 500'
works start run=1

# set: what is refused before anything is touched
tree
refused 2 'at least one KEY=VALUE' 'set'
for bad in run=3 run=-1 run= run=on smart_scan=2 use_zero_pages=-1 merge_across_nodes=2 max_page_sharing=1 \
	max_page_sharing=2147483648 pages_to_scan=4294967296 sleep_millisecs=1.5 advisor_target_scan_time=0 \
	advisor_max_cpu=x stable_node_chains_prune_millisecs=-2000 run==1; do
	refused 2 "${bad%%=*} must be a whole number from [0-9]+ to [0-9]+, not '${bad#*=}'" "set $bad"
	refused 2 "${bad%%=*} must be" "set pages_to_scan=500 $bad" "set pages_to_scan=500 $bad: nothing is touched"
done
for bad in advisor_mode=fast advisor_mode= advisor_mode=1 'advisor_mode=[none]x'; do
	refused 2 'advisor_mode must be none or scan-time' "set $bad"
done
refused 2 "unknown key 'foo'.*info" 'set foo=1'
refused 2 "unknown key 'RUN'" 'set RUN=1'
refused 2 "unknown key ''" 'set =1'
refused 2 "unknown key '../proc/meminfo'" 'set ../proc/meminfo=1'
refused 2 "unknown key 'foo'" 'set run=1 foo=1'
refused 2 "'run' is not KEY=VALUE" 'set run 1'
refused 2 "--bogus'" 'set --bogus run=1'
also=untouched check "set '': no KEY=VALUE" 2 '' "'' is not KEY=VALUE" -- \
	"$ctl" --root "$root" set ''
also=untouched check "set 'run= 1'" 2 '' 'run must be' -- "$ctl" --root "$root" set 'run= 1'
for key in pages_shared pages_sharing ksm_zero_pages full_scans general_profit; do
	refused 2 "$key is a counter" "set $key=0"
done
tree -smart_scan
refused 1 'cannot write smart_scan: this kernel does not have it' 'set run=1 smart_scan=0'
tree sleep_millisecs=garbage
refused 1 'cannot read sleep_millisecs' 'set run=1 sleep_millisecs=10'
tree 'advisor_mode=none [scan-time]'
refused 5 'refused: .*advisor.*advisor_mode=none' 'set pages_to_scan=500'
refused 5 'refused: .*advisor' 'set run=1 pages_to_scan=500 smart_scan=0'
tree
refused 5 'refused: .*advisor' 'set pages_to_scan=500 advisor_mode=scan-time'

# set: what is done
tree
works 'set pages_to_scan=500 sleep_millisecs=10 smart_scan=0' \
	run=0 pages_to_scan=500 sleep_millisecs=10 smart_scan=0 use_zero_pages=0
works 'set run=1' run=1
works 'set run=0 run=1' run=1
works 'set run=2' run=2
tree advisor_mode=none
works 'set advisor_mode=scan-time' advisor_mode=scan-time
tree
name='set: everything in one call' works 'set run=1 use_zero_pages=1 merge_across_nodes=0 max_page_sharing=512 advisor_max_cpu=50
	stable_node_chains_prune_millisecs=4000 advisor_min_pages_to_scan=600 advisor_target_scan_time=300
	advisor_max_pages_to_scan=20000 smart_scan=0 sleep_millisecs=10 pages_to_scan=999' \
	run=1 use_zero_pages=1 merge_across_nodes=0 max_page_sharing=512 advisor_max_cpu=50 \
	stable_node_chains_prune_millisecs=4000 advisor_min_pages_to_scan=600 advisor_target_scan_time=300 \
	advisor_max_pages_to_scan=20000 smart_scan=0 sleep_millisecs=10 pages_to_scan=999
# Which is written first shows when its write fails: the others must not have been touched by then. A
# value that is shorter than the old one fails here: "5" makes "20" a "50", as if the kernel did not keep it.
not_written()
{
	local key
	for key; do
		[ "$(stat -c %Y "$ksm/$key")" -eq 1000000000 ] || echo "$key was written before"
	done
}
# first KEY OTHER...: KEY fails, and was written before the others.
first()
{
	tree
	also="put_back; not_written ${*:2}" check "set: $1 before ${*:2}; all is put back" 1 '' \
		"^ksmctl: cannot write $1: value not kept[^"$'\n'"]*$" -- \
		"$ctl" --root "$root" set run=1 sleep_millisecs=10 pages_to_scan=500 "$1=5"
}
first advisor_max_cpu pages_to_scan run
first advisor_target_scan_time pages_to_scan run
first max_page_sharing pages_to_scan sleep_millisecs advisor_max_cpu
first sleep_millisecs run
first stable_node_chains_prune_millisecs run

# set: the two tunables that want nothing merged
tree run=1 pages_shared=10 pages_sharing=1000
for change in max_page_sharing=512 merge_across_nodes=0; do
	refused 5 "refused: ${change%=*} can change only while nothing is merged.*--unmerge-first" "set $change"
	refused 5 'refused: .*--unmerge-first' "set pages_to_scan=500 $change"
done
works 'set max_page_sharing=256 merge_across_nodes=1' run=1 max_page_sharing=256 merge_across_nodes=1
works 'set --unmerge-first max_page_sharing=512' run=1 max_page_sharing=512 merge_across_nodes=1
works 'set --unmerge-first merge_across_nodes=0 max_page_sharing=256' run=1 max_page_sharing=256 merge_across_nodes=0
works 'set --unmerge-first max_page_sharing=333 run=0' run=0 max_page_sharing=333
tree run=1 pages_shared=10 pages_sharing=1000000
memory 1024
refused 5 'refused: unmerging needs [0-9]+ MiB but only 1 MiB.*--force' 'set --unmerge-first max_page_sharing=512'
works 'set --unmerge-first --force max_page_sharing=512' run=1 max_page_sharing=512
tree run=1
works 'set max_page_sharing=512' run=1 max_page_sharing=512
tree run=0 pages_sharing=1000000
memory 1024
also=put_back check 'set run=2 without room is refused and put back' 5 '' 'refused: .*--force' -- \
	"$ctl" --root "$root" set pages_to_scan=500 run=2
works 'set --force run=2' run=2

tree
also=put_back check 'set: a late failure takes back max_page_sharing too' 1 '' 'cannot write sleep_millisecs: value not kept' -- \
	"$ctl" --root "$root" set max_page_sharing=512 sleep_millisecs=5

# unmerge
tree run=1 pages_shared=10 pages_sharing=1000 ksm_zero_pages=500
works unmerge run=2
tree
works unmerge run=2
tree run=1 pages_shared=10 pages_sharing=1000000
memory 1024
refused 5 '^ksmctl: refused: unmerging needs [0-9]{4,} MiB but only 1 MiB are available; --force insists$' unmerge
works 'unmerge --force' run=2
tree run=1 ksm_zero_pages=1000000
memory 1024
refused 5 'refused: unmerging needs [0-9]{4,} MiB' unmerge 'unmerge: zero pages need room too'
tree run=1
rm "$root/proc/meminfo"
snapshot >"$work/before"
refused 5 'refused: cannot tell' unmerge 'unmerge: without meminfo'
works 'unmerge --force' run=2
tree -pages_sharing
refused 5 'refused: cannot tell' unmerge 'unmerge: without pages_sharing'
refused 2 'takes no arguments' 'unmerge all'
refused 2 "--bogus'" 'unmerge --bogus'

# Ordinary users.
user_programs
user_ctl=$work/bin/ksmctl
give_tree() { [ "$(id -u)" -ne 0 ] || chown -R 65534:65534 "$root"; }
user_case()
{
	if [ -n "${no_user-}" ]; then
		skip "$1" "$no_user"
	else
		check "$@"
	fi
}
tree
chmod 444 "$ksm/sleep_millisecs"
give_tree
also=put_back user_case 'user: a later write fails, all is put back' 4 '' \
	'^ksmctl: cannot write sleep_millisecs: Permission denied \(run it as root\)$' -- \
	"${as_user[@]}" "$user_ctl" --root "$root" set run=1 pages_to_scan=500 sleep_millisecs=10
chmod 644 "$ksm/sleep_millisecs" && chmod 444 "$ksm/run"
also=put_back user_case 'user: start fails at the last write, all is put back' 4 '' 'cannot write run: Permission denied' -- \
	"${as_user[@]}" "$user_ctl" --root "$root" start 500 10
chmod 444 "$ksm"/*
for call in start stop 'start 500 10' 'set run=1' 'set max_page_sharing=512' unmerge; do
	also=put_back user_case "user: $call" 4 '' '^ksmctl: cannot write [a-z_]+: Permission denied \(run it as root\)$' -- \
		"${as_user[@]}" "$user_ctl" --root "$root" $call
done
chmod 000 "$ksm/pages_sharing" "$ksm/sleep_millisecs"
user_case 'user: set of what cannot be read' 4 '' 'cannot read sleep_millisecs: Permission denied' -- \
	"${as_user[@]}" "$user_ctl" --root "$root" set sleep_millisecs=10
user_case 'user: info of what cannot be read' 0 'pages_sharing +unreadable' '' -- \
	"${as_user[@]}" "$user_ctl" --root "$root" info
if [ -n "${no_user-}" ]; then
	skip 'user: info --json of what cannot be read' "$no_user"
else
	check_json 'user: info --json of what cannot be read' '.ksm[0] | .pages_sharing == null and .saved_bytes == null' \
		-- "${as_user[@]}" "$user_ctl" --root "$root" info --json
fi
chmod 000 "$ksm"
user_case 'user: a folder that is closed' 4 '' 'cannot open /sys/kernel/mm/ksm: Permission denied' -- \
	"${as_user[@]}" "$user_ctl" --root "$root" info
chmod 755 "$ksm"

# The running kernel, without touching it: every one of these is refused.
real=/sys/kernel/mm/ksm
if [ ! -d $real ]; then
	skip 'user on the real kernel' "this kernel has no KSM"
	skip 'read-only /sys' "this kernel has no KSM"
else
	for call in start 'set sleep_millisecs=20' unmerge stop; do
		user_case "user on the real kernel: $call" '4|5' '' '^ksmctl: (cannot write .*run it as root|refused)' -- \
			"${as_user[@]}" "$user_ctl" $call
	done
	user_case 'user on the real kernel: info' 0 'run ' '' -- "${as_user[@]}" "$user_ctl" info
	read_only="mount --bind $real $real && mount -o remount,bind,ro $real"
	if unshare -m bash -c "$read_only" 2>/dev/null; then
		for call in start 'set sleep_millisecs=20' 'unmerge --force'; do
			check "read-only /sys: $call" 4 '' '^ksmctl: cannot write [a-z_]+: Read-only file system.*container' -- \
				unshare -m bash -c "$read_only && exec $ctl $call"
		done
	else
		skip 'read-only /sys' "no mounts can be made here"
	fi
fi

# Output that cannot be written.
tree
for call in info 'info --json' --help; do
	check "$call into a full disk" 1 '' '^ksmctl: cannot write the output: No space left on device$' -- \
		bash -c "exec '$ctl' --root '$root' $call >/dev/full"
	check "$call with stdout closed" 1 '' '^ksmctl: cannot write the output: ' -- \
		bash -c "exec '$ctl' --root '$root' $call >&-"
	# Bash says nothing of a program that SIGPIPE ends; with the signal ignored the program is quiet itself.
	check "$call into a closed pipe" 141 '' '' -- \
		bash -c "{ sleep 0.1; exec '$ctl' --root '$root' $call; } | true; exit \${PIPESTATUS[0]}"
	check "$call into a closed pipe, SIGPIPE ignored" 1 '' '' -- \
		bash -c "trap '' PIPE; { sleep 0.1; exec '$ctl' --root '$root' $call; } | true; exit \${PIPESTATUS[0]}"
done
also='holds run=1' check 'start needs no stdout' 0 '' '' -- bash -c "exec '$ctl' --root '$root' start <&- >&- 2>&-"
check 'an error with stderr closed' 2 '' '' -- bash -c "exec '$ctl' --root '$root' start x <&- >&- 2>&-"

# run
check 'run: code 0' 0 '' '' -- "$ctl" run true
check 'run: code of the command' 7 '' '' -- "$ctl" run sh -c 'exit 7'
check 'run: signal of the command' 143 '' '' -- "$ctl" run -- sh -c 'kill -TERM $$'
check 'run: arguments as they are' 0 '^<a b> <> <-v> <\*>$' '' -- \
	"$ctl" run printf '<%s> <%s> <%s> <%s>\n' 'a b' '' -v '*'
check 'run --: options of the command' 0 '^-v$' '' -- "$ctl" run -- echo -v
check 'run: not found' 127 '' "^ksmctl: cannot run 'no-such-program': No such file" -- \
	env PATH=/usr/bin:/bin "$ctl" run no-such-program
check 'run: empty command' 127 '' "cannot run ''" -- "$ctl" run ''
check 'run: not executable' 126 '' "cannot run '$work/plain': Permission denied" -- \
	"$ctl" run "$work/plain"
check 'run: a folder' 126 '' 'Permission denied' -- "$ctl" run "$work"
check 'run: no command' 2 '' 'run needs a COMMAND' -- "$ctl" run
check 'run --: no command' 2 '' 'run needs a COMMAND' -- "$ctl" run --
check 'run: unknown option' 2 '' "x'" -- "$ctl" run -x true
for v in -v --verbose; do
	check "run $v says how" 0 '^hello$' '^ksmctl: by (prctl|preload)' -- \
		"$ctl" run $v echo hello
done

finish
