#!/usr/bin/env bash
# Exit status 2 with one line for every wrong command line; help, version and targets answer on stdout.
. "$(dirname "$0")/lib.bash"

expect 0 "$TOOL" --help
for word in inspect plan-memory --help=TOPIC sizes 'exit: 0 done'; do
    grep -qF -- "$word" "$tmp/out" || fail "--help does not mention $word"
done
expect 0 "$TOOL" --help=all
for word in --goal --target --shape --l2 --capacity --svg 'default: host'; do
    grep -qF -- "$word" "$tmp/out" || fail "--help=all does not mention $word"
done
expect 0 "$TOOL" --help=sizes
expect 2 "$TOOL" --help=colour; says "--help 'colour': no topic or command of this name"
expect 2 "$TOOL" --help=sises; says "; did you mean 'sizes'?"
expect 0 "$TOOL" help; cp "$tmp/out" "$tmp/help"
expect 0 "$TOOL" --help; cmp -s "$tmp/out" "$tmp/help" || fail "help is not --help"
expect 0 "$TOOL" help sizes; grep -qF -- --shape "$tmp/out" || fail "help TOPIC does not tell its options"
expect 2 "$TOOL" help sises; says "; did you mean 'sizes'?"
expect 2 "$TOOL" help sizes files; says "one model at a time"
expect 2 "$TOOL" --completion tcsh; says "must be bash, zsh or fish"
expect 0 "$TOOL" inspect --help
expect 0 "$TOOL" run --help

# A font macro joins its arguments: an option and its value in two of them are shown as one word.
grep -nE '^\.(RB|BR|BI|IB|IR|RI) .*\\-\\-[a-z\\-]+ +[a-z]' "$root/docs/onnx-tile.1" | grep -vE '"[^"]*\\-\\-[a-z\\-]+ +[a-z][^"]*"' &&
    fail "the man page joins words"

# What is true with one command is not said of another.
said() { expect 0 "$TOOL" --help="$1"; tr -s ' \n' ' ' <"$tmp/out" | grep -qF -- "$2"; }
said run 'for an input; repeatable; random numbers for the others' || fail "run --help: $(cat "$tmp/out")"
said run-kernel 'random numbers' && fail "run-kernel --help promises inputs that are not made"
said tiling '.ot writes the text form' || fail "--help=tiling: $(cat "$tmp/out")"
for command in plan-memory calibrate compare; do
    said $command '.ot ' && fail "$command --help offers .ot, which it does not take"
done
said running '(run, bench: random numbers for the others)' || fail "--help=running: $(cat "$tmp/out")"
expect 0 "$TOOL" --version
grep -qE '^onnx-tile [0-9]+\.[0-9]+\.[0-9]+$' "$tmp/out" || fail "--version: $(cat "$tmp/out")"
expect 0 "$TOOL" --list-targets
for t in host ascend-a2 ascend-a2-16m tlf-16m cpu-generic h200 ethos-u55 mcu-512k; do
    grep -q "^$t " "$tmp/out" || fail "--list-targets lacks $t"
done

expect 0 "$TOOL" --list-runtimes
for r in onnxruntime openvino loop portable engine engine-device; do
    grep -q "^$r " "$tmp/out" || fail "--list-runtimes lacks $r"
done
[ "$(wc -l < "$tmp/out")" = 6 ] || fail "--list-runtimes: $(cat "$tmp/out")"
expect 2 "$TOOL" m.onnx -o x --runtime tract; says "--runtime 'tract': must be one of onnxruntime, openvino, loop, portable, engine, engine-device; ort-engine is of --emit"
expect 2 "$TOOL" m.onnx -o x --runtime openvino --emit engine; says 'contradict each other'
expect 2 "$TOOL" m.onnx -o x --emit onnx --runtime engine; says 'contradict each other'
expect 2 "$TOOL" m.onnx -o x --emit onnx --runtime engine-device; says 'contradict each other'
expect 2 "$TOOL" m.onnx -o x --emit ort-engine --runtime engine-device; says 'contradict each other'
expect 2 "$TOOL" plan-memory a.csv --runtime openvino; says "--runtime is not for 'plan-memory'"

