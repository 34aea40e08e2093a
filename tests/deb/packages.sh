#!/bin/bash
# The Debian packages in fresh systems: built, installed, used, upgraded, removed, purged, and nothing left.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: B=build tests/deb/packages.sh [SUITE...], as root; bookworm and trixie if none is named. Prints TAP.
# MIRROR names a mirror of Debian; without it the one that apt uses here. A system that was made once is kept as
# $B/deb-SUITE.tar; remove it to have a new one.
set -u
export LC_ALL=C
cd "${BASH_SOURCE%/*}/../.." || exit 1
B=$(realpath "${B:-build}")
[ $# -gt 0 ] || set -- bookworm trixie

skip_all() { echo "# SKIP $1"; exit 77; }

# Mounts and processes are in namespaces of their own: both have vanished when the folder is removed.
if [ -z "${KSM_DEB_WORK-}" ]; then
	[ "$(id -u)" = 0 ] || skip_all 'only root can make a system to install into'
	for tool in debootstrap unshare chroot dpkg-deb apt-get; do
		command -v $tool >/dev/null || skip_all "$tool is not installed"
	done
	KSM_DEB_WORK=$(mktemp -d "${TMPDIR:-/var/tmp}/ksm-deb.XXXXXX") || exit 1
	export KSM_DEB_WORK
	chmod 755 "$KSM_DEB_WORK"
	trap 'rm -rf --one-file-system "$KSM_DEB_WORK"' EXIT
	trap 'exit 1' INT TERM HUP
	unshare --mount --propagation private true 2>/dev/null || skip_all 'no mount namespaces here'
	unshare --mount --propagation private --pid --fork --kill-child "$0" "$@" </dev/null &
	wait $!
	exit
fi
work=$KSM_DEB_WORK
. tests/deb/system.bash

n=0 bad=0
# ok NAME COMMAND...: one test; what the command said is shown when it fails.
ok()
{
	local name=$1
	shift
	n=$((n + 1))
	if "$@" >"$work/said" 2>&1; then
		echo "ok $n - $name"
	else
		bad=$((bad + 1))
		echo "not ok $n - $name"
		tail -n 40 "$work/said" | cut -c1-300 | sed 's/^/# /'
		return 1
	fi
}

# build SYSTEM SUITE VERSION...: packages of each version into $work/debs/SUITE/VERSION.
build()
{
	local system=$1 suite=$2 version
	shift 2
	begin "$system" "$suite" && within "$system" useradd -m builder && source_tree "$system/home/builder/src" &&
		within "$system" apt-get build-dep -qq -y --no-install-recommends ./home/builder/src || return
	for version; do
		# The version of this tree is built as it is, with all tests.
		within "$system" runuser -u builder -- env DEB_BUILD_OPTIONS="$([ "$version" = "$ours" ] || echo nocheck)" \
			/home/builder/src/.ci/deb "/home/builder/$version" "$version" || return
		mkdir -p "$work/debs/$suite/$version" && cp "$system/home/builder/$version"/*.deb "$work/debs/$suite/$version" || return
	done
}

checked()
{
	within "$1" apt-get install -qq -y --no-install-recommends lintian &&
		within "$1" runuser -u builder -- sh -c 'lintian --fail-on error,warning --tag-display-limit 0 /home/builder/*/*.changes'
}

# install SYSTEM SUITE VERSION: all four, by apt.
install()
{
	rm -rf "$1/debs" && cp -r "$work/debs/$2/$3" "$1/debs" && rm -f "$1"/debs/*-dbgsym_* &&
		within "$1" sh -c 'apt-get install -qq -y --no-install-recommends /debs/*.deb'
}

installed_is() { [ "$(within "$1" dpkg-query -W -f '${Version}\n' ksmctl libksmreg0 libksmreg-preload libksmreg-dev | sort -u)" = "$2" ]; }

# What the maintainer scripts asked of systemd since this was called last: verbs that concern the service.
asked() { grep -o '\(start\|stop\|restart\|try-restart\|enable\) .*' "$1/systemctl.log" | tr '\n' ' '; : >"$1/systemctl.log"; }

asked_is() { local got; got=$(asked "$1"); [ "$got" = "$2" ] || { echo "asked for '$got', not '$2'"; return 1; }; }

not_enabled() { ! find "$1/etc/systemd" -name 'ksmctl*' | grep .; }

completes() { within "$1" bash -c '. /usr/share/bash-completion/completions/ksmstat && COMP_WORDS=(ksmstat --est) COMP_CWORD=1 &&
	_ksm ksmstat --est ksmstat && [ "${COMPREPLY[*]}" = --estimate ]'; }

nothing_left() { files "$1" | diff "$work/before" - && ! within "$1" dpkg-query -W 'ksmctl*' 'libksmreg*' 2>/dev/null | grep .; }

ksmtuned_goes()
{
	within "$1" apt-get install -qq -y --no-install-recommends ksmtuned && install "$@" &&
		[ "$(within "$1" dpkg-query -W -f '${db:Status-Abbrev}' ksmtuned)" != 'ii ' ] &&
		within "$1" dpkg -S /usr/sbin/ksmctl | grep '^ksmctl:'
}

# fresh SYSTEM SUITE: with what the packages need, and the test.
fresh()
{
	begin "$1" "$2" && within "$1" apt-get install -qq -y --no-install-recommends gcc libc6-dev pkgconf \
		libcap2 libinih1 libmnl0 libncursesw6 libsmartcols1 libxxhash0 && with_systemctl "$1"
}

# life SUITE FROM TO: installs the packages of FROM (SUITE/VERSION), upgrades to those of TO, and so on.
life()
{
	local system=$work/$1-life-${2%/*} from=$2 to=$3 in="in $1, $2 to $3"
	ok "$in: a fresh system" fresh "$system" "$1" || return
	files "$system" >"$work/before"
	ok "$in: installed" install "$system" "${from%/*}" "${from#*/}" || return
	ok "$in: it is that version" installed_is "$system" "${from#*/}"
	ok "$in: nothing was started or enabled" asked_is "$system" ''
	ok "$in: no link starts it" not_enabled "$system"
	cp debian/tests/smoke "$system/smoke"
	ok "$in: used" within "$system" /smoke
	ok "$in: completed in bash" completes "$system"
	# shellcheck disable=SC2016 # the inner shell's
	ok "$in: it carries the monitoring set" within "$system" sh -c 'cd /usr/share/doc/ksmctl/examples/monitoring &&
		[ -x ksmctl-prom ] && [ -s ksmstat-prom.service ] && [ -s ksmstat-prom.timer ] && [ -s ksm-alerts.yml ]'
	# What an administrator does.
	echo '# changed' >>"$system/etc/ksmctl.conf"
	within "$system" sh -c 'mkdir -p /etc/systemd/system/multi-user.target.wants && ln -s "$(dpkg -L ksmctl | grep "/ksmctl.service$")" \
		/etc/systemd/system/multi-user.target.wants/'
	ok "$in: upgraded" install "$system" "${to%/*}" "${to#*/}"
	ok "$in: it is the new version" installed_is "$system" "${to#*/}"
	ok "$in: restarted where it runs, and not started" asked_is "$system" 'try-restart ksmctl.service '
	ok "$in: still enabled" test -L "$system/etc/systemd/system/multi-user.target.wants/ksmctl.service"
	ok "$in: the link leads to the unit" within "$system" test -s /etc/systemd/system/multi-user.target.wants/ksmctl.service
	ok "$in: a changed configuration was kept" grep -q '^# changed' "$system/etc/ksmctl.conf"
	ok "$in: used after the upgrade" within "$system" /smoke
	mkdir -p "$system/run/ksmctl" && echo 1 >"$system/run/ksmctl/first-values"
	ok "$in: removed" within "$system" apt-get remove -qq -y ksmctl 'libksmreg*'
	ok "$in: it was stopped before" asked_is "$system" 'stop ksmctl.service '
	ok "$in: the programs are gone" within "$system" sh -c '! command -v ksmctl ksmstat'
	ok "$in: the configuration is still there" test -s "$system/etc/ksmctl.conf"
	ok "$in: purged" within "$system" apt-get purge -qq -y ksmctl 'libksmreg*'
	rm -rf "$system/debs" "$system/smoke"
	ok "$in: nothing is left" nothing_left "$system"
	ok "$in: ksmtuned goes, it has a program of the same name" ksmtuned_goes "$system" "${to%/*}" "${to#*/}"
	rm -rf --one-file-system "$system/debs"
}

ours=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog) higher=$ours+1
ok 'the packages have the version of the Makefile' test "$ours" = "$(sed -n 's/^VERSION := //p' Makefile)"
for suite; do
	if ! have_base "$suite" >"$work/said" 2>&1; then
		n=$((n + 1))
		echo "ok $n - Debian $suite # SKIP it cannot be had: $(tail -n 1 "$work/said" | cut -c1-100)"
		continue
	fi
	ok "in $suite: built in a clean system" build "$work/$suite-build" "$suite" "$ours" "$higher" || continue
	ok "in $suite: lintian finds nothing" checked "$work/$suite-build"
	life "$suite" "$suite/$ours" "$suite/$higher"
	# The old system's packages in the new one, and on to its own.
	[ "$suite" = bookworm ] || [ ! -d "$work/debs/bookworm" ] || life "$suite" "bookworm/$ours" "$suite/$higher"
done
echo "1..$n"
exit $((bad > 0))
