#!/bin/bash
# Scenarios of the adaptive service on made-up kernel trees: what it decides, tells, leaves alone and restores.
# SPDX-License-Identifier: GPL-2.0-or-later
. "${BASH_SOURCE%/*}/lib.bash"

for need in perl:perl "${CC:-cc}:a C compiler"; do
	command -v "${need%%:*}" >/dev/null || skip_all "${need#*:} is not installed"
done
ctl=$B/ksmctl
root=$work/root ksm=$work/root/sys/kernel/mm/ksm
conf=$work/conf state=$work/state log=$work/log
# A sanitizer wants to be loaded first; the played kernel is no harm to it.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export PLAYED_LOG=$log PLAYED_FIRST=$state/first-values
unset NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -shared -fPIC -o "$work/kernel.so" tests/cli/kernel.c || {
	verdict 'tests/cli/kernel.c does not build' 'the played kernel'
	finish
}

# tree VERSION [KEY=VALUE|-FILE]...: a captured kernel, changed; FILE is below sys/kernel/mm/ksm or the root.
tree()
{
	local change
	rm -rf "$root" "$state" "$log"
	cp -r "tests/fixtures/linux-$1" "$root"
	shift
	for change; do
		case $change in
		-/*) rm -r "${root:?}/${change#-/}" ;;
		-*) rm "$ksm/${change#-}" ;;
		*) echo "${change#*=}" >"$ksm/${change%%=*}" ;;
		esac
	done
	config
	found=$(knobs)
}

config() { printf '%s\n' "state-dir = $state" 'interval = 20' 'rest-interval = 100' "$@" >"$conf"; }
put() { echo "$2" >"$work/value" && mv "$work/value" "$ksm/$1"; } # at once, as the kernel does
get() { sed 's/.*\[\(.*\)\].*/\1/' "$ksm/$1"; }
knobs()
{
	local key
	for key in run pages_to_scan sleep_millisecs smart_scan use_zero_pages advisor_mode max_page_sharing \
		stable_node_chains_prune_millisecs advisor_max_cpu; do
		[ ! -e "$ksm/$key" ] || { [ $key = pages_to_scan ] && grep -qs '\[scan' "$ksm/advisor_mode"; } ||
			echo "$key=$(get $key)" # with the advisor at work it is the kernel's own
	done
}
as_found() { diff <(echo "$found") <(knobs) | sed -n 's/^[<>]/knobs as found or now:&/p'; }

# pass [SHARING]: ksmd ends a pass that merged so many pages more.
pass()
{
	put full_scans $(($(<"$ksm/full_scans") + 1))
	[ ! -e "$ksm/pages_scanned" ] || put pages_scanned $(($(<"$ksm/pages_scanned") + 5000))
	put pages_sharing $(($(<"$ksm/pages_sharing") + ${1-0}))
}

# begin: the service, with what it says in $work/said. Sets daemon. Its exit code comes to $work/code,
# for whoever asks: a subshell cannot wait for it.
begin()
{
	rm -f "$work/daemon" "$work/code"
	{
		env --default-signal=INT "${starter[@]}" LD_PRELOAD="$work/kernel.so" \
			"${program-$ctl}" daemon --root "$root" -c "$conf" >"$work/said" 2>&1 </dev/null &
		echo $! >"$work/daemon"
		wait $!
		echo $? >"$work/code"
	} 2>/dev/null &
	until [ -s "$work/daemon" ]; do sleep 0.001; done
	daemon=$(<"$work/daemon")
	children+=("$daemon")
}
starter=(env)

# end [SIGNAL [CODES]]: prints what is wrong of how it ends.
end()
{
	local from=${EPOCHREALTIME/./} took code
	kill -"${1-TERM}" "$daemon" 2>/dev/null || echo 'it had ended before'
	soon test -s "$work/code" || { echo 'it does not end' && return; }
	took=$((${EPOCHREALTIME/./} - from)) code=$(<"$work/code")
	[ $took -lt 1000000 ] || echo "its end took $took us"
	[[ $code =~ ^(${2-0})$ ]] || echo "exit code $code, not ${2-0}: $(cat "$work/said")"
}

# soon COMMAND...: within five seconds, asked often.
soon()
{
	local end=$((${EPOCHREALTIME/./} + 5000000))
	until "$@" 2>/dev/null; do
		[ ${EPOCHREALTIME/./} -lt $end ] || return 1
		sleep 0.01
	done
}
wants() { soon "$@" || echo "it never came to: $*; $(tr '\n' ' ' <"$state/status" 2>&1); $(cat "$work/said")"; }
shows() { grep -qx "$1" "$state/status"; }
serves() { shows "pid=$daemon"; }
says() { grep -q "$1" "$work/said"; }
writes() { wc -l <"$log"; }
times() { grep -c "$1" "$work/said"; }

# quiet SECONDS: nothing is written to the kernel meanwhile.
quiet()
{
	local before
	before=$(writes)
	sleep "$1"
	[ "$(writes)" -eq "$before" ] || { echo 'it wrote:'; tail -n +$((before + 1)) "$log" | head -n 5; }
}

# to_rest: passes that merge nothing follow each other until the scanner is stopped.
to_rest()
{
	local i
	for i in {1..40}; do
		[ "$(get run)" = 1 ] || break
		pass
		sleep 0.06
	done
	wants shows phase=parked
	[ "$(get run)" = 0 ] || echo "run is $(get run)"
}

# --- Configuration
: >"$work/empty"
check '--check: an empty file is good' 0 '' '' -- "$ctl" daemon --check -c "$work/empty"
check '--check: the example is good' 0 '' '' -- "$ctl" daemon --check -c docs/ksmctl.conf
check '--check: no such file' 2 '' "^ksmctl: cannot read $work/none: No such file" -- \
	"$ctl" daemon --check -c "$work/none"
check '--check: a folder' 2 '' 'Is a directory' -- "$ctl" daemon --check -c "$work"
check '--print-config' 0 $'\nboost-cpu = 85\n.*\nksmd-nice = keep\n.*\nstate-dir = /run/ksmctl$' '' -- \
	"$ctl" daemon --print-config -c "$work/empty"
cp "$work/out" "$work/printed"
also='cmp "$work/out" "$work/printed"' check '--print-config of what it printed is the same' 0 . '' -- \
	"$ctl" daemon --print-config -c "$work/printed"
sed 's/^#\([a-z]\)/\1/' docs/ksmctl.conf >"$work/uncommented"
also='cmp "$work/out" "$work/printed"' check 'the example holds the defaults' 0 . '' -- \
	"$ctl" daemon --print-config -c "$work/uncommented"

# bad LINE MESSAGE: wrong as the third line of a file.
bad()
{
	printf '# one\ninterval = 50\n%s\nrest-interval = 500\n' "$1" >"$work/bad"
	check "bad: ${1:0:40}" 2 '' "^ksmctl: $work/bad:3: [^"$'\n'"]*$2[^"$'\n'"]*$" -- \
		"$ctl" daemon --check -c "$work/bad"
}
bad 'boost-cup = 3' "unknown key 'boost-cup'"
bad '[daemon]' 'there are no sections'
bad 'boost-cpu = 97' "boost-cpu must be from 0.1 to 96, not '97'"
bad 'boost-cpu = 0.05' 'boost-cpu must be from'
bad 'boost-cpu = -5' 'boost-cpu must be from'
bad 'boost-cpu = 5.12345' 'boost-cpu must be from'
bad 'boost-cpu = 5 %' 'boost-cpu must be from'
bad 'boost-cpu = 99999999999999999999' 'boost-cpu must be from'
bad 'interval = 20x' "interval must be from 20 to 10000, not '20x'"
bad 'interval =' 'interval must be'
bad 'interval' 'key = value'
bad 'interval = 19' 'interval must be'
bad 'smart-scan = maybe' "'maybe' is none of the words of smart-scan"
bad 'zero-pages = auto' 'none of the words'
bad 'ksmd-nice = -1' 'ksmd-nice must be from 0 to 19 or keep'
bad 'ksmd-nice = 20' 'ksmd-nice must be'
bad 'state-dir = run/ksmctl' 'state-dir must be an absolute path'
bad "state-dir = /$(printf '%0300d' 0)" ''
printf '# %0400d\ninterval = 50\n' 0 >"$work/long"
check 'a long comment is one comment' 0 '' '' -- "$ctl" daemon --check -c "$work/long"
printf '#%*s boost-cpu = 1\n' 198 '' >"$work/long"
also='grep -qx "boost-cpu = 85" "$work/out" || echo "the end of a comment was taken for a line"' \
	check 'nothing in a long comment counts' 0 . '' -- "$ctl" daemon --print-config -c "$work/long"
printf 'interval = 50\n  60\n' >"$work/more"
check 'an indented line is no value' 2 '' "$work/more:2: " -- "$ctl" daemon --check -c "$work/more"
: >"$work/closed"
chmod 0 "$work/closed"
user_programs
if [ -n "${no_user-}" ]; then
	skip '--check: an unreadable file' "$no_user"
else
	check '--check: an unreadable file' 2 '' 'Permission denied' -- \
		"${as_user[@]}" "$work/bin/ksmctl" daemon --check -c "$work/closed"
fi
check 'daemon takes no arguments' 2 '' 'takes no arguments' -- "$ctl" daemon now
check 'unknown option' 2 '' "--bogus'" -- "$ctl" daemon --bogus

# --- What it needs, and what it can do without
# decides NAME VERSION [CHANGE]...: it boosts, comes to rest when passes gain nothing, and restores.
decides()
{
	local name=$1 problem
	shift
	tree "$@"
	begin
	problem=$(wants shows phase=boost; [ "$(get run)" = 1 ] || echo "run is $(get run) in the boost"
		to_rest; [ -s "$state/first-values" ] || echo 'no first values'
		! grep -m 1 unsaved "$log")
	problem+=$(end; as_found)
	[ ! -e "$state/first-values" ] || problem+='the first values are still there'
	verdict "$problem" "$name: boost, rest, restored"
}
decides 'Linux 6.1' 6.1 run=0
decides 'Linux 6.12' 6.12 run=0 pages_to_scan=100 sleep_millisecs=20
decides 'Linux 6.18' 6.18
decides 'Linux 7.2' 7.2 run=0 smart_scan=0
decides 'without PSI' 6.18 -/proc/pressure
decides 'without the advisor' 6.18 -advisor_{mode,max_cpu,min_pages_to_scan,max_pages_to_scan,target_scan_time}
decides 'advisor at work' 6.18 'advisor_mode=none [scan-time]'
decides 'without smart_scan' 6.18 -smart_scan
decides 'without use_zero_pages' 6.18 -use_zero_pages
decides 'without pages_scanned' 6.18 -pages_scanned
decides 'without general_profit' 6.18 -general_profit
ksmd=$(sed -n 's/^ksmd.pid //p' tests/fixtures/linux-6.18/expected)
decides 'without ksmd in /proc' 6.18 "-/proc/$ksmd"
decides 'without any of these' 6.1 -/proc/pressure -use_zero_pages -merge_across_nodes \
	"-/proc/$(sed -n 's/^ksmd.pid //p' tests/fixtures/linux-6.1/expected)"
verdict "$(says 'no process connector here' || cat "$work/said")" 'it says that there is no connector'

# Who registered memory, as the capture knows it; smaps tells on 6.1, ksm_stat on 6.18.
for version in 6.1 6.12 6.18 7.2; do
	tree $version
	begin
	number=$(grep -c '\.registered 1' "$root/expected")
	verdict "$(wants shows "registered_processes=$number"; end)" "Linux $version: $number processes have registered"
done

tree 6.18
rm -rf "$ksm"
check 'no KSM: code 3' 3 '' 'no KSM' -- "$ctl" daemon --root "$root" -c "$conf"
verdict "$([ ! -e "$state/first-values" ] || echo 'first values of nothing')" 'no KSM: nothing is kept'
tree 6.18 -/proc
check 'no /proc' 1 '' 'cannot prepare the processes: No such file' -- env LD_PRELOAD="$work/kernel.so" \
	"$ctl" daemon --root "$root" -c "$conf"
verdict "$(as_found)" 'no /proc: the kernel is as before'

# --- One at a time, in a folder that nobody else can write to
tree 6.18
begin
wants serves
check 'a second service is refused' 1 '' "^ksmctl: a daemon is running already \(PID $daemon\)$" -- \
	"$ctl" daemon --root "$root" -c "$conf"
check '--restore is refused while it runs' 5 '' "refused: the daemon is running \(PID $daemon\)" -- \
	"$ctl" daemon --root "$root" -c "$conf" --restore
verdict "$(serves || echo 'it does not serve'; end; as_found)" 'the first one is not disturbed'
check '--restore with nothing to restore' 0 '' '' -- "$ctl" daemon --root "$root" -c "$conf" --restore
for kind in link writable other; do
	tree 6.18
	mkdir "$work/elsewhere"
	case $kind in
	link) ln -s "$work/elsewhere" "$state" && code=1 says='(Not a directory|Too many levels)' ;;
	writable) mkdir -m 777 "$state" && code=4 says='must belong to root and be writable by nobody else' ;;
	other) mkdir "$state" && code=4 says='must belong to root' ;;
	esac
	if [ $kind = other ] && ! chown 65534 "$state" 2>/dev/null; then
		skip "state folder: $kind" 'no right to give a folder away'
	else
		also=as_found check "state folder refused: $kind" $code '' "$says" -- "$ctl" daemon --root "$root" -c "$conf"
		echo 'run=2' >"$state/first-values"
		also=as_found check "--restore from it refused: $kind" $code '' . -- \
			"$ctl" daemon --root "$root" -c "$conf" --restore
	fi
	rm -rf "$state" "$work/elsewhere"
