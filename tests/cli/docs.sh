#!/bin/bash
# Whether the documents say what the programs do: options, verbs, columns, keys, functions, files, commands.
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154,SC2016 # work is set in lib.bash; what is quoted is meant so
. "${BASH_SOURCE%/*}/lib.bash"
cd "${BASH_SOURCE%/*}/../.." || exit 1

ctl=$B/ksmctl stat=$B/ksmstat
pages=(docs/*.[1358])

# same NAME A B NAME_OF_A NAME_OF_B: two files with the same words, and not none.
same()
{
	local problem
	problem=$(comm -3 <(sort -u "$2") <(sort -u "$3") |
		awk -F '\t' -v a="$4" -v b="$5" '{ print "only in " ($1 == "" ? b : a) ": " ($1 == "" ? $2 : $1) }')
	[ -s "$2" ] || problem="$4: nothing found"
	verdict "$problem" "$1"
}

# Options of a page (or of a part of it on stdin): "-x" or "--long" for each Fl and what follows it.
page_options()
{
	grep '^\.\|^Fl' | grep -o 'Fl [^"]*' | tr ' ' '\n' | awk '
		/^(Fl|Oo|Oc|Op|Ar|No|Ns|Cm|Ev|Nm|It)$/ { fl = $0 == "Fl"; next }
		/^[|,.:;]$/ { next }
		fl && /^-?[A-Za-z][A-Za-z-]*,?$/ { sub(",", ""); print "-" $0 }'
}

# Those that it describes, and not only names.
page_items() { grep '^\.It Fl' | page_options; }

# Options in a usage or help text.
help_options() { grep -oE '(^|[][ |,])--?[A-Za-z][A-Za-z-]*' | tr -d '][ |,'; }

# Long options, and short ones of the option strings, of some sources.
source_options()
{
	grep -ohE '\{ "[a-z-]+", (no|required|optional)_argument' "$@" | sed 's/^{ "\([^"]*\).*/--\1/'
	grep -ohE '"\+?[A-Za-z:]+", (long_)?options, NULL' "$@" | grep -o '^"[^"]*' | grep -o '[A-Za-z]' | sed 's/^/-/'
	grep -ohE '(\?|:) "\+[A-Za-z:]+"' "$@" | grep -o '[A-Za-z]' | sed 's/^/-/'
	grep -qs 'print_help' "$@" && printf '%s\n' -h --help
}

has_target() { grep -qE "(^| )$1( [a-z-]+)*:([^=]|\$)" Makefile */rules.mk */*/rules.mk; }

# What ksmctl.8 says of one verb.
verb_part()
{
	awk -v verb="$1" '
		/^\.Sh / { inside = 0; verbs = $2 == "VERBS" }
		verbs && /^\.Bl/ { depth++ }
		verbs && /^\.El/ { depth-- }
		verbs && depth == 1 && /^\.It Cm / { inside = $3 == verb }
		inside' docs/ksmctl.8
}

# --- the manual pages as such
if command -v mandoc >/dev/null; then
	for page in "${pages[@]}"; do
		# What other pages are installed here is not the page's fault.
		verdict "$(mandoc -T lint -W style "$page" 2>&1 | grep -v '^mandoc: outdated\|referenced manual not found')" \
			"$page is clean (mandoc)"
	done
elif command -v groff >/dev/null && [ -e "$(find /usr/share/groff -name doc.tmac -print -quit 2>/dev/null)" ]; then
	for page in "${pages[@]}"; do
		verdict "$(LC_ALL=C groff -mdoc -ww -Tascii -z "$page" 2>&1)" "$page is clean (groff)"
	done
else
	skip "manual pages are clean" "neither mandoc nor groff is installed"
fi
for page in "${pages[@]}"; do
	name=${page##*/}
	problem=
	[[ $(sed -n 1p "$page") =~ ^'.\" '.+\.$ ]] || problem="the first line does not say what it is for"
	grep -qx "\.Dt $(tr '[:lower:]' '[:upper:]' <<<"${name%.*} ${name##*.}")" "$page" || problem+=" .Dt is not of $name"
	verdict "$problem" "$page has a head"
done
# Pages of this tree that pages and texts refer to.
grep -ohE '\bksm[a-z]*(\.conf|-preload)?\([0-9]\)|^\.Xr ksm[^ ]* [0-9]' README.md CONTRIBUTING.md docs/*.md "${pages[@]}" |
	sed 's/^\.Xr //; s/[( ]/./; s/)//' | sort -u >"$work/referred"
printf '%s\n' "${pages[@]##*/}" >"$work/there"
same 'every page is referred to, and every reference is to a page' "$work/there" "$work/referred" docs references

