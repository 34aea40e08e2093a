#!/bin/bash
# The examples of the manual pages, each as it stands there, in a shell that has what they name.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: B=build tests/live/man_examples.sh, as root, after `make`. Prints TAP.
# shellcheck disable=SC2154 # ksm is set in guard.bash
set -u
export LC_ALL=C.UTF-8
cd "${BASH_SOURCE%/*}/../.." || exit 1
. tests/live/guard.bash
B=$(realpath "${B:-build}")
n=0 bad=0

skip_all() { echo "# SKIP $1"; exit 77; }
[ "$(id -u)" = 0 ] && [ -w $ksm/run ] || skip_all "KSM cannot be used here: $ksm/run is not writable"
for tool in python3 unshare script; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
unshare --mount --propagation private true 2>/dev/null || skip_all "no mounts can be made here"

work=$(mktemp -d /var/tmp/ksm-man.XXXXXX) || exit 1
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 1' INT TERM HUP

# examples PAGE: its literal lines under EXAMPLES; what is not displayed as one block is divided by empty lines.
examples()
{
	awk '
		/^\.Sh / { inside = $2 == "EXAMPLES"; next }
		!inside { next }
		/^\.Bd/ { block = 1; next }
		/^\.Ed/ { block = 0; print ""; next }
		block { print }
		/^\.Dl / { sub(/^\.Dl /, ""); print; print "" }' "$1" | sed 's/\\e/\\/g; s/\\&//g; s/\\-/-/g; s/^"\(.*\)"$/\1/'
}

# What the examples name: two programs, a configuration, and programs where `make install` puts them.
mkdir "$work/here" "$work/bin"
cp "$B/ksmctl" "$B/ksmstat" "$work/bin/"
echo 'import time; time.sleep(0.2)' >"$work/here/worker.py"
echo 'setTimeout(() => {}, 200)' >"$work/here/server.js"
printf 'state-dir = %s/state\n' "$work" >"$work/here/ksmctl.conf"
cat >"$work/shell" <<'EOF'
set -e
work=$1 example=$2 B=$3
mkdir -p "$work/lib" && cp "$B"/libksmreg-*.so "$work/lib/"
mount -t tmpfs tmpfs /usr/local/lib && cp "$work"/lib/* /usr/local/lib/
mount -t tmpfs tmpfs /var/log
mount -t tmpfs tmpfs /var/lib && mkdir /var/lib/node
cd "$work/here"
PATH=$work/bin:$PATH
python3 -c 'import time; time.sleep(60)' &
until grep -q '^python3' /proc/$!/comm; do sleep 0.1; done
python3 -c 'import time; time.sleep(61)' &
until grep -q '^python3' /proc/$!/comm; do sleep 0.1; done
group=
for tree in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd /sys/fs/cgroup/memory; do
	[ -w $tree/cgroup.procs ] && mkdir -p $tree/system.slice/worker.service || continue
	group=$tree/system.slice/worker.service
	container=$tree/docker-0123456789ab.scope
	mkdir -p $container
	break
done
trap 'kill $(jobs -p) 2>/dev/null; wait; [ -z "$group" ] || rmdir -p --ignore-fail-on-non-empty "$group" "$container" 2>/dev/null' EXIT
[ -z "$group" ] || { echo $(jobs -p | head -n 1) >$group/cgroup.procs && echo $! >$container/cgroup.procs; }
# A service in the foreground is ended as by a service manager.
ksmctl()
{
	case "$* " in
	*--check*) command ksmctl "$@" ;;
	daemon*) timeout --preserve-status -k 10 3 "$work/bin/ksmctl" "$@" ;;
	*) command ksmctl "$@" ;;
	esac
}
# What goes on for ever is interrupted. What an audit finds is no failure of it.
ksmstat()
{
	case " $* " in
	*' --watch '*) TERM=xterm script -qec "timeout --foreground --preserve-status -s INT 3 $work/bin/ksmstat $*" /dev/null ;;
	' 2 ' | *' 60 ') timeout --preserve-status -s INT 3 "$work/bin/ksmstat" "$@" ;;
	*' --audit '*) command ksmstat "$@" || case $? in 3 | 64) ;; *) return 1 ;; esac ;;
	*) command ksmstat "$@" ;;
	esac
}
trap 'echo "exit code $?: $BASH_COMMAND"' ERR
. "$example"
EOF

# run FILE: says what is wrong.
run()
{
	timeout -k 5 150 unshare --mount --propagation private bash "$work/shell" "$work" "$1" "$B" \
		</dev/null >"$work/out" 2>&1 8>&- 9>&- && ! grep 'ERROR: ld.so' "$work/out" && return
	cat "$work/out"
	echo "it exited with another code than 0"
}

# reason FILE: why an example cannot be tried here.
reason()
{
	case $(<"$1") in
	*LD_PRELOAD=*) if grep -q __asan_init "$B/ksmctl"; then
		echo "a sanitizer's runtime must come before any preload"
		return
	fi ;;&
	*/system.slice* | *docker-*) [ -w /sys/fs/cgroup/cgroup.procs ] || [ -w /sys/fs/cgroup/memory/cgroup.procs ] || [ -w /sys/fs/cgroup/unified/cgroup.procs ] ||
		echo 'no control group can be made here' ;;
	*systemctl*) [ -d /run/systemd/system ] && [ -e /lib/systemd/system/ksmctl.service ] || echo 'the service is not installed' ;;
	*node*) command -v node >/dev/null || echo 'node is not installed' ;;
	esac
}

