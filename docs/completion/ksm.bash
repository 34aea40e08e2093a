# Completion of ksmctl and ksmstat in bash. What there is to complete, their own help texts say.
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash

# _ksm_option HELP NAME: the word for the argument of an option, as "PID,..."; fails when it takes none, or is not there.
_ksm_option()
{
	local line
	while IFS= read -r line; do
		[[ $line =~ ^\ \ (-[A-Za-z], |\ \ \ \ )(--[a-z-]+)\ ([A-Z][A-Z=,.]*)(\ |$) ]] || continue
		[[ ${BASH_REMATCH[2]} != "$2" && ${BASH_REMATCH[1]%, } != "$2" ]] || {
			echo "${BASH_REMATCH[3]}"
			return
		}
	done <<<"$1"
	return 1
}

# _ksm_options HELP: all of them.
_ksm_options() { grep -oE '^  (-[A-Za-z], |    )--[a-z-]+' <<<"$1" | grep -oE -e '--?[A-Za-z-]+'; }

# _ksm_values ROOT HELP KIND: what can stand for such an argument.
_ksm_values()
{
	case $3 in
	PID*) printf '%s\n' "$1"/proc/[0-9]* | sed 's|.*/||' ;;
	NAME | NAME,*) cat "$1"/proc/[0-9]*/comm | sort -u ;;
	USER*) compgen -u ;;
	PATH) cat "$1"/proc/[0-9]*/cgroup | sed 's/^[0-9]*:[^:]*://' | sort -u ;;
	LIST) sed -n '/^Columns:/,/^$/s/^  \([A-Z_]*\) .*/\1/p' <<<"$2" && echo all ;;
	COLUMN) sed -n '/^Columns:/,/^$/s/^  \([A-Z_]*\) .*/\1\n-\1/p' <<<"$2" ;;
	GROUP) sed -n 's/^ *--by GROUP *//p' <<<"$2" | tr -s ', ' '\n' ;;
	VERB) sed -n '/^Verbs:/,/^$/s/^  \([a-z]*\).*/\1/p' <<<"$2" ;;
	KEY) find "$1/sys/kernel/mm/ksm/" -maxdepth 1 -type f -perm -200 -printf '%f=\n' ;;
	KEY=*) tr -d '[]' <"$1/sys/kernel/mm/ksm/${3#KEY=}" | tr ' ' '\n' ;;
	NAME=VALUE) compgen -e -S = ;;
	esac 2>/dev/null
}

# _ksm_reply ROOT HELP KIND CURRENT: candidates into COMPREPLY.
_ksm_reply()
{
	local front='' current=$4 flags=-W words
	case $3 in
	FILE | DIR)
		compopt -o filenames 2>/dev/null
		[ "$3" = FILE ] && flags=-f || flags=-d ;;
	*,... | LIST) # after the last comma, and a + in front
		[[ $current != *,* ]] || front=${current%,*},
		[[ $current != +* || -n $front ]] || front=+
		current=${current#"$front"}
		compopt -o nospace 2>/dev/null ;;
	KEY | NAME=VALUE) compopt -o nospace 2>/dev/null ;;
	esac
	if [ $flags != -W ]; then
		mapfile -t COMPREPLY < <(compgen $flags -- "$current")
		return
	fi
	words=$(_ksm_values "$1" "$2" "$3")
	# Columns are taken in any case.
	[[ $3 != LIST && $3 != COLUMN || $current != *[a-z]* ]] || words=${words,,}
	_ksm_fitting "$current" "$front" <<<"$words"
}

# _ksm_fitting CURRENT FRONT: of the lines on stdin those that begin so. Not by compgen -W, which would carry out
# what strangers have in the names of their processes.
_ksm_fitting()
{
	local line
	while IFS= read -r line; do
		[[ -z $line || $line != "$1"* ]] || COMPREPLY+=("$2$(printf %q "$line")")
	done
}

# _ksm_operand HELP: what stands for the operands, as the help of a program or verb says.
_ksm_operand()
{
	case ${1%%$'\n\n'*} in
	*\ VERB\ *) echo VERB ;;
	*KEY=VALUE...*) echo KEY ;;
	*COMMAND...*) echo COMMAND ;;
	*'[PID...]'*) echo PID ;;
	esac
}

# _ksm_command FROM: the rest of the line is another program's.
_ksm_command()
{
	if declare -F _comp_command_offset >/dev/null; then
		_comp_command_offset "$1"
	elif declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	elif [ "$1" -eq "$COMP_CWORD" ]; then
		mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
	else
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
	fi
}

_ksm()
{
	local program=$1 current=$2 previous='' help operand root='' word i
	COMPREPLY=()
	help=$("$program" --help 2>/dev/null) || return 0
	operand=$(_ksm_operand "$help")
	# What stands in front: the tree that is looked at, a verb, an option that waits for its argument.
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [ "$word" = = ]; then # --option=argument, or NAME=VALUE, is three words here
			[ -n "$previous" ] || i=$((i + 1))
		elif [ -n "$previous" ]; then
			[ "$previous" != --root ] || root=$word
			previous=
		elif [[ $word == -* && $word != -- ]]; then
			[[ $word == --* ]] || word=-${word: -1} # -bo is -b -o
			! _ksm_option "$help" "$word" >/dev/null || previous=$word
		elif [ "$operand" = VERB ]; then
			help=$("$program" "$word" --help 2>/dev/null) || return 0
			operand=$(_ksm_operand "$help")
		elif [ "$operand" = COMMAND ]; then
			[ "$word" != -- ] || i=$((i + 1))
			_ksm_command "$i"
			return
		fi
	done
	word=${COMP_WORDS[COMP_CWORD - 1]}
	if [ -n "$previous" ]; then
		[ "$current" != = ] || current=
		_ksm_reply "$root" "$help" "$(_ksm_option "$help" "$previous")" "$current"
	elif [ "$operand" = KEY ] && [ "$current" = = ]; then
		_ksm_reply "$root" "$help" "KEY=$word" ''
	elif [ "$operand" = KEY ] && [ "$word" = = ]; then
		_ksm_reply "$root" "$help" "KEY=${COMP_WORDS[COMP_CWORD - 2]}" "$current"
	elif [[ $current == -* ]]; then
		_ksm_fitting "$current" '' < <(_ksm_options "$help")
	elif [ "$operand" = COMMAND ]; then
		_ksm_command "$COMP_CWORD"
	else
		_ksm_reply "$root" "$help" "$operand" "$current"
	fi
}

complete -F _ksm ksmctl ksmstat