expect 2 "$TOOL"; says 'no model given'
expect 2 "$TOOL" m.onnx; says 'no output given'
expect 2 "$TOOL" inspect m.onnx -o x.onnx; says "leave out -o"
expect 2 "$TOOL" a.onnx b.onnx -o x; says 'one model at a time'
expect 2 "$TOOL" a.onnx b.onnx; says "'a.onnx' and 'b.onnx'; -o OUT says where to write"
expect 2 "$TOOL" inspect m.onnx --table --json; says '--table is for people: leave it out with --json'
expect 2 "$TOOL" m.onnx -o x --table; says "--table is for 'onnx-tile inspect' only"
expect 2 "$TOOL" m.onnx -o x --gaol memory; says "did you mean '--goal'?"
expect 2 "$TOOL" m.onnx -o x --goal memroy; says "must be time or memory; did you mean 'memory'?"
expect 2 "$TOOL" m.onnx -o x --runtime onnx-runtime; says "; did you mean 'onnxruntime'?"
expect 2 "$TOOL" inspct m.onnx; says "unknown command 'inspct': did you mean 'inspect'?"
expect 2 "$TOOL" inspct m.onnx --json; says "unknown command 'inspct': did you mean 'inspect'?"
expect 2 "$TOOL" bnch; says "unknown command 'bnch': did you mean 'bench'?"
expect 2 "$TOOL" ./bnch; says 'no output given'
expect 2 "$TOOL" m.onnx -o x --frobnicate; says "unknown option '--frobnicate'"
expect 2 "$TOOL" m.onnx -o x -z; says "unknown option '-z'"
expect 2 "$TOOL" m.onnx -o; says 'needs a value'
expect 2 "$TOOL" m.onnx -o ''; says 'must not be empty'
expect 2 "$TOOL" m.onnx -o x --goal speed; says 'must be time or memory'
expect 2 "$TOOL" m.onnx -o x --force=yes; says 'takes no value'
for bad in '' 12Q -4K 0 99999999999999G 1e; do
    expect 2 "$TOOL" m.onnx -o x --l2 "$bad"; says "--l2 '$bad'"
done
for bad in x x= =1,2 x=1,,2 x=1,0 x=1,-2 x=1,a x=1,99999999999 x=1,2,; do
    expect 2 "$TOOL" m.onnx -o x --shape "$bad"; says "--shape '$bad'"
done
expect 2 "$TOOL" m.onnx -o x --shape x=1,2 --shape x=1,2; says 'binds an input twice'
expect 2 "$TOOL" m.onnx -o x --max-slowdown -1; says '--max-slowdown'
expect 2 "$TOOL" m.onnx -o x --max-slowdown nan; says '--max-slowdown'
expect 2 "$TOOL" m.onnx -o x --threads 0; says '--threads'
expect 2 "$TOOL" m.onnx -o x -d Z; says 'letters are'
expect 2 "$TOOL" m.onnx -o - --json; says 'both want stdout'

expect 0 "$TOOL" plan-memory --help
expect 2 "$TOOL" plan-memory; says 'no file given'
expect 2 "$TOOL" plan-memory a.tk b.tk; says 'one file at a time'
expect 2 "$TOOL" plan-memory a.tk --mode quick; says '--mode'; says 'must be auto, sequential, reuse or search'
for bad in 0 -1 '' nan 1e3 2m 0.0001 9999999; do
    expect 2 "$TOOL" plan-memory a.csv --time-limit "$bad"; says "--time-limit '$bad': must be seconds"
done
expect 2 "$TOOL" plan-memory a.csv --capacity 0; says "--capacity '0'"
expect 2 "$TOOL" plan-memory a.csv --goal memory; says "--goal is not for 'plan-memory'"
expect 2 "$TOOL" m.onnx -o x --svg m.svg; says "--svg is for 'onnx-tile plan-memory' only"
expect 2 "$TOOL" inspect m.onnx --capacity 1K; says "--capacity is for 'onnx-tile plan-memory' only"
expect 2 "$TOOL" plan-memory a.csv -o - --json; says 'both want stdout'
expect 2 "$TOOL" plan-memory a.csv --svg - --json; says 'both want stdout'
expect 2 "$TOOL" plan-memory a.csv -o x --svg x; says "both want 'x'"

