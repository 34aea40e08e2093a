# Completes lines in a zsh on a terminal of its own; prints for each "LINE => CANDIDATE...".
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: zsh -f completion.zsh FOLDER-OF-PROGRAMS FOLDER-OF-FUNCTIONS WORK LINE...
zmodload zsh/zpty || exit 1
bin=$1 place=$2 work=$3
shift 3
cat >$work/zshrc <<EOF
PATH=$bin:\$PATH fpath=($place \$fpath) PS1='' PS2=''
autoload -Uz compinit && compinit -u -D
compadd() {
	if [[ \${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
		local -a hits
		builtin compadd -O hits "\$@"
		(( ! \$#hits )) || print -rl -- \$hits >>$work/offered
	fi
	builtin compadd "\$@"
}
all-said() { print END >>$work/offered; compstate[list]= compstate[insert]= }
comppostfuncs=(all-said)
bindkey '^I' complete-word
EOF
for line; do
	: >$work/offered
	zpty shell zsh -f -i
	zpty -w shell "source $work/zshrc; print REA''DY"
	said=
	while zpty -r shell text; do
		said+=$text
		[[ $said != *READY* ]] || break
	done
	zpty -w -n shell $line$'\t'
	for ((i = 0; i < 200; i++)); do
		zpty -r -t shell text
		! grep -qx END $work/offered || break
		sleep 0.05
	done
	zpty -d shell
	print -r -- "$line => ${(j: :)${(f)$(<$work/offered)}}"
done
