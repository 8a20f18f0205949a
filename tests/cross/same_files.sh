#!/usr/bin/env bash
# run: first
# A build for another machine writes the files that this one's writes, to the byte, and says the same: TOOL is that one, NATIVE this one's.
. "$(dirname "$0")/../e2e/lib.bash"
NATIVE=${NATIVE:-$root/build/onnx-tile}
[ "$(realpath "$TOOL")" != "$(realpath "$NATIVE")" ] || fail "TOOL is this machine's: scripts/cross.sh PLATFORM check"
cd "$tmp" || exit 1
make_model --small all
mkdir there here 'über'
fixed=(--target cpu-generic --threads 2)
count=0
for model in *.onnx; do
    for options in '--goal memory' '--goal memory --single-file --max-slowdown 40' '--force --l2 64K' '--runtime portable --force --l2 32K'; do
        # shellcheck disable=SC2086 # words
        (cd here && "$NATIVE" "../$model" -o out.onnx "${fixed[@]}" $options >out.txt 2>err.txt </dev/null; echo $? >rc.txt)
        # shellcheck disable=SC2086
        (cd there && "$TOOL" "../$model" -o out.onnx "${fixed[@]}" $options >out.txt 2>err.txt </dev/null; echo $? >rc.txt)
        sed -i 's/, [0-9.]* s$//' here/out.txt there/out.txt
        if diff -rq here there >diff.txt; then count=$((count + 1)); else fail "$model $options: $(cat diff.txt) $(tail -n 1 there/err.txt)"; fi
        rm -f here/* there/*
    done
done
[ $count -gt 40 ] || fail "only $count files were compared"
echo "$count runs: the same bytes"

# a report; weights in a file beside the model, read again; a name that is not ASCII; what is not there
make_model resnet50 --batch 8 --size 96
model=resnet50.onnx
expect 0 "$TOOL" $model -o "über/out.onnx" "${fixed[@]}" --goal memory --report über/r.html --report über/r.xml
ls über/*.data >/dev/null || fail "no file of weights"
expect 0 "$TOOL" über/out.onnx -o there/out.onnx "${fixed[@]}" -q
expect 0 "$NATIVE" über/out.onnx -o here/out.onnx "${fixed[@]}" -q
diff -r here there || fail "a model with weights in a file is read otherwise"
{ grep -q '</html>' über/r.html && grep -q '</report>' über/r.xml; } || fail "reports are not whole"
expect 1 "$TOOL" gone.onnx -o x.onnx; says "cannot open 'gone.onnx': No such file or directory"
[ ! -e x.onnx ] || fail "a file for a model that is not there"
expect 4 "$TOOL" $model -o nofolder/x.onnx
expect 0 "$TOOL" $model -o again.onnx "${fixed[@]}" -q # replaces
expect 2 "$TOOL" $model -o x --gaol memory; says "did you mean '--goal'?"
"$TOOL" - -o - "${fixed[@]}" --goal memory -q <$model >piped.onnx || fail "no model through pipes"
"$NATIVE" - -o - "${fixed[@]}" --goal memory -q <$model >native.onnx
cmp piped.onnx native.onnx || fail "bytes through pipes are others"
finish