done

# Another in its place while it works: what it has open is its own still.
tree 6.18
begin
problem=$(wants shows phase=boost)
mkdir -m 777 "$work/other"
printf 'run=1\npages_to_scan=4321\n' >"$work/other/first-values"
[ "$(id -u)" -ne 0 ] || chown -R 65534 "$work/other"
mv "$state" "$work/own" && mv "$work/other" "$state"
sleep 0.3
for verb in status why boost 'daemon --restore'; do
	check "another folder in its place: $verb" 4 '' '^ksmctl: cannot open .*: Operation not permitted' -- \
		"$ctl" --root "$root" $verb -c "$conf"
done
problem+=$(end; as_found)
[ ! -e "$work/own/first-values" ] || problem+='its own first values are left; '
[ "$(ls -A "$state")" = first-values ] || problem+="written there: $(ls -A "$state")"
verdict "$problem" 'another folder in its place: what was found first is put back, and nothing written there'
rm -rf "$state" "$work/own"

# First values that cannot be understood are nobody's wish: neither written nor thrown away.
for kind in garbage huge folder; do
	tree 6.18 run=1
	mkdir "$state"
	case $kind in
	garbage) printf 'sleep_millisecs=77\npages_to_scan=x\nrun=1\n' >"$state/first-values" ;;
	huge) printf '%04000d\n' 0 >"$state/first-values" ;;
	folder) mkdir "$state/first-values" ;;
	esac
	also=as_found check "first values: $kind" 1 '' 'cannot prepare the first values' -- \
		env LD_PRELOAD="$work/kernel.so" "$ctl" daemon --root "$root" -c "$conf"
	verdict "$([ -e "$state/first-values" ] || echo 'it is gone')" "first values: $kind is kept to be looked at"
	also=as_found check "first values: $kind, --restore" 1 '' 'cannot read the first values' -- \
		env LD_PRELOAD="$work/kernel.so" "$ctl" daemon --root "$root" -c "$conf" --restore
