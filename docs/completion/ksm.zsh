#compdef ksmctl ksmstat
# Completion of ksmctl and ksmstat in zsh. What there is to complete, their own help texts say.
# SPDX-License-Identifier: GPL-2.0-or-later

# _ksm_values KIND [OPTION-OF-COMPADD...]: what can stand for an argument that the help calls so.
_ksm_values()
{
	local kind=$1
	local -a found
	shift
	case $kind in
	PID) found=($root/proc/<->(N:t)) ;;
	NAME) found=($root/proc/<->/comm(N)) && found=(${(fu)"$(cat $found 2>/dev/null)"}) ;;
	PATH) found=($root/proc/<->/cgroup(N)) && found=(${(u)${(f)"$(cat $found 2>/dev/null)"}#*:*:}) ;;
	LIST | COLUMN)
		found=(${(f)"$(sed -n '/^Columns:/,/^$/s/^  \([A-Z_]*\) .*/\1/p' <<<$help)"})
		[[ $kind = LIST ]] && { compset -P '+'; found+=(all) } || { compset -P - }
		set -- "$@" -M 'm:{a-z}={A-Z}' ;;
	GROUP) found=(${=${$(sed -n 's/^ *--by GROUP *//p' <<<$help)//,/ }}) ;;
	KEY)
		if compset -P '*='; then
			found=(${(s: :)${"$(cat $root/sys/kernel/mm/ksm/${IPREFIX%=} 2>/dev/null)"//[][]/}})
		else
			found=($root/sys/kernel/mm/ksm/*(N.f+200:t))
			set -- "$@" -S =
		fi ;;
	esac
	compadd "$@" -a found
}

# _ksm_action KIND: what _arguments does to complete it.
_ksm_action()
{
	case $1 in
	NAME=VALUE) action='_parameters -g "*export*" -qS =' ;;
	USER,*) action='_sequence _users' ;;
	USER) action=_users ;;
	FILE) action=_files ;;
	DIR) action=_directories ;;
	PID,* | NAME,* | LIST) action="_sequence _ksm_values ${1%%,*}" ;;
	PID | NAME | PATH | COLUMN | GROUP | KEY) action="{_ksm_values $1}" ;;
	*) action=' ' ;;
	esac
}

# _ksm_specs HELP: the options of a help text, for _arguments.
_ksm_specs()
{
	local line letter name kind text action
	local -a match mbegin mend
	specs=()
	for line in ${(f)1}; do
		[[ $line =~ '^  (-[A-Za-z], |    )(--[a-z-]+)( [A-Z][A-Z=,.]*)?( .*)?$' ]] || continue
		letter=${match[1]//[, ]/} name=$match[2] kind=${match[3]# }
		text=${${match[4]##[ ]#}//(#m)[][:\\]/\\$MATCH}
		if [[ -n $kind ]]; then
			_ksm_action $kind
			specs+=("*${name}=[$text]:$kind:$action")
			[[ -z $letter ]] || specs+=("*${letter}+[$text]:$kind:$action")
		else
			specs+=("($letter $name)${name}[$text]")
			[[ -z $letter ]] || specs+=("($letter $name)${letter}[$text]")
		fi
	done
}

_ksm()
{
	local program=${(Q)words[1]} help root curcontext=$curcontext state line
	local -a specs verbs
	local -A opt_args
	setopt localoptions extendedglob
	help=$($program --help 2>/dev/null) || return
	_ksm_specs $help
	if [[ $help != *$'\n'Verbs:* ]]; then
		root=${words[(r)--root=*]#--root=} # seen by the functions for values
		[[ -n $root ]] || (( ! $words[(I)--root] )) || root=$words[$words[(I)--root]+1]
		_arguments -s : $specs
		return
	fi
	_arguments -C : $specs '1:verb:->verb' '*::argument:->argument' && return
	root=$opt_args[--root]
	if [[ $state = verb ]]; then
		verbs=(${(f)"$(sed -n '/^Verbs:/,/^$/{/^  [a-z]/{s/^  \([a-z]*\).*/\1:/;h;:a
			n;/^      [[(]/ba
			s/^ *//;H;x;s/\n//p}}' <<<$help)"})
		_describe verb verbs
		return
	fi
	help=$($program $words[1] --help 2>/dev/null) || return
	_ksm_specs $help
	case ${help%%$'\n\n'*} in
	*COMMAND...*) specs+=('(-)1:command:_command_names -e' '*::argument:_normal') ;;
	*KEY=VALUE...*) specs+=('*:key:{_ksm_values KEY}') ;;
	*'[PID...]'*) specs+=('*:pid:{_ksm_values PID}') ;;
	esac
	_arguments -s : $specs
}

_ksm "$@"
