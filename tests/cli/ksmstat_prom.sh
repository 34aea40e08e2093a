#!/bin/bash
# Command-line scenarios of ksmstat --prom: captured kernels, hostile names, files that are replaced; and refusals of --audit.
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154,SC2016,SC2034 # as in the other scenarios
. "${BASH_SOURCE%/*}/lib.bash"
cd "${BASH_SOURCE%/*}/../.." || exit 1

stat=$B/ksmstat
page=$(getconf PAGESIZE)
printf '%s\n' '# metric kernel-file factor' "ksm_shared_bytes pages_shared $page" "ksm_sharing_bytes pages_sharing $page" \
	"ksm_zero_bytes ksm_zero_pages $page" "ksm_unshared_bytes pages_unshared $page" "ksm_volatile_bytes pages_volatile $page" \
	'ksm_profit_bytes general_profit 1' 'ksm_full_scans_total full_scans 1' 'ksm_scanned_pages_total pages_scanned 1' \
	'ksm_skipped_pages_total pages_skipped 1' 'ksm_stable_node_chains stable_node_chains 1' \
	'ksm_stable_node_dups stable_node_dups 1' 'ksm_run run 1' 'ksm_pages_to_scan pages_to_scan 1' \
	'ksm_sleep_seconds sleep_millisecs 0.001' 'ksm_smart_scan smart_scan 1' 'ksm_use_zero_pages use_zero_pages 1' \
	'ksm_merge_across_nodes merge_across_nodes 1' 'ksm_max_page_sharing max_page_sharing 1' \
	'ksm_advisor_max_cpu_ratio advisor_max_cpu 0.01' 'ksm_advisor_target_scan_seconds advisor_target_scan_time 1' >"$work/metrics"

# Does every metric say what the file says, and is it absent where the file is?
compare_with_files()
{
	local metric file factor want got
	while read -r metric file factor; do
		[ "$metric" != '#' ] || continue
		got=$(sed -n "s/^$metric //p" "$work/out") want=
		[ ! -e "$1/sys/kernel/mm/ksm/$file" ] || want=$(<"$1/sys/kernel/mm/ksm/$file")
		if [ -z "$want$got" ] || awk -v w="$want" -v f="$factor" -v g="$got" \
			'BEGIN { d = w * f - g; exit !(w != "" && g != "" && d < 1e-9 && d > -1e-9) }'; then continue; fi
		echo "$metric is '$got' and $file '$want'"
	done <"$work/metrics"
}

# What promtool says, where it is installed.
lint_with=
if command -v promtool >/dev/null; then lint_with='promtool check metrics <"$work/out" 2>&1'; fi

# They are metrics, each with one head in front of all its lines.
heads()
{
	awk '/^# HELP / { if (help[$3]++) print "two heads of " $3; current = $3; next }
		/^# TYPE / { if ($3 != current || ($4 != "gauge" && $4 != "counter")) print "odd: " $0
			if (($3 ~ /_total$/) != ($4 == "counter")) print "not what its name says: " $0; next }
		{ name = $0; sub(/[{ ].*/, "", name); if (name != current) print "not below its head: " $0
			if (name !~ /^ksm_[a-z_]+$/) print "odd name: " $0
			if ($0 !~ / -?[0-9][0-9.e+-]*$/) print "no number: " $0 }' "$work/out"
}

for tree in tests/fixtures/linux-*; do
	also='compare_with_files "$tree"; heads' check "--prom of ${tree##*/}: what the files say, and nothing else" 0 . '' -- \
		"$stat" --prom --root "$tree"
	expected=$(cat "$tree"/sys/kernel/mm/ksm/{pages_sharing,ksm_zero_pages} 2>/dev/null | awk -v p="$page" '{ s += $1 } END { print s * p }')
	also='grep -qx "ksm_saved_bytes $expected" "$work/out" || echo "not saved: $expected"; grep "pid=\|program=" "$work/out"' \
		check "--prom of ${tree##*/}: what is saved, and no process" 0 . '' -- "$stat" --prom --root "$tree"
	also="heads; $lint_with" check "--prom of ${tree##*/} by everything" 0 'ksm_program_processes\{program="[^"]*"\} [0-9]' '' -- \
		"$stat" --prom --per-process --by program --by user --by cgroup --by unit --by container --by pod --root "$tree"
	cp "$work/out" "$work/by"
	saved=$("$stat" -b -n -r --by program -o SAVED --root "$tree" 2>/dev/null | awk '$1 != "-" { s += $1 } END { print s + 0 }')
	also='[ "$(awk "/^ksm_program_saved_bytes/ { s += \$NF } END { print s + 0 }" "$work/by")" = "$saved" ] || echo "not $saved"' \
		check "--prom of ${tree##*/}: sums are those of the report" 0 '' '' -- true
done
[ -n "$lint_with" ] || skip 'promtool finds nothing to complain of' 'promtool (Debian: prometheus) is not installed'