# run: in a build without the engine it says so
expect 0 "$TOOL" run --help
if "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; then
    expect 2 "$TOOL" run m.onnx; says "'run' needs the native engine, which this build does not have"
else
    expect 2 "$TOOL" run; says 'no model given'
    expect 2 "$TOOL" run a.onnx b.onnx; says 'one model at a time'
    for bad in x x= =f.npy; do
        expect 2 "$TOOL" run m.onnx --input "$bad"; says "--input '$bad': must be NAME=F.npy, NAME=F.raw or NAME=F.pb"
    done
    expect 2 "$TOOL" run m.onnx --input x=a.npy --input x=b.npy; says 'gives an input twice'
    expect 2 "$TOOL" run m.onnx --repeat 0; says '--repeat'
    expect 2 "$TOOL" run m.onnx --seed -1; says '--seed'
    expect 2 "$TOOL" run m.onnx --force; says "--force is not for 'run'"
    expect 2 "$TOOL" run m.onnx -o x; says "--output 'x': must be NAME=F.npy or NAME=F.raw"
fi
expect 2 "$TOOL" m.onnx -o x --input x=a.npy; says "--input is for 'onnx-tile run' and 'bench' only"

# parts that this build does not have
if "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; then
    for command in bench calibrate; do
        expect 2 "$TOOL" $command m.onnx; says "'$command' needs the native engine, which this build does not have"
    done
    expect 2 "$TOOL" m.onnx -o x --verify; says "'--verify' needs the native engine"
else
    expect 2 "$TOOL" calibrate m.onnx; says 'calibrate takes no file'
    expect 2 "$TOOL" calibrate --json; says "--json is not for 'calibrate'"
    expect 2 "$TOOL" calibrate --target host; says "--target is not for 'calibrate'"
    ONNX_TILE_CACHE=off expect 2 "$TOOL" calibrate; says 'there is no cache to write to'
    expect 2 "$TOOL" bench m.onnx --dump-dir d; says "--dump-dir is not for 'bench'"
fi
expect 2 "$TOOL" m.onnx -o x --emit native; says "must be onnx, engine, ort-engine or step"
expect 2 "$TOOL" m.onnx -o x --report r.pdf; says "must end in .html, .xml, .json or .csv"
expect 2 "$TOOL" compare a.xml -o d.html; says "compare needs two reports"
# What cannot be written is found out with one status; a reader that leaves early is no error, and gets the model all the same.
make_model --small resnet50
cd "$tmp" && mkdir folder || fail "no folder"
expect 4 "$TOOL" resnet50.onnx -o folder; says 'it is a folder'
[ ! -s "$tmp/out" ] || fail "it was planned first"
expect 4 "$TOOL" resnet50.onnx -o none/x.onnx; says 'No such file or directory'
[ ! -s "$tmp/out" ] || fail "it was planned first"
expect 2 "$TOOL" resnet50.onnx -o x.onnx --shape xx=1,3,64,64; says "the model has no input of that name; it has 'x'; did you mean 'x'?"
gone() { (sleep 0.2; "$@") 2>"$tmp/err" | true; echo "${PIPESTATUS[0]}"; }
for words in --help=all --list-targets "inspect resnet50.onnx" "resnet50.onnx -o x.onnx"; do
    # shellcheck disable=SC2086 # words
    [ "$(gone "$TOOL" $words)" = 141 ] || fail "$words to a reader that left: another status"
    [ ! -s "$tmp/err" ] || fail "$words to a reader that left: $(cat "$tmp/err")"
done
[ -s x.onnx ] || fail "no model where nobody reads the table"
expect 0 "$TOOL" resnet50.onnx -o x.onnx
tail -n 1 "$tmp/out" | grep -qE '^wrote x.onnx, [0-9.]+ [KM]iB, [0-9.]+ s$' || fail "what was written is not told: $(tail -n 1 "$tmp/out")"
expect 0 "$TOOL" resnet50.onnx -o x.onnx -q
[ ! -s "$tmp/out" ] || fail "-q tells what was written"
finish
