# A test in the shell of another kernel: the folder that goes there, and how it ended. To be sourced.
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154 # B and kernel are of the scripts that source it

if grep -q __asan_init "$B/ksmctl"; then
	echo "# SKIP built with a sanitizer, which is too slow and too big for an emulated machine"
	exit 77
fi
files=$(mktemp -d) || exit 1
trap 'rm -rf "$files"' EXIT

boot=() # more options of tests/vm/boot

# in_guest SECONDS [COMMAND...]: run it there, else the script $files/guest. It prints TAP; exit with its code.
in_guest()
{
	local code seconds=$1
	shift
	[ $# -gt 0 ] || set -- sh guest
	"${BASH_SOURCE[0]%/*}/boot" -t "$seconds" "${boot[@]}" "$kernel" "$files" -- "$@" 2>"$files/problem"
	code=$?
	case $code in
	77) sed 's/^SKIP/# SKIP/' "$files/problem" ;;
	0 | 1) ;;
	*)
		sed 's/^/# /' "$files/problem"
		echo "not ok - the machine ended with code $code"
		;;
	esac
	exit $code
}
