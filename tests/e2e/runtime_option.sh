#!/usr/bin/env bash
# --runtime: what is written is what that runtime takes, node by node; the model, the table, the JSON and the report name it.
. "$(dirname "$0")/lib.bash"
make_model --small resnet50 unet vgg16_head vit

args=(--target cpu-generic --l2 64K --force)
made=() # RUNTIME MODEL of what is looked at node by node, in one process
for m in resnet50 unet vgg16_head vit; do
    for r in onnxruntime openvino loop portable engine engine-device; do
        expect 0 "$TOOL" "$tmp/$m.onnx" -o "$tmp/$m.$r.onnx" "${args[@]}" --runtime $r
        head -n 1 "$tmp/out" | grep -qF -- "$m.onnx for $r on cpu-generic" || fail "$m: the first line is not of $r: $(head -n 1 "$tmp/out")"
        made+=("$r" "$tmp/$m.$r.onnx")
    done
    py equal "$tmp" "$tmp/$m.onnx" "$tmp/$m".{onnxruntime,openvino,loop,portable}.onnx >"$tmp/out" 2>&1 || fail "$m: $(tail -n 1 "$tmp/out")"
    expect 0 "$TOOL" "$tmp/$m.onnx" -o "$tmp/x.onnx" "${args[@]}" -q
    cmp -s "$tmp/x.onnx" "$tmp/$m.onnxruntime.onnx" || fail "$m: the default is not onnxruntime"
    expect 0 "$TOOL" "$tmp/$m.onnx" -o "$tmp/x.onnx" "${args[@]}" -q --emit engine
    cmp -s "$tmp/x.onnx" "$tmp/$m.engine.onnx" || fail "$m: --emit engine is not --runtime engine"
done

py forms "${made[@]}" >"$tmp/regions" 2>"$tmp/why" || fail "$(tail -n 1 "$tmp/why")"
grep ' 0$' "$tmp/regions" >"$tmp/none" && fail "nothing is tiled: $(cat "$tmp/none")"
[ "$(wc -l <"$tmp/regions")" = 24 ] || fail "not all were looked at: $(cat "$tmp/regions")"

# the models of the golden tests, cut as small as it goes
made=()
for m in "$root"/tests/golden/*/*.ot; do
    for r in onnxruntime openvino loop portable; do
        golden=$tmp/golden-${#made[@]}-$(basename "$m" .ot).onnx
        "$TOOL" "$m" -o "$golden" --target cpu-generic --l2 1K --force -q --runtime $r 2>/dev/null || continue
        made+=("$r" "$golden")
    done
done
py forms "${made[@]}" >"$tmp/regions" 2>"$tmp/why" || fail "$(tail -n 1 "$tmp/why")"
n=$(awk '{ n += $NF } END { print n + 0 }' "$tmp/regions")
[ "$n" -ge 40 ] || fail "only $n regions in the golden models"

# a deep chain for loop: border tiles lie in bodies, too, since all that two of them make in the outer graph would live at once
py deep "$tmp/deep.onnx"
expect 0 "$TOOL" "$tmp/deep.onnx" -o "$tmp/deep.loop.onnx" --target cpu-generic --goal memory --runtime loop --json
py in_bodies "$tmp/deep.loop.onnx" "$tmp/out" || fail "a deep chain for loop"
expect 0 "$PYTHON" "$root/scripts/compare.py" --rounds 1 "$tmp/deep.onnx" "$tmp/deep.loop.onnx"

# JSON, reports, and a target file that names a runtime
expect 0 "$TOOL" inspect "$tmp/unet.onnx" "${args[@]}" --runtime loop --json --report "$tmp/r.xml" --report "$tmp/r.html" --report "$tmp/r.json"
grep -q '"runtime": *"loop"' "$tmp/out" || fail "--json does not name the runtime"
grep -q '"runtime": *"loop"' "$tmp/r.json" || fail "the JSON report does not name the runtime"
grep -q '<report [^>]*runtime="loop"' "$tmp/r.xml" || fail "the XML report does not name the runtime"
grep -q '>runtime</span> loop<' "$tmp/r.html" || fail "the page does not name the runtime"
if command -v xmllint >/dev/null; then expect 0 xmllint --noout --schema "$root/reports/benefit.xsd" "$tmp/r.xml"; fi
cat >"$tmp/t.xml" <<'X'
<target name="mine" cores="1" runtime="openvino">
  <fast bytes="65536" bandwidth="9e10" granule="64" cache="true" double-buffer="false"/>
  <slow bandwidth="1.5e10"/>
  <rates conv="5e10" conv-depthwise="2e10" conv-pointwise="5e10" gemm="4e10" elementwise="4e9" transcendental="1e9" reduction="2e9" pooling="2e9"/>
  <overheads node="1e-6" loop="1e-6" region="1e-5"/>
</target>
X
expect 0 "$TOOL" inspect "$tmp/unet.onnx" --target "$tmp/t.xml"
head -n 1 "$tmp/out" | grep -qF 'for openvino on mine' || fail "the file's runtime does not count: $(head -n 1 "$tmp/out")"
expect 0 "$TOOL" inspect "$tmp/unet.onnx" --target "$tmp/t.xml" --runtime portable
head -n 1 "$tmp/out" | grep -qF 'for portable on mine' || fail "--runtime does not replace the file's: $(head -n 1 "$tmp/out")"
sed -i 's/cache="true"/cache="false"/' "$tmp/t.xml"
expect 1 "$TOOL" inspect "$tmp/unet.onnx" --target "$tmp/t.xml"; says 'runtime="openvino"'
expect 2 "$TOOL" inspect "$tmp/unet.onnx" --target ethos-u55 --runtime openvino; says 'target ethos-u55 has a scratchpad'
expect 0 "$TOOL" inspect "$tmp/unet.onnx" --target ethos-u55 --runtime engine -q

# Tiled once more, a model has one entry; where nothing is tiled, it has none.
expect 0 "$TOOL" "$tmp/unet.portable.onnx" -o "$tmp/twice.onnx" --target cpu-generic --l2 32K --force -q
py entries "$tmp/twice.onnx" onnxruntime || fail "tiled twice: not one entry"
expect 0 "$TOOL" "$tmp/vgg16_head.onnx" -o "$tmp/same.onnx" --target h200 -q --l2 16G --max-slowdown 0
cmp -s "$tmp/vgg16_head.onnx" "$tmp/same.onnx" || py no_entry "$tmp/same.onnx" || fail "an entry, and nothing is tiled"
# a scratchpad has runtimes of its own
expect 2 "$TOOL" inspect "$root/tests/golden/rewrite/chain_lines.ot" --target ethos-u55 --runtime portable
says 'target ethos-u55 has a scratchpad: leave out --runtime; its own, device, writes standard ONNX, too'
finish
