#!/bin/bash
# Live: ksmctl enable and disable as they are typed: selection, refusals, exit codes; on Python, Redis and Node.js at work.
# SPDX-License-Identifier: GPL-2.0-or-later
. "${BASH_SOURCE%/*}/../cli/lib.bash"
. "${BASH_SOURCE%/*}/guard.bash"

ctl=$B/ksmctl
root=$work/root

# --- wrong arguments
check 'no process' 2 '' 'needs a PID, --comm, --user or --cgroup' -- "$ctl" enable
check 'a PID that is none' 2 '' "'12x' is no process ID" -- "$ctl" enable 12x
check 'a PID of 0' 2 '' "'0' is no process ID" -- "$ctl" disable 0
check 'a user that is not there' 2 '' "'no-such-user' is no user" -- "$ctl" enable --user no-such-user
check 'an empty control group' 2 '' "'' is no control group" -- "$ctl" enable --cgroup ''
for seconds in 0 -1 x 1e9 nan ''; do
	check "--timeout '$seconds'" 2 '' 'is no number of seconds' -- "$ctl" enable --timeout "$seconds" 1
done
check 'an option that is none' 2 '' "--bogus'.*Try 'ksmctl disable --help'" -- "$ctl" disable --bogus
check 'below --root nothing runs' 2 '' 'dry-run' -- "$ctl" --root "$work" enable 1

# --- which processes, on a made-up tree
# made_up PID COMM UID CGROUP ON [FLAGS]
made_up()
{
	local dir=$root/proc/$1
	mkdir -p "$dir/task/$1"
	echo "$1 ($2) S 1 1 1 0 -1 ${6-4194304} 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0" >"$dir/stat"
	printf 'Name:\t%s\nState:\tS\nUid:\t%s\t%s\t%s\t%s\n' "$2" "$3" "$3" "$3" "$3" >"$dir/status"
	echo "0::$4" >"$dir/cgroup"
	printf 'ksm_rmap_items 0\nksm_merge_any: %s\nksm_mergeable: %s\n' "$5" "$5" >"$dir/ksm_stat"
}
made_up 1 init 0 /init.scope no
made_up 2 kthreadd 0 / no $((0x200000))
made_up 100 worker 1000 /system.slice/a.service no
made_up 101 worker 1001 /system.slice/a.service/sub no
made_up 102 worker 1000 /system.slice/ab.service no
made_up 103 other 1000 /user.slice no
made_up 104 other 0 /system.slice/a.service yes
made_up 105 $'od\e[31md' 0 / no
# chosen NAME PIDS OPTION...: these and no others would be enabled
chosen()
{
	local name=$1 want=$2 got
	shift 2
	got=$("$ctl" --root "$root" enable --dry-run "$@" 2>"$work/err" | sed -n 's/^\([0-9]*\) .*would be enabled$/\1/p' |
		sort -n | paste -sd ' ')
	verdict "$([ "$got" = "$want" ] || echo "chosen: '$got', not '$want'; $(cat "$work/err")")" "$name"
}
chosen 'by PID' '100 103' 100 103
chosen 'by name' '100 101 102' --comm worker
chosen 'by two names, without who is in already' '100 101 102 103' --comm worker --comm other
chosen 'a part of a name is none' '' --comm work
chosen 'by user' '100 102 103' --user 1000
chosen 'root: neither init nor kernel threads' '105' --user 0
chosen 'by control group, with those below' '100 101' --cgroup /system.slice/a.service
chosen 'by the root of all groups' '100 101 102 103 105' --cgroup /
chosen 'by name and user and group' 100 --comm worker --user 1000 --cgroup /system.slice/a.service
chosen 'by PID and user' 103 101 103 --user 1000
check 'nobody fits' 1 '' '^ksmctl: no process fits$' -- "$ctl" --root "$root" enable -n --comm nobody
check 'escape sequences of a name are not passed on' 0 '^105 \(od\?\[31md\): would be enabled$' '' -- \
	"$ctl" --root "$root" enable -n 105

# --- the running system
[ "$(uname -m)" = x86_64 ] || [ "$(uname -m)" = aarch64 ] || { skip 'enable' "not known on $(uname -m)"; finish; }
"$ctl" enable $$ >"$work/out" 2>"$work/err"
if [ $? -eq 3 ]; then
	skip 'enable' "$(sed 's/^ksmctl: //' "$work/err")"
	finish
