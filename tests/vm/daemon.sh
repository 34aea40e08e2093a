#!/bin/bash
# The adaptive service on another kernel (Linux 6.1 unless told otherwise): two equal processes merge, and all is restored.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: tests/vm/daemon.sh [KERNEL], see tests/vm/boot; run from the top of the tree, with the programs in $B.
set -u
B=${B:-build}
kernel=${1:-6.1}
for program in ksmctl tests/job; do
	[ -x "$B/$program" ] || {
		echo "not ok 1 - $B/$program is not built"
		echo 1..1
		exit 1
	}
done
. "${BASH_SOURCE%/*}/guest.bash"
cp "$B/ksmctl" "$B/tests/job" "$files/" || exit 1

# What runs there, in the shell of busybox. Prints TAP.
cat >"$files/guest" <<'END'
ksm=/sys/kernel/mm/ksm
count=0 failed=0
verdict()
{
	count=$((count + 1))
	if [ -z "$1" ]; then
		echo "ok $count - $2"
	else
		echo "not ok $count - $2"
		echo "$1" | sed 's/^/# /'
		failed=1
	fi
}
# wait_for SECONDS COMMAND...: nothing when it came true, else what there is to know.
wait_for()
{
	left=$(($1 * 5))
	shift
	until "$@" 2>/dev/null; do
		left=$((left - 1))
		if [ $left -le 0 ]; then
			echo "it never came to: $*"
			ksmctl status -c /tmp/conf
			ksmctl why -c /tmp/conf
			cat /tmp/said
			return
		fi
		usleep 200000
	done
}
knobs() { cd $ksm && grep . run pages_to_scan sleep_millisecs use_zero_pages max_page_sharing smart_scan advisor_mode 2>/dev/null; }
shows() { grep -qx "$1" /run/state/status; }
ready() { [ "$(od -A n -t u1 -v -N 80 /tmp/report | tr -s ' \n' ' ' | cut -d ' ' -f 2,42)" = '1 1' ]; }
merged() { [ "$(cat $ksm/pages_sharing)" -ge $((120 * 256 * 95 / 100)) ]; } # the equal MiB of tests/demo/job.h
parked() { shows phase=parked && [ "$(cat $ksm/run)" = 0 ]; }

uname -r | sed 's/^/# Linux /'
echo 321 >$ksm/pages_to_scan
echo 'state-dir = /run/state' >/tmp/conf
before=$(knobs)
truncate -s 4096 /tmp/report
exec 7<>/tmp/report
job 0 7 &
job 1 7 &
verdict "$(wait_for 60 ready)" 'two processes hold equal memory'
ksmctl daemon -v -c /tmp/conf >/tmp/said 2>&1 &
daemon=$!
verdict "$(wait_for 10 shows registered_processes=2)" 'the service finds them'
verdict "$(wait_for 90 merged)" 'their equal pages merge'
verdict "$(wait_for 60 parked)" 'then it rests'
kill -TERM $daemon
wait $daemon
code=$?
verdict "$([ $code = 0 ] || echo "exit code $code: $(cat /tmp/said)")" 'it ends in order'
now=$(knobs)
verdict "$([ "$now" = "$before" ] || printf 'found:\n%s\nnow:\n%s\n' "$before" "$now")" 'the knobs are as found'

# What tells who opted in differs between kernels, and so does what has to be kept for it.
ksmctl daemon -c /tmp/conf >/tmp/said 2>&1 &
daemon=$!
verdict "$(wait_for 10 shows "pid=$daemon")" 'it starts again'
if grep -q '^ksm_mergeable' /proc/self/ksm_stat; then keeps=0000000000000004; else keeps=0000000000080004; fi
verdict "$(for set in CapPrm CapEff CapBnd; do
	has=$(sed -n "s/^$set:[[:space:]]*//p" /proc/$daemon/status)
	[ "$has" = $keeps ] || echo "$set is $has"
done)" "its capabilities are $keeps"
kill -KILL $daemon
wait $daemon 2>/dev/null
ksmctl daemon -c /tmp/conf --restore
now=$(knobs)
verdict "$([ "$now" = "$before" ] || printf 'found:\n%s\nnow:\n%s\n' "$before" "$now")" 'after SIGKILL, --restore: as found'
echo "1..$count"
exit $failed
END
in_guest 280