# --- ksmctl
"$ctl" --help | sed -n 's/^  \([a-z]*\).*/\1/p' | grep . >"$work/verbs"
sed -n '/^\.Sh VERBS/,/^\.Sh THE/p' docs/ksmctl.8 | awk '/^\.Bl/ { d++ } /^\.El/ { d-- } d == 1 && /^\.It Cm/ { print $3 }' \
	>"$work/page"
same 'ksmctl.8 has the verbs' "$work/verbs" "$work/page" --help ksmctl.8
while read -r verb; do
	"$ctl" "$verb" --help >"$work/out" 2>"$work/err"
	help_options <"$work/out" | sort -u >"$work/help"
	verb_part "$verb" | page_items | sort -u >"$work/page"
	[ "$verb" != disable ] || verb_part enable | page_items | sort -u >"$work/page" # which refers to enable
	verdict "$(comm -3 "$work/help" "$work/page" | sed 's/^\t/not in the help of the verb: /; s/^-/not in its part of ksmctl.8: -/'
		too_long)" "$verb: its help fits and has the options of ksmctl.8"
	verdict "$(help_options <"$work/out" | grep -e '^--' | while read -r option; do
		grep -q "^  .*$option" "$work/out" || echo "no line for $option"; done)" "$verb: its help explains each option"
done <"$work/verbs"
source_options ksmctl/*.c >"$work/source"
page_items <docs/ksmctl.8 >"$work/page"
same 'ksmctl.8 describes the options' "$work/source" "$work/page" ksmctl/ ksmctl.8
page_options <docs/ksmctl.8 >>"$work/page"
same 'ksmctl.8 names no others' "$work/source" "$work/page" ksmctl/ ksmctl.8
"$ctl" --help >"$work/out"
verdict "$(too_long)" 'ksmctl --help fits 80 columns'
sed -n 's/^\tCTL_[A-Z_]* = \([0-9]*\),.*/\1/p' ksmctl/ksmctl.h >"$work/source"
sed -n '/^\.Sh EXIT/,/^\.Sh EX/s/^\.It \([0-9]*\).*/\1/p' docs/ksmctl.8 >"$work/page"
same 'ksmctl.8 has the exit codes' "$work/source" "$work/page" ksmctl.h ksmctl.8
sed -n '/^Exit codes/,/\.$/p' "$work/out" | grep -o '\<[0-9]\>' >"$work/help"
same 'ksmctl --help has the exit codes' "$work/source" "$work/help" ksmctl.h --help
cat ksmctl/*.c | tr '\n' ' ' | grep -o 'names\[POLICY_PHASES\] = {[^}]*}' | grep -o '"[a-z]*"' | tr -d '"' >"$work/source"
sed -n '/^\.Sh THE SERVICE/,/^\.El/s/^\.It Sy \([a-z]*\)$/\1/p' docs/ksmctl.8 >"$work/page"
same 'ksmctl.8 has the phases' "$work/source" "$work/page" ksmctl/ ksmctl.8

sed -nE 's/^\t\{ "([a-z-]+)", FINDING_.*/\1/p' ksmctl/findings*.c >"$work/source"
sed -nE 's/^\| ([a-z-]+(, [a-z-]+)*) \|.*/\1/p' docs/NOTHING-MERGES.md | tr -d ' ' | tr , '\n' | grep -vxe id >"$work/page"
same 'NOTHING-MERGES.md has the findings of doctor' "$work/source" "$work/page" 'findings*.c' NOTHING-MERGES.md

