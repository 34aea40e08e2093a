#!/bin/bash
# What others than root may try on the service's folder and on what is printed: docs/SECURITY.md says against what.
# SPDX-License-Identifier: GPL-2.0-or-later
. "${BASH_SOURCE%/*}/lib.bash"

command -v perl >/dev/null || skip_all 'perl is not installed'
ctl=$B/ksmctl root=$work/root state=$work/state conf=$work/conf
ksm=$root/sys/kernel/mm/ksm
cp -r tests/fixtures/linux-6.18 "$root"
printf '%s\n' "state-dir = $state" 'interval = 20' 'rest-interval = 100' >"$conf"
user_programs
run() { timeout 10 "$ctl" "$@"; }
good_status='pid=1\nphase=boost\nreason=first look\nrun=1\n'

# folder: a fresh one; with a lock held by a child, as a service holds it.
folder()
{
	chmod -R u+w "$state" 2>/dev/null
	rm -rf "$state"
	mkdir -m 755 "$state"
}
held()
{
	start_child perl -MFcntl -e 'open(my $f, "+>", $ARGV[0]) or die; chmod(0600, $f);
		my $l = pack("s s x4 q q i x4", F_WRLCK, 0, 0, 0, 0); fcntl($f, F_SETLK, $l) or die; sleep(60)' "$state/lock"
	wait_for 5 lock_is_held
}
lock_is_held() { ! run status -c "$conf" 2>&1 | grep -q 'no daemon is running'; }

# --- files that are none, in place of the service's
for kind in pipe link 'hard link' folder garbage 'half a line' huge empty; do
	folder
	printf "$good_status" >"$state/status"
	printf '1700000000000\tboost\t1\t2\t3\t4\tfirst look\n' >"$state/decisions"
	held || { verdict 'no lock' "a $kind in place of the status"; continue; }
	check "before a $kind is there: the status is read" 0 '^State +boost' '' -- run status -c "$conf"
	mv "$state/status" "$state/good"
	case $kind in
	pipe) mkfifo "$state/status" ;;
	link) ln -s good "$state/status" ;;
	'hard link') ln "$state/good" "$state/status" ;;
	folder) mkdir "$state/status" ;;
	garbage) printf 'pid=1\nphase=\033[31m"\nrun=}{\n' >"$state/status" ;;
	'half a line') printf 'pid=1\nphase=boost\nreason=first lo' >"$state/status" ;;
	huge) head -c 100000000 /dev/zero >"$state/status" ;;
	empty) : >"$state/status" ;;
	esac
	check "a $kind in place of the status" 1 '' '^ksmctl: cannot read the status: ' -- run status -c "$conf"
	check "a $kind in place of the status, JSON" 1 '' '^ksmctl: cannot read the status: ' -- run status --json -c "$conf"
	kill -KILL "$child"
done
for kind in pipe link 'hard link'; do
	folder
	printf 'run=1\npages_to_scan=4321\n' >"$state/good"
	case $kind in
	pipe) mkfifo "$state/first-values" ;;
	link) ln -s good "$state/first-values" ;;
	'hard link') ln "$state/good" "$state/first-values" ;;
	esac
	also='[ "$(<"$ksm/pages_to_scan")" != 4321 ] || echo "it was written to the kernel"' \
		check "a $kind in place of the first values" 1 '' '^ksmctl: cannot read the first values: ' -- \
		run daemon --root "$root" -c "$conf" --restore
	folder
	echo victim >"$work/victim"
	case $kind in
	pipe) mkfifo "$state/lock" ;;
	link) ln -s "$work/victim" "$state/lock" ;;
	'hard link') ln "$work/victim" "$state/lock" ;;
	esac
	also='[ "$(<"$work/victim")" = victim ] || echo "the other file was written to"' \
		check "a $kind in place of the lock" 1 '' '^ksmctl: cannot lock ' -- run daemon --root "$root" -c "$conf"
