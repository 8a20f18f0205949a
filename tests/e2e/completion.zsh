# What zsh offers behind a line: zsh -f completion.zsh SCRIPT LINE. A shell on a pseudo-terminal is asked for a completion, and what it would add to
# the list of matches is printed in place of that.
zmodload zsh/zpty || exit 1
local line
zpty z zsh -f -i
ask() { zpty -w z "$1"; }
ask "PROMPT=; unsetopt zle_bracketed_paste; autoload -Uz compinit; compinit -u -D; source ./$1"
# matches, quoted or not, of each call that adds some
ask 'compadd() { if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return $?; fi
local -a hits; builtin compadd -A hits "$@"; local -i k=${@[(i)-S]}; local suffix=; ((k < $#)) && [[ ${@[k+1]} == / ]] && suffix=/
[[ -n $hits ]] && print -rl -- ${^hits}$suffix >>$OUT; builtin compadd "$@"; }'
export OUT=$PWD/.offered
rm -f $OUT
ask "OUT=$OUT"
ask 'zstyle ":completion:*" list-prompt ""; LISTMAX=10000; bindkey "^I" complete-word; bindkey "^X" kill-whole-line; print ready-$((40 + 2))'
while zpty -r z line; do [[ $line == *ready-42* ]] && break; done
zpty -w -n z "$2"$'\t'
zpty -w -n z $'\C-X'
zpty -w z 'print done-$((40 + 2))'
while zpty -r z line; do [[ $line == *done-42* ]] && break; done
zpty -d z
[[ -f $OUT ]] && sed 's/=$//' $OUT
true