fi
"$ctl" disable $$ >/dev/null 2>&1
if grep -q __asan_init "$ctl"; then
	skip 'enable' 'other programs of this build reserve terabytes, which take minutes to unmerge'
	finish
fi
[ -d $ksm ] && take # other tests count the processes that opted in
tells() { grep -qs '^ksm_merge_any' /proc/self/ksm_stat; }
on() { ! tells || grep -q '^ksm_merge_any: yes' "/proc/$1/ksm_stat"; }
off() { ! tells || grep -q '^ksm_merge_any: no' "/proc/$1/ksm_stat"; }
status_of() { sed -n "s/^$2:[[:blank:]]*//p" "/proc/$1/status"; }
note='(ksmctl: note: [^'$'\n'']*)?'

user_programs
cp "$(command -v sleep)" "$work/bin/ksm_sleeper"
chmod -R a+rX "$work"
# sleepers N: that many, in pids
sleepers()
{
	local i
	pids=()
	for ((i = 0; i < $1; i++)); do
		start_child "${@:2}" "$work/bin/ksm_sleeper" 600
		pids+=("$child")
	done
	for child in "${pids[@]}"; do
		wait_for 5 grep -qx ksm_sleeper "/proc/$child/comm"
	done
}
sleepers 3
also='on ${pids[0]} || echo "it is off"; off ${pids[1]} || echo "another is on"' check 'enable, quiet' 0 '' "^$note$" -- \
	"$ctl" enable "${pids[0]}"
if tells; then
	check 'enable again: nothing to do, and said' 0 "^${pids[0]} \(ksm_sleeper\): merging is on already$" "^$note$" -- \
		"$ctl" enable "${pids[0]}"
else
	skip 'enable again' 'this kernel does not tell who is in'
fi
also='on ${pids[1]} && on ${pids[2]} || echo "they are off"' check 'enable --comm -v' 0 \
	'ksm_sleeper\): merging is on now, as [a-z_]+ says; thread [0-9]+, in system call [0-9]+, was held up for at most [0-9]+ us' \
	"^$note$" -- "$ctl" enable -v --comm ksm_sleeper
check 'one of three is not there' 1 '' '99999999: no such process' -- "$ctl" disable "${pids[0]}" 99999999 "${pids[1]}"
verdict "$(off "${pids[0]}" && off "${pids[1]}" || echo 'they are on')" 'the others are done all the same'
also='off ${pids[2]} || echo "it is on"' check 'disable -v' 0 "^${pids[2]} .*merging is off now, as [a-z_]+ says" '' -- \
	"$ctl" disable -v "${pids[2]}"
check 'disable again' 0 . '' -- "$ctl" disable -v "${pids[2]}"
check 'dry run' 0 "^${pids[2]} \(ksm_sleeper\): would be enabled, by thread ${pids[2]}$" '' -- \
	"$ctl" enable --dry-run "${pids[2]}"
verdict "$(! tells || off "${pids[2]}" || echo 'it is on')" 'which does nothing'

# A program that is stopped writes nothing itself, and the kernel notes where it ran: nowhere else, then.
if command -v perl >/dev/null && command -v taskset >/dev/null; then
	memory_of()
	{
		perl -e 'open(my $maps, "<", "/proc/$ARGV[0]/maps") or die; open(my $mem, "<:raw", "/proc/$ARGV[0]/mem") or die;
			while (<$maps>) { /^(\w+)-(\w+) .w.p/ or next; my $n = hex($2) - hex($1);
				sysseek($mem, hex($1), 0) or die; sysread($mem, my $text, $n) == $n or die "$_ $!"; print $text }' "$1"
	}
	taskset -cp "$(taskset -cp $$ | sed 's/.*[ ,-]//')" "${pids[2]}" >/dev/null
	# It may sleep; stopped once and let go, it has come by there.
	kill -STOP "${pids[2]}"
	wait_for 5 grep -q '^State:.T' "/proc/${pids[2]}/status"
	kill -CONT "${pids[2]}"
	wait_for 5 grep -q '^State:.S' "/proc/${pids[2]}/status"
	kill -STOP "${pids[2]}"
	wait_for 5 grep -q '^State:.T' "/proc/${pids[2]}/status"
	memory_of "${pids[2]}" >"$work/before"
	problem=$([ "$(stat -c %s "$work/before")" -gt 100000 ] || echo 'hardly any memory')
	for verb in enable disable; do
		"$ctl" $verb "${pids[2]}" 2>"$work/err" || problem+=$(cat "$work/err")
		if [ $verb = enable ]; then on "${pids[2]}"; else off "${pids[2]}"; fi || problem+="$verb: nothing was done "
		memory_of "${pids[2]}" >"$work/after"
		problem+=$(cmp "$work/before" "$work/after")
	done
	kill -CONT "${pids[2]}"
	verdict "$problem" 'nothing is written to its memory'