done

# --- What it tells
tree 6.18
for verb in status 'status --json' boost why; do
	check "$verb, nobody runs" 1 '' '^ksmctl: no daemon is running' -- "$ctl" $verb -c "$conf"
done
begin
wants shows phase=boost >"$work/problem"
for who in same other; do
	run=(env)
	[ $who = same ] || run=("${as_user[@]}")
	if [ $who = other ] && { [ -n "${no_user-}" ] || [ "$(id -u)" -ne 0 ]; }; then
		skip 'status of another user' "${no_user-not root}"
		continue
	fi
	check "status, $who user" 0 '^State +boost for [0-9]+ s: .*Scanner +[0-9]+ pages every [0-9]+ ms.*
Saved +[0-9.]+ MiB
Registered +6 processes with [0-9.]+ MiB
Cost ' '' -- "${run[@]}" "$work/bin/ksmctl" status -c "$conf"
	check_json "status --json, $who user" '.status | length == 1 and (.[0] | .phase == "boost" and .run == 1 and
		.writing == true and .connector == false and .registered_processes == 6 and .pid == '"$daemon"' and
		(.reason | length > 10) and (del(.phase, .reason, .writing, .connector) |
		all(type == "number" or . == null)))' -- "${run[@]}" "$work/bin/ksmctl" status --json -c "$conf"
	check "why, $who user" 0 '^[-0-9]+ [:0-9]+  boost +[0-9.]+ % +[0-9.]+ MiB saved  first look' '' -- \
		"${run[@]}" "$work/bin/ksmctl" why -c "$conf"
