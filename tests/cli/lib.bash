# Helpers of the command-line scenarios: run a command, compare what it did, print TAP. To be sourced.
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034 # what is set here is used by the scripts that source it
set -u
export LC_ALL=C
B=${B:-build}
B=$(realpath "$B") && [ -x "$B/ksmctl" ] && [ -x "$B/ksmstat" ] || {
	echo "not ok 1 - ksmctl and ksmstat are not built in $B"
	echo 1..1
	exit 1
}
work=$(mktemp -d "${TMPDIR:-/tmp}/ksm-cli.XXXXXX") || exit 1
chmod 755 "$work" # the scenarios of ordinary users go there too
count=0 failed=0
children=()

# End what was started with start_child, and leave no files.
clean_up()
{
	local child
	for child in "${children[@]}"; do
		kill -KILL "$child"
	done 2>/dev/null
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# verdict PROBLEM NAME: "not ok" when a problem is named.
verdict()
{
	count=$((count + 1))
	if [ -z "$1" ]; then
		echo "ok $count - $2"
		return 0
	fi
	failed=$((failed + 1))
	echo "not ok $count - $2"
	sed 's/^/# /' <<<"$1"
	return 1
}

skip()
{
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $2"
}

# skip_all REASON: nothing in this script can be tried here.
skip_all()
{
	echo "# SKIP $1"
	exit 77
}

finish()
{
	echo "1..$count"
	exit $((failed > 0))
}

# matches TEXT REGEX: an empty regex wants an empty text.
matches()
{
	if [ -z "$2" ]; then [ -z "$1" ]; else [[ $1 =~ $2 ]]; fi
}

# what_is_wrong CODE OUT ERR -- COMMAND...: runs it; says how it differs. Leaves code, $work/out and $work/err.
what_is_wrong()
{
	local want=$1 out=$2 err=$3 text line
	shift 4
	"$@" >"$work/out" 2>"$work/err" </dev/null
	code=$?
	[[ $code =~ ^($want)$ ]] || echo "exit code $code, not $want"
	text=$(tr -d '\0' <"$work/out")
	matches "$text" "$out" || printf 'stdout:\n%s\nwhich is not: %s\n' "$text" "$out"
	[ $code != 0 ] || [ -z "$(tail -c 1 "$work/out" | tr -d '\0')" ] || echo 'stdout ends within a line'
	text=$(tr -d '\0' <"$work/err")
	matches "$text" "$err" || printf 'stderr:\n%s\nwhich is not: %s\n' "$text" "$err"
	# Every message says who speaks; also a crash or a report of a sanitizer shows here.
	while IFS= read -r line; do
		[[ $line =~ ${speaker-^(ksmctl|ksmstat): |^Try \'ksm(ctl|stat) } ]] || echo "odd line on stderr: $line"
	done <"$work/err"
	[ -z "${also-}" ] || eval "$also"
}

# check NAME CODE OUT ERR -- COMMAND...
# CODE, OUT and ERR are extended regular expressions; an empty one wants no output at all.
# With also='COMMANDS' their output is a problem too.
check()
{
	local name=$1 problem
	shift
	problem=$(what_is_wrong "$@")
	verdict "$problem" "$name"
}

# check_json NAME FILTER [ERR] -- COMMAND...: it succeeds, and jq finds FILTER true of the whole output.
# also_json='COMMANDS' as also is to check.
check_json()
{
	local name=$1 filter=$2 err=''
	shift 2
	[ "$1" = -- ] || { err=$1; shift; }
	if ! command -v jq >/dev/null; then
		skip "$name" "jq is not installed"
		return
	fi
	also='jq -se "length == 1 and (.[0] | $filter)" <"$work/out" >"$work/jq" 2>&1 ||
		{ echo "not true: $filter"; cat "$work/jq" "$work/out"; }'"${also_json:+; $also_json}" \
		check "$name" "${want_code-0}" . "$err" "$@"
}

# Runs in the background; ended by clean_up at the latest. Sets child.
start_child()
{
	"$@" >/dev/null 2>&1 </dev/null 8>&- 9>&- &
	child=$!
	disown # so that bash says nothing when it is killed
	children+=("$child")
}

# wait_for SECONDS COMMAND...: until it succeeds, or time is over.
wait_for()
{
	local end=$((${EPOCHREALTIME/./} + $1 * 1000000))
	shift
	until "$@"; do
		[ "${EPOCHREALTIME/./}" -lt "$end" ] || return 1
		sleep 0.1
	done
}

# "${as_user[@]}" COMMAND...: without any privilege; programs are found in $work/bin, wherever the build is.
as_user=(env)
[ "$(id -u)" -ne 0 ] || as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --)

# Copies of the programs that an ordinary user reaches, and their owner.
user_programs()
{
	mkdir "$work/bin" && cp "$B/ksmctl" "$B/ksmstat" "$work/bin/" && chmod -R a+rX "$work/bin"
	[ "$(id -u)" -ne 0 ] || command -v setpriv >/dev/null || no_user="setpriv is not installed"
	[ -n "${no_user-}" ] || "${as_user[@]}" "$work/bin/ksmctl" --version >/dev/null 2>&1 ||
		no_user="no ordinary user can run programs in $work"
}

too_long()
{
	awk -v max="${1-80}" 'length($0) > max { print "longer than " max ": " $0 }
		/[ \t]$/ { print "ends in a blank: " $0 }' "$work/out"
}