# --- hostile names
root=$work/root
mkdir -p "$root/sys/kernel/mm/ksm" "$root/proc/100"
echo 75 >"$root/sys/kernel/mm/ksm/pages_sharing"
printf '100 (a"} 1\n# \\x\xff) S 1 1 1 0 -1 4194304 10 0 3 0 0 0 0 0 20 0 5 0 99 0 0\n' >"$root/proc/100/stat"
printf 'Name:\tx\nUid:\t0\t0\t0\t0\n' >"$root/proc/100/status"
printf '0::/a"b\\x2d\n' >"$root/proc/100/cgroup"
printf '%s\n' '00400000-00500000 r-xp 00000000 fe:00 5    /bin/x' 'Rss: 4 kB' 'Private_Clean: 4 kB' 'Private_Dirty: 0 kB' >"$root/proc/100/smaps"
also="heads; $lint_with" check 'a hostile name stays in its label' 0 \
	'ksm_process_private_bytes\{pid="100",program="a\\"\} 1\\\\x0a# \\\\x5cx\\\\xff",user="root"\} ' '' -- \
	"$stat" --prom --per-process --by program --by cgroup --root "$root"
also='grep -qxF "$(printf "%s" '\''ksm_cgroup_processes{cgroup="/a\"b\\x5cx2d"} 1'\'')" "$work/out" || grep cgroup_proc "$work/out"' \
	check 'and so does a hostile path' 0 . '' -- "$stat" --prom --by cgroup --root "$root"
also='grep ksm_process_saved "$work/out"; grep "ksm_zero\|ksm_profit\|cpu_seconds\|copied" "$work/out"' \
	check 'what is not there is absent' 0 'ksm_sharing_bytes' '' -- "$stat" --prom --per-process --root "$root"

# --- files
file=$work/ksm.prom
check '--output-file says nothing' 0 '' '' -- "$stat" --prom --root "$root" --output-file "$file"
also='[ "$(stat -c %a "$file")" = 644 ] || stat -c %a "$file"; "$stat" --prom --root "$root" | diff - "$file"' \
	check 'and writes what would be shown, mode 644' 0 '' '' -- true
echo old >"$work/old"
ln -sf old "$work/link"
also='[ "$(<"$work/old")" = old ] && [ ! -L "$work/link" ] || ls -l "$work"' \
	check 'a link is replaced and not followed' 0 '' '' -- "$stat" --prom --root "$root" --output-file "$work/link"
# Of all that is no regular file a pipe is tried, and not a device, which a fault would take from the whole system.
mkdir "$work/bare" && mkfifo "$work/pipe"
before=$(ls -A "$work")
check 'a folder is none' 1 '' "^ksmstat: cannot write $work/root: it is no regular file\$" -- "$stat" --prom --root "$root" --output-file "$root"
check 'nor is a pipe' 1 '' 'it is no regular file' -- "$stat" --prom --root "$root" --output-file "$work/pipe"
check 'a folder that is not there' 1 '' 'cannot write .*: No such file' -- "$stat" --prom --root "$root" --output-file "$work/none/x"
also='[ "$(<"$work/old")" = old ] || cat "$work/old"' check 'no KSM: the file stays' 1 '' '^ksmstat: this kernel has no KSM$' -- \
	"$stat" --prom --root "$work/bare" --output-file "$work/old"
user_programs
if [ -z "${no_user-}" ] && [ "$(id -u)" = 0 ]; then
	cp "$work/old" "$work/bin/x.prom"
	also='[ "$(<"$work/bin/x.prom")" = old ] || cat "$work/bin/x.prom"' check 'not allowed: the file stays' 1 '' 'Permission denied' -- \
		"${as_user[@]}" "$work/bin/ksmstat" --prom --output-file "$work/bin/x.prom"
	check '--audit without root' 1 '' '^ksmstat: --audit needs root: [^'$'\n'']*$' -- "${as_user[@]}" "$work/bin/ksmstat" --audit
else
	skip 'without root' "${no_user:-not root}"
fi
also='[ "$(ls -A "$work" | grep -vx "bin\|out\|err\|jq")" = "$(grep -vx "bin\|out\|err\|jq" <<<"$before")" ] || ls -A "$work"' \
	check 'nothing is left behind' 0 '' '' -- true

# --- refused
for bad in -J -r -P -T '-o PID' '--by system'; do
	check "--prom $bad" 2 '' '^ksmstat: --[a-z ]* does not go with --prom.*--help' -- "$stat" --prom $bad
done
check '--output-file alone' 2 '' '^ksmstat: --output-file goes with --prom alone.*--help' -- "$stat" --output-file x
check '--per-process alone' 2 '' '^ksmstat: --per-process does not go with --audit' -- "$stat" --audit --per-process
for bad in -r -P -T '--by system' '--max-rss 4G'; do
	check "--audit $bad" 2 '' '^ksmstat: --[a-z -]* does not go with --audit' -- "$stat" --audit $bad
done
check '--audit --root' 2 '' '^ksmstat: --audit looks at the pages of running processes' -- "$stat" --audit --root "$root"
finish