done
[ "$(id -u)" -ne 0 ] || [ -n "${no_user-}" ] || check 'boost, other user' 4 '' 'cannot signal the daemon' -- \
	"${as_user[@]}" "$work/bin/ksmctl" boost -c "$conf"
verdict "$(cat "$work/problem"; to_rest)" 'it rests'
also='grep -q "^Scanner *stopped" "$work/out" || echo "not stopped"' \
	check 'status at rest' 0 '^State +parked' '' -- "$ctl" status -c "$conf"
check 'boost' 0 '' '' -- "$ctl" boost -c "$conf"
verdict "$(wants shows phase=boost; wants shows 'reason=a boost was asked for')" 'boost: it scans again'
to_rest >/dev/null
kill -USR1 "$daemon"
verdict "$(wants shows phase=boost; to_rest)" 'SIGUSR1 is a boost'
check 'why -n 2' 0 $'^[^\n]*boost[^\n]*\n[^\n]*parked[^\n]*$' '' -- "$ctl" why -n 2 -c "$conf"
check 'why -n 0' 2 '' "'0' is not a number of lines" -- "$ctl" why -n 0 -c "$conf"
problem=$(end KILL 137)
verdict "$problem" 'SIGKILL'
check 'status of a killed service' 1 '' 'no daemon is running' -- "$ctl" status -c "$conf"
check 'boost of a killed service' 1 '' 'no daemon is running' -- "$ctl" boost -c "$conf"

