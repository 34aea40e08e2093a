#!/bin/bash
# What another kernel has of all that this project can use, compared with the version in which Linux got it.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: tests/vm/features.sh [KERNEL], see tests/vm/boot; from the top of the tree. Prints TAP, which
# tests/vm/table reads too.
set -u
B=${B:-build}
kernel=${1:-6.12}
. "${BASH_SOURCE%/*}/guest.bash"

# What runs there.
cat >"$files/guest" <<'END'
#!/bin/bash
ksm=/sys/kernel/mm/ksm n=0 failed=0
version=$(uname -r)
echo "# Linux $version"
number() { awk -F. '{ print $1 * 1000 + $2 }' <<<"$1"; }
now=$(number "${version%%-*}")

# feature SINCE UNTIL NAME COMMAND...: there from that version on, and gone again in the other (or -).
feature()
{
	local since=$1 until=$2 name=$3 has=no want=no word='ok'
	shift 3
	! "$@" >/dev/null 2>&1 || has=yes
	[ "$now" -lt "$(number "$since")" ] || { [ "$until" != - ] && [ "$now" -ge "$(number "$until")" ]; } || want=yes
	n=$((n + 1))
	[ $has = $want ] || { word='not ok' failed=1; }
	echo "$word $n - $name: $has"
}
knob() { [ -e "$ksm/$1" ]; }
stat_has() { grep -q "^$1" /proc/self/ksm_stat; }
# known PATH REQUEST BYTES: the kernel knows that ioctl of that file, whatever it says of its empty argument.
known()
{
	perl -e 'open(my $f, "<", $ARGV[0]) or die; my $x = pack("Q", $ARGV[2]) . "\0" x ($ARGV[2] - 8);
		exit(!(defined(ioctl($f, $ARGV[1], $x)) || $! != 25))' "$1" "$(($2))" "$3" # 25: ENOTTY
}
# Is a page that was just made said to be merged?
new_page_is_merged()
{
	perl -e 'my $x = "a" x 4e6; my $at = unpack("Q", pack("p", $x)) + 1e6;
		sub entry { open(my $f, "<:raw", $_[0]) or die; sysseek($f, int($_[1]) * 8, 0); sysread($f, my $e, 8) == 8 or die; unpack("Q", $e) }
		my $frame = entry("/proc/self/pagemap", $at / 4096) & ((1 << 55) - 1);
		exit(!(entry("/proc/kpageflags", $frame) >> 21 & 1))'
}

feature 6.1 - '/proc/PID/ksm_stat' test -e /proc/self/ksm_stat
feature 6.4 - 'general_profit' knob general_profit
feature 6.4 - 'ksm_stat: ksm_process_profit' stat_has ksm_process_profit
feature 6.4 - 'prctl(PR_SET_MEMORY_MERGE)' perl -e 'exit(syscall(157, 68, 0, 0, 0, 0) < 0)'
feature 6.6 - 'pages_scanned' knob pages_scanned
feature 6.6 - 'ksm_zero_pages' knob ksm_zero_pages
feature 6.6 - 'ksm_stat: ksm_zero_pages' stat_has ksm_zero_pages
feature 6.7 - 'smaps: KSM' grep -q '^KSM:' /proc/self/smaps
feature 6.7 - 'smart_scan, pages_skipped' knob smart_scan
feature 6.7 - 'PAGEMAP_SCAN' known /proc/self/pagemap 0xc0606610 96
feature 6.8 - 'advisor_mode' knob advisor_mode
feature 6.11 - 'PROCMAP_QUERY' known /proc/self/maps 0xc0686611 104
feature 6.13 - 'ksm_stat: ksm_merge_any, ksm_mergeable' stat_has ksm_merge_any
feature 6.10 6.18 'kpageflags: KSM on every anonymous page (an error)' new_page_is_merged
feature 3.9 - 'merge_across_nodes' knob merge_across_nodes
echo "1..$n"
exit $failed
END
boot=(-m 2048 -d "$(. /etc/os-release && echo "${VERSION_CODENAME:-none}")")
in_guest 180 bash guest
