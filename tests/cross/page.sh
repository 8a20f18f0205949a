#!/usr/bin/env bash
# run: first
# The page (`make page`, build/page) in headless Chromium: what it saves are the bytes that TOOL writes here. `make check-page` runs it.
. "$(dirname "$0")/../e2e/lib.bash"
[ -f "$root/build/page/onnx-tile.wasm" ] || { echo "FAIL: no build/page: make page"; exit 1; }
shots=$BUILD/screenshots
mkdir -p "$shots" "$tmp/given" "$tmp/want"
cd "$tmp/given" || exit 1

# native NAME OPTIONS...: as the page calls it; texts in NAME.out, NAME.err, files in want/
native() {
    local name=$1
    shift
    "$TOOL" "$name.onnx" -o "../want/$name.tiled.onnx" --report "../want/$name.html" --goal memory --target cpu-generic --runtime onnxruntime "$@" \
        >"../want/$name.out" 2>"../want/$name.err" </dev/null
    echo $? >"../want/$name.rc"
}
make_model --small unet
make_model resnet50 --size 64 --width 32 --batch 4
mv "$tmp"/*.onnx .
"$PYTHON" "$root/tests/cross/page_models.py" . || { echo "FAIL: cannot make the models"; exit 1; }
for name in unet resnet50 outside; do native $name; done
native free --max-slowdown 40 --shape x=1,4,256,256 --force --l2 64K
native broken
truncate -s 2G large.bin # takes no place
[ "$(cat ../want/*.rc | tr -d '\n')" = 10000 ] || fail "exit statuses of the native program: $(cat ../want/*.rc | tr '\n' ' ')"
for name in outside free; do grep -q tile/r0 ../want/$name.tiled.onnx || fail "$name.onnx is not tiled"; done
ls ../want/*.data >/dev/null || fail "no file of weights"
"$PYTHON" "$root/tests/cross/page.py" "$root/build/page" "$tmp" "$shots" || failures=1
finish
