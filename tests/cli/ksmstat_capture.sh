#!/bin/bash
# ksmstat --capture: a copied tree reads as what it was copied from, with names or without, and is whole or not there.
# SPDX-License-Identifier: GPL-2.0-or-later
. "${BASH_SOURCE%/*}/lib.bash"
cd "${BASH_SOURCE%/*}/../.." || exit 1

stat=$B/ksmstat ctl=$B/ksmctl
trees=(tests/fixtures/linux-*)
numbers=pid,ppid,threads,code_p,code_s,data_p,data_s,total,rss,pss,uss,swap,huge,anon,dirty,ksm,zero,saved,saved_by,profit
numbers+=,scanned,opted,areas,mergeable,minflt,majflt
sums=procs,unreadable,threads,code_p,data_p,pss,uss,swap,zero,saved,saved_by,scanned,areas,mergeable,minflt,majflt

# all_numbers TREE: every number of the report, and of each kind of group, whatever the groups are called.
all_numbers()
{
	local by
	"$stat" --root "$1" -r -b --sort pid -o "$numbers" 2>&1
	for by in program user cgroup unit container pod system; do
		echo "by $by"
		"$stat" --root "$1" -r -b -n --by $by -o "$sums" 2>/dev/null | sort
	done
	"$stat" --root "$1" -r -b -n -T -o "$sums" 2>/dev/null | sort
	"$stat" --root "$1" -r -b -n --by system -o kernel_saved,kernel_zero,kernel_profit,ksmd_ms 2>/dev/null
	"$ctl" --root "$1" info --json
}

# same_numbers A B: says where they differ.
same_numbers()
{
	all_numbers "$1" >"$work/a" && all_numbers "$2" >"$work/b"
	[ "$(wc -l <"$work/a")" -gt 40 ] || echo "hardly anything to compare"
	diff "$work/a" "$work/b" | head -n 10
}

# Strings of a tree that must not be told: names, paths, parts of control groups, addresses, inodes.
names_of()
{
	local p
	for p in "$1"/proc/[0-9]*; do
		[ -s "$p/cmdline" ] || continue # kernel threads
		cat "$p/comm"
		tr '\0' '\n' <"$p/cmdline" | grep -a ..
		cut -d : -f 3- "$p/cgroup" | tr '/' '\n' | grep -xv 'system\.slice\|machine\.slice\|user\.slice\|init\.scope\|'
		awk '{ split($1, a, "-"); if (length(a[1]) < 16) print a[1] "-"; if ($6 ~ "^/") print $6 }' "$p/maps"
		sed -n 's/^Groups:\t\(..*[0-9]\) *$/\1/p' "$p/status"
		awk '{ sub(/.*\) /, ""); for (i = 24; i <= 28; i++) if ($i > 4096) print $i }' "$p/stat"
	done | sort -u
}

