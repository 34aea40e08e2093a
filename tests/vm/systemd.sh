#!/bin/bash
# The service under a real systemd: its unit, reload, watchdog, death and end, its rivals, and programs with MemoryKSM=.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: tests/vm/systemd.sh [SUITE [KERNEL]], see tests/vm/boot; from the top of the tree, after `make tests`.
# Prints TAP.
set -u
B=${B:-build}
suite=${1:-bookworm}
case $suite in bookworm) kernel=${2:-6.1} ;; *) kernel=${2:-6.12} ;; esac
. "${BASH_SOURCE%/*}/guest.bash"
${MAKE:-make} -s install B="$B" DESTDIR="$files/root" >"$files/problem" 2>&1 || {
	sed 's/^/# /' "$files/problem"
	echo "not ok 1 - make install"
	echo 1..1
	exit 1
}
mkdir -p "$files/tests/cli" "$files/tests/live"
cp tests/cli/lib.bash "$files/tests/cli/" || exit 1
cp tests/live/guard.bash "$files/tests/live/" || exit 1
cp "$B/tests/job" "$files/" || exit 1
cp -r docs/monitoring "$files/" || exit 1

# Memory that equals that of another such process: whole pages, each of one number.
cat >"$files/equal" <<'END'
#!/usr/bin/perl
for my $page (1 .. 4000) { $memory .= pack("N", $page) x 1024 }
sleep 1000;
END
chmod 755 "$files/equal"

# What runs there.
cat >"$files/guest" <<'END'
cp -a root/. /
systemctl daemon-reload
# Debian's ksmtuned has a ksmctl of its own, in /usr/sbin.
export PATH=/usr/local/sbin:/usr/local/bin:$PATH
B=/usr/local/bin
ln -s ../sbin/ksmctl /usr/local/bin/ksmctl
"$B/ksmctl" --version >/dev/null 2>&1 || { echo '# SKIP built for a newer C library than that of this Debian'; exit 77; }
. tests/cli/lib.bash
. tests/live/guard.bash

says() { systemctl show -P "$1" ksmctl; }
is() { [ "$(says "$1")" = "$2" ]; }
# wants SECONDS COMMAND...: what is wrong when it never comes true.
wants() { wait_for "$@" || { echo "after $1 s not yet: ${*:2}"; systemctl status --no-pager -n 15 ksmctl; } }
own_journal() { journalctl -q -o cat --no-pager _SYSTEMD_UNIT=ksmctl.service _COMM=ksmctl; }
tells() { own_journal | grep -q -- "$1"; }
drop_in()
{
	mkdir -p /run/systemd/system/ksmctl.service.d
	printf '%s\n' '[Service]' "$@" >/run/systemd/system/ksmctl.service.d/test.conf
	systemctl daemon-reload
}
no_drop_in() { rm -r /run/systemd/system/ksmctl.service.d && systemctl daemon-reload; }
another() { is ActiveState active && ! is MainPID "$1"; }
phase() { grep -qsx "phase=$1" /run/ksmctl/status; }

echo "# $(systemctl --version | head -n 1), Linux $(uname -r)"
before=$(knobs)

check 'systemd finds nothing wrong with the unit' 0 '' '' -- systemd-analyze verify --man=no ksmctl.service
speaker=. check 'systemctl enable --now ksmctl' 0 '' 'Created symlink' -- systemctl enable --now ksmctl
verdict "$(is ActiveState active && is UnitFileState enabled || systemctl status --no-pager ksmctl)" 'it is active, and enabled'

truncate -s 4096 "$work/report"
exec 7<>"$work/report"
start_child ./job 0 7
start_child ./job 1 7
equal=$((120 * 256)) # pages, see tests/demo/job.h
merged() { [ "$(get pages_sharing)" -ge $((equal * 95 / 100)) ]; }
ready() { [ "$(od -A n -t u1 -v -N 80 "$work/report" | tr -s ' \n' ' ' | cut -d ' ' -f 2,42)" = '1 1' ]; }
verdict "$(wants 120 ready; wants 120 merged; merged || echo "$(get pages_sharing) pages of $equal; $(cat /run/ksmctl/status)")" \
	'two jobs merge under it'