# A reader meets whole files, whenever it looks: decisions follow each other quickly here.
tree 6.18
begin
wants serves >/dev/null
(while :; do pass 900 && sleep 0.03 && kill -USR1 "$daemon" && sleep 0.03; done) 2>/dev/null &
player=$!
disown
children+=("$player")
problem=$(perl -e 'my ($dir, $end, $reads, %seen) = ($ARGV[0], time + 3, 0);
	while (time < $end) {
		for my $name ("status", "decisions") {
			open(my $file, "<", "$dir/$name") or print("no $name: $!\n"), next;
			my $text = do { local $/; <$file> };
			my $whole = $name eq "status" ? $text =~ /\Apid=\d+\n(?:\w+=[^\n]+\n)+connector=\d\n\z/
				: $text =~ /\A(?:\d+\t\w+(?:\t\d+){4}\t[\w ,]+\n)+\z/;
			$whole or print("part of $name: $text\n"), exit;
			$seen{$text}++; $reads++;
		}
	}
	keys(%seen) >= 20 && $reads > 1000 or printf("only %d files in %d reads\n", scalar(keys %seen), $reads)' "$state")
kill -KILL "$player"
verdict "$problem$(end)" 'status and decisions are never met half written'

# --- Another controller
tree 6.18
config 'foreign-retry = 1'
begin
wants shows phase=boost >"$work/problem"
put pages_to_scan 777
verdict "$(cat "$work/problem"; wants shows phase=hold; quiet 0.6; [ "$(get pages_to_scan)" = 777 ] || echo 'overwritten'
	[ "$(times 'another controller')" = 1 ] || echo "said $(times 'another controller') times")" \
	'a foreign write: said once, not fought'
verdict "$(wants shows phase=boost; [ "$(get pages_to_scan)" != 777 ] || echo 'not written again')" \
	'foreign-retry: it comes back'
put run 2
verdict "$(wants shows phase=hold; quiet 2.6; [ "$(get run)" = 2 ] || echo "run is $(get run)")" \
	'run=2 of somebody is never overwritten'
put run 1
verdict "$(wants shows phase=boost)" 'it comes back when somebody lets ksmd run again'
put advisor_mode 'none [scan-time]'
put pages_to_scan 500 # as the kernel does then
verdict "$(wants shows phase=hold; quiet 4.6)" "the advisor, turned on by somebody, is not fought"
verdict "$(end; [ "$(get advisor_mode)" = scan-time ] || echo 'it turned the advisor off')" \
	'what another controller holds is not restored over it'

tree 6.18
begin
wants shows phase=boost >"$work/problem"
put run 5
verdict "$(cat "$work/problem"; sleep 0.4; shows phase=boost || cat "$work/said")" \
	'memory going offline (run reads 5) is nobody else'