else
	skip 'nothing is written to its memory' 'perl or taskset is not installed'
fi

kthread=$(grep -lsx kthreadd /proc/[0-9]*/comm | sed 's/[^0-9]//g;q')
if [ -n "$kthread" ]; then
	check 'a kernel thread' 1 '' "^$note*ksmctl: $kthread \(kthreadd\): is a kernel thread" -- "$ctl" enable "$kthread"
else
	skip 'a kernel thread' 'none in sight'
fi

# Groups of version 2.
group=$(sed -n 's/^[^ ]* \([^ ]*\) cgroup2 .*/\1/p' /proc/mounts | head -n 1)
if [ -n "$group" ] && mkdir "$group/ksm-test-$$" 2>/dev/null; then
	mkdir "$group/ksm-test-$$/below"
	echo "${pids[0]}" >"$group/ksm-test-$$/cgroup.procs"
	echo "${pids[1]}" >"$group/ksm-test-$$/below/cgroup.procs"
	path=$(sed -n 's/^0:://p' "/proc/${pids[0]}/cgroup")
	also='on ${pids[0]} && on ${pids[1]} && off ${pids[2]} || echo "not these two"' \
		check 'enable --cgroup' 0 '' "^$note$" -- "$ctl" enable --cgroup "$path"
	"$ctl" disable --cgroup "$path" >/dev/null 2>&1
else
	skip 'enable --cgroup' 'no control group of version 2 can be made here'
fi

# Other users.
if [ "$(id -u)" -ne 0 ] || [ -n "${no_user-}" ]; then
	skip 'other users' "${no_user-only root can be another user}"
else
	check "another user's process" 4 '' "${pids[0]} \(ksm_sleeper\): may not be traced: .*run it as root" -- \
		"${as_user[@]}" "$work/bin/ksmctl" enable "${pids[0]}"
	verdict "$(! tells || off "${pids[0]}" || echo 'it is on')" 'which is left as it was'
	all=("${pids[@]}")
	sleepers 2 "${as_user[@]}"
	scope=$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)
	if [ "$scope" = 0 ]; then
		also='on ${pids[0]} || echo "it is off"' check "a user's own process" 0 '' "^$note$" -- \
			"${as_user[@]}" "$work/bin/ksmctl" enable "${pids[0]}"
	else
		skip "a user's own process" "kernel.yama.ptrace_scope is $scope"
	fi
	also='on ${pids[1]} || echo "it is off"; off ${all[2]} || echo "another user'\''s is on"' \
		check 'enable --user, with --comm' 0 '' "^$note$" -- "$ctl" enable --user 65534 --comm ksm_sleeper
fi

# A user's own, but with more rights than he has, or hiding its memory: the kernel says who may trace it.
cat >"$work/hides.c" <<'C'
#include <sys/prctl.h>
#include <unistd.h>
int main(void)
{
	prctl(PR_SET_DUMPABLE, 0);
	for (;;)
		pause();
}
C
# guarded NAME COMMAND...: a program of the user's that he may not reach into, and root may
guarded()
{
	local name=$1
	shift
	start_child "${as_user[@]}" "$@"
	wait_for 5 grep -qsx "${1##*/}" "/proc/$child/comm"
	if ! grep -q $'^Uid:\t65534\t' "/proc/$child/status" || { [ "$name" = set-uid ] && grep -q $'^Uid:\t65534\t65534' "/proc/$child/status"; }; then
		skip "$name: not for its user" 'no set-uid programs here'
		return
	fi
	for verb in enable disable; do
		also='off $child || echo "it is on"' check "$name: not for its user to $verb" 4 '' \
			"^$note*ksmctl: $child \(${1##*/}\): may not be traced: .*runs set-user-ID or hides its memory; run it as root" -- \
			"${as_user[@]}" "$work/bin/ksmctl" $verb "$child"
	done
	also='[ "$(sed -n "s/^TracerPid:.//p" "/proc/$child/status")" = 0 ] || echo "it is traced"; on $child || echo "it is off"' \
		check "$name: for root" 0 '' "^$note$" -- "$ctl" enable "$child"
	also='off $child || echo "it is on"' check "$name: for root, off again" 0 '' '' -- "$ctl" disable "$child"
}
if [ "$(id -u)" -ne 0 ] || [ -n "${no_user-}" ] || [ "${scope-0}" != 0 ] || ! tells; then
	skip 'set-uid and hidden programs' "${no_user-not root, or ptrace_scope is not 0, or this kernel does not tell who is in}"
