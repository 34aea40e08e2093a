# Guards a live test in Bash: one lock for the machine, and every KSM knob as it was, however the test ends. To be sourced.
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034 # what is set here is used by the scripts that source it

ksm=/sys/kernel/mm/ksm
tunables=(advisor_mode advisor_max_cpu advisor_min_pages_to_scan advisor_max_pages_to_scan advisor_target_scan_time
	pages_to_scan sleep_millisecs smart_scan use_zero_pages stable_node_chains_prune_millisecs
	merge_across_nodes max_page_sharing /sys/kernel/mm/transparent_hugepage/enabled
	/sys/kernel/mm/transparent_hugepage/defrag /proc/sys/vm/swappiness run)

# A knob is a name in $ksm, or a path.
path_of() { case $1 in /*) path=$1 ;; *) path=$ksm/$1 ;; esac; }
has() { local path; path_of "$1"; [ -e "$path" ]; }
get() { local path; path_of "$1"; sed 's/.*\[\(.*\)\].*/\1/' "$path"; }

# With the kernel's advisor at work pages_to_scan is the kernel's own.
knobs()
{
	local key advisor=none
	! has advisor_mode || advisor=$(get advisor_mode)
	for key in "${tunables[@]}"; do
		! has "$key" || { [ "$key" = pages_to_scan ] && [ "$advisor" != none ]; } || echo "$key=$(get "$key")"
	done
}

# put_back KNOBS: run comes last. Two of them are taken only while nothing is merged.
put_back()
{
	local change key try path
	for change in $1; do
		key=${change%%=*}
		path_of "$key"
		for try in {1..50}; do
			[ "$(get "$key")" != "${change#*=}" ] || break
			case $key in max_page_sharing | merge_across_nodes) echo 2 >$ksm/run ;; esac
			echo "${change#*=}" >"$path" 2>/dev/null || sleep 0.1
		done
	done
}

# One at a time on this machine: the lock is on the folder itself.
# The wait can be long; with flock in the background a signal ends it.
take() { exec 9<$ksm && { flock 9 & wait $!; }; }
release() { exec 8>&- 9>&-; }

# From here to release: whatever happens to the script, a process that outlives it puts the knobs back.
# It holds the lock until it has, so that whoever takes it next finds them as they were.
guard()
{
	found=$(knobs)
	exec 8> >(trap '' INT TERM HUP; cat >/dev/null; put_back "$found")
}

as_found() { diff <(echo "$1") <(knobs) | sed -n 's/^[<>]/knobs as found or now:&/p'; }
