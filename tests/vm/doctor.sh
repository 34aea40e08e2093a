#!/bin/bash
# ksmctl doctor on another kernel, in states that this machine cannot be brought into: NUMA nodes, ksmd asleep, memory that goes.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: tests/vm/doctor.sh KERNEL, see tests/vm/boot; run from the top of the tree, with the programs in $B.
set -u
B=${B:-build}
kernel=${1:-6.12}
. "${BASH_SOURCE%/*}/guest.bash"
cp "$B/ksmctl" "$B/tests/scene" "$files/" || exit 1

# What runs there, in the shell of busybox. Prints TAP.
cat >"$files/guest" <<'END'
ksm=/sys/kernel/mm/ksm
count=0 failed=0
verdict()
{
	count=$((count + 1))
	if [ "$1" = 0 ]; then
		echo "ok $count - $2"
	else
		echo "not ok $count - $2"
		echo "$3" | sed 's/^/# /'
		failed=1
	fi
}
skip() { count=$((count + 1)); echo "ok $count - $1 # SKIP $2"; }
# first WANTED CODE NAME ARGUMENT...: the id of the first finding ("none") and the exit code.
first()
{
	wanted=$1 wanted_code=$2 name=$3
	shift 3
	ksmctl doctor --json "$@" >/tmp/said 2>/tmp/error
	code=$?
	got=$(sed -n 's/.*"id": *"\([^"]*\)".*/\1/p' /tmp/said | head -n 1)
	[ "${got:-none}" = "$wanted" ] && [ $code = "$wanted_code" ]
	verdict $? "$name: $wanted" "$code $(cat /tmp/said /tmp/error)"
}
# start SCENE [MIB]: its PID is then in $pid. They live as long as descriptor 8 of this shell.
mkfifo /tmp/in
sleep 100000 >/tmp/in &
exec 8</tmp/in
on=
start()
{
	: >/tmp/out
	$on scene "$@" <&8 >/tmp/out &
	last=$!
	for try in $(seq 100); do
		grep -q ready /tmp/out && break
		kill -0 $last 2>/dev/null || break
		usleep 100000
	done
	pid=$(sed -n 's/ready //p' /tmp/out)
	[ -n "$pid" ]
}
passes()
{
	from=$(cat $ksm/full_scans)
	for try in $(seq 600); do
		[ "$(cat $ksm/full_scans)" -lt $((from + $1)) ] || return 0
		usleep 50000
	done
	echo "# no $1 passes in half a minute"
}

uname -rv | sed 's/^/# Linux /'
nodes=$(ls -d /sys/devices/system/node/node[0-9]* | wc -l)
verdict $([ $nodes = 2 ]; echo $?) 'two NUMA nodes' $nodes
echo 10000 >$ksm/pages_to_scan
echo 0 >$ksm/merge_across_nodes
echo 1 >$ksm/run
# One has its memory on the one node, the other on the other.
on='taskset 1'; start equal 8
on='taskset 2'; start equal 8
on=
passes 5
first nodes-apart 1 'two nodes apart'
echo 2 >$ksm/run
echo 1 >$ksm/merge_across_nodes
echo 1 >$ksm/run
passes 5
first none 0 'two nodes together'

case $(uname -r) in
6.1.*) skip 'the parent has the flag' 'this kernel has no such prctl' ;;
*) start lost 8 && first flag-lost 1 'the parent has the flag' $pid ;;
esac
start device 8
first device-memory 1 'addresses of a device' $pid

# Frozen it does what it does after that race: nothing, with run at 1.
mkdir /tmp/freezer
ksmd=$(pidof ksmd)
if mount -t cgroup -o freezer freezer /tmp/freezer 2>/dev/null && mkdir /tmp/freezer/f &&
	echo $ksmd >/tmp/freezer/f/cgroup.procs 2>/dev/null; then
	echo FROZEN >/tmp/freezer/f/freezer.state
	sleep 1
	worked=$(cut -d ' ' -f 1 /proc/$ksmd/schedstat)
	sleep 1
	if [ "$(cut -d ' ' -f 1 /proc/$ksmd/schedstat)" = $worked ]; then
		first ksmd-asleep 1 'ksmd does nothing'
	else
		skip 'ksmd does nothing' 'the freezer of this kernel leaves it'
	fi
	echo THAWED >/tmp/freezer/f/freezer.state
	sleep 1
	first none 0 'ksmd is awake'
else
	skip 'ksmd does nothing' 'this kernel cannot freeze it'
fi

# The group is of version 2 here.
top=/sys/fs/cgroup
if echo +memory >$top/cgroup.subtree_control 2>/dev/null && mkdir $top/jobs; then
	echo 64M >$top/jobs/memory.max
	: >/tmp/out
	sh -c 'echo $$ >/sys/fs/cgroup/jobs/cgroup.procs && exec scene unique 60' <&8 >/tmp/out &
	last=$!
	while ! grep -q ready /tmp/out && kill -0 $last; do usleep 100000; done
	passes 3
	first group-limit 1 'a group at its memory.max'
	echo max >$top/jobs/memory.max
	echo 62M >$top/jobs/memory.high
	first group-limit 1 'a group at its memory.high'
	echo 640M >$top/jobs/memory.high
	passes 3
	first none 0 'a group with room'
	kill $last
else
	skip 'a group at its memory.max' 'no memory controller'
fi

# Memory that cannot go while a page of it is in a pipe: the kernel tries again and again.
start piped 64
going=
for state in /sys/devices/system/memory/memory*/state; do
	[ "$(cat $state)" = online ] && grep -q Movable ${state%state}valid_zones || continue
	sh -c "echo offline >$state" 2>/dev/null &
	writer=$!
	for try in $(seq 40); do
		kill -0 $writer 2>/dev/null || break
		usleep 50000
	done
	[ -d /proc/$writer ] && [ "$(cat $ksm/run)" -ge 4 ] || continue
	going=1
	first memory-offline 1 "${state#/sys/devices/system/memory/} cannot go offline"
	kill -9 $writer
	wait $writer 2>/dev/null
	break
done
if [ "$going" ]; then
	for try in $(seq 100); do [ "$(cat $ksm/run)" = 1 ] && break; usleep 100000; done
	first none 0 'memory stays'
else
	skip 'memory that goes offline' 'none of it waited'
fi
echo "1..$count"
exit $failed
END
# shellcheck disable=SC2034 # in_guest takes it
boot=(-n 2 -m 1536 -a movablecore=512M)
in_guest 240
