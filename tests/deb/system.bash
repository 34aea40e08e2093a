# Small Debian systems in folders, for the tests of the packages. To be sourced, in a mount namespace of its own.
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154 # B and work are set in the script that sources it

# The mirror that apt uses for Debian itself.
mirror() { echo "${MIRROR:-$(apt-get indextargets --format '$(SITE) $(ORIGIN) $(COMPONENT)' 'Created-By: Packages' |
	sed -n '/security/d; s/ Debian main$//p' | head -n 1)}"; }

# have_base SUITE: a minimal system, kept as an archive.
have_base()
{
	local base=$work/$1-base
	[ ! -s "$B/deb-$1.tar" ] || return 0
	debootstrap --variant=minbase "$1" "$base" "$(mirror)" && tar -C "$base" --one-file-system -cf "$B/deb-$1.tar.new" . &&
		mv "$B/deb-$1.tar.new" "$B/deb-$1.tar" && rm -rf --one-file-system "$base"
}

# begin SYSTEM SUITE: a fresh system in that folder, with what a program expects to find.
begin()
{
	local node
	mkdir "$1" && tar -C "$1" -xpf "$B/deb-$2.tar" && cp /etc/resolv.conf "$1/etc/" &&
		mount -t proc proc "$1/proc" && mount -t sysfs -o ro sysfs "$1/sys" &&
		mount -t tmpfs -o mode=755 tmpfs "$1/dev" || return
	for node in 'null 1 3' 'zero 1 5' 'full 1 7' 'random 1 8' 'urandom 1 9' 'tty 5 0'; do
		# shellcheck disable=SC2086 # name and numbers
		set -- "$1" "$2" $node && mknod -m 666 "$1/dev/$3" c "$4" "$5" || return
	done
	ln -s /proc/self/fd "$1/dev/fd" && mkdir "$1/dev/shm" && mount -t tmpfs tmpfs "$1/dev/shm" || return
	cp /etc/apt/apt.conf.d/*proxy* "$1/etc/apt/apt.conf.d/" 2>/dev/null
	within "$1" apt-get update -qq
}

# within SYSTEM COMMAND...: there, as root, with nothing of our environment.
within()
{
	local system=$1
	shift
	chroot "$system" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
		LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

# source_tree FOLDER: what git knows of this tree, or all but what was built.
source_tree()
{
	mkdir "$1" || return
	{ git ls-files -z --cached --others --exclude-standard 2>/dev/null || find . -path ./build -prune -o ! -type d -print0; } |
		tar --null --no-recursion --ignore-failed-read -T - -cf - | tar -C "$1" --no-same-owner -xf - && chmod -R a+rX "$1"
}

# with_systemctl SYSTEM: as if systemd were running, to the eyes of maintainer scripts; what they ask goes to a log.
with_systemctl()
{
	[ ! -e "$1/usr/bin/systemctl" ] && mkdir -p "$1/run/systemd/system" && : >"$1/systemctl.log" &&
		printf '%s\n' '#!/bin/sh' 'echo "$*" >>/systemctl.log' 'case "$*" in *is-enabled*) echo enabled ;; esac' \
			>"$1/usr/bin/systemctl" && chmod 755 "$1/usr/bin/systemctl"
}

# files SYSTEM: all of them with kind, mode, owner, size and where links lead; not what apt and dpkg keep for themselves, nor a
# folder that is made and removed with the links in it.
files()
{
	find "$1" -xdev -printf '%P %y %m %u:%g ' \( -type l -printf '%l\n' -o -type f -printf '%s\n' -o -printf '\n' \) |
		grep -Ev '^(etc/systemd/system/multi-user.target.wants d|var/(lib/(apt|dpkg)|cache|log)/|etc/ld.so.cache|tmp/|systemctl.log|debs|smoke)' | sort
}