verdict "$(s=$(says StatusText); [[ $s =~ ^(boost|steady|parked|watch|idle|hold)[a-z]*:\ . ]] || echo "StatusText is '$s'")" \
	'systemctl status says what it does'
pid=$(says MainPID)
verdict "$(for fact in Seccomp:2 NoNewPrivs:1; do
	grep -q "^${fact%:*}:[[:space:]]*${fact#*:}\$" "/proc/$pid/status" || grep "^${fact%:*}:" "/proc/$pid/status"
done)" 'it has no_new_privs and a filter of system calls'

# What is written for Prometheus, by the units of docs/MONITORING.md.
metrics=/var/lib/prometheus/node-exporter
mkdir -p $metrics
install -D -m 755 monitoring/ksmctl-prom /usr/local/lib/ksm/ksmctl-prom
install -m 644 monitoring/ksmstat-prom.{service,timer} /etc/systemd/system/
systemctl daemon-reload
speaker=. check 'systemctl enable --now ksmstat-prom.timer' 0 '' 'Created symlink' -- systemctl enable --now ksmstat-prom.timer
systemctl start ksmstat-prom.service
verdict "$([ "$(systemctl show -P Result ksmstat-prom)" = success ] || systemctl status --no-pager -n 15 ksmstat-prom
	awk '$1 == "ksm_saved_bytes" && $2 > 0 { found = 1 } END { if (!found) print "no ksm_saved_bytes" }' $metrics/ksm.prom
	grep -qx 'ksm_controller_up 1' $metrics/ksmctl.prom || cat $metrics/ksmctl.prom)" 'it writes the saving, and that the service runs'
verdict "$(journalctl -q -o cat --no-pager -u ksmstat-prom | grep -iE 'denied|permitted|cannot')" 'and is denied nothing'
systemctl disable -q --now ksmstat-prom.timer

echo 'log-decisions-of-nobody = 1' >>/etc/ksmctl.conf
systemctl reload ksmctl
verdict "$(wants 20 tells 'the configuration stays as it was'; is MainPID "$pid" || echo 'it has ended')" \
	'reload of a wrong configuration: refused, and it goes on'
sed -i '$d' /etc/ksmctl.conf
systemctl reload ksmctl
verdict "$(wants 20 tells 'configuration read again'; is MainPID "$pid" || echo 'it has ended')" 'reload of a right one'

# The unit restores what the killed one could not; then the next one starts, later than the unit has it, so that
# there is time to look.
drop_in RestartSec=20
kill -KILL "$pid"
verdict "$(wants 30 is SubState auto-restart; as_found "$before")" 'SIGKILL: the knobs are as before the service'
verdict "$(wants 60 another "$pid"; is NRestarts 1 || says NRestarts)" 'and it is started again'

drop_in WatchdogSec=5 RestartSec=20
systemctl restart ksmctl
pid=$(says MainPID)
sleep 11
verdict "$(is MainPID "$pid" && is NRestarts 0 || says NRestarts)" 'it keeps the watchdog content'
kill -STOP "$pid"
verdict "$(wants 60 is SubState auto-restart; is Result watchdog || says Result; as_found "$before")" \
	'SIGSTOP: the watchdog ends it, the knobs are as before'
verdict "$(wants 60 another "$pid")" 'and it is started again'