else
	cp "$(command -v sleep)" "$work/bin/ksm_setuid" && chmod 4755 "$work/bin/ksm_setuid"
	guarded set-uid "$work/bin/ksm_setuid" 600
	if ${CC:-cc} -o "$work/bin/ksm_hides" "$work/hides.c" 2>"$work/cc"; then
		guarded 'not dumpable' "$work/bin/ksm_hides"
	else
		skip 'not dumpable: not for its user' "no compiler: $(tail -n 1 "$work/cc")"
	fi
fi

# Programs that are made otherwise: static, for another machine.
made()
{
	echo 'int pause(void); int main(void) { for (;;) pause(); }' >"$work/waits.c"
	${CC:-cc} "${@:2}" -o "$work/$1" "$work/waits.c" 2>"$work/cc" && chmod 755 "$work/$1"
}
if made ksm_static -static; then
	start_child "$work/ksm_static"
	wait_for 5 grep -qx ksm_static "/proc/$child/comm"
	also='on $child || echo "it is off"' check 'a static program' 0 '' "^$note$" -- "$ctl" enable "$child"
else
	skip 'a static program' "it cannot be made: $(tail -n 1 "$work/cc")"
fi
for kind in 32 x32; do
	if ! made "ksm_$kind" "-m$kind" -static; then
		skip "a program for $kind" "it cannot be made: $(tail -n 1 "$work/cc")"
	elif { start_child "$work/ksm_$kind"; ! wait_for 2 grep -qsx "ksm_$kind" "/proc/$child/comm"; }; then
		skip "a program for $kind" 'this kernel does not run it'
	else
		also='off $child || echo "it is on"' check "a program for $kind" 1 '' \
			'another kind of machine \(32-bit, x32\).*ksmctl run' -- "$ctl" enable "$child"
	fi
done

# A parent in vfork does not stop before its child lets it.
cat >"$work/waits.c" <<'C'
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int status;
	if (argc < 2)
		return 1;
	if (vfork() == 0) {
		usleep(2500000);
		_exit(7);
	}
	wait(&status);
	if (WEXITSTATUS(status) == 7)
		fclose(fopen(argv[1], "w"));
	pause();
}
C
if ${CC:-cc} -w -o "$work/ksm_vfork" "$work/waits.c" 2>"$work/cc"; then
	start_child "$work/ksm_vfork" "$work/after"
	stuck=$child
	wait_for 5 grep -q '^State:.D' "/proc/$stuck/status"
	check 'a time-out, and why' 1 '' "$stuck .* did not stop within 100 ms: .*vfork" -- \
		"$ctl" enable --timeout 0.1 "$stuck"
	"$ctl" enable --timeout 60 "$stuck" >"$work/out" 2>"$work/err" &
	waits=$!
	sleep 0.2
	# CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_SYS_NICE, of those that there were
	problem=
	for pid in $waits $(pgrep -P $waits); do
		for set in CapPrm CapEff CapBnd; do
			[ $((0x$(status_of $pid $set))) -eq $((0x$(status_of $$ $set) & 0xa80004)) ] || problem+="$pid: $set is $(status_of $pid $set) "
		done
		[ "$(status_of $pid NoNewPrivs)" = 1 ] || problem+="$pid: no_new_privs is not set "
	done
	if [ "$(id -u)" -eq 0 ]; then
		verdict "$problem" 'it keeps four capabilities, and so does its child'
	else
		skip 'it keeps four capabilities' 'not root'
	fi
	kill -TERM $waits
	wait $waits 2>/dev/null
	code=$?
	verdict "$([ $code -eq 143 ] || echo "exit code $code"; grep -q interrupted "$work/err" || cat "$work/err")" \
		'SIGTERM ends the wait, by the signal'
	verdict "$(wait_for 5 [ -e "$work/after" ] || echo 'it does not')" 'and the program goes on'
else
	skip 'a time-out' "no compiler: $(tail -n 1 "$work/cc")"
fi

