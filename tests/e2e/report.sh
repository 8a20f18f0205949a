#!/usr/bin/env bash
# Reports: the four forms of every command keep the schema, parse, and tell the same figures; hostile names stay names; a report
# that cannot be written leaves nothing behind; compare.
. "$(dirname "$0")/lib.bash"
command -v xmllint >/dev/null || { echo "FAIL: no xmllint: scripts/setup.sh check installs it"; exit 1; }
engine=yes
"$TOOL" --help | grep -q 'bench MODEL.*needs the native engine' && engine=no
MODELS=${MODELS:-$root/../shared/models}
r=$tmp/r
mkdir "$r" "$tmp/hold"

# report STEM COMMAND...: it succeeds and writes its four forms, which check_all looks at
stems=()
report() {
    local stem=$1
    shift
    stems+=("$stem")
    expect 0 "$TOOL" "$@" -q --report "$stem.html" --report "$stem.xml" --report "$stem.json" --report "$stem.csv"
    for form in html xml json csv; do [ -s "$stem.$form" ] || fail "no $stem.$form of $*"; done
}

# All reports so far; every fourth page goes through the slow HTML5 parser.
check_all() {
    local k arguments=()
    for k in "${!stems[@]}"; do
        if [ $((k % 4)) = 0 ]; then arguments+=("strict:${stems[$k]}"); else arguments+=("${stems[$k]}"); fi
    done
    xmllint --noout --schema "$root/reports/benefit.xsd" "${stems[@]/%/.xml}" >"$tmp/out" 2>&1 ||
        fail "schema: $(grep -v ' validates$' "$tmp/out" | head -n 5)"
    "$PYTHON" "$root/tests/e2e/report_check.py" "${arguments[@]}" >"$tmp/out" 2>&1 || fail "$(head -n 20 "$tmp/out")"
}

