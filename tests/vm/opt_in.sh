#!/bin/bash
# How programs are opted in on another kernel: the way that ksmctl run takes, and ksmctl enable on a running one.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: tests/vm/opt_in.sh KERNEL, see tests/vm/boot; run from the top of the tree, with the programs in $B.
set -u
B=${B:-build}
kernel=${1:-6.12}
. "${BASH_SOURCE%/*}/guest.bash"
cp "$B/ksmctl" "$B/libksmreg-preload.so" "$B/tests/scene" "$files/" || exit 1

# What runs there, in the shell of busybox. Prints TAP.
cat >"$files/guest" <<'END'
count=0 failed=0
# is GOT PATTERN NAME
is()
{
	count=$((count + 1))
	if echo "$1" | grep -qE "$2"; then
		echo "ok $count - $3"
	else
		echo "not ok $count - $3"
		echo "$1" | sed 's/^/# /'
		failed=1
	fi
}
uname -r | sed 's/^/# Linux /'
case $(uname -r) in
6.1.*) way='by preload: this kernel has no prctl' can= ;;
6.12.*) way='by preload: under the prctl of this kernel areas do not join' can=1 ;;
*) way='by prctl: ' can=1 ;;
esac
is "$(ksmctl run -v scene 2>&1)" "^ksmctl: $way" "ksmctl run goes $way"
mkfifo /tmp/in
scene plain 16 </tmp/in >/tmp/out &
exec 8>/tmp/in
while ! grep -q ready /tmp/out; do usleep 100000; done
pid=$!
marked() { grep -c '^VmFlags:.* mg' /proc/$pid/smaps; }
said=$(ksmctl enable -v $pid 2>&1)
code=$?
if [ $can ]; then
	is "$code $(echo "$said" | tail -n 1)" '^0 .*merging is on now' 'ksmctl enable opts a running program in'
	is "$(marked)" '^[1-9]' 'its areas are marked'
	is "$(ksmctl disable -v $pid 2>&1)" 'merging is off now' 'ksmctl disable takes it back'
	is "$(marked)" '^0$' 'no area is marked'
else
	is "$code $said" '^[1-5] ' 'ksmctl enable is refused'
	is "$(marked)" '^0$' 'no area is marked'
fi
is "$(kill -0 $pid && echo alive)" alive 'it goes on'
echo "1..$count"
exit $failed
END
in_guest 120
