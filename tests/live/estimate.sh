#!/bin/bash
# Live: what ksmstat --estimate predicts is what ksmd then merges, for two kinds of real programs.
# SPDX-License-Identifier: GPL-2.0-or-later
. "${BASH_SOURCE%/*}/../cli/lib.bash"
. "${BASH_SOURCE%/*}/guard.bash"
ctl=$B/ksmctl stat=$B/ksmstat
. "${BASH_SOURCE%/*}/../bench/estimate_workload.bash"
. "${BASH_SOURCE%/*}/../bench/estimate_truth.bash"

[ -d $ksm ] || skip_all "this kernel has no KSM"
[ "$(id -u)" -eq 0 ] || skip_all "changing the knobs needs root"
[ -w $ksm/run ] || skip_all "$ksm is read-only here"
command -v jq >/dev/null || skip_all "jq is not installed"
! grep -q __asan_init "$stat" || skip_all "built with a sanitizer: its jobs would reserve terabytes, which take minutes to unmerge"
trap 'end_all; clean_up' EXIT

# within NAME ERROR: at most 3 %.
within() { verdict "$(awk -v e="$2" 'BEGIN { if (e > 3 || e < -3) print e " %" }')" "$1 ($2 %)"; }

# predict NAME START...: the estimate against ksmd.
predict()
{
	local name=$1 pids
	shift
	: >"$work/log"
	if ! "$@"; then
		verdict "it could not be started: $(tail -n 1 "$work/log")" "$name"
	else
		mapfile -t pids < <(family "${started[@]}")
		converge_s=12 estimate_options='--settle 1' compare "${pids[@]}"
		verdict "$problem" "$name: estimated and merged" || { end_all; return; }
		within "$name: pages_sharing is predicted, $predicted_sharing of $sharing" "$sharing_error"
		within "$name: the memory that is freed is predicted, $predicted_freed pages of $freed" "$freed_error"
		check_json "$name: merged pages are recognised, and not predicted again" ".estimate |
			.saved_already / $page / $sharing > 0.97 and .saved < .saved_already * 0.03" -- \
			"$stat" --estimate --settle 0 -J -p "$(IFS=,; echo "${pids[*]}")"
	fi
	end_all
}
page=$(getconf PAGESIZE)

wait_for_foreign 20
take
guard
predict 'jobs of a farm' start_jobs 2
if [ -x /usr/bin/python3 ]; then
	predict 'a server that forks' start_prefork
else
	skip 'a server that forks' '/usr/bin/python3 is not installed'
fi
echo 2 >$ksm/run
release

finish