done

# --- who may hold the lock
serve()
{
	start_child "$ctl" daemon --root "$root" -c "$conf"
	wait_for 5 test -s "$state/status"
}
if [ "$(id -u)" -ne 0 ] || [ -n "${no_user-}" ]; then
	skip 'a lock of another user does not keep the service from starting' "${no_user-not root}"
	skip 'status is for every user' "${no_user-not root}"
else
	folder
	# As an older version made it, which others could open; and one of them has it open.
	: >"$state/lock"
	chmod 644 "$state/lock"
	serve
	kill -KILL "$child"
	start_child "${as_user[@]}" perl -MFcntl -e 'open(my $f, "<", $ARGV[0]) or die; open(my $t, ">", "/dev/null");
		my $l = pack("s s x4 q q i x4", F_RDLCK, 0, 0, 0, 0); fcntl($f, F_SETLKW, $l) or die; sleep(60)' "$state/lock"
	sleep 0.3
	rm -f "$state/status"
	problem=$(! kill -0 "$child" 2>/dev/null || echo 'another user holds a lock')
	serve || problem+=' the service does not start'
	verdict "$problem" 'a lock of another user does not keep the service from starting'
	check 'status is for every user' 0 '^State ' '' -- "${as_user[@]}" "$work/bin/ksmctl" status -c "$conf"
	kill -KILL "$child"
	wait_for 5 eval '! kill -0 "$child" 2>/dev/null'
	check 'status for every user: nobody runs' 1 '' 'no daemon is running' -- \
		"${as_user[@]}" "$work/bin/ksmctl" status -c "$conf"
fi

# --- files that another user made while the folder was open, and can write to still
if [ "$(id -u)" -ne 0 ]; then
	for name in status 'first values' lock; do
		skip "the $name of another user" 'not root'
	done
else
	for how in 'another owner' 'writable by others'; do
		left() { if [ "$how" = 'another owner' ]; then chown 65534 "$state/$1"; else chmod 666 "$state/$1"; fi; }
		folder
		printf "$good_status" >"$state/status"
		held || verdict 'no lock' "the status: $how"
		left status
		check "the status: $how" 4 '' '^ksmctl: cannot read the status: ' -- run status -c "$conf"
		kill -KILL "$child"
		folder
		printf 'run=1\npages_to_scan=4321\n' >"$state/first-values"
		left first-values
		for option in --restore --verbose; do
			also='[ "$(<"$ksm/pages_to_scan")" != 4321 ] || echo "it was written to the kernel"
				[ -e "$state/first-values" ] || echo "it is gone"' \
				check "the first values: $how, $option" 4 '' '^ksmctl: cannot (read|prepare) the first values: ' -- \
				run daemon --root "$root" -c "$conf" $option
		done
		folder
		: >"$state/lock"
		left lock
		check "the lock: $how" 4 '' '^ksmctl: .* must belong to root and be writable by nobody else$' -- run daemon --root "$root" -c "$conf"
	done
fi

# --- what ksmstat gives up, as root: all but CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE and, for page frames, CAP_SYS_ADMIN
status_of() { sed -n "s/^$2:[[:blank:]]*//p" "/proc/$1/status"; }
if [ "$(id -u)" -ne 0 ]; then
	skip 'ksmstat gives up what reading does not need' 'not root'
else
	start_child "$B/ksmstat" 60 2
	wait_for 5 eval '[ "$(status_of $child NoNewPrivs)" = 1 ]'
	problem=$([ "$(status_of $child NoNewPrivs)" = 1 ] || echo 'no_new_privs is not set')
	for set in CapInh CapPrm CapEff CapAmb; do
		have=$((0x$(status_of $child $set)))
		[ $((have & ~0x280004)) -eq 0 ] || problem+=" $set is $(status_of $child $set)"
	done
	verdict "$problem" 'ksmstat gives up what reading does not need'
	kill -KILL "$child"
fi
finish
