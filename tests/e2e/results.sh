#!/usr/bin/env bash
# The table and the JSON: keys, types, and that both tell the same numbers of regions and barriers.
. "$(dirname "$0")/lib.bash"
make_model --small resnet50 vgg16_head

# its sentences are compiled once: a changed one builds one file
[ "$(grep -rl --include="*.[ch]" 'include .*reasons.def' "$root/src")" = "$root/src/ops/reasons.c" ] || fail "reasons.def is included by more than reasons.c"

# every reason of the table is given somewhere, and nothing searches its sentences
src="$root/src"
for id in $(sed -n 's/^REASON\(_UNFORCED\)\?(\([A-Z_]*\),.*/\2/p' "$src/ops/reasons.def"); do
    grep -rqw --include='*.c' "OT_WHY_$id" "$src" || fail "reason $id is never given"
done

for m in resnet50 vgg16_head; do
    expect 0 "$TOOL" inspect "$tmp/$m.onnx" --json --l2 64K --force --target cpu-generic
    cp "$tmp/out" "$tmp/a.json"
    read -r regions barriers < <(py check "$tmp/a.json" || echo 'bad bad')
    [ "$regions" != bad ] || { fail "$m: JSON"; continue; }
    [ "$regions" -gt 0 ] || fail "$m: --force tiles nothing"
    expect 0 "$TOOL" "$tmp/$m.onnx" -o "$tmp/x.onnx" --json --l2 64K --force --target cpu-generic
    cmp -s "$tmp/out" "$tmp/a.json" || fail "$m: inspect and optimise tell different stories"
    expect 0 "$TOOL" inspect "$tmp/$m.onnx" --l2 64K --force --target cpu-generic
    [ "$(grep -cE '^  r[0-9]+ +[0-9]' "$tmp/out")" = "$regions" ] || fail "$m: the table has other regions than the JSON"
    [ "$barriers" = 0 ] || grep -q "^  $barriers barriers" "$tmp/out" || fail "$m: the table has other barriers"
done

# --dump-dir: a kernel for each region, planned as the JSON says; plan-memory accepts it as it is and without its offsets
for target in cpu-generic tlf-16m; do
    for m in resnet50 vgg16_head; do
        rm -rf "$tmp/dump"
        expect 0 "$TOOL" inspect "$tmp/$m.onnx" --json --l2 128K --force --target $target --dump-dir "$tmp/dump"
        cp "$tmp/out" "$tmp/a.json"
        [ $target = cpu-generic ] || py check "$tmp/a.json" hard >"$tmp/out" || fail "$m on $target"
        py heights \
            "$tmp/a.json" >"$tmp/regions"
        [ "$(find "$tmp/dump" -name 'region-*.tk' | wc -l)" = "$(wc -l <"$tmp/regions")" ] || fail "$m on $target: kernels and regions differ"
        while read -r id height; do
            tk=$tmp/dump/region-$id.tk
            read -ra args < <(sed -n 's/^# args: //p' "$tk")
            expect 0 "$TOOL" plan-memory "$tk" -o "$tmp/again.tk" "${args[@]}" --json
            grep -q "\"height_bytes\": $height," "$tmp/out" || fail "$tk: not $height bytes"
            cmp -s <(grep -v '^#' "$tk") "$tmp/again.tk" || fail "$tk: planned again, it differs"
            sed 's/ offset=[0-9,]*//' "$tk" >"$tmp/bare.tk"
            expect 0 "$TOOL" plan-memory "$tmp/bare.tk" -o "$tmp/again.tk" "${args[@]}" -q
        done <"$tmp/regions"
    done
done

# one dialect: members that the plan's JSON shares with the report have the same values there, barriers and refusals included
for target in cpu-generic mcu-512k; do
    expect 0 "$TOOL" inspect "$tmp/resnet50.onnx" --json --l2 64K --force --target $target --report "$tmp/r.json"
    py dialect "$tmp/out" "$tmp/r.json" 2>"$tmp/why" || fail "$target: $(tail -n 1 "$tmp/why")"
    expect 0 "$TOOL" inspect "$tmp/resnet50.onnx" --l2 64K --force --target $target
    if [ $target = cpu-generic ]; then
        grep -Eq ' r0 .*[KM]iB (fits|streams) ' "$tmp/out" || fail "the cache's table does not say what fits"
        grep -q '[0-9] %)' "$tmp/out" && fail "a share of a cache in the table"
    else
        grep -Eq ' r0 .*[KM]?i?B \([0-9]+ %\)' "$tmp/out" || fail "no share of a scratchpad in the table"
    fi
done

# names that are hostile to JSON and terminals
py hostile "$tmp"
expect 0 "$TOOL" inspect "$tmp/hostile.onnx" --json --l2 64K --force
py check "$tmp/out" >/dev/null || fail "hostile names break the JSON"
expect 0 "$TOOL" inspect "$tmp/hostile.onnx" --l2 64K --force
grep -q $'\x1b' "$tmp/out" && fail "an escape sequence reached the terminal"
finish
