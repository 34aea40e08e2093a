# Lets ksmd merge some processes until nothing more comes, and compares that with the estimate. To be sourced.
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034,SC2154 # what is set here is used by those who source it

# Private anonymous memory that these processes really take, in pages.
anonymous_pages()
{
	local pid
	for pid; do cat "/proc/$pid/smaps_rollup"; done 2>/dev/null |
		awk -v page="$(getconf PAGESIZE)" '$1 == "Pss_Anon:" { s += $2 } END { printf "%d\n", s * 1024 / page }'
}

# Others that are open to merging.
foreign()
{
	local file pid
	for file in /proc/[0-9]*/ksm_stat; do
		pid=${file#/proc/}
		pid=${pid%/*}
		[[ " $* " == *" $pid "* ]] || ! grep -qs '^ksm_mergeable: yes' "$file" || echo "$pid"
	done
}

# Waits until there are none, so that the kernel's counters are of ours alone; so many seconds at most.
wait_for_foreign()
{
	local end=$((SECONDS + $1))
	while [ -n "$(foreign)" ] && [ $SECONDS -lt $end ]; do sleep 2; done
}

# converge: ksmd at full speed until three passes in a row bring next to nothing. Sets passes.
converge()
{
	local last=-1 same=0 scans now end=$((SECONDS + ${converge_s:-60}))
	local first
	first=$(get full_scans)
	passes=0
	while [ $same -lt 3 ] && [ $SECONDS -lt $end ]; do
		scans=$(get full_scans)
		while [ "$(get full_scans)" -eq "$scans" ] && [ $SECONDS -lt $end ]; do sleep 0.05; done
		now=$(get pages_sharing)
		[ $((now > last ? now - last : last - now)) -le $((now / 1000)) ] && same=$((same + 1)) || same=0
		last=$now
	done
	passes=$(($(get full_scans) - first))
	[ $same -ge 3 ]
}

of() { jq "$1" "$work/estimate"; }

# How far the second is from the first, in per cent.
error_of() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f\n", a ? (b - a) * 100 / a : (b != 0) * 100 }'; }

# compare PID...: between guard and release. Leaves what is merged. Sets the figures, or problem and returns 1.
compare()
{
	local others page
	page=$(getconf PAGESIZE)
	problem=
	echo 2 >$ksm/run
	has smart_scan && echo 0 >$ksm/smart_scan
	has advisor_mode && echo none >$ksm/advisor_mode
	has use_zero_pages && echo 0 >$ksm/use_zero_pages
	others=$(foreign "$@" | paste -sd, -)
	"$stat" --estimate ${estimate_options-} -J -p "$(IFS=,; echo "$*")" >"$work/estimate" 2>"$work/err" ||
		problem="ksmstat: $(cat "$work/err")"
	[ -z "$problem" ] || return 1
	before=$(anonymous_pages "$@")
	echo 10000 >$ksm/pages_to_scan
	echo 0 >$ksm/sleep_millisecs
	echo 1 >$ksm/run
	converge || problem="it did not converge"
	sharing=$(get pages_sharing)
	# The kernel's count has theirs too: then count the merged pages of ours, frame by frame.
	[ -z "$others" ] || sharing=$("$stat" --estimate --settle 0 -J -p "$(IFS=,; echo "$*")" |
		jq ".estimate.saved_already / $page")
	after=$(anonymous_pages "$@")
	echo 0 >$ksm/run
	saved=$("$stat" -J -o SAVED -p "$(IFS=,; echo "$*")" | jq "[.processes[].saved | values] | add / $page | round")
	freed=$((before - after))
	predicted_sharing=$(of .estimate.kernel.pages_sharing)
	predicted_freed=$(of ".estimate.saved / $page")
	changed=$(of ".estimate.changed / $page")
	read_mib=$(of '.estimate.read / 1048576 * 10 | round / 10')
	sharing_error=$(error_of "$sharing" "$predicted_sharing")
	freed_error=$(error_of "$freed" "$predicted_freed")
	[ -z "$problem" ]
}