# ---- the models of the tests, third-party ones, on several targets and for both goals ----
make_model --small resnet50 unet vit espcn seed_case mobilenet_v2_qdq vgg16_head
targets=(host cpu-generic tlf-16m mcu-512k)
n=0
for model in "$tmp"/*.onnx "$root"/tests/golden/rewrite/*.ot; do
    name=$(basename "${model%.*}")
    options=(--target "${targets[$((n % 4))]}")
    [ $((n % 3)) = 1 ] && options+=(--goal memory)
    [ $((n % 2)) = 0 ] && options+=(--emit engine)
    report "$r/$name" inspect "$model" "${options[@]}"
    report "$r/$name-force" "$model" -o "$tmp/hold/$name.onnx" "${options[@]}" --force --l2 64K
    n=$((n + 1))
done
for name in edge_residual_block edge_whisper_enc_attn edge_dynamic_dim_repeat_invalid edge_nested_if_loop_scan edge_fp16_loop \
    edge_optional_inputs_ir3 edge_gemma3_vision_attn mnist_cntk espcn_x3_quant_qonnx onnxasr_nemo80 unet_sed ort_simplified_ssd; do
    [ -f "$MODELS/$name.onnx" ] || continue
    report "$r/$name" inspect "$MODELS/$name.onnx" --target cpu-generic --emit engine
done

# ---- bench: what was measured; a tiled file, which has no plan ----
if [ $engine = yes ]; then
    for name in resnet50 vgg16_head; do
        report "$r/bench-$name" bench "$tmp/$name.onnx" --repeat 1 --l2 64K --force
        py timed "$r/bench-$name.json" 2>"$tmp/why" || fail "bench of $name: $(tail -n 1 "$tmp/why")"
    done
    expect 0 "$TOOL" "$tmp/vgg16_head.onnx" -o "$tmp/hold/tiled.onnx" --emit engine -q --l2 64K --force --target cpu-generic
    report "$r/bench-file" bench "$tmp/vgg16_head.onnx" "$tmp/hold/tiled.onnx" --repeat 1
    report "$r/of-tiled" inspect "$tmp/hold/tiled.onnx" --emit engine --target cpu-generic
fi

# ---- plan-memory: kernels and a table ----
for k in 01_sequential 05_rollback 11_control_flow 12_scopes; do
    report "$r/$k" plan-memory "$root/tests/golden/kernel/$k.tk" -o "$tmp/hold/$k.tk"
done
report "$r/passes" plan-memory "$root/examples/kernels/auto_tile.tk" -o "$tmp/hold/passes.tk"
py passes "$r/passes" "$tmp/hold/passes.tk" 2>"$tmp/why" || fail "passes: $(tail -n 1 "$tmp/why")"
printf 'id,lower,upper,size\nb1,0,3,4\n"<b2>&""",3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n' >"$tmp/five.csv"
report "$r/table" plan-memory "$tmp/five.csv" -o "$tmp/hold/five.csv"

# ---- models with little in them ----
printf 'model ir 8 opset 17\ngraph g {\n  input %%x : float32[2,3]\n  output %%x\n}\n' >"$tmp/empty.ot"
py little "$tmp" || fail "cannot make the models"
report "$r/empty" inspect "$tmp/empty.ot" --target cpu-generic
report "$r/flow" inspect "$tmp/flow.onnx" --target cpu-generic
report "$r/dynamic" inspect "$tmp/dynamic.onnx" --target cpu-generic # which no guessed size fits
grep -q 'shape="?x?"' "$r/dynamic.xml" || fail "unknown dimensions are not told"

# ---- what the process grows by stands first, with the figures that the terminal tells ----
expect 0 "$TOOL" inspect "$tmp/unet.onnx" --target cpu-generic --goal memory --json
cp "$tmp/out" "$tmp/told.json"
report "$r/growth" inspect "$tmp/unet.onnx" --target cpu-generic --goal memory
py process "$r/growth.json" "$tmp/told.json" 2>"$tmp/why" || fail "process: $(tail -n 1 "$tmp/why")"

# ---- the same input, the same bytes ----
for model in "$tmp/unet.onnx" "$tmp/hold/five.csv"; do
    command=(inspect "$model" --target cpu-generic --emit engine)
    [ "${model##*.}" = csv ] && command=(plan-memory "$model" -o "$tmp/hold/o.csv")
    report "$r/once" "${command[@]}"
    report "$r/again" "${command[@]}"
    for form in html xml json csv; do cmp -s "$r/once.$form" "$r/again.$form" || fail "$form of $model differs from run to run"; done
done

# ---- hostile names, also of the file ----
hostile=$tmp/hold/$(printf '"><img src=x onerror=alert(1)>\n'"'"'&\033.onnx')
py hostile "$hostile" || fail "cannot make the hostile model"
report "$r/hostile" inspect "$hostile" --target cpu-generic --emit engine --force --l2 64K
report "$r/hostile-plain" "$hostile" -o "$tmp/hold/out.onnx" --target mcu-512k --force
[ $engine = no ] || report "$r/hostile-bench" bench "$hostile" --repeat 1 --target cpu-generic --force
for form in html xml json csv; do
    LC_ALL=C grep -q $'[\001\033\037]' "$r/hostile.$form" && fail "$form: control characters"
    iconv -f utf-8 -t utf-8 "$r/hostile.$form" >"$tmp/out" 2>&1 || fail "$form is no UTF-8"
done
for form in html xml; do grep -qE '<img|<script>alert|<svg/onload' "$r/hostile.$form" && fail "$form: a name became markup"; done
grep -q $'\xe2\x80\xae' "$r/hostile.html" && fail "a name can turn the page around"

# ---- what cannot be written: exit 4, one line, and nothing left ----
for form in html xml json csv; do
    ln -sf /dev/full "$tmp/full.$form"
    for file in "$tmp/no/such/folder/f.$form" "$tmp/full.$form"; do
        expect 4 "$TOOL" "$tmp/vgg16_head.onnx" -o "$tmp/hold/none.onnx" -q --report "$file"
        says "$file"
        [ ! -e "$tmp/hold/none.onnx" ] || fail "a model in spite of a report that failed"
    done
done
mkdir "$tmp/bare"
: >"$tmp/bare/a.xml"
expect 4 "$TOOL" inspect "$tmp/vgg16_head.onnx" -q --report "$tmp/bare/a.xml/b.html"
[ "$(ls -A "$tmp/bare")" = a.xml ] || fail "left behind: $(ls -A "$tmp/bare")"
expect 2 "$TOOL" inspect "$tmp/vgg16_head.onnx" -q --report "$tmp/f.pdf"
says 'must end in .html'

# ---- compare ----
report "$r/a" inspect "$tmp/unet.onnx" --target cpu-generic --emit engine
report "$r/b" inspect "$tmp/unet.onnx" --target tlf-16m --emit engine
compare() {
    expect 0 "$TOOL" compare "$1" "$2" -o "$tmp/diff.html"
    py parse "$tmp/diff.html" 2>"$tmp/why" || fail "compare $1 $2: $(tail -n 1 "$tmp/why")"
}
compare "$r/a.xml" "$r/b.xml"
for name in cpu-generic tlf-16m; do grep -q "$name" "$tmp/diff.html" || fail "the comparison does not name $name"; done
cp "$tmp/diff.html" "$tmp/first.html"
expect 0 "$TOOL" compare "$r/a.xml" "$r/b.xml" -o "$tmp/diff.html"
cmp -s "$tmp/first.html" "$tmp/diff.html" || fail "compare differs from run to run"
compare "$r/hostile.xml" "$r/hostile.xml"
compare "$r/empty.xml" "$r/empty.xml"
compare "$r/table.xml" "$r/table.xml"
rm -f "$tmp/diff.html"
head -c 2000 "$r/a.xml" >"$tmp/cut.xml"
head -c 3000 /dev/urandom >"$tmp/noise.xml"
sed 's/depth="0"/depth="none"/' "$r/a.xml" >"$tmp/word.xml"
printf '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "x"><!ENTITY b "&a;&a;&a;">]><report>&b;</report>' >"$tmp/entity.xml"
: >"$tmp/void.xml"
for file in cut noise word entity void; do
    expect 1 "$TOOL" compare "$r/a.xml" "$tmp/$file.xml" -o "$tmp/diff.html"
    says "$file.xml"
    [ ! -e "$tmp/diff.html" ] || fail "a comparison with $file.xml"
done
expect 1 "$TOOL" compare "$r/a.xml" "$r/table.xml" -o "$tmp/diff.html"
says ''
expect 4 "$TOOL" compare "$r/a.xml" "$tmp/missing.xml" -o "$tmp/diff.html"
says missing.xml

check_all
finish
