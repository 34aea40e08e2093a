#!/bin/bash
# docs/TOURS.md by copy and paste: each command succeeds, and shows what the tour says that it shows.
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: B=build tests/live/tours.sh, as root, after `make`. Prints TAP.
# What is installed on the way is in overlays over /usr/local, /etc and /run, which vanish with the shell of the tour.
# shellcheck disable=SC2154 # ksm is set in guard.bash
set -u
export LC_ALL=C.UTF-8
cd "${BASH_SOURCE%/*}/../.." || exit 1
. tests/live/guard.bash
tour=docs/TOURS.md

skip_all() { echo "# SKIP $1"; exit 77; }
[ "$(id -u)" = 0 ] && [ -w $ksm/run ] || skip_all "KSM cannot be used here: $ksm/run is not writable"
for tool in jq python3 pkg-config unshare; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
unshare --mount --propagation private true 2>/dev/null || skip_all "no mounts can be made here"
[ ! -e /run/ksmctl/lock ] || flock -n /run/ksmctl/lock true || skip_all 'the service runs here'

work=$(mktemp -d /var/tmp/ksm-tours.XXXXXX) || exit 1
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 1' INT TERM HUP
mkdir "$work/home"

# Blocks of the tour: N.kind (sh, text, ...), N.sh is what is run, N.text what is claimed of it.
awk -v dir="$work" '
	/^```/ && !inside { inside = 1; kind = substr($1, 4); label = $2
		if (kind == "sh") { n++; print label >(dir "/" n ".label"); print NR >(dir "/" n ".line") }
		next }
	/^```/ { inside = 0; next }
	inside { print >(dir "/" n "." kind) }
	END { print n >(dir "/blocks") }' $tour
blocks=$(<"$work/blocks")

# The shell of the tour: one for all blocks, as for somebody who pastes them.
cat >"$work/shell" <<'EOF'
work=$1 blocks=$2
trap 'kill $(jobs -p) 2>/dev/null' EXIT
for dir in usr/local etc run; do
	mkdir -p "$work/up/$dir" "$work/wk/$dir" && chmod --reference="/$dir" "$work/up/$dir" &&
		mount -t overlay -o "lowerdir=/$dir,upperdir=$work/up/$dir,workdir=$work/wk/$dir" overlay "/$dir" || exit 77
done
# strangers: programs beside those of the tour that have memory open to merging show in figures of the machine.
strangers()
{
	local pid opted command
	"$B/ksmstat" -n -r -o pid,opted,command 2>/dev/null | while read -r pid opted command; do
		[[ $opted != prctl && $opted != madvise ]] || [ "$(ps -o sid= -p "$pid" | tr -d ' ')" = "$session" ] || echo "$command"
	done
}
session=$(ps -o sid= -p $$ | tr -d ' ')
set -E
for ((block = 1; block <= blocks; block++)); do
	[ "$(cat "$work/$block.label")" != systemd ] || continue
	strangers >>"$work/strangers"
	trap 'echo "exit code $?: $BASH_COMMAND" >>"$work/$block.failed"' ERR
	. "$work/$block.sh" >"$work/$block.out" 2>&1
	trap - ERR
	strangers >>"$work/strangers"
	cp "$work/strangers" "$work/$block.strangers"
done
EOF
# others: memory that other programs have open to merging shows in figures of the machine.
others() { "$B/ksmstat" -n -r -o opted,saved,pid,command 2>/dev/null | grep -aE '^(prctl|madvise) '; }
B=$(realpath "${B:-build}")
take
for _ in {1..60}; do
	[ -n "$(others)" ] || break
	sleep 1
done
[ -z "$(others)" ] || skip_all "others have memory open to merging: $(others | head -n 3 | tr '\n' ';')"
guard
MAKEFLAGS='' B=$B HOME=$work/home timeout -k 5 300 unshare --mount --propagation private \
	setsid -w bash "$work/shell" "$work" "$blocks" </dev/null >"$work/log" 2>&1 8>&- 9>&-
code=$?
release
[ $code -ne 77 ] || skip_all "no overlay can be mounted here: $(tail -n 1 "$work/log")"

# differs CLAIM OUTPUT: the lines of the claim come in this order in the output. Numbers are any numbers, but sizes in
# MiB or GiB, which are compared to a factor of 2; "..." stands for any lines.
differs()
{
	awk '
		function sizes(line, list,   n, word, words, i) {
			n = split(line, words, /[ (),]+/)
			split("", list)
			for (i = 1; i <= n; i++) {
				word = words[i]
				if (word ~ /^[0-9.]+[MG]$/) list[++list[0]] = word * (word ~ /G$/ ? 1024 : 1)
				else if (words[i + 1] == "MiB") list[++list[0]] = word + 0
			}
			return list[0]
		}
		function shape(line) {
			gsub(/-?[0-9][0-9.]*(ms|[KMGB])?/, "N", line)
			gsub(/[ \t]+/, " ", line)
			sub(/^ /, "", line)
			sub(/ $/, "", line)
			return line
		}
		function near(a, b,   i, n, x, y) {
			if (shape(a) != shape(b)) return 0
			n = sizes(a, x)
			if (n != sizes(b, y)) return 0
			for (i = 1; i <= n; i++) if (x[i] > 1 && (y[i] < x[i] / 2 || y[i] > x[i] * 2)) return 0
			return 1
		}
		FNR == NR { claim[++claims] = $0; next }
		{ got[++gots] = $0 }
		END {
			at = 1
			for (i = 1; i <= claims; i++) {
				if (claim[i] == "...") continue
				for (j = at; j <= gots && !near(claim[i], got[j]); j++);
				if (j > gots) { print "not shown: " claim[i]; bad = 1; continue }
				at = j + 1
			}
			if (bad) for (j = 1; j <= gots; j++) print "it showed: " got[j]
		}' "$1" "$2"
}

n=0 bad=0
for ((block = 1; block <= blocks; block++)); do
	n=$((n + 1))
	name="$tour:$(<"$work/$block.line"): $(head -n 1 "$work/$block.sh")"
	if [ "$(<"$work/$block.label")" = systemd ]; then
		echo "ok $n - $name # SKIP the service manager does not see what is installed for a trial"
		continue
	fi
	problem=
	[ -e "$work/$block.out" ] || problem="the tour did not get there: $(tail -n 3 "$work/log")"
	[ ! -e "$work/$block.failed" ] || problem=$(cat "$work/$block.failed"; tail -n 20 "$work/$block.out")
	[ -n "$problem" ] || [ ! -e "$work/$block.text" ] || problem=$(differs "$work/$block.text" "$work/$block.out")
	if [ -z "$problem" ]; then
		echo "ok $n - $name"
	elif [ -s "$work/$block.strangers" ]; then
		echo "ok $n - $name # SKIP $(head -n 1 "$work/$block.strangers") opened memory to merging meanwhile, and shows"
	else
		bad=$((bad + 1))
		echo "not ok $n - $name"
		sed 's/^/# /' <<<"$problem"
	fi
done
n=$((n + 1))
wait_for_guard() { take && release; }
wait_for_guard
problem=$(as_found "$found")
[ -z "$problem" ] && echo "ok $n - the knobs are as before" || { bad=$((bad + 1)); echo "not ok $n - the knobs are as before: $problem"; }
[ -z "${KEEP-}" ] || cp -r "$work" "$KEEP"
echo "1..$n"
exit $((bad > 0))
