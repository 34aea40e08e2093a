#!/bin/bash
# Command-line scenarios of ksmstat's groups, tree and selection: made-up machines, hostile names, real control groups.
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154,SC2016,SC2034,SC2086 # as in the other scenarios
. "${BASH_SOURCE%/*}/lib.bash"

stat=$B/ksmstat
root=$work/root
page=$(getconf PAGESIZE)

# process PID COMM UID DATA_KIB KSM_KIB PSS_KIB CGROUP_LINES: code is 4 KiB of its own; of the data, KSM is shared.
process()
{
	local dir=$root/proc/$1
	[ -d "$dir" ] || mkdir -p "$dir"
	printf '%s (%s) S 1 1 1 0 -1 4194304 10 0 3 0 0 0 0 0 20 0 5 0 99 0 0\n' "$1" "$2" >"$dir/stat"
	printf 'Name:\tx\nUid:\t0\t%s\t0\t0\n' "$3" >"$dir/status"
	printf 'ksm_rmap_items 10\nksm_merging_pages %d\nksm_zero_pages 2\nksm_process_profit 0\n' $(($5 / 4)) >"$dir/ksm_stat"
	printf '%s\n' "$7" >"$dir/cgroup"
	printf '%s\n' '00400000-00500000 r-xp 00000000 fe:00 5    /bin/x' 'Rss: 4 kB' 'Pss: 4 kB' 'Shared_Dirty: 0 kB' \
		'Private_Clean: 4 kB' 'Private_Dirty: 0 kB' 'KSM: 0 kB' '7f0000000000-7f0000100000 rw-p 00000000 00:00 0 ' \
		"Rss: $4 kB" "Pss: $6 kB" "Shared_Dirty: $5 kB" 'Private_Clean: 0 kB' "Private_Dirty: $(($4 - $5)) kB" \
		"KSM: $5 kB" 'VmFlags: rd wr mr mw me ac ' >"$dir/smaps"
}
# It is there, and cannot be read even by root.
hide() { rm "$root/proc/$1/smaps" && mkdir "$root/proc/$1/smaps"; }