for tree in "${trees[@]}"; do
	kernel=${tree##*/}
	also='diff <("$stat" --root "$tree" -r -b -o all --sort pid) <("$stat" --root "$work/$kernel" -r -b -o all --sort pid)
		same_numbers "$tree" "$work/$kernel"
		diff <("$ctl" --root "$tree" doctor 2>&1) <("$ctl" --root "$work/$kernel" doctor 2>&1)
		find "$work/$kernel" -name .new -o -name incomplete -o -perm /077' \
		check "$kernel: a copy reads as the original" 0 "^$work/$kernel: 8 processes captured\$" '' -- \
		"$stat" --root "$tree" --capture "$work/$kernel"
	also='same_numbers "$tree" "$work/$kernel.anon"
		names_of "$tree" >"$work/names"; [ "$(wc -l <"$work/names")" -gt 30 ] || echo "hardly any names"
		grep -rhaoFf "$work/names" "$work/$kernel.anon" | sort -u | sed "s/^/it tells: /" | head
		grep -rhaoFf "$work/names" "$work/$kernel" | grep -q . || echo "the names are in no copy"' \
		check "$kernel: anonymous, with the same numbers and no names" 0 . '' -- \
		"$stat" --root "$tree" --capture "$work/$kernel.anon" --anonymise
	# The two twins are one program still, and no other is.
	verdict "$("$stat" --root "$work/$kernel.anon" -r -n -o command --sort pid | sort | uniq -c | awk '{ n[$1]++ }
		END { if (n[2] != 1 || n[1] != 6) print "not six programs and a twin" }')" "$kernel: the same name is the same again"
done

# Containers of every kind, and names that are hard to keep apart.
tree=$work/groups
id=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde
paths=("/docker/0${id}" "/docker/1${id}" "/docker/${id:1}00" "/system.slice/docker-0${id}.scope" /system.slice/ssh.service
	/system.slice/ssh@7.service /user.slice/user-54321.slice/user@54321.service/app.slice/app-x.scope /user.slice/user-108642.slice
	"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice/cri-containerd-2${id}.scope"
	"/kubepods/burstable/pod11111111-2222-3333-4444-555555555555/3${id}" /kubepods/podaaaaaaaabbbbccccddddeeeeffff0000
	/lxc.payload.web-1/x /lxc.payload.web-2 /machine.slice/systemd-nspawn@my.box.service/supervisor
	'/machine.slice/machine-qemu\x2d3\x2dguest.scope' '/machine.slice/machine-qemu\x2d14\x2dguest.scope/libvirt'
	/qemu.slice/100.scope /qemu.slice/101.scope $'/st\xc3\xa4dt.service' $'/a b/c\xff.scope' '/gone.slice/x.service (deleted)'
	/../outside.service / /docker/short /libpod_parent/libpod-4${id})
for i in "${!paths[@]}"; do
	dir=$tree/proc/$((100 + i))
	mkdir -p "$dir"
	cp tests/fixtures/linux-6.18/proc/[0-9]*/smaps "$dir" 2>/dev/null
	printf '%s (secret%s) S 1 1 1 0 -1 4194304 %s 0 3 0 0 0 0 0 20 0 1 0 99 0 0\n' $((100 + i)) "$i" $((1 << i)) >"$dir/stat"
	printf 'Name:\tsecret\nUid:\t0\t%s\t0\t0\n' $((i % 3 * 54321)) >"$dir/status"
	printf '1000-2000 rw-p 0 00:00 0 \nRss: %s kB\nPss: 4 kB\nPrivate_Dirty: 4 kB\nShared_Dirty: 0 kB\n' $((1 << i)) >"$dir/smaps"
	printf '0::%s\n' "${paths[i]}" >"$dir/cgroup"
done
by_sums()
{
	for by in user cgroup unit container pod; do
		echo "by $by"
		"$stat" --root "$1" -r -b -n --by $by -o minflt | sort
	done
	"$stat" --root "$1" -r -b -n -T -o minflt | sort
	"$stat" --root "$1" -r -n -o container --sort pid | sed 's/:.*//'
}
also='diff <(by_sums "$tree") <(by_sums "$work/groups.anon")
	by_sums "$tree" | grep -c . | awk "\$1 < 60 { print \"hardly any groups: \" \$1 }"
	grep -rao "secret\|web\|guest\|$id\|11111111\|my.box\|ssh\|54321" "$work/groups.anon/proc" | head' \
	check 'containers, units, pods and users are as many and as large' 0 '25 processes' '' -- \
	"$stat" --root "$tree" --capture "$work/groups.anon" --anonymise

# Where it may not go.
mkdir "$work/full" "$work/empty" && echo kept >"$work/full/file" && ln -s empty "$work/link" && echo >"$work/file"
one=(--root "${trees[0]}" --capture)
also='ls -A "$work/full" | grep -vx file; cat "$work/full/file" | grep -vx kept' \
	check 'a folder that is not empty' 1 '' "^ksmstat: cannot capture into .*/full: Directory not empty\$" -- "$stat" "${one[@]}" "$work/full"
also='ls -A "$work/empty"' check 'a symbolic link' 1 '' 'cannot capture into .*/link: ' -- "$stat" "${one[@]}" "$work/link"
check 'a file' 1 '' 'cannot capture into .*/file: Not a directory' -- "$stat" "${one[@]}" "$work/file"
check 'below what is not there' 1 '' 'cannot capture into .*: No such file' -- "$stat" "${one[@]}" "$work/no/where"
check 'an empty folder' 0 '8 processes captured' '' -- "$stat" "${one[@]}" "$work/empty"
also='[ ! -e "$work/none" ] || echo "something is left"' \
	check 'of a root that is not there' 1 '' 'cannot open .*/nowhere' -- "$stat" --root "$work/nowhere" --capture "$work/none"
for bad in -J -r -t -b '-o pid' --classic --estimate --gentle '--by user' -T '--max-rss 1G'; do
	also='[ ! -e "$work/none" ] || echo "something is left"' \
		check "--capture with $bad" 2 '' 'does not go with --[ce].*--help' -- "$stat" --capture "$work/none" $bad
done
check '--anonymise alone' 2 '' '--anonymise goes with --capture alone.*--help' -- "$stat" --anonymise

# Selected ones; what cannot be read.
also='"$stat" --root "$work/some" -r -n -o command | grep -vx twin' \
	check '-c: some of them' 0 '2 processes captured' '' -- "$stat" --root "${trees[0]}" --capture "$work/some" -c twin
check '-p: one that is not there' 32 '0 processes captured' '1 of the processes asked for is not there' -- \
	"$stat" --root "${trees[0]}" --capture "$work/absent" -p 99999
rm "$tree/proc/100/smaps" && mkdir "$tree/proc/100/smaps"
also='"$stat" --root "$work/unread" -n -r -o pid,rss -p 100 2>/dev/null | grep -qx "100 -" || echo "it is not unreadable in the copy"' \
	check 'unreadable memory stays unreadable, and is counted' 0 '25 processes captured' '^ksmstat: 1 of 25 processes could not be read' -- \
	"$stat" --root "$tree" --capture "$work/unread"
check 'and is counted in the copy' 0 . '^ksmstat: 1 of 25 processes could not be read' -- "$stat" --root "$work/unread"

# Killed half-way, it is marked. One that waits for a writer does not get on.
rm "$tree/proc/101/smaps" && mkfifo "$tree/proc/101/smaps"
start_child "$stat" --root "$tree" --capture "$work/killed"
wait_for 5 test -e "$work/killed/proc/.new/status" && kill -KILL "$child"
also='[ -e "$work/killed/incomplete" ] && [ ! -e "$work/killed/proc/101" ] || echo "it is not marked, or holds a part of a process"' \
	check 'killed, it is marked and says so' 0 secret2 'note: .*/killed is a capture that was not completed' -- \
	"$stat" --root "$work/killed" -n -p 102
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
	mkdir "$work/small"
	also='[ ! -s "$work/left" ] || { echo "something is left:"; cat "$work/left"; }' \
		check 'a full disk: nothing is left' 1 '' '^ksmstat: cannot capture into .*: No space left on device$' -- \
		unshare -m sh -c 'mount -t tmpfs -o size=64k none "$1" && "$2" --root "$3" --capture "$1/tree"; code=$?
			find "$1" -mindepth 1 >"$4"; exit $code' - "$work/small" "$stat" "${trees[0]}" "$work/left"
else
	skip 'a full disk: nothing is left' 'no root, or no mount namespaces'
fi

# The running machine, while processes come and go: each is there as a whole.
start_child bash -c 'while :; do for i in {1..20}; do sleep 0.01 & done; wait; done'
whole()
{
	local p
	for p in "$work/live"/proc/[0-9]*; do
		grep -q '^Uid:' "$p/status" || echo "$p: no status"
		[ "$(wc -w <"$p/stat")" -gt 40 ] || echo "$p: no stat"
		grep -q ' ksmd)\|(ksmd) ' "$p/stat" && continue
		[ -s "$p/cgroup" ] && [ -s "$p/maps" ] || [ -d "$p/task" ] || [ ! -e "$p/smaps" ] || echo "$p: files are missing"
		[ ! -s "$p/smaps" ] || tail -n 1 "$p/smaps" | grep -q '^[A-Z]' || echo "$p: smaps is cut"
	done
	ls -A "$work/live" "$work/live/proc" | grep -x 'incomplete\|\.new'
	[ -e "$work/live/proc/$$/stat" ] || echo "this shell is not among them"
}
also=whole check 'the running machine' 0 '^[^ ]*: [0-9]+ processes captured$' '.*' -- "$stat" --capture "$work/live"
kill "$child"
check_json 'and read again' ".processes | any(.pid == $$ and .total > 0)" '.*' -- "$stat" --root "$work/live" -J
user_programs
if [ -n "${no_user-}" ] || [ "$(id -u)" -ne 0 ]; then
	skip 'an ordinary user' "${no_user:-not run as root}"
else
	mkdir -m 777 "$work/theirs"
	counted='^ksmstat: ([0-9]+) of [0-9]+ processes could not be read; as root more can be'
	check 'an ordinary user: what cannot be read is counted' 0 'processes captured' "$counted" -- \
		"${as_user[@]}" "$work/bin/ksmstat" --capture "$work/theirs/tree"
	check_json 'and is not known in the copy' ".processes | any(.pid == $$ and .rss == null)" "${counted%; as*}" -- \
		"$stat" --root "$work/theirs/tree" -J
fi
finish
