#!/usr/bin/env bash
# run and bench on devices: options, results of a network untiled and tiled, the memory that is planned, programs kept on disk.
# run: first
. "$(dirname "$0")/lib.bash"
export POCL_CACHE_DIR=$tmp/pocl XDG_CACHE_HOME=$tmp/cache
if "$TOOL" run 2>&1 | grep -q "native engine"; then
    echo "skipped: this build has no engine"
    exit 0
fi
cat >"$tmp/net.ot" <<'OT'
model ir 8 opset 17
graph main {
  input %x : float32[1,3,64,64]
  init %w : float32[16,3,3,3] = random 1 * 0.3
  init %v : float32[16,16,3,3] = random 2 * 0.1
  init %g : float32[5,16] = random 3
  %a = Conv(%x, %w) {pads=[1, 1, 1, 1]}
  %b = Relu(%a)
  %c = Conv(%b, %v) {pads=[1, 1, 1, 1]}
  %s = Sigmoid(%c)
  %d = Mul(%c, %s)
  %m = MaxPool(%d) {kernel_shape=[2, 2], strides=[2, 2]}
  %p = GlobalAveragePool(%m)
  %f = Flatten(%p)
  %y = Gemm(%f, %g) {transB=1}
  output %m
  output %y
}
OT

cat >"$tmp/opaque.ot" <<'OT'
model ir 8 opset 17
graph main {
  input %x : float32[64,32]
  init %w : float32[32,32] = random 1 * 0.2
  init %b : float32[32] = random 2
  %r = MatMul(%x, %w)
  %a = Relu(%r)
  %g : float32[64,32] = "com.microsoft"::FusedGemm@1(%a, %w, %b) {activation="Relu"}
  %m = MatMul(%g, %w)
  %y = Relu(%m)
  output %y
}
OT
cat >"$tmp/long.ot" <<'OT'
model ir 8 opset 17
graph main {
  input %x : float32[1,70000]
  init %w : float32[70000,4] = random 1
  %y = MatMul(%x, %w)
  output %y
}
OT
cat >"$tmp/weights.ot" <<'OT'
model ir 8 opset 17
graph main {
  input %x : float32[1,4096]
  init %w : float32[4096,5000] = random 1 * 0.02
  init %v : float32[5000,4096] = random 2 * 0.02
  %m = MatMul(%x, %w)
  %y = MatMul(%m, %v)
  output %y
}
OT
cat >"$tmp/blocks.ot" <<'OT'
model ir 8 opset 17
graph main {
  input %x : float32[3600,3600]
  %t = Transpose(%x) {perm=[1, 0]}
  %y = Add(%t, %x)
  output %y
}
OT
cat >"$tmp/wide.ot" <<'OT'
model ir 8 opset 17
graph main {
  input %x : float32[1,1,512,512]
  init %w : float32[160,1,1,1] = random 1
  init %v : float32[1,160,1,1] = random 2 * 0.1
  %c = Conv(%x, %w)
  %r = Relu(%c)
  %y = Conv(%r, %v)
  output %y
}
OT
cat >"$tmp/attention.ot" <<'OT'
model ir 8 opset 17
graph main {
  input %x : float32[1,256,32]
  init %w : float32[32,32] = random 1 * 0.2
  init %u : float32[32,32] = random 2 * 0.2
  %q = MatMul(%x, %w)
  %k = MatMul(%x, %u)
  %t = Transpose(%k) {perm=[0, 2, 1]}
  %s = MatMul(%q, %t)
  %p = Softmax(%s) {axis=-1}
  %y = MatMul(%p, %x)
  output %y
}
OT

expect 2 "$TOOL" run "$tmp/net.ot" --device gpu
says "must be host, cpu, opencl, vulkan or cuda, or one of them with :N"
OCL_ICD_VENDORS=$tmp/none expect 2 "$TOOL" run "$tmp/net.ot" --device opencl
says "OpenCL"
expect 0 "$TOOL" run "$tmp/net.ot" --device host --output-dir "$tmp/host"
expect 2 "$TOOL" run "$tmp/net.ot" --device-check
says "add --device opencl"
expect 2 "$TOOL" run "$tmp/net.ot" --device-memory 1G
says "add --device opencl"

# API, model of one output: the device and the host make the same
same_as_host() {
    expect 0 "$TOOL" run "$2" --device "$1" --output-dir "$tmp/same"
    expect 0 "$TOOL" run "$2" --output-dir "$tmp/same_host"
    py same "$tmp" >"$tmp/said" 2>&1 || fail "$api: $(cat "$tmp/said")"
}