# --- ksmstat
"$stat" --help >"$work/out"
verdict "$(too_long)" 'ksmstat --help fits 80 columns'
sed '/^Columns:/q' "$work/out" | grep '^  ' | sed 's/^ *\(-[^ ]*\( -[^ ,]*\)\{0,1\}\).*/\1/; s/,/ /' | tr ' ' '\n' | grep . >"$work/help"
page_items <docs/ksmstat.8 >"$work/page"
same 'ksmstat.8 describes the options' "$work/help" "$work/page" --help ksmstat.8
page_options <docs/ksmstat.8 | grep -vxe '-btn' -e -bn -e -rb >>"$work/page" # more in one word
same 'ksmstat.8 names no others' "$work/help" "$work/page" --help ksmstat.8
sed -nE "s/^\t\{ ('(.)'|OPT_[A-Z_]*), [^\"]*\"([a-z-]*)\",.*/-\2 --\3/p" ksmstat/options.c | tr ' ' '\n' | grep -vxe - >"$work/source"
same 'ksmstat --help has the options' "$work/source" "$work/help" options.c --help
sed -n '/^Columns:/,/^$/s/^  \([A-Z_]*\) .*/\1/p' "$work/out" >"$work/help"
section() { sed -n "/^\.Sh $1\$/,/^\.Sh [^$2]/p" docs/ksmstat.8; }
section COLUMNS C | sed -n 's/^\.It Sy \([A-Z_]*\).*/\1/p' >"$work/page"
same 'ksmstat.8 has the columns' "$work/help" "$work/page" --help ksmstat.8
sed -n '/^Columns with DELAY:/,/^$/s/^  \([A-Z_]*\) .*/\1/p' "$work/out" >"$work/help"
section INTERVALS I | sed -n 's/^\.It Sy \([A-Z_]*\).*/\1/p' >"$work/page"
same 'ksmstat.8 has the columns of intervals' "$work/help" "$work/page" --help ksmstat.8
"$stat" -r 0.1 1 | head -n 1 | tr ' ' '\n' >"$work/help"
"$stat" -p $$ -r 0.1 1 | head -n 1 | tr ' ' '\n' >>"$work/help"
section INTERVALS I | sed -n '/^The default is/,/^\./p' | grep -v '^\.' | grep -o '[A-Z_]\{2,\}' >"$work/page"
same 'ksmstat.8 has the default columns of intervals' "$work/help" "$work/page" 'the output' ksmstat.8
sed -n 's/^\t{ "\([A-Z_]*\)", COLUMN_[A-Z]*, true,.*/\1/p' ksmstat/column.c >"$work/source"
sed -n 's/^\.It Sy \([A-Z_]*\) No \*/\1/p' docs/ksmstat.8 >"$work/page"
same 'ksmstat.8 marks the columns that add up' "$work/source" "$work/page" column.c ksmstat.8
"$stat" -p $$ -r | head -n 1 | tr ' ' '\n' >"$work/help"
section COLUMNS C | sed -n '/^The default is/,/^\./p' | grep -v '^\.' | grep -o '[A-Z_]\{2,\}[A-Z]*' >"$work/page"
same 'ksmstat.8 has the default columns' "$work/help" "$work/page" 'the output' ksmstat.8
sed -n 's/^\tSTAT_[A-Z_]* = \([0-9]*\),.*/\1/p' ksmstat/options.h >"$work/source"
sed -n '/^\.Sh EXIT/,/^\.Sh EX/s/^\.It \([0-9]*\).*/\1/p' docs/ksmstat.8 >"$work/page"
same 'ksmstat.8 has the exit codes' "$work/source" "$work/page" options.h ksmstat.8

# --- the configuration
"$ctl" daemon -c /dev/null --print-config >"$work/config"
sed -n 's/^\([a-z-]*\) = .*/\1/p' "$work/config" >"$work/keys"
sed -n 's/^\.It Ic \([a-z-]*\)$/\1/p' docs/ksmctl.conf.5 >"$work/page"
same 'ksmctl.conf.5 has the keys' "$work/keys" "$work/page" --print-config ksmctl.conf.5
# The range of a key is what its refusal of a bad value says.
while read -r key; do
	echo "$key = 99999999" >"$work/bad"
	"$ctl" daemon -c "$work/bad" --check >"$work/out" 2>"$work/err" && continue # a mistake below finds it
	text=$(<"$work/err") problem=
	default=$(sed -n "s/^$key = //p" "$work/config")
	part=$(sed -n "/^\.It Ic $key\$/,/^\.It\|^\.El/p" docs/ksmctl.conf.5)
	plain=$(sed 's/^\.[A-Z][a-z]* //' <<<"$part" | tr '\n' ' ' | sed 's/ ,/,/g')
	case $text in
	*' must be from '*)
		range=${text#* must be }
		want="F${range#f}"
		want="${want%, not *}, default $default." ;;
	*' is none of the words of '*)
		list=${text##*: }
		want="One of $(sed 's/ (.*//; s/)$//; s/ or / /; s/,* /, /g' <<<"$list"), default $default." ;;
	*'absolute path of at most '*)
		number=${text##*at most }
		want="at most ${number%% *} bytes" ;;
	*) want="(a refusal that is understood, not: $text)" ;;
	esac
	[[ $plain == *"$want"* ]] || problem="ksmctl.conf.5 does not say: $want"
	[[ $plain == *"efault $default."* ]] || problem+=" ksmctl.conf.5 does not say: default $default."
	verdict "$problem" "ksmctl.conf.5: range and default of $key"
