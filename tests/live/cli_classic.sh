#!/bin/bash
# Live: ksmstat --classic equals, to the kB, an independent sum over smaps, for every process that can be read.
# SPDX-License-Identifier: GPL-2.0-or-later
. "${BASH_SOURCE%/*}/../cli/lib.bash"

# Looking must not change what is seen: a file's page counts as shared as soon as the one who looks maps
# it too. So ksmstat runs on copies of its libraries, and the independent sum is made by this very shell,
# which is there all the time and starts nothing for it.
mkdir "$work/lib"
cp "$B/ksmstat" "$work/ksmstat"
ldd "$B/ksmstat" | sed -nE 's/^.*[[:space:]](\/[^ ]+) \(0x.*/\1/p' | xargs -I{} cp -L {} "$work/lib/"
loader=$(echo "$work"/lib/ld[-.]*)
stat=("$loader" --library-path "$work/lib" "$work/ksmstat")
check 'ksmstat runs on libraries of its own' 0 "lib/libc\\." '' -- \
	"$loader" --library-path "$work/lib" --list "$work/ksmstat"

# sum PID: sets total to "code:(p=.., s=..) data:(p=.., s=..) total=..", or to nothing without memory.
sum()
{
	local lines line value
	local -i x=0 areas=0
	local -ai own=(0 0) shared=(0 0)
	total=
	{ mapfile -t lines <"/proc/$1/smaps"; } 2>/dev/null || return
	for line in "${lines[@]}"; do
		case $line in
		[0-9a-f]*-*' '[r-][w-]x[ps]' '*) x=1 areas+=1 ;;
		[0-9a-f]*-*' '[r-][w-]-[ps]' '*) x=0 areas+=1 ;;
		'Private_Clean: '* | 'Private_Dirty: '*) value=${line#*: } own[x]+=${value% kB} ;;
		'Shared_Clean: '* | 'Shared_Dirty: '*) value=${line#*: } shared[x]+=${value% kB} ;;
		esac
	done
	[ "$areas" -eq 0 ] || total="code:(p=${own[1]}, s=${shared[1]}) data:(p=${own[0]}, s=${shared[0]})\
 total=$((own[0] + own[1] + shared[0] + shared[1]))"
}

# compare PID: sets result to "equal", "changed" (its map changes all the time), "none" (no memory, gone,
# or not readable), or how the two differ. Others start and end programs meanwhile: a difference counts
# when it is there every time.
compare()
{
	local try before line differs=0
	for try in 1 2 3 4 5; do
		sum "$1"
		before=$total
		[ -n "$before" ] || { result=none; return; }
		"${stat[@]}" --classic -p "$1" >"$work/line" 2>&1
		line=$(<"$work/line")
		sum "$1"
		[ "$before" = "$total" ] || continue
		[ "${line##*"($1) "}" != "$before" ] || { result=equal; return; }
		differs=$((differs + 1))
	done
	result=changed
	[ $differs -lt "$try" ] || result="$line, not $before"
}

own=()
start_own() { start_child "${@:2}"; own+=("$child:$1"); }
start_own 'a sleep' sleep 60
start_own 'a shell' bash -c 'sleep 60; :'
start_own 'an awk with a big table' awk 'BEGIN { for (i = 0; i < 300000; i++) t[i] = i "value"; system("exec sleep 60") }'
if command -v perl >/dev/null; then
	start_own 'memory that fork shares' perl -e '$x = "A" x 4e7; fork; $y = "B" x 1e7; sleep 60'
	start_own 'many areas' perl -e 'for (1 .. 200) { push @x, "x" x 300_000 } sleep 60'
	# mmap(NULL, 2 MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0), and touch it
	huge=/sys/kernel/mm/hugepages/hugepages-2048kB
	if [ "$(uname -m)" = x86_64 ] && [ "$(cat $huge/free_hugepages 2>/dev/null || echo 0)" -gt 0 ]; then
		start_own 'a hugetlb page' perl -e '$a = syscall(9, 0, 2 << 20, 3, 0x40022, -1, 0);
			open(my $f, "<", "/dev/zero"); syscall(0, fileno($f), $a, 4096) == 4096 or die; sleep 60'
	else
		skip 'equal: a hugetlb page' "no free huge page is set aside on this machine"
	fi
fi
sleep 1.5

compared=0 changed=0 problem=
for entry in "${own[@]}"; do
	compare "${entry%%:*}"
	[ "$result" = equal ] && { result='' compared=$((compared + 1)); }
	verdict "$result" "equal: ${entry#*:}"
done
mapfile -t pids < <(cd /proc && printf '%s\n' [0-9]*)
for pid in "${pids[@]}"; do
	compare "$pid"
	case $result in
	none) ;;
	equal) compared=$((compared + 1)) ;;
	changed) changed=$((changed + 1)) ;;
	*) problem+="$result"$'\n' ;;
	esac
done
verdict "${problem%$'\n'}" "equal: every other process on the machine ($compared compared, $changed changed meanwhile)"
verdict "$([ $compared -ge 5 ] || echo "only $compared")" "at least five could be compared"

# The list of all must hold a line for each that is there before and after.
"${stat[@]}" --classic >"$work/all" 2>"$work/err"
missing=
for pid in "${pids[@]}"; do
	sum "$pid"
	[ -n "$total" ] || continue
	grep -Fq "($pid) code:" "$work/all" || missing+="$pid is not in the list of all"$'\n'
done
verdict "${missing%$'\n'}" 'every process with memory is in the list of all'

finish