# the same, with values in several blocks where no buffer of the device holds all
in_blocks() {
    same_as_host "$1" "$2"
    expect 0 "$TOOL" run "$2" --device "$1" --trace "$tmp/blocks.trace" --json
    cp "$tmp/out" "$tmp/figures.json"
    expect 0 "$TOOL" devices --json
    py blocks "$tmp/figures.json" "$tmp/out" >"$tmp/said" 2>&1 || fail "$api: $(cat "$tmp/said")"
}

# $1: the API that runs it; skipped where it has no device
run_on() {
    local api=$1
    if ! "$TOOL" run "$tmp/net.ot" --device "$api" -q >"$tmp/out" 2>&1; then
        grep -qE "OpenCL|Vulkan|GLSL|CUDA" "$tmp/out" || fail "$(cat "$tmp/out")"
        echo "skipped: no device of $api: what runs on one"
        return
    fi
    # the same numbers, and programs from disk the second time
    expect 0 "$TOOL" run "$tmp/net.ot" --device "$api" --json --output-dir "$tmp/device"
    cp "$tmp/out" "$tmp/untiled.json"
    ls "$tmp/cache/onnx-tile/device/$api"-*.bin >/dev/null || fail "no program is kept"
    expect 0 "$TOOL" run "$tmp/net.ot" --device "$api"
    grep -q "functions, read in" "$tmp/out" || fail "the program is compiled again: $(cat "$tmp/out")"
    grep -q "9 nodes on the device, 0 on the host" "$tmp/out" || fail "nodes: $(cat "$tmp/out")"
    expect 0 "$TOOL" "$tmp/net.ot" -o "$tmp/tiled.onnx" --emit engine --force --l2 64K -q
    # shaders of tiles as the driver makes them fast: most of the time is that of its compiler
    POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable expect 0 "$TOOL" run "$tmp/tiled.onnx" --device "$api" --json --output-dir "$tmp/tiled"
    py figures "$tmp" "$tmp/out" "$api" >"$tmp/said" 2>&1 || fail "$api: $(cat "$tmp/said")"

    # looked at: memory of activations is NaN before each run, and nothing of it is in what comes out
    expect 0 "$TOOL" run "$tmp/net.ot" --device "$api" --device-check --output-dir "$tmp/checked"
    grep -q "checked: .* filled with NaN before each run" "$tmp/out" || fail "not checked: $(cat "$tmp/out")"
    expect 0 "$TOOL" run "$tmp/tiled.onnx" --device "$api" --device-check --repeat 2 --json
    py checked "$tmp" "$tmp/out" >"$tmp/said" 2>&1 || fail "$api: $(cat "$tmp/said")"

    # a budget: kept to the byte, or refused before anything runs
    need=$("$PYTHON" -c 'import json, sys; print(json.load(open(sys.argv[1]))["device"]["held_bytes"])' "$tmp/untiled.json")
    expect 0 "$TOOL" run "$tmp/net.ot" --device "$api" --device-memory "$need"
    expect 3 "$TOOL" run "$tmp/net.ot" --device "$api" --device-memory $((need - 1)) --output-dir "$tmp/none"
    says "of device memory"
    [ ! -e "$tmp/none" ] || fail "results of a model that did not run"
    expect 0 "$TOOL" run "$tmp/tiled.onnx" --device "$api" --device-memory $((need - 1))

    # a sum over more numbers than the loops of some drivers go through
    same_as_host "$api" "$tmp/long.ot"
    # weights that no buffer of llvmpipe (128 MiB) holds together: in several
    [ "$api" = cuda ] || same_as_host "$api" "$tmp/weights.ot" # which the library that stands for CUDA has not
    # and values, each of them whole in one block
    [ "$api" = cuda ] || in_blocks "$api" "$tmp/blocks.ot"
    # a value that no buffer of llvmpipe holds: refused with what helps, and that does
    if [ "$api" = vulkan ] && ! "$TOOL" run "$tmp/wide.ot" --device vulkan -q >"$tmp/out" 2>"$tmp/err"; then
        says "value 'r' takes 160 MiB of device memory; the device has 128 MiB in one block: tiles take less, by --emit engine --max-tensor 128M"
        expect 0 "$TOOL" "$tmp/wide.ot" -o "$tmp/wide.onnx" --emit engine --runtime engine-device --max-tensor 128M
        expect 0 "$TOOL" run "$tmp/wide.onnx" --device vulkan --output-dir "$tmp/same"
        expect 0 "$TOOL" run "$tmp/wide.ot" --output-dir "$tmp/same_host"
        py same "$tmp" >"$tmp/said" 2>&1 || fail "$api: $(cat "$tmp/said")"
    fi
    # tiles of what a node makes that the host runs, and whose shape the file alone states
    expect 0 "$TOOL" "$tmp/opaque.ot" -o "$tmp/opaque.onnx" --runtime engine-device --force --l2 2K
    grep -q '^  r1 ' "$tmp/out" || fail "no tiles behind the opaque node: $(cat "$tmp/out")"
    same_as_host "$api" "$tmp/opaque.onnx"

    # bench tiles for the device, where scores of an attention are stored
    expect 0 "$TOOL" bench "$tmp/attention.ot" --target cpu-generic --goal memory --max-slowdown 50 --l2 64K --device "$api" --repeat 1 --json
    py attention "$tmp/out" >"$tmp/said" 2>&1 || fail "$api: $(cat "$tmp/said")"

    expect 0 "$TOOL" bench "$tmp/net.ot" "$tmp/tiled.onnx" --device "$api" --repeat 2
    [ "$(grep -c 'nodes on the device' "$tmp/out")" = 2 ] || fail "bench: $(cat "$tmp/out")"
    grep -q "output m .*same" "$tmp/out" || fail "bench: $(cat "$tmp/out")"
    expect 0 "$TOOL" bench "$tmp/net.ot" "$tmp/tiled.onnx" --device "$api" --repeat 1 --json
    py bench "$tmp/out" "$api" >"$tmp/said" 2>&1 || fail "$api: $(cat "$tmp/said")"

    # what the device did: a process for each model, a row for each queue, the sums in JSON
    expect 0 "$TOOL" run "$tmp/tiled.onnx" --device "$api" --trace "$tmp/run.json" --json
    cp "$tmp/out" "$tmp/figures.json"
    expect 0 "$TOOL" bench "$tmp/net.ot" "$tmp/tiled.onnx" --device "$api" --repeat 1 --trace "$tmp/bench.json" -q
    py trace "$tmp" >"$tmp/said" 2>&1 || fail "$api: $(cat "$tmp/said")"
    # the same in reports
    POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable expect 0 "$TOOL" bench "$tmp/net.ot" --force --l2 64K --device "$api" --repeat 1 --json --report "$tmp/r.html" --report "$tmp/r.xml" \
        --report "$tmp/r.json" --report "$tmp/r.csv"
    cp "$tmp/out" "$tmp/figures.json"
    expect 0 xmllint --noout --schema "$root/reports/benefit.xsd" "$tmp/r.xml"
    expect 0 "$PYTHON" "$root/tests/e2e/report_check.py" "$tmp/r"
    py report "$tmp" "$api" >"$tmp/said" 2>&1 || fail "$api: $(cat "$tmp/said")"
    expect 0 "$TOOL" compare "$tmp/r.xml" "$tmp/r.xml" -o "$tmp/same.html"
    grep -q "activations on the device" "$tmp/same.html" || fail "compare leaves the device out"
}
run_on opencl
# layers that find something say so on stdout, which is no JSON then
VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation "$TOOL" devices >/dev/null 2>&1 && export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
run_on vulkan

