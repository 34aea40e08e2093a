#!/bin/bash
# The two example programs in C++: vectors share half and then three quarters, objects nothing once a word differs.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: B=build VECTORS=100 tests/live/old_programs.sh, as root, after `make tests`. VECTORS=1000 is the
# experiment of old, four processes of 383 MB. Prints TAP.
# shellcheck disable=SC2154 # ksm is set in guard.bash
set -u
cd "${BASH_SOURCE%/*}/../.." || exit 1
. tests/live/guard.bash
. tests/live/scene.bash

B=${B:-build} vectors=${VECTORS:-100}
n=0 bad=0
pids=() fds=()

# within LOW HIGH GOT NAME: in per cent.
within()
{
	n=$((n + 1))
	if awk -v low="$1" -v high="$2" -v got="$3" 'BEGIN { exit !(got != "" && got >= low && got <= high) }'; then
		echo "ok $n - $4: $3 % of $1 to $2"
	else
		bad=$((bad + 1))
		echo "not ok $n - $4: $3 %, wanted $1 to $2"
	fi
}

if [ "$(id -u)" != 0 ] || [ ! -w $ksm/run ]; then
	echo "1..1"
	echo "ok 1 - old programs # SKIP KSM cannot be used here: $ksm/run is not writable"
	exit 0
fi
if [ ! -x "$B/examples/vectors" ]; then
	echo "1..1"
	echo "not ok 1 - $B/examples/vectors is not built: make examples"
	exit 1
fi
work=$(mktemp -d)
trap 'stop; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

# start N PROGRAM...: N of them, each with an input of its own that ends it.
start()
{
	local i count=$1
	shift
	for ((i = 0; i < count; i++)); do
		mkfifo "$work/in.$i"
		"$@" <"$work/in.$i" >"$work/out.$i" &
		pids+=($!)
		exec {fd}>"$work/in.$i"
		fds+=("$fd")
		rm "$work/in.$i"
	done
	heard "$count" '.'
}

# heard N TEXT: all have said so.
heard()
{
	local try
	for try in {1..1200}; do
		[ "$(cat "$work"/out.* | grep -c "$2")" -lt "$1" ] || return 0
		sleep 0.05
	done
	echo "# not all said '$2'"
}

stop()
{
	local fd
	for fd in "${fds[@]}"; do exec {fd}>&-; done
	[ ${#pids[@]} = 0 ] || { kill "${pids[@]}"; wait "${pids[@]}"; } 2>/dev/null
	pids=() fds=()
	rm -f "$work"/out.*
}

# The shared part of the processes' data, in per cent, as ksmstat says.
shared_part()
{
	"$B/ksmstat" -b -J -p "$(IFS=,; echo "${pids[*]}")" -o DATA_P,DATA_S |
		jq '.processes | ([.[].data_s] | add) as $shared | ([.[].data_p] | add) as $own | $shared * 1000 / ($shared + $own) | round / 10'
}

begin_scene
echo 1 >$ksm/run

start 4 "$B/examples/vectors" -n "$vectors"
passes 6
within 46 52 "$(shared_part)" 'vectors, the second set changed wholly: shared'
for fd in "${fds[@]}"; do echo >&"$fd"; done
heard 4 'phase 2'
passes 6
within 73 79 "$(shared_part)" 'vectors, the second set changed by half: shared'
"$B/ksmstat" --classic -p "$(IFS=,; echo "${pids[*]}")" | sed 's/^/# /'
stop

for with in none pointers vtables values; do
	start 2 "$B/examples/objects" -w $with -m 16
	passes 5
	if [ $with = none ]; then
		within 95 100 "$(shared_part)" 'objects that are the same: shared'
	else
		within 0 10 "$(shared_part)" "objects with $with: shared"
	fi
	stop
done

end_scene
