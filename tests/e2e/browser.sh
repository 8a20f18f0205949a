#!/usr/bin/env bash
# Reports in a browser: headless Chromium shows them without a complaint, in light and dark, on a phone, on paper, without
# JavaScript and by keyboard; sorting, folding and searching are driven for real. Screenshots are kept in BUILD/screenshots.
# BROWSER=no leaves the test out.
# run: first
. "$(dirname "$0")/lib.bash"
if [ "${BROWSER:-}" = no ]; then
    echo "skipped: BROWSER=no"
    exit 0
fi
engine=yes
"$TOOL" --help | grep -q 'bench MODEL.*needs the native engine' && engine=no
shots=$BUILD/screenshots
mkdir -p "$shots"
rm -f "$shots"/*.png "$shots"/*.pdf

# report NAME COMMAND...: NAME.html and NAME.xml of a run
report() {
    local name=$1
    shift
    expect 0 "$TOOL" "$@" -q --report "$tmp/$name.html" --report "$tmp/$name.xml"
}

make_model resnet50 --size 448 --width 16
make_model unet --size 256 --width 8
make_model vit --size 64 --width 48 --depth 121
"$PYTHON" "$root/tests/e2e/browser_models.py" "$tmp" || { echo "FAIL: cannot make the models"; exit 1; }

report resnet50 inspect "$tmp/resnet50.onnx" --target tlf-16m --l2 512K
report unet inspect "$tmp/hostile.onnx" --target cpu-generic --l2 256K --goal memory --max-slowdown 50
begin=$(date +%s.%N)
report transformer inspect "$tmp/vit.onnx" --target cpu-generic --force --l2 32K
took=$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.2f", b - a }')
report empty inspect "$tmp/small.onnx" --target h200
[ $engine = no ] || report bench bench "$tmp/small.onnx" --repeat 3 --force --l2 64K
expect 0 "$TOOL" inspect "$tmp/resnet50.onnx" -q --target h200 --l2 512K --goal memory --report "$tmp/other.xml"
expect 0 "$TOOL" compare "$tmp/resnet50.xml" "$tmp/other.xml" -o "$tmp/compare.html"
echo "the 4000-node transformer's reports took $took s to make"

[ $failures = 0 ] || finish
"$PYTHON" "$root/tests/e2e/browser.py" "$tmp" "$shots" || failures=1
finish