done <"$work/keys"
verdict "$(grep -v '^##' docs/ksmctl.conf | sed '1{/^$/d}; s/^#\([a-z]\)/\1/' | diff - "$work/config")" \
	'docs/ksmctl.conf is what --print-config prints'
verdict "$(grep '^[^#]' docs/ksmctl.conf | sed 's/^/not commented out: /')" 'docs/ksmctl.conf changes nothing'
sed 's/^#\([a-z]\)/\1/' docs/ksmctl.conf >"$work/example"
check 'docs/ksmctl.conf, uncommented, is accepted' 0 '' '' -- "$ctl" daemon -c "$work/example" --check
# Examples of the page are configurations too.
awk '/^\.Bd/ { on = 1; next } /^\.Ed/ { on = 0 } on' docs/ksmctl.conf.5 >"$work/example"
also='grep -q = "$work/example" || echo "no example found"' \
	check 'the examples of ksmctl.conf.5 are accepted' 0 '' '' -- "$ctl" daemon -c "$work/example" --check

# --- libksmreg
sed -n 's/^KSMREG_API .*[ *]\(ksm[a-z_]*\)(.*/\1/p' libksmreg/ksmreg.h >"$work/source"
sed -n 's/^\.Fn \(ksm[a-z_]*\) ".*/\1/p' docs/ksmreg.3 >"$work/page"
same 'ksmreg.3 has the functions' "$work/source" "$work/page" ksmreg.h ksmreg.3
sed -n 's/^\(KSMREG_API .*[ *]\)\(ksm[a-z_]*\)\((.*);\)$/\2\3/p' libksmreg/ksmreg.h | tr -d ' ' >"$work/source"
sed -n 's/^\.Fn \(ksm[a-z_]*\) \(".*"\)$/\1(\2);/p' docs/ksmreg.3 | sed 's/" "/,/g' | tr -d '" ' >"$work/page"
same 'ksmreg.3 has their arguments' "$work/source" "$work/page" ksmreg.h ksmreg.3
members() { awk '/^struct ksmreg_/ { on = 1; print $2; next } /^}/ { on = 0 } on' "$1" | sed 's|/\*.*||; s|.*\*/||' | awk 'NF { print $1, $2 }'; }
members libksmreg/ksmreg.h >"$work/source"
members docs/ksmreg.3 >"$work/page"
same 'ksmreg.3 has the members of the structs' "$work/source" "$work/page" ksmreg.h ksmreg.3
grep -oh 'KSMREG_O[NF][A-Z_]*' libksmreg/ksmreg.h >"$work/source"
grep -oh 'KSMREG_O[NF][A-Z_]*' docs/ksmreg.3 >"$work/page"
same 'ksmreg.3 has the states' "$work/source" "$work/page" ksmreg.h ksmreg.3
grep -ohE 'getenv\("[A-Z_]+"\)' libksmreg/environment.c | grep -o '[A-Z_]*' | grep . >"$work/source"
sed -n 's/^\.It Ev \([A-Z_]*\)/\1/p' docs/ksmreg.3 >"$work/page"
same 'ksmreg.3 has the environment' "$work/source" "$work/page" environment.c ksmreg.3
{ grep -ohE '(how, |")(off|auto|prctl|madvise)"' libksmreg/ksmreg-preload.c | grep -oE '[a-z]+"' | tr -d '"'; } >"$work/source"
sed -n 's/^\.It Cm \([a-z]*\)/\1/p' docs/ksmreg-preload.1 >"$work/page"
same 'ksmreg-preload.1 has the values of KSMREG' "$work/source" "$work/page" ksmreg-preload.c ksmreg-preload.1