# CUDA C: on a GPU where there is one; else as C++ on the host (tests/unit/stub_cuda.c), and compiled for one where the toolkit is
if ! "$TOOL" devices | grep -q "^cuda:"; then
    expect 2 "$TOOL" run "$tmp/net.ot" --device cuda
    says "no CUDA device"
    [ "$(wc -l <"$tmp/err")" = 1 ] || fail "more than a line: $(cat "$tmp/err")"
    mkdir "$tmp/stub"
    for name in libcuda.so.1 libnvrtc.so.13; do
        cc -w -shared -fPIC -Wl,-soname,$name -o "$tmp/stub/$name" "$root/tests/unit/stub_cuda.c" || fail "no stub of $name"
    done
    export LD_LIBRARY_PATH=$tmp/stub
    echo "no CUDA device: CUDA C runs on the host"
fi
run_on cuda
if [ -d "$tmp/stub" ] && ! command -v nvcc >/dev/null; then
    echo "skipped: no nvcc: CUDA C compiled for a GPU"
elif [ -d "$tmp/stub" ]; then
    for program in "$tmp"/cache/onnx-tile/device/cuda-*.bin; do
        # the program at the end of the file, behind the stub's two lines
        tail -c "$(($(od -An -tu8 -j16 -N8 "$program")))" "$program" | tail -n +3 >"$tmp/k.cu"
        LD_LIBRARY_PATH= expect 0 nvcc -ptx -o "$tmp/k.ptx" "$tmp/k.cu"
        grep -q "entry k0" "$tmp/k.ptx" || fail "no kernel in $program"
    done
fi
finish
