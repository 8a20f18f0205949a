#!/usr/bin/env bash
# Completion in zsh and fish, as those shells offer it (bash: options.sh). A shell that is not installed fails the test: scripts/setup.sh check.
. "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
mkdir sub bin
touch a.onnx t.xml
ln -s "$TOOL" bin/onnx-tile
PATH=$tmp/bin:$PATH
onnx-tile --completion fish >onnx-tile.fish || fail "no script for fish"
onnx-tile --completion zsh >_onnx-tile || fail "no script for zsh"
expect 2 "$TOOL" --completion tcsh; says "must be bash, zsh or fish"

# What the shell offers behind the words, names alone, sorted, in one line.
in_fish() { HOME=$tmp XDG_DATA_HOME=$tmp XDG_CONFIG_HOME=$tmp fish --private -c 'source onnx-tile.fish; complete -C $argv[1]' "onnx-tile $1" | cut -f 1; }
in_zsh() { zsh -f "$root/tests/e2e/completion.zsh" _onnx-tile "onnx-tile $1"; }
offers() { # WORDS WANT...: each is offered; a word that begins with "!" is not
    local words=$1 shell got w
    shift
    for shell in fish zsh; do
        command -v $shell >/dev/null || { fail "no $shell here"; continue; }
        got=$(in_$shell "$words" 2>"$tmp/err" | sed 's,/$,,' | sort -u)
        [ ! -s "$tmp/err" ] || fail "$shell complains of '$words': $(head -n 3 "$tmp/err")"
        for w in "$@"; do
            case $w in
            !*) grep -qxF -e "${w#!}" <<<"$got" && fail "$shell: '$words' offers ${w#!}: $got" ;;
            *) grep -qxF -e "$w" <<<"$got" || fail "$shell: '$words' does not offer $w: $got" ;;
            esac
        done
    done
}
offers 'ins' inspect '!run'
offers 'a.onnx --goal ' time memory '!a.onnx'
offers 'inspect --runtime ' onnxruntime engine '!a.onnx'
offers 'inspect a.onnx --target ' host ethos-u55 t.xml # fish puts .xml first and offers others, too
offers 'inspect a.onnx --l' --l2 --list-targets '!--loop'
offers 'devices --go' '!--goal'
offers 'a.onnx -o a' a.onnx
offers 'run a' a.onnx
offers 'run a.onnx --output-dir ' sub '!a.onnx'

# every option of every command, as the help has them
for command in inspect run plan-memory compare; do
    expect 0 "$TOOL" --help="$command"
    mapfile -t names < <(grep -oE '^ *(-[a-z], )?--[a-z0-9-]+' "$tmp/out" | grep -oE -- '--[a-z0-9-]+' | sort -u)
    [ ${#names[@]} -gt 3 ] || fail "no options in --help=$command"
    offers "$command --" "${names[@]}"
done
finish
