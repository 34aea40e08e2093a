#!/bin/bash
# ksmstat --audit on real merged pages: users, control groups, containers, and what crosses none of them.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: B=build tests/live/audit.sh, as root, after `make tests`. Prints TAP.
# shellcheck disable=SC2154,SC2016 # ksm is set in guard.bash; what is quoted is meant so
set -u
cd "${BASH_SOURCE%/*}/../.." || exit 1
. tests/live/guard.bash
. tests/live/scene.bash

B=$(realpath "${B:-build}")
n=0 bad=0
id=$(printf '%064x' $$)
mib=1048576 page=$(getconf PAGESIZE)

skip_all()
{
	echo "1..1"
	echo "ok 1 - audit # SKIP $1"
	exit 0
}

[ "$(id -u)" = 0 ] && [ -w $ksm/run ] && [ -r /proc/kpagecount ] || skip_all 'needs root, KSM and /proc/kpagecount'
command -v jq >/dev/null || skip_all 'jq is not installed'
command -v setpriv >/dev/null || skip_all 'setpriv is not installed'
box=
for dir in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
	[ -e $dir/cgroup.procs ] && mkdir $dir/ksm-audit.$$ 2>/dev/null && box=$dir/ksm-audit.$$ && break
done
[ -n "$box" ] || skip_all 'no control group can be made here'
work=$(mktemp -d)
mkdir "$work/bin"
odd=$work/bin/$'a"\e[1m\\\n{é\xff' # comm is cut to 15 bytes
cp "$B/tests/scene" "$work/bin/" && cp "$B/tests/scene" "$odd" && chmod -R a+rX "$work"
leave()
{
	let_go
	for _ in {1..50}; do
		find "$box" -depth -type d -exec rmdir {} + 2>/dev/null
		[ -e "$box" ] || break
		sleep 0.1
	done
	rm -rf "$work"
}
trap leave EXIT
trap 'exit 1' INT TERM HUP

# start GROUP USER COMMAND...: in that group, by that user.
start()
{
	mkdir -p "$box/$1"
	hold bash -c 'echo $$ >"$0/cgroup.procs" && exec setpriv --reuid "$1" --clear-groups -- "${@:2}"' "$box/$1" "${@:2}" ||
		within 1 1 0 "${*:3} starts"
}

# audit CODE NAME OPTIONS...: of all in the box. Leaves $work/json.
audit()
{
	"$B/ksmstat" --audit -J -g "/${box##*/}" "${@:3}" >"$work/json" 2>"$work/err"
	within "$1" "$1" $? "$2: exit code"
	[ ! -s "$work/err" ] || sed 's/^/# /' "$work/err"
}
# is VALUE FILTER NAME: exactly.
is() { within "$1" "$1" "$(jq ".audit | $2" "$work/json")" "$3"; }
merge()
{
	echo 1 >$ksm/run
	passes 5
	echo 0 >$ksm/run # nothing moves now
}

begin_scene
scene=$work/bin/scene
own=$((128 * page)) # what is not zero in the scene of zeros

# --- nothing crosses
start plain root "$scene" zero 4 $$
merge
audit 0 'merged with itself alone'
is 0 '.shared' 'nothing is shared'
is $(($(jq '.audit.alone' "$work/json"))) '.merged' 'all of it is its own'
within $page $((4 * mib)) "$(jq '.audit.alone' "$work/json")" 'and is there'
is 0 '.pairs | length' 'no pair'
start plain root "$scene" equal 8 $$
start plain root "$scene" equal 8 $$
merge
audit 0 'one user in one group'
is $((8 * mib)) '.shared' '8 MiB are shared'
is 0 '.crosses | add' 'nothing crosses'
is 1 '.pairs | length' 'one pair'
is 1 '[.pairs[] | select(.a == .b and .crosses == [] and .shared == '$((8 * mib))')] | length' 'each other'
is 3 '.groups[.pairs[0].a].pids | length' 'of three processes'

# --- control groups
start other root "$scene" equal 8 $$
merge
audit 3 'across control groups'
is $((8 * mib)) '.crosses.cgroup' 'all of it crosses control groups'
is 0 '.crosses.user + .crosses.container' 'and nothing else'
is 1 '.together.cgroup | length' 'of one set of groups'
is 1 '[.together.cgroup[0].names[] | select(endswith("/plain"))] | length' 'in which the one is'
audit 0 'by user nothing crosses' --by user
audit 3 'by control group it does' --by cgroup
is 2 '[.pairs[] | select(.shared == '$((8 * mib))')] | length' 'across, and within the first'
audit 0 'by container nothing crosses' --by container

# --- users
start plain 65534 "$scene" equal 4 $$
lone=${pids[-1]}
merge
audit 3 'across users' --by user
is $((4 * mib)) '.crosses.user' '4 MiB cross users'
is 2 '.together.user[0].names | length' 'two of them'
is 1 '[.together.user[0].names[] | select(. == "root")] | length' 'root is one'
"$B/ksmstat" --audit -J -p "$lone" >"$work/json" 2>/dev/null
within 3 3 $? 'of one process: with whom it shares, whoever that is'
is $((4 * mib)) '.merged' 'all that it has merged'
is 1 '.processes' 'it alone is selected'
is $((4 * mib)) '[.pairs[].shared] | max' 'with others'
"$B/ksmstat" --audit -b >"$work/out" 2>/dev/null
within 1 1 "$(grep -c "^Crosses users: $((4 * mib))\$" "$work/out")" 'the summary for people has it'
within 1 1 "$(grep -cE "^ *$((4 * mib)) +user,cgroup +.*scene.*root" "$work/out")" 'and so has the table'

# --- containers, and a hostile name
start "docker/$id" root "$odd" equal 2 $$
merge
audit 3 'across a container' --by container
is $((2 * mib)) '.crosses.container' '2 MiB cross containers'
is 1 '[.together.container[0].names[] | select(. == null)] | length' 'one side is in none'
audit 3 'by program' --by program
is 1 '[.groups[] | select(.name | startswith("a\"\\x1b[1m\\x5c\\x0a{é\\xff"))] | length' 'a hostile name is escaped'
"$B/ksmstat" --audit >"$work/out" 2>/dev/null
within 0 0 "$(grep -c $'\e' "$work/out")" 'and no escape sequence is shown'

# --- what is not seen
if hold unshare --fork --pid --mount-proc "$scene" equal 1 $$ 2>/dev/null; then
	merge
	inner=$(pgrep -P "${pids[-1]}")
	nsenter -t "$inner" -p -m "$B/ksmstat" --audit -J >"$work/json" 2>"$work/err"
	within 64 64 $? 'in a PID namespace: it is not known'
	is 1 'if .complete then 0 else 1 end' 'and said to be incomplete'
	is $mib '.unseen' 'with the pages that others have'
else
	n=$((n + 1))
	echo "ok $n - what is not seen # SKIP no PID namespace can be made"
fi

# --- zeros
if has use_zero_pages; then
	let_go
	echo 1 >$ksm/use_zero_pages
	start plain root "$scene" zero 4 $$
	start plain 65534 "$scene" zero 4 $$
	merge
	audit 3 'zeros of two users' --by user
	is $own '.crosses.user' 'what is not zero crosses'
	if has ksm_zero_pages; then
		is $((8 * mib)) '.zero' 'zeros are apart'
	else
		n=$((n + 1))
		echo "ok $n - zeros are apart # SKIP this kernel does not count them"
	fi
else
	n=$((n + 1))
	echo "ok $n - zeros # SKIP no use_zero_pages"
fi

end_scene