put run 1
put stable_node_chains_prune_millisecs 4000
problem=$(end; [ "$(get stable_node_chains_prune_millisecs)" = 4000 ] || echo 'put back to what it never wrote')
put stable_node_chains_prune_millisecs 2000
verdict "$problem$(as_found)" 'knobs that it never writes are not its to restore'

tree 6.18
begin
wants shows phase=boost >"$work/problem"
to_rest >>"$work/problem"
mv "$ksm/pages_sharing" "$work/hidden"
verdict "$(cat "$work/problem"; wants shows 'reason=the kernel could not be read, so the last settings stay'; quiet 0.4
	[ "$(times 'could not be read')" = 1 ] || echo "said $(times 'could not be read') times")" \
	'unreadable counters: said once, nothing is written'
mv "$work/hidden" "$ksm/pages_sharing"
verdict "$(wants shows phase=parked; ! shows 'reason=the kernel could not be read.*' || echo 'it still says so')" \
	'readable again: as before, and it says so'
end >/dev/null

# The ksmd of a captured tree has a number that belongs to somebody else here.
tree 6.18
start_child sleep 60
mv "$root/proc/$ksmd" "$root/proc/$child"
sed -i "s/^$ksmd /$child /" "$root/proc/$child/stat"
config 'ksmd-nice = 11'
before=$(ps -o ni= -p "$child")
begin
verdict "$(wants serves; [ "$(ps -o ni= -p "$child")" = "$before" ] || echo "niceness now $(ps -o ni= -p "$child")"; end)" \
	'--root: no process of this machine gets another niceness'

# --- Failed writes, and a full folder
if [ -n "${no_user-}" ]; then
	skip 'a write fails' "$no_user"
else
	tree 6.18 pages_to_scan=1000
	mkdir "$state"
	chmod a-w "$ksm/pages_to_scan"
	: >"$log"
	chmod a+rw "$log"
	[ "$(id -u)" -ne 0 ] || chown -R 65534 "$root" "$state"
	starter=("${as_user[@]}" env) program=$work/bin/ksmctl
	begin
	verdict "$(wants says '^ksmctl: cannot write pages_to_scan: Permission denied'; sleep 0.6
		[ "$(times 'cannot write')" = 1 ] || echo "said $(times 'cannot write') times"
		! says 'another controller' || echo 'it took itself for another controller')" 'a failed write is told once'
	chmod u+w "$ksm/pages_to_scan"
	verdict "$(wants grep -q '^pages_to_scan=[0-9]* saved' "$log"; end; as_found)" \
		'it is written when it can be, and restored; without privileges'
	starter=(env) program=$ctl
fi

tree 6.18
mkdir "$state"
cat >"$work/full" <<'END'
mount -t tmpfs -o size=64k,mode=755 tmpfs "$state" || exit 9
begin
wants shows phase=boost
dd if=/dev/zero of="$state/filler" bs=4k 2>/dev/null
: | dd of="$state/filler2" bs=1 2>/dev/null
for i in {1..30}; do
	pass 900
	kill -USR1 "$daemon"
	sleep 0.03
done
kill -0 "$daemon" || echo "it stopped: $(cat "$work/said")"
[ "$(times 'cannot write the status')" = 1 ] || echo "told $(times 'cannot write the status') times: $(cat "$work/said")"
rm "$state/filler"
pass 900
wants shows "full_scans=$(get full_scans)"
kill -USR1 "$daemon"
wants shows 'reason=a boost was asked for'
end
as_found
END
if [ "$(id -u)" -eq 0 ] && unshare -m mount -t tmpfs tmpfs "$state" 2>/dev/null; then
	# The functions come along; the trap that removes all files does not.
	{ declare -p work root ksm conf state log found ctl count children starter; declare -f; cat "$work/full"; } >"$work/script"
	verdict "$(unshare -m bash "$work/script" 2>&1)" 'a full state folder: said once, it goes on and restores'
else
	skip 'a full state folder' 'no right to mount a small file system'
fi

# --- The service manager
tree 6.18
perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_DGRAM, 0) or die; bind($s, pack_sockaddr_un($ARGV[0])) or die;
	open(my $out, ">", $ARGV[1]) or die; $out->autoflush(1);
	while (defined(recv($s, my $text, 4096, 0))) { $text =~ s/\n/|/g; print $out "$text\n" }' \
	-MIO::Handle "$work/notify" "$work/told" 2>/dev/null &