# With this, a system call that the unit denies is not an error that could be overlooked.
drop_in SystemCallErrorNumber=kill
cp /etc/ksmctl.conf "$work/conf"
echo 'ksmd-nice = 7' >>/etc/ksmctl.conf
systemctl restart ksmctl
problem=$(wants 60 is ActiveState active; wants 60 phase boost; wants 150 merged)
pid=$(says MainPID)
cp "$work/conf" /etc/ksmctl.conf
systemctl reload ksmctl
sleep 3
verdict "$problem$(is MainPID "$pid" || says Result; is NRestarts 0 || says NRestarts)" 'it needs no system call that the unit denies'
systemctl stop ksmctl
verdict "$(is Result success || says Result; as_found "$before")" 'stop: in order, the knobs as before'
no_drop_in
verdict "$(own_journal | grep -iE 'denied|permitted|permission|cannot|failed|error|abort')" 'its journal knows no denial'
own_journal | sed 's/^/# journal: /'
score=$(systemd-analyze security --no-pager --threshold=30 ksmctl 2>&1)
verdict "$([ $? = 0 ] || tail -n 1 <<<"$score")" "systemd-analyze security: $(sed -n '$s/.*ksmctl.service: \([0-9.]*\).*/\1/p' <<<"$score") of 10, at most 3"

# Rivals: the one that is started ends the other, whose values are back before its first look.
active() { for u in ksmctl ksmtuned; do systemctl is-active -q $u && echo $u; done | paste -sd' '; }
only() { [ "$(active)" = "$1" ]; }
systemctl start ksmctl
verdict "$(wants 60 only ksmctl)" 'ours is active'
systemctl start ksmtuned
verdict "$(wants 60 only ksmtuned; is Result success || says Result)" 'ksmtuned is started: it alone is active, ours has ended in order'
systemctl start ksmctl
verdict "$(wants 60 only ksmctl; wants 30 phase boost)" 'ours is started: it alone is active, and at work'
echo 4321 >$ksm/pages_to_scan
verdict "$(wants 30 phase hold; tells 'another controller' || own_journal | tail -n 3)" 'one that writes without a unit: ours holds, and the journal says why'
systemctl stop ksmctl
echo 0 >$ksm/run
put_back "$before"
printf '%s\n' '[Unit]' 'Wants=ksmctl.service ksmtuned.service' >/run/systemd/system/both.target
systemctl daemon-reload
systemctl start both.target
sleep 5
verdict "$([[ $(active) =~ ^(ksmctl|ksmtuned)$ ]] || echo "active: $(active)")" "both are wanted at once: one is active ($(active))"
systemctl stop ksmtuned ksm ksmctl
put_back "$before"
kill -KILL "${children[@]}"

# Programs that systemd opens to merging.
if systemd-run -q --wait -p MemoryKSM=yes true 2>"$work/err"; then
	systemctl start ksmctl
	for i in 1 2; do systemd-run -q --unit=equal$i -p MemoryKSM=yes "$PWD/equal"; done
	systemd-run -q --unit=equal3 "$PWD/equal"
	half() { [ "$(get pages_sharing)" -ge 3800 ]; }
	verdict "$(wants 120 half)" 'MemoryKSM=yes: two services merge'
	list=$(for i in 1 2 3; do systemctl show -P MainPID equal$i; done | paste -sd,)
	# Before Linux 6.13 the kernel tells of the areas only.
	way=madvise
	! grep -q '^ksm_merge_any' /proc/self/ksm_stat || way=prctl
	check_json "ksmstat: these two, by $way, and not the third" ".processes | map(.opted) == [\"$way\", \"$way\", \"no\"] and
		.[0].ksm >= 3800 * 4096 and .[2].ksm == 0 and .[0].saved + .[1].saved >= 3800 * 4096" -- \
		ksmstat -J -o OPTED,KSM,SAVED,PID --sort -PID -p "$list"
	check_json 'ksmstat --by unit: each service with its saving' '.groups | map(select(.unit | test("^equal"))) |
		length == 3 and (map(.saved // 0) | add) >= 3800 * 4096' -- ksmstat -J --by unit
	systemctl stop ksmctl equal1 equal2 equal3
else
	skip 'MemoryKSM=yes' "$(tail -n 1 "$work/err")"
fi
verdict "$(as_found "$before")" 'the knobs are as before'
verdict "$(systemctl --failed --no-legend --plain | grep ksm)" 'no unit of ours has failed'
finish
END
boot=(-m 2048 -d "$suite" -s)
in_guest 900 bash guest
