#!/bin/bash
# Completion in bash and zsh offers what the help texts say, and carries out nothing of strangers.
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154,SC2016 # work is set in lib.bash; what is quoted is meant so
. "${BASH_SOURCE%/*}/lib.bash"
cd "${BASH_SOURCE%/*}/../.." || exit 1
. docs/completion/ksm.bash
PATH=$B:$PATH

# offers WORD...: what bash would, one a line; the last word is the one at the cursor.
offers()
{
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
	_ksm "$1" "${*: -1}" "${*: -2:1}" 2>&1
	[ ${#COMPREPLY[@]} = 0 ] || printf '%s\n' "${COMPREPLY[@]}"
}

# Options of a help text, read in another way than completion does it.
help_options() { "$@" --help | sed -n '/^Columns:/q; s/^ \{2,6\}\(-.*\)/\1/p' | sed 's/   *.*//' | tr ', ' '\n\n' | grep '^-'; }

verdict "$(bash -n docs/completion/ksm.bash 2>&1)" 'the file for bash can be read'
mapfile -t verbs < <(ksmctl --help | sed -n '/^Verbs:/,/^$/s/^  \([a-z][a-z]*\).*/\1/p')
verdict "$(diff <(offers ksmctl '' | sort) <(printf '%s\n' "${verbs[@]}" | sort))" 'bash: the verbs'
for of in ksmstat ksmctl "${verbs[@]/#/ksmctl }"; do
	# shellcheck disable=SC2086 # a program, or a program and its verb
	verdict "$(diff <(offers $of - | sort) <(help_options $of | sort))" "bash: the options of $of"
done

# A program that is newer than the file for bash.
mkdir "$work/bin" "$work/fn"
printf '#!/bin/sh\n%s --help | sed "s/^  -h/      --fresh LIST  a new one\\n&/"\n' "$B/ksmstat" >"$work/bin/ksmstat"
chmod +x "$work/bin/ksmstat"
verdict "$(diff <(offers "$work/bin/ksmstat" --fr) - <<<--fresh; diff <(offers "$work/bin/ksmstat" --fresh PI) - <<<PID)" \
	'bash: an option that is new'

# Each word for an argument is known: completed, or nothing that could be.
free=' SECONDS N SIZE LINES NUMBER COUNT PAGES '
problem=
for kind in $(for of in ksmstat ksmctl "${verbs[@]/#/ksmctl }"; do $of --help; done |
	sed -nE 's/^ {2,6}(-[A-Za-z], )?--[a-z-]+ ([A-Z][A-Z=,.]*)( .*|$)/\2/p' | sort -u); do
	[[ $free == *" $kind "* ]] || grep -qE "^	(.* )?${kind%%,*}[,*.]*( \| .*)?\)" docs/completion/ksm.bash ||
		problem+="docs/completion/ksm.bash does not know what '$kind' stands for"$'\n'
done
verdict "$problem" 'bash: every kind of argument'

# A tree with one process, whose name would be a command.
root=$work/root knobs=$work/root/sys/kernel/mm/ksm
mkdir -p "$root/proc/4711" "$knobs"
echo '$(touch evil)' >"$root/proc/4711/comm"
echo '0::/a.slice/b c.service' >"$root/proc/4711/cgroup"
echo 1 >"$knobs/run" && echo '[none] scan-time' >"$knobs/advisor_mode" && echo 5 >"$knobs/pages_shared"
chmod 444 "$knobs/pages_shared"

# in_bash WANTED WORD...: all candidates, on one line.
in_bash()
{
	local want=$1 got
	shift
	got=$(offers "$@" | tr '\n' ' ')
	verdict "$([ "$got" = "$want" ] || echo "offers '$got', not '$want'")" "bash: $*"
}
at=(--root "$root")
in_bash '--raw --root ' ksmstat --r
in_bash 'saved saved_by ' ksmstat -o save
in_bash 'pid,SAVED pid,SAVED_BY ' ksmstat -btno pid,SAVE
in_bash '+minflt ' ksmstat -o +minf
in_bash '-PID ' ksmstat --sort -PI
in_bash 'PID ' ksmstat --sort = PI
in_bash 'program pod ' ksmstat --by p
in_bash '4711 ' ksmstat "${at[@]}" -p 4
in_bash '12,4711 ' ksmstat --root = "$root" -p 12,4
in_bash 'root ' ksmstat -u roo
in_bash '/a.slice/b\ c.service ' ksmstat "${at[@]}" -g /
in_bash '\$\(touch\ evil\) ' ksmstat "${at[@]}" -c '$('
in_bash '\$\(touch\ evil\) ' ksmctl "${at[@]}" enable --comm ''
in_bash '4711 ' ksmctl "${at[@]}" doctor ''
in_bash 'advisor_mode= run= ' ksmctl "${at[@]}" set ''
in_bash 'none scan-time ' ksmctl "${at[@]}" set run = 1 advisor_mode =
in_bash 'scan-time ' ksmctl "${at[@]}" set advisor_mode = s
in_bash 'docs/completion/ksm.bash ' ksmctl daemon -c docs/completion/ksm.b
in_bash 'docs/completion ' ksmctl --root docs/comple
in_bash 'docs/completion/ksm.bash ' ksmctl run -v -E A = b -- cat docs/completion/ksm.b
in_bash '' ksmctl run cat --verb
in_bash '' ksmctl why -n ''
in_bash '' ksmctl no-such-verb ''
verdict "$([ ! -e evil ] || { rm evil; echo 'the name of a process was carried out'; })" 'bash: names are only names'

# --- zsh
if ! command -v zsh >/dev/null; then
	skip 'zsh' 'zsh is not installed'
	finish
elif ! zsh -fc 'zmodload zsh/zpty && zpty try true' 2>/dev/null; then
	skip 'zsh' 'no pseudo-terminal can be had here'
	finish
fi
verdict "$(zsh -n docs/completion/ksm.zsh 2>&1)" 'the file for zsh can be read'
cp docs/completion/ksm.zsh "$work/fn/_ksmctl"
lines=('ksmctl ' 'ksmctl -' 'ksmstat -' "${verbs[@]/#/ksmctl }")
for i in "${!lines[@]}"; do [ "$i" -lt 3 ] || lines[i]+=' -'; done
values=("ksmstat -o pid,save|SAVED SAVED_BY" 'ksmstat --sort -PI|PID' 'ksmstat --by p|program pod' 'ksmstat -u roo|root'
	"ksmstat --root $root -p 4|4711" "ksmstat --root=$root -p 12,|4711" "ksmstat --root $root -g /|/a.slice/b c.service"
	"ksmstat --root $root -c \\$|\$(touch evil)" "ksmctl --root $root doctor |4711" "ksmctl --root $root set |advisor_mode run"
	"ksmctl --root $root set run=1 advisor_mode=|none scan-time" 'ksmctl daemon -c docs/completion/ksm.b|ksm.bash')
timeout 120 zsh -f tests/cli/completion.zsh "$B" "$work/fn" "$work" "${lines[@]}" "${values[@]%|*}" >"$work/zsh" 2>"$work/err"
verdict "$(cat "$work/err")" 'zsh says nothing else'

# in_zsh LINE: the candidates, one a line.
in_zsh() { awk -v line="$1 => " 'index($0, line) == 1 { print substr($0, length(line) + 1) }' "$work/zsh" | sed 's/ *END$//'; }
verdict "$(diff <(in_zsh 'ksmctl ' | tr ' ' '\n' | sort) <(printf '%s\n' "${verbs[@]}" | sort))" 'zsh: the verbs'
# A single - is a word of zsh itself, which stands before a command.
for of in ksmstat ksmctl "${verbs[@]/#/ksmctl }"; do
	verdict "$(diff <(in_zsh "$of -" | tr ' ' '\n' | grep .. | sort) <(help_options $of | sort))" "zsh: the options of $of"
done
for value in "${values[@]}"; do
	verdict "$(diff <(in_zsh "${value%|*}") - <<<"${value##*|}")" "zsh: ${value%|*}"
done
verdict "$([ ! -e evil ] || { rm evil; echo 'the name of a process was carried out'; })" 'zsh: names are only names'
finish