listener=$!
disown
children+=("$listener")
soon test -S "$work/notify"
told() { grep -qE "$1" "$work/told"; }
tells() { soon told "$1" || echo "never told: $1; $(tail -n 5 "$work/told")"; }
export NOTIFY_SOCKET=$work/notify WATCHDOG_USEC=300000
begin
verdict "$(tells '^READY=1$'; tells '^STATUS=boost: first look')" 'notify: READY and STATUS'
to_rest >/dev/null
verdict "$(tells '^STATUS=parked: '; : >"$work/told"; sleep 0.7; n=$(grep -c '^WATCHDOG=1$' "$work/told")
	[ "$n" -ge 3 ] || echo "$n times in 0.7 s")" 'notify: WATCHDOG, in time also at rest'
: >"$work/told"
config 'boost-cpu = 40'
kill -HUP "$daemon"
verdict "$(tells '^RELOADING=1\|MONOTONIC_USEC=[0-9]+$'; tells '^READY=1$'; says 'configuration read again' || cat "$work/said")" \
	'SIGHUP: a good file is taken'
kill -USR1 "$daemon"
verdict "$(wants shows budget_ppm=400000)" 'and holds from then on'
config 'boost-cpu = 40' 'ksmd-nice = 3'
kill -HUP "$daemon"
verdict "$(wants says 'ksmd-nice changes at the next start only')" 'SIGHUP: what waits for the next start is told'
: >"$work/told"
config 'boost-cpu = 400'
kill -HUP "$daemon"
verdict "$(tells '^RELOADING=1'; tells '^READY=1$'; says "$conf:4: boost-cpu must be" || cat "$work/said"
	wants says 'the configuration stays as it was')" 'SIGHUP: a bad file is told with its line'
kill -USR1 "$daemon"
sleep 0.2
verdict "$(shows budget_ppm=400000 || echo 'the budget changed'; end; tells '^STOPPING=1$'; as_found)" \
	'and changes nothing; STOPPING at the end'
for socket in "$work/nobody-listens" relative "/$(printf '%0200d' 0)" ''; do
	tree 6.18
	export NOTIFY_SOCKET=$socket
	begin
	verdict "$(wants shows phase=boost; end; as_found)" "NOTIFY_SOCKET is ${socket:0:20}: it serves"
done
unset NOTIFY_SOCKET WATCHDOG_USEC
kill -KILL "$listener"

# --- Ended at any moment
for signal in TERM INT; do
	tree 6.18 run=1 'advisor_mode=none [scan-time]'
	problem=''
	for i in {1..8}; do
		begin
		sleep "0.$(printf %03d $((RANDOM % 100)))"
		problem+=$(end $signal '0|130|143') # 128 and more: before there was anything to restore
		problem+=$(as_found)
		[ ! -e "$state/first-values" ] || problem+='first values are left'
	done
	verdict "$problem" "$signal at any moment: within a second, all as found"
done
tree 6.18 run=0 pages_to_scan=100 sleep_millisecs=20 use_zero_pages=0 'advisor_mode=none [scan-time]'
problem='' changed=0
for i in {1..50}; do
	begin
	sleep "0.$(printf %03d $((RANDOM % 300)))"
	problem+=$(end KILL 137)
	[ -z "$(as_found)" ] || changed=$((changed + 1))
	if [ $((i % 2)) -eq 0 ]; then
		"$(type -P env)" LD_PRELOAD="$work/kernel.so" "$ctl" daemon --root "$root" -c "$conf" --restore \
			>"$work/said" 2>&1 || problem+="--restore: $(cat "$work/said")"
	else
		begin
		problem+=$(soon serves || cat "$work/said"; end)
	fi
	now=$(as_found)
	[ -z "$now" ] || problem+="after kill $i: $now"$'\n'
	[ ! -e "$state/first-values" ] || problem+="after kill $i: first values are left"$'\n'
done
[ $changed -ge 20 ] || problem+="only $changed of 50 left the kernel changed: it proves little"
verdict "$problem" '50 times SIGKILL, then --restore or a new start: all as found'
verdict "$(! grep -m 1 unsaved "$log")" 'nothing was ever written before the first values were kept'

finish