id=0123456789ab0123456789abcdef0123456789abcdef0123456789abcdef0123
pod=2c48913c-b29f-11e7-9350-020968147796
burst=/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${pod//-/_}.slice
manager=/user.slice/user-12345.slice/user@12345.service
process 100 alpha 0 400 200 300 0::/system.slice/web.service
process 101 alpha 0 400 200 300 0::/system.slice/web.service/workers
process 102 beta 12345 80 40 60 "0::$manager/app.slice/app-x.scope"
process 103 beta 12345 800 400 600 "0::/system.slice/docker-$id.scope"
process 104 gamma 0 800 400 600 "0::/system.slice/docker-$id.scope"
process 105 hidden 0 0 0 0 "0::$burst/cri-containerd-$id.scope"
process 106 gamma 0 16 8 12 "0::$burst/cri-containerd-$id.scope"
process 107 delta 12345 0 0 0 0::/lxc.payload.box/init.scope
hide 105
hide 107
mkdir "$root/proc/2" && echo '2 (ksmd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0' >"$root/proc/2/stat"
echo '12345678901 1 1' >"$root/proc/2/schedstat"
mkdir -p "$root/sys/kernel/mm/ksm"
echo 75 >"$root/sys/kernel/mm/ksm/pages_sharing"
echo -4096 >"$root/sys/kernel/mm/ksm/general_profit"
unread='^ksmstat: 2 of 8 processes could not be read[^'$'\n'']*$'

fake() { check "$1" "$2" "$3" "$4" -- "$stat" --root "$root" "${@:5}"; }
# rows NAME OPTIONS LINE...: the whole output, line by line, each a regular expression; blanks around it do not count.
rows()
{
	local want
	want=$(printf ' *%s *\n' "${@:3}")
	fake "$1" "${want_code-0}" "^${want%$'\n'}\$" "${err-$unread}" $2
}
kib() { echo "$(($1 * page / 1024))K"; } # of so many pages

# --- groups
rows '--by program: sums, what is not known last and no 0' '--by program -o COMMAND,PROCS,UNREADABLE,CODE_P,DATA_P,PSS,SAVED,ZERO' \
	'COMMAND +PROCS +UNREADABLE +CODE_P +DATA_P +PSS +SAVED +ZERO' "beta +2 +0 +8K +440K +668K +220K +$(kib 4)" \
	"gamma +2 +0 +8K +408K +620K +204K +$(kib 4)" "alpha +2 +0 +8K +400K +608K +200K +$(kib 4)" \
	"delta +1 +1 +- +- +- +- +$(kib 2)" "hidden +1 +1 +- +- +- +- +$(kib 2)"
rows '--by user: what could be read of a group is its sum' '-n --by user -o USER,PROCS,UNREADABLE,SAVED' \
	'root +5 +1 +404K' '12345 +3 +1 +220K'
rows '--by cgroup' '-n --by cgroup -o CGROUP,PROCS,SAVED --sort CGROUP' "$burst/cri-containerd-$id.scope +2 +4K" \
	'/lxc.payload.box/init.scope +1 +-' "/system.slice/docker-$id.scope +2 +400K" '/system.slice/web.service +1 +100K' \
	'/system.slice/web.service/workers +1 +100K' "$manager/app.slice/app-x.scope +1 +20K"
rows '--by unit' '-n --by unit -o UNIT,PROCS,UNREADABLE,SAVED' "docker-$id.scope +2 +0 +400K" 'web.service +2 +0 +200K' \
	'user@12345.service/app-x.scope +1 +0 +20K' "cri-containerd-$id.scope +2 +1 +4K" '- +1 +1 +-'
rows '--by container: outside is a row of its own' '-n --by container -o CONTAINER,PROCS,UNREADABLE,SAVED' \
	'docker:0123456789ab +2 +0 +400K' '- +3 +0 +220K' 'containerd:0123456789ab +2 +1 +4K' 'lxc:box +1 +1 +-'
rows '--by pod' '-n --by pod -o POD,PROCS,SAVED' '- +6 +620K' "$pod +2 +4K"
rows '--by system: what the kernel says is beside it' '--by system -o PROCS,UNREADABLE,SAVED,KERNEL_SAVED,KERNEL_ZERO,KERNEL_PROFIT,KSMD_MS' \
	'PROCS UNREADABLE SAVED KERNEL_SAVED KERNEL_ZERO KERNEL_PROFIT KSMD_MS' "8 +2 +624K +$(kib 75) +- +-4K +12345"
rows '--by system: one row, and no second with -t' '--by system -n -t -o PROCS' 8
err='' rows 'the default of groups, of those selected' '--by unit -c alpha' 'PROCS UNREADABLE CODE_P DATA_P +PSS +ZERO SAVED UNIT' \
	"2 +0 +8K +400K +608K +$(kib 4) +200K web.service"
rows '-t: the total is of all' '--by container -n -t -o CONTAINER,PROCS,SAVED,THREADS' 'docker.*' '- .*' 'contain.*' 'lxc.*' 'total +8 +624K +40'
rows '-t: first columns that add up keep their sum' '--by user -n -t -o PROCS,USER' '5 +root' '3 +12345' '8 +total'
err='' rows '-t of processes: the same' '-n -t -o SAVED,COMMAND -c gamma' '200K gamma' '4K gamma' '204K total'
rows '--sort of groups' '--by program -n -o COMMAND --sort PROCS' alpha beta gamma delta hidden
rows '--sort -PROCS' '--by program -n -o COMMAND --sort -PROCS' delta hidden alpha beta gamma
rows '--sort -COMMAND' '--by program -n -o COMMAND --sort -COMMAND' hidden gamma delta beta alpha
rows '-r' '--by user -r -b -o USER,SAVED' 'USER SAVED' "root $((404 * 1024))" "12345 $((220 * 1024))"
rows '-P' '--by user -P -o USER,SAVED' 'USER="root" SAVED="404K"' 'USER="12345" SAVED="220K"'
check_json '--by as JSON' ".groups == [{procs: 5, unreadable: 1, saved: $((404 * 1024)), user: \"root\"},
	{procs: 3, unreadable: 1, saved: $((220 * 1024)), user: \"12345\"}]" "$unread" -- \
	"$stat" --root "$root" -J --by user -o PROCS,UNREADABLE,SAVED,USER
check_json '--by as JSON: not known and none are null' '.groups | any(.unit == null and .saved == null and .unreadable == 1)' \
	"$unread" -- "$stat" --root "$root" -J --by unit
check_json '--by system as JSON' ".groups | length == 1 and .[0].kernel_saved == $((75 * page)) and .[0].kernel_zero == null and
	.[0].kernel_profit == -4096 and .[0].ksmd_ms == 12345 and .[0].saved == $((624 * 1024))" "$unread" -- \
	"$stat" --root "$root" -J --by system
for by in program user cgroup unit container pod system; do
	check_json "--by $by: every column there is" '.groups | length > 0 and all(.[]; .procs > 0 and has("minflt") and
		(has("rss") or has("pid") or has("profit") | not))' \
		"$unread" -- "$stat" --root "$root" -J --by $by -o all
done

# --- columns of processes
err='' rows 'CGROUP, UNIT, CONTAINER, POD' '-n -o PID,UNIT,CONTAINER,POD,CGROUP --sort -PID -p 100,102,103,106' \
	'100 web.service +- +- +/system.slice/web.service' "102 user@12345.service/app-x.scope +- +- +$manager/app.slice/app-x.scope" \
	"103 docker-$id.scope +docker:0123456789ab +- +/system.slice/docker-$id.scope" \
	"106 cri-containerd-$id.scope +containerd:0123456789ab $pod $burst/cri-containerd-$id.scope"

# --- refused
for column in PID RSS KSM TOTAL PROFIT CODE_S; do
	fake "--by refuses $column" 2 '' "^ksmstat: column $column does not add up over the processes of a group.*--help" --by user -o PSS,$column
	fake "--by refuses to sort by $column" 2 '' "column $column does not add up" --by user --sort -$column
done
for column in COMMAND OPTED CGROUP; do
	fake "--by user refuses $column" 2 '' "^ksmstat: column $column is not the same for all" --by user -o $column
done
for column in KERNEL_SAVED KERNEL_ZERO KERNEL_PROFIT KSMD_MS; do
	fake "$column without --by system" 2 '' "column $column is of the whole machine: it needs --by system" -o $column
	fake "$column with --by user" 2 '' "column $column is of the whole machine: it needs --by system" --by user -o +$column
done
for bad in '' x users 'user ' user,unit; do
	fake "--by ${bad@Q}" 2 '' "^ksmstat: --by wants one of program, user, [a-z, ]*system, not '$bad'.*--help" --by "$bad"
done
fake '--by: an unknown column' 2 '' "unknown column 'FOO'" --by user -o FOO
fake '--by: 65 columns' 2 '' 'more than 64 columns' --by user -o "$(printf 'PSS,%.0s' {1..64})PSS"
fake '--by comes after -o' 0 '^ *root' "$unread" -n -o USER,PSS --by user
fake '--tree --by unit' 2 '' '--tree is of control groups' -T --by unit
fake '--by --classic' 2 '' '--by does not go with --classic' --by unit --classic
fake '--tree --estimate' 2 '' '--tree does not go with --estimate' -T --estimate -p 100

# --- the tree
rows '-T: each has what is below it' '-T -n -o CGROUP,PROCS,UNREADABLE,SAVED' '/ +8 +2 +624K' '\|-system.slice +4 +0 +600K' \
	"\| +\|-docker-$id.scope +2 +0 +400K" '\| +`-web.service +2 +0 +200K' '\| +`-workers +1 +0 +100K' \
	'\|-user.slice +1 +0 +20K' '\| +`-user-12345.slice +1 +0 +20K' '\| +`-user@12345.service +1 +0 +20K' \
	'\| +`-app.slice +1 +0 +20K' '\| +`-app-x.scope +1 +0 +20K' '\|-kubepods.slice +2 +1 +4K' '\| +`-kube.* +2 +1 +4K' \
	'\| +`-kube.* +2 +1 +4K' "\| +\`-cri-containerd-$id.scope +2 +1 +4K" '`-lxc.payload.box +1 +1 +-' '`-init.scope +1 +1 +-'
err='' rows '-T: of those selected, sorted, totalled' '-T -n -t -g /system.slice -o CGROUP,SAVED --sort -SAVED' '/ +600K' '`-system.slice +600K' \
	'\|-web.service +200K' '\| +`-workers +100K' "\`-docker-$id.scope +400K" 'total +600K'
err='' rows '-T -r: whole paths and nothing drawn' '-T -r -n -o CGROUP,PROCS -g /system.slice/web.service' '/ 2' '/system.slice 2' \
	'/system.slice/web.service 2' '/system.slice/web.service/workers 1'
check_json '-T as JSON: nested' '.groups | length == 1 and .[0].cgroup == "/" and .[0].procs == 8 and
	(.[0].children | map(.cgroup) == ["/system.slice", "/user.slice", "/kubepods.slice", "/lxc.payload.box"]) and
	([.. | objects | select(.cgroup == "/system.slice/web.service/workers")] | length == 1 and (.[0] | has("children") | not))' \
	"$unread" -- "$stat" --root "$root" -T -J
LC_ALL=C.UTF-8 check '-T in UTF-8' 0 $'\xe2\x94\x94\xe2\x94\x80init.scope' "$unread" -- "$stat" --root "$root" -T

# --- selection
# chosen NAME CODE ERR PIDS OPTION...: these processes, no others.
chosen()
{
	local want
	want=$(printf '%s ' $4)
	also='[ "$(sort -n "$work/out" | tr -d " " | tr "\n" " ")" = "'"${want% }${4:+ }"'" ] || echo "not '"$4"'"' \
		fake "$1" "$2" "${4:+.}" "$3" -n -o PID "${@:5}"
}
chosen '-c' 0 '' '100 101' -c alpha
chosen '-c: several' 0 '' '100 101 102 103' -c alpha,beta
chosen '-c twice' 0 '' '100 101 102 103' -c alpha -c beta
chosen '-c: a pattern' 0 '' '102 103' -c 'b*a'
chosen '-c: no part of a name' 32 '' '' -c alph
chosen '-c: unreadable is shown and counted' 32 '1 of 1 processes' '105' -c hidden
chosen '-c: some unreadable' 64 '1 of 3 processes' '100 101 105' -c alpha,hidden
chosen '-u: a number' 64 '1 of 3 processes' '102 103 107' -u 12345
chosen '-u: a name' 64 '1 of 5 processes' '100 101 104 105 106' -u root
chosen '-u: nobody of these' 32 '' '' -u 54321
chosen '-g: it and below' 0 '' '100 101' -g /system.slice/web.service
chosen '-g: a slash at the end' 0 '' '100 101' -g /system.slice/web.service/
chosen '-g: as a path in the file system' 0 '' '100 101' -g /sys/fs/cgroup/system.slice/web.service
chosen '-g: the same with a hierarchy' 0 '' '100 101' -g /sys/fs/cgroup/systemd/system.slice/web.service
chosen '-g: below only whole parts' 32 '' '' -g /system.slice/web
chosen '-g: at any place' 0 '' '100 101' -g web.service
chosen '-g: parts at any place' 0 '' '102' -g user@12345.service/app.slice
chosen '-g: the root is all' 64 '2 of 8' '100 101 102 103 104 105 106 107' -g /
chosen '-g: two' 0 '' '101 102' -g workers -g app.slice
chosen 'kinds together: all must fit' 0 '' '103' -c beta -u 12345 -g /system.slice
chosen 'kinds together: none does' 32 '' '' -c alpha -u 12345
chosen '-p and others' 0 '' '100' -p 100,102 -c alpha
chosen '-p: one that is not there, and others' 64 '1 of the processes asked for is not there' '100' -p 100,999 -c alpha
chosen '-p: the same twice is one' 0 '' '100' -p 100,100 -p 100
for bad in '' ',' 'a,' ',a' 'a,,b'; do
	fake "-c ${bad@Q}" 2 '' "'' is not a name of a program.*--help" -c "$bad"
done
for bad in '' no-such-user-here -1 4294967295 1x; do
	fake "-u ${bad@Q}" 2 '' "'$bad' is not a user known here.*--help" -u "$bad"
done
fake "-g ''" 2 '' "'' is not a path of a control group" -g ''
process 200 abcdefghijklmno 0 8 0 8 0::/z
chosen '-c: names longer than the kernel keeps' 0 '' 200 -c abcdefghijklmnopq
chosen '-c: but not just any' 32 '' '' -c abcdefghijklmnXpq
process 200 $'bad\xff\xfe[' 0 8 0 8 0::/z
for locale in C C.UTF-8; do
	LC_ALL=$locale chosen "-c: a pattern and bytes of any kind, $locale" 0 '' 200 -c 'bad*'
	LC_ALL=$locale chosen "-c: bytes of any kind, $locale" 0 '' 200 -c $'bad\xff\xfe['
done
rm -r "$root/proc/200"

# --- hierarchies of version 1 and both, files that say nothing
process 200 v1 0 8 0 8 $'9:memory:/docker/'$id$'\n1:name=systemd:/docker/'$id
process 201 both 0 8 0 8 $'9:memory:/\n1:name=systemd:/system.slice/a.service\n0::/'
process 202 bare 0 8 0 8 ''
process 203 none 0 8 0 8 0::/
rm "$root/proc/203/cgroup"
process 204 inside 0 8 0 8 0::/../../system.slice/b.service
err='' rows 'version 1, both, none' '-n --sort -PID -o PID,CGROUP,UNIT,CONTAINER -p 200,201,202,203,204' "200 +/docker/$id +- +docker:0123456789ab" \
	'201 /system.slice/a.service +a.service +-' '202 - +- +-' '203 - +- +-' '204 /../../system.slice/b.service +b.service +-'
err='' rows 'no control group known: in the tree beside the root' '-T -n -o CGROUP,PROCS --sort CGROUP -p 200,202,203' '/ +1' '`-docker +1' "\`-$id +1" '- +2'
rm -r "$root"/proc/20?

# --- hostile names: any byte but newline and slash can be in them
hostile=($'\e[31mred' 'quo"te' "apo'strophe" 'back\slash' 'back\x41' ' blanks ' $'bad\xff\xfe' $'\xc3\xa4\xe2\x82\xac' $'\xc2\x9b31m' '$(id)'
	'{"a":1}' $'tab\there' $'rtl\xe2\x80\xae' $'half\xe2\x82' '%s%n' ' (deleted)' ':' '0::' '..' $'bell\a.service' "$(printf 'x%.0s' {1..255})")
for i in "${!hostile[@]}"; do
	process $((1000 + i)) "name$i" 0 8 4 6 "0::/lxc.payload.${hostile[i]}/${hostile[i]}"
done
pids=$(seq -s, 1000 $((999 + ${#hostile[@]})))
given_back()
{
	local i=0 line
	while IFS= read -r line; do
		[ "$(printf '%b.' "$line")" = "/lxc.payload.${hostile[i]}/${hostile[i]}." ] || echo "${hostile[i]@Q} became $line"
		i=$((i + 1))
	done < <(jq -r '.processes[].cgroup' <"$work/out")
	[ $i -eq ${#hostile[@]} ] || echo "$i names"
}
also_json=given_back check_json 'hostile names: JSON gives them back' true -- \
	"$stat" --root "$root" -J -o PID,CGROUP --sort -PID -p "$pids"
plain='LC_ALL=C grep -n "[[:cntrl:]]" "$work/out"
	LC_ALL=C.UTF-8 grep -naxv ".*" "$work/out" | sed "s/^/no UTF-8: /"
'
for form in '' -r -P; do
	for by in cgroup container unit; do
		also=$plain'[ "$(wc -l <"$work/out")" -ge '$([ $by = unit ] && echo 1 || echo ${#hostile[@]})' ] || echo "lines are missing"' \
			fake "hostile names: --by $by ${form:-table}" 0 . '' -n $form --by $by -p "$pids"
	done
	LC_ALL=C.UTF-8 also=$plain fake "hostile names: --tree ${form:-table}" 0 . '' -n $form -T -p "$pids"
done
for by in cgroup container unit; do
	check_json "hostile names: --by $by as JSON" ".groups | map(.procs) | add == ${#hostile[@]}" -- "$stat" --root "$root" -J --by $by -p "$pids"
done
check_json 'hostile names: --tree as JSON' ".groups | length == 1 and .[0].procs == ${#hostile[@]} and (.[0].children | length == ${#hostile[@]})" -- \
	"$stat" --root "$root" -J -T -p "$pids"
# 1000 names of random bytes.
if command -v perl >/dev/null; then
	perl -e 'srand 5; for (1 .. 1000) { my $p = join "", map { chr(1 + int rand 255) } 1 .. 1 + int rand 40; $p =~ tr/\n/x/;
		open(my $f, ">", "$ARGV[0]/proc/" . (1000 + $_ % 500) . "/cgroup") or do { mkdir "$ARGV[0]/proc/" . (1000 + $_ % 500);
		open($f, ">", "$ARGV[0]/proc/" . (1000 + $_ % 500) . "/cgroup") }; print $f "0::/$p\n"; close $f;
		for my $n ("stat", "status", "smaps", "ksm_stat") { symlink "../100/$n", "$ARGV[0]/proc/" . (1000 + $_ % 500) . "/$n" } }' "$root"
	for by in cgroup container unit; do
		check_json "random bytes: --by $by" '.groups | map(.procs) | add == 508' "${unread/8/508}" -- "$stat" --root "$root" -J --by $by
	done
	check_json 'random bytes: --tree' '.groups[0].procs == 508' "${unread/8/508}" -- "$stat" --root "$root" -J -T
else
	skip 'random bytes' 'perl is not installed'
fi
rm -r "$root"/proc/1???
# Nested as deep as the kernel lets a path be: parsers still take the JSON, and no process is lost.
deep=$(printf '/d%.0s' {1..2000})
process 1000 deep 0 8 4 6 "0::$deep"
process 1001 deep 0 8 4 6 "0::${deep:0:2000}"
process 1002 deep 0 8 4 6 "0::${deep:0:200}"
check_json '2000 levels as JSON' '.groups[0].procs == 3 and ([.. | objects | .cgroup | select(. != null) | length] | max == 4000)' -- \
	"$stat" --root "$root" -J -T -c deep
fake '2000 levels as a table' 0 . '' -T -c deep
rm -r "$root"/proc/100?

# --- 10 000 processes in 1000 groups of 10 parents: what groups cost beside reading them
# Ten processes are one directory each: fewer files to make.
mkdir -p "$work/many/proc" "$work/many/one" && (cd "$work/many/one" && seq 0 999 | xargs mkdir) || exit 1
for file in stat status smaps ksm_stat; do
	text=$(<"$root/proc/100/$file")
	for i in {0..999}; do
		echo "$text" >"$work/many/one/$i/$file"
	done
done
for i in {0..999}; do
	echo "0::/p$((i % 10)).slice/s$i.service" >"$work/many/one/$i/cgroup"
	for n in {10..19}; do
		printf '%s\0%s\0' "../one/$i" "$work/many/proc/$((n * 1000 + i))"
	done
done >"$work/many/links"
# took COMMAND...: the best of three, in ms, in $ms.
took()
{
	local start now
	ms=1000000
	for _ in 1 2 3; do
		start=${EPOCHREALTIME/./}
		"$@" >"$work/out" 2>"$work/err" || echo "exit code $?"
		now=$(((${EPOCHREALTIME/./} - start) / 1000))
		[ "$now" -ge "$ms" ] || ms=$now
	done
}
if perl -0 -e 'while (defined(my $to = <>)) { my $link = <>; chomp($to, $link); symlink($to, $link) or die $! }' "$work/many/links" 2>/dev/null; then
	took "$stat" --root "$work/many" -n -o PID,SAVED
	plain_ms=$ms
	problem=
	for by in system cgroup unit container; do
		took "$stat" --root "$work/many" -n --by $by -o PROCS,SAVED
		echo "# 10000 processes: $plain_ms ms, --by $by $ms ms"
		[ "$(awk '{ n += $1 } END { print n }' "$work/out")" = 10000 ] || problem+="--by $by has not 10000 processes. "
		[ "$ms" -lt $((2 * plain_ms + 200)) ] || problem+="--by $by took $ms ms, without it $plain_ms. "
	done
	took "$stat" --root "$work/many" -n -T -r -o PROCS,CGROUP
	echo "# 10000 processes: --tree $ms ms"
	[ "$(wc -l <"$work/out")" = 1011 ] || problem+="the tree has $(wc -l <"$work/out") lines. "
	[ "$ms" -lt $((2 * plain_ms + 200)) ] || problem+="--tree took $ms ms, without it $plain_ms. "
	verdict "$problem" '10 000 processes: groups cost less than reading them'
else
	skip '10 000 processes: groups cost less than reading them' 'perl is not installed'
fi
rm -rf "$work/many"

# --- real control groups
# The first hierarchy in which groups can be made.
find_hierarchy()
{
	local dir
	for dir in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd /sys/fs/cgroup/memory; do
		[ -e "$dir/cgroup.procs" ] && mkdir "$dir/ksm-cli.$$" 2>/dev/null && hierarchy=$dir && return 0
	done
	return 1
}
# Nobody is left in them, so that they can be removed.
leave_groups()
{
	local child
	for child in "${children[@]}"; do
		kill -KILL "$child" 2>/dev/null
	done
	wait_for 5 eval 'find "$hierarchy/ksm-cli.$$" -depth -type d -exec rmdir {} + 2>/dev/null; [ ! -e "$hierarchy/ksm-cli.$$" ]'
}
if find_hierarchy; then
	trap 'leave_groups; clean_up' EXIT
	box=ksm-cli.$$
	for group in "docker/$id" "lxc.payload.my box" "unit.slice"; do
		mkdir -p "$hierarchy/$box/$group"
		start_child sleep 60
		echo "$child" >"$hierarchy/$box/$group/cgroup.procs" || echo "# cannot move into $group"
	done
	start_child sleep 60
	echo "$child" >"$hierarchy/$box/docker/$id/cgroup.procs"
	check_json "real groups ($hierarchy): --by container" '.groups | length == 3 and any(.container == "docker:0123456789ab" and .procs == 2 and .pss > 0) and
		any(.container == "lxc:my box" and .procs == 1) and any(.container == null and .procs == 1)' -- \
		"$stat" -J --by container -g "/$box" -o CONTAINER,PROCS,PSS
	check_json 'real groups: --tree' '[.. | objects | select(.cgroup == "/'$box'")] | length == 1 and .[0].procs == 4 and
		(.[0].children | map({(.cgroup): .procs}) | add == {"/'$box'/docker": 2, "/'$box'/lxc.payload.my box": 1, "/'$box'/unit.slice": 1})' -- \
		"$stat" -J -T -g "$box"
	check 'real groups: one by its path' 0 '^ *sleep +docker:0123456789ab +/'$box/docker/$id$'\n *sleep .*$' '' -- \
		"$stat" -n -o COMMAND,CONTAINER,CGROUP -g "$hierarchy/$box/docker"
	check_json 'real groups: the sum over groups is the sum over processes' '.groups | map(.procs) | add == 4' -- "$stat" -J --by cgroup -g "/$box"
	leave_groups
	verdict "$([ ! -e "$hierarchy/$box" ] || echo "$hierarchy/$box is still there")" 'real groups: nothing is left behind'
else
	skip 'real groups' 'no hierarchy of control groups is there in which one may be made'
fi

# --- what the machine really has
check_json 'the whole machine: groups hold every process' "(.groups | map(.procs) | add > 3) and all(.groups[]; .unreadable <= .procs)" '.*' -- \
	"$stat" -J --by cgroup
same_sum()
{
	"$stat" -J --by program -o PROCS,COMMAND,THREADS -p "$$,$PPID" 2>/dev/null | jq -e '.groups | map(.procs) | add == 2' >/dev/null || echo 'not two processes'
}
also=same_sum check 'two processes are two in groups' 0 . '' -- "$stat" --by user -p $$ -o USER,PROCS
user_programs
if [ -n "${no_user-}" ]; then
	skip 'user: groups' "$no_user"
elif [ "$(id -u)" -ne 0 ]; then
	skip 'user: groups' 'not run as root: who they belong to is not known'
else
	check_json 'user: a group that cannot be read is null, and counted' '.groups | any(.user == "root" and .unreadable == .procs and .pss == null)' '.*' -- \
		"${as_user[@]}" "$work/bin/ksmstat" -J --by user
fi

# --- output that cannot be written
for call in '--by unit' '--by unit -J' -T '-T -J'; do
	check "$call into a full disk" 1 '' '^(ksmstat: 2 of [^'$'\n'']*'$'\n'')?ksmstat: cannot write the output: No space left on device$' -- \
		bash -c "exec '$stat' --root '$root' $call >/dev/full"
done
finish