# --- programs at work
# switch_while PID NAME JOB: on and off as long as a job of ours runs; how long the program was held up
switch_while()
{
	local n=0 verbs=(enable disable)
	: >"$work/figures"
	while kill -0 "$3" 2>/dev/null; do
		"$ctl" "${verbs[n % 2]}" -v "$1" >>"$work/figures" 2>"$work/err" || {
			sleep 0.1 # it may have just ended
			! kill -0 "$3" 2>/dev/null || cat "$work/err"
			break
		}
		n=$((n + 1))
	done
	sed -n 's/.* at most \([0-9]*\) us$/\1/p' "$work/figures" | sort -n >"$work/us"
	n=$(wc -l <"$work/us")
	[ "$n" -ge 10 ] || echo "only $n switches"
	echo "# $2: $n switches, held up for at most $(sed -n "$(((n + 1) / 2))p" "$work/us") us in the middle," \
		"$(tail -n 1 "$work/us") us at worst" >&3
}
redis_answers() { redis-cli -s "$socket" ping >/dev/null 2>&1; }
exec 3>&1
name='Python: a sum is what it is undisturbed'
if command -v python3 >/dev/null; then
	program='import hashlib, sys
h = b"x"
for i in range(int(sys.argv[1])): h = hashlib.sha256(h + str([h, i]).encode()).digest()
print(h.hex())'
	python3 -c "$program" 150000 >"$work/want"
	python3 -c "$program" 150000 >"$work/got" &
	job=$!
	wait_for 2 grep -qs '^python3' "/proc/$job/comm"
	problem=$(switch_while $job Python $job)
	wait $job || problem+="exit code $?"
	verdict "$problem$(diff "$work/want" "$work/got")" "$name"
else
	skip "$name" 'python3 is not installed'
fi
name='Redis: no request is lost'
if command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null; then
	socket=$work/redis.sock
	start_child redis-server --port 0 --unixsocket "$socket" --save '' --appendonly no
	server=$child
	wait_for 5 redis_answers
	requests=$((${KSM_TEST_LONG:+10} + 1))00000
	redis-benchmark -s "$socket" -n "$requests" -c 20 -q INCR ksm >"$work/load" 2>&1 &
	job=$!
	problem=$(switch_while "$server" Redis $job)
	wait $job || problem+="redis-benchmark: exit code $?"
	[ "$(redis-cli -s "$socket" get ksm)" = "$requests" ] || problem+="$(redis-cli -s "$socket" get ksm) of $requests"
	! grep -i error "$work/load" || problem+=$(cat "$work/load")
	verdict "$problem" "$name"
else
	skip "$name" 'redis-server and redis-benchmark are not installed'
fi
name='Node.js: every answer is right'
if command -v node >/dev/null; then
	cat >"$work/server.js" <<'JS'
const http = require('http'), fs = require('fs')
const server = http.createServer((q, a) => { const t = Buffer.alloc(20000, q.url); a.end(t) })
server.listen(process.argv[2], () => fs.writeFileSync(process.argv[2] + '.ready', ''))
JS
	cat >"$work/load.js" <<'JS'
const http = require('http'), agent = new http.Agent({ keepAlive: true, maxSockets: 10 })
let left = Number(process.argv[3]), open = 0
function ask(i) {
	http.get({ socketPath: process.argv[2], path: '/' + i, agent }, (a) => {
		let parts = []
		a.on('data', (d) => parts.push(d))
		a.on('end', () => {
			if (!Buffer.concat(parts).equals(Buffer.alloc(20000, '/' + i))) { console.log('wrong ' + i); process.exit(1) }
			open--; more()
		})
	}).on('error', (e) => { console.log(String(e)); process.exit(1) })
}
function more() { while (open < 10 && left > 0) { open++; ask(left--) } if (!open && !left) process.exit(0) }
more()
JS
	start_child node "$work/server.js" "$work/node.sock"
	server=$child
	wait_for 10 [ -e "$work/node.sock.ready" ]
	node "$work/load.js" "$work/node.sock" $((${KSM_TEST_LONG:+10} + 1))000 >"$work/load" 2>&1 &
	job=$!
	problem=$(switch_while "$server" Node.js $job)
	wait $job || problem+="exit code $?: $(cat "$work/load")"
	verdict "$problem" "$name"
else
	skip "$name" 'node is not installed'
fi
for child in "${children[@]}"; do
	kill -KILL "$child" 2>/dev/null
done
children=()
if [ -n "$group" ] && [ -d "$group/ksm-test-$$" ]; then
	sleep 0.2
	rmdir "$group/ksm-test-$$/below" "$group/ksm-test-$$"
fi
[ -d $ksm ] && release
finish