verdict()
{
	n=$((n + 1))
	if [ -z "$1" ]; then
		echo "ok $n - $2"
	else
		bad=$((bad + 1))
		echo "not ok $n - $2"
		sed 's/^/# /' <<<"$1" | head -n 20
	fi
}

take
guard
for page in docs/*.[18]; do
	examples "$page" >"$work/all"
	awk -v RS= -v dir="$work" '{ print >(dir "/" NR ".example"); close(dir "/" NR ".example") }' "$work/all"
	verdict "$([ -s "$work/all" ] || echo 'none found')" "$page has examples"
	for file in "$work"/*.example; do
		[ -e "$file" ] || continue
		name="$page: $(head -n 1 "$file")"
		why=$(reason "$file")
		if [ -n "$why" ]; then
			n=$((n + 1))
			echo "ok $n - $name # SKIP $why"
		else
			verdict "$(run "$file")" "$name"
		fi
		rm "$file"
	done
done
release
take # when the knobs have been put back
release
verdict "$(as_found "$found")" 'the knobs are as before'

# A part of a program: what it needs around it, and it works.
examples docs/ksmreg.3 >"$work/all"
{
	printf '%s\n' '#include <ksmreg.h>' '#include <sys/mman.h>' 'int main(void)' '{' 'size_t size = 1 << 20;'
	cat "$work/all"
	printf '%s\n' 'struct ksmreg_range range = { .size = sizeof(range) };' \
		'return region == MAP_FAILED || ksmreg_verify(region, size, &range) || range.mergeable_bytes != size;' '}'
} >"$work/example.c"
verdict "$([ -s "$work/all" ] || echo 'none found')" 'docs/ksmreg.3 has an example'
verdict "$({ ${CC:-cc} ${SANITIZE:-} -Wall -Wextra -Werror -Ilibksmreg -o "$work/example" "$work/example.c" "$B/libksmreg.a" &&
	"$work/example" || echo "exit code $?"; } 2>&1)" 'docs/ksmreg.3: it can be built, and registers'
for page in docs/*.5; do
	examples "$page" >"$work/all"
	verdict "$([ -s "$work/all" ] || echo 'none found'; "$B/ksmctl" daemon -c "$work/all" --check 2>&1)" "$page: accepted"
done
echo "1..$n"
exit $((bad > 0))