# --- README and the others
sed -n 's/^    \(apt-get update .*\)/\1/p' README.md >"$work/commands"
problem=
[ "$(wc -l <"$work/commands")" -eq 2 ] || problem="not two commands that begin with apt-get update"
while read -r command; do
	target=${command##*make }
	[ "$command" = "apt-get update && apt-get install -y make && make $target" ] || problem+=" odd: $command"
	has_target "$target" || problem+=" no target '$target'"
done <"$work/commands"
verdict "$problem" "README's two commands are there, and their targets exist"
verdict "$(sed 's/ -qq//g; s| >/dev/null||g' .ci/run | grep -qF "$(sed -n 2p "$work/commands")" || echo 'not in .ci/run')" \
	"README's second command is what .ci/run runs"
verdict "$(awk 'END { if (NR > 120) print NR " lines" }' README.md)" 'README is short'
problem=
for text in README.md CONTRIBUTING.md docs/*.md tests/fixtures/README.md; do
	# Links, and files named in code spans.
	for path in $(grep -o '](\([^)#:]*\)[#)]' "$text" | sed 's/^](//; s/[#)]$//'); do
		[ -e "$(dirname "$text")/$path" ] || problem+="$text: no $path"$'\n'
	done
	for path in $(grep -oE '`(docs|ksmctl|ksmstat|libksmreg|sysfs|tests)/[A-Za-z0-9_./-]*`' "$text" | tr -d '`' | sort -u); do
		[[ $path =~ VERSION|VERB ]] || [ -e "$path" ] || problem+="$text: no $path"$'\n'
	done
	for target in $(grep -oE '`make [a-z-]+' "$text" | sed 's/.*make //' | sort -u); do
		has_target "$target" || problem+="$text: no target $target"$'\n'
	done
done
verdict "$problem" 'files, links and targets that the texts name exist'

# Rows of SECURITY.md end in their tests: `FILE` "NAME"; "ANOTHER"; `FILE` "NAME"
sed -n 's/^| .* | \(.*`tests.*\) |$/\1/p' docs/SECURITY.md >"$work/rows"
problem=
[ "$(wc -l <"$work/rows")" -eq "$(grep '^| ' docs/SECURITY.md | grep -vc '| test |$')" ] ||
	problem="a row of SECURITY.md names no test"$'\n'
while IFS= read -r word; do
	case $word in
	'`'*) file=${word//\`/} named= ;;
	*)
		word=${word#?} named=1
		grep -qsF -e "${word%?}" "$file" || problem+="SECURITY.md: no test '${word%?}' in $file"$'\n'
		;;
	esac
done < <(grep -oE '`tests/[^`]*`|"[^"]*"' "$work/rows")
[ -n "$named" ] || problem+="SECURITY.md: no test named of $file"
verdict "$problem" 'the tests that SECURITY.md names exist'

# --- the unit file
unit=docs/ksmctl.service.in
sed "s|@SBINDIR@|$work/bin|" $unit >"$work/ksmctl.service"
mkdir "$work/bin" && cp "$ctl" "$work/bin/"
grep -o "$work/bin/ksmctl [a-z -]*" "$work/ksmctl.service" >"$work/lines"
problem=
grep -q . "$work/lines" || problem='starts nothing'
while read -r _ verb options; do
	for option in $options; do
		verb_part "$verb" | page_options | grep -qx -e "$option" || problem+=" $verb has no $option"
	done
done <"$work/lines"
verdict "$problem" 'the unit starts what there is'
if command -v systemd-analyze >/dev/null; then
	# Where there is no manual reader installed, that is all that it may complain of.
	verdict "$(systemd-analyze verify "$work/ksmctl.service" 2>&1 | grep -v "Command 'man ")" 'the unit is valid'
	score=$(systemd-analyze security --offline=true "$work/ksmctl.service" 2>&1 | sed -n 's/.*exposure level.*: \([0-9.]*\) .*/\1/p')
	if [ -n "$score" ]; then
		verdict "$(awk -v s="$score" 'BEGIN { if (s > 3.0) print "exposure " s }')" "the unit's exposure is 3.0 at most"
	else
		skip "the unit's exposure is 3.0 at most" 'this systemd-analyze gives no score offline'
	fi
else
	skip 'the unit is valid' 'systemd-analyze is not installed'
	skip "the unit's exposure is 3.0 at most" 'systemd-analyze is not installed'
fi
finish
