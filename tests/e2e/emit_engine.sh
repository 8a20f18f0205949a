#!/usr/bin/env bash
# --emit engine: the form computes the same numbers (tests/oracle/while_eval.py evaluates it by itself), the tool reads what it
# writes, as a file and as text, and refuses what is not as the form says.
# run: first
. "$(dirname "$0")/lib.bash"
eval=("$PYTHON" "$root/tests/oracle/while_eval.py")
cd "$tmp" || exit 1

# same MODEL OPTIONS...: tiled by force, in the engine's form, with at least one region; evaluated with all others by check_same
pairs=()
same() {
    local model=$1 kept=${#pairs[@]}
    shift
    expect 0 "$TOOL" "$model" -o t.onnx -q --emit engine --force --target cpu-generic "$@"
    cp "$model" "pair$kept-$model" && cp t.onnx "pair$kept-tiled.onnx"
    pairs+=("pair$kept-$model" "pair$kept-tiled.onnx")
    # its own output: as it is, as text and back
    expect 0 "$TOOL" inspect t.onnx -q
    expect 0 "$TOOL" t.onnx -o again.onnx -q --emit engine
    cmp -s t.onnx again.onnx || fail "$model $*: a tiled model is not written back as it was"
    expect 0 "$TOOL" "$model" -o t.ot -q --emit engine --force --target cpu-generic "$@"
    expect 0 "$TOOL" t.ot -o again.ot -q
    cmp -s t.ot again.ot || fail "$model $*: text is not read as it was written"
}

# All pairs in one process: each says "same", with regions, and as many lines come as there are pairs.
check_same() {
    "${eval[@]}" --pairs "${pairs[@]}" >eval.out 2>&1 || fail "$(grep -v '^[^ ]*: same: ' eval.out | tail -n 5)"
    [ "$(grep -c ': same: [1-9]' eval.out)" = $((${#pairs[@]} / 2)) ] || fail "not tiled: $(grep -v ': same: [1-9]' eval.out)"
}

"${eval[@]}" --make . || fail "cannot make the models"
for size in 5K 16K 64K; do
    for m in chain strided residual mobile softmax resize concat shuffle pointwise; do same $m.onnx --l2 $size; done
done
same chain.onnx --l2 16K --threads 3
same residual.onnx --l2 48K --goal memory
for opset in 11 13; do
    "${eval[@]}" --make . --opset $opset residual resize concat
    for m in residual resize concat; do same $m.onnx --l2 16K; done
done

# regions that end in reductions of what their tiles cut; the bytes do not depend on the number of threads
parts() { # MODEL OPTIONS...
    same "$@"
    "$PYTHON" -c "import onnx; exit(not any('/combine/' in n.name for n in onnx.load('t.onnx').graph.node))" || fail "$*: nothing is reduced in parts"
    for k in 1 2 3; do expect 0 "$TOOL" run t.onnx --threads $k --output-dir out$k -q; done
    for k in 2 3; do diff -r out1 out$k >/dev/null || fail "$*: $k threads give other bytes than one"; done
}
for opset in 11 17 18; do
    "${eval[@]}" --make . --opset $opset pooled pools beside whole tokens
    for m in pooled pools beside whole tokens; do parts $m.onnx --l2 12K; done
done
for m in pooled pools beside whole; do parts $m.onnx --l2 5K; done
expect 0 "$TOOL" inspect pooled.onnx --emit engine --force --target cpu-generic --l2 12K
grep -qF -- "ends in GlobalAveragePool" "$tmp/out" || fail "inspect does not say: ends in GlobalAveragePool"
expect 0 "$TOOL" inspect pooled.onnx --force --target cpu-generic --l2 12K
grep -qF -- "ends in GlobalAveragePool" "$tmp/out" || fail "inspect of the standard form does not say: ends in GlobalAveragePool"
make_model --small mobilenet_v2 unet sr
for m in mobilenet_v2 unet sr; do same $m.onnx --l2 96K; done

check_same

# two threads hold about what one holds: tiles run one at a time, where small ones side by side would be too slow
py large
for threads in 1 2; do
    expect 0 "$TOOL" large.onnx -o in_order.onnx --emit engine --goal memory --target cpu-generic --threads $threads --shape x=1,3,8000,8000 --json
    mv "$tmp/out" large$threads.json
done
py peaks || fail "two threads hold more: $(grep -h '"tiled"' large?.json)"

# weights stay where they are, and are not duplicated
"${eval[@]}" --make . chain
expect 0 "$TOOL" chain.onnx -o t.onnx -q --emit engine --force --target cpu-generic --l2 16K
py weights || fail "weights were moved or copied"

# files that break a rule of the form
py broken || fail "cannot make broken files"
for f in broken_*.onnx; do
    expect 1 "$TOOL" "$f" -o x.onnx
    says "onnx_tile::"
    [ ! -e x.onnx ] || fail "$f: an output was written"
done
finish
