#!/usr/bin/env bash
# run-kernel on devices: the gallery and random kernels on OpenCL against NumPy and the interpreter, under oclgrind; what is refused.
# Other seeds: OT_SEED=7; more: RANDOM_KERNELS=1000, or `make soak`.
# run: first
. "$(dirname "$0")/lib.bash"
export POCL_CACHE_DIR=$tmp/pocl
gallery=$root/examples/kernels
if "$TOOL" run-kernel 2>&1 | grep -q "native engine"; then
    echo "skipped: this build has no engine"
    exit 0
fi
"$PYTHON" -c "import numpy as np; np.save('$tmp/x.npy', np.arange(8 * 256, dtype=np.float32).reshape(8, 256))"

# options, which need no device
expect 2 "$TOOL" run-kernel "$gallery/gemm.tk" --device gpu
says "must be host, cpu, opencl, vulkan or cuda, or one of them with :N"
expect 2 "$TOOL" run-kernel "$gallery/gemm.tk" --device vulkan
says "kernels run on OpenCL devices"
expect 2 "$TOOL" run-kernel "$gallery/gemm.tk" --emit-source k.c
says "must end in .cl (OpenCL C) or .cu (CUDA C)"
expect 2 "$TOOL" run-kernel "$gallery/gemm.tk" --device opencl --work-items 1025
says "must be from 1 to 1024"
expect 2 "$TOOL" run-kernel "$gallery/gemm.tk" --device opencl --trace "$tmp/t.json"
says "--trace is the interpreter's: leave out --device and --emit-source"
expect 2 "$TOOL" run-kernel "$gallery/gemm.tk" --repeat 3
says "--repeat times a device: add --device opencl"
expect 2 "$TOOL" run-kernel "$gallery/gemm.tk" --tune
says "--tune measures on a device: add --device opencl"
expect 2 "$TOOL" run-kernel "$gallery/gemm.tk" --device cpu --work-items 3
says "--work-items is for devices: add --device opencl or --emit-source F.cl"
expect 2 "$TOOL" run-kernel "$gallery/gemm.tk" --device cpu --emit-source k.cl
says "--emit-source writes a device's program, which --device cpu does not run: leave out one"

# sources of the whole gallery; those in CUDA C compile
for k in "$gallery"/*.tk; do
    name=$(basename "$k" .tk)
    for kind in cl cu; do
        expect 0 "$TOOL" run-kernel "$k" --emit-source "$tmp/$name.$kind"
        [ -s "$tmp/$name.$kind" ] || fail "no $name.$kind"
    done
    if command -v nvcc >/dev/null; then
        expect 0 nvcc -c -o "$tmp/$name.o" "$tmp/$name.cu"
    elif command -v g++ >/dev/null; then # its syntax and types, with the words of CUDA C declared
        sed '/#include <cuda_fp16.h>/d' "$tmp/$name.cu" >"$tmp/$name.cpp"
        expect 0 g++ -std=c++17 -Wall -Werror -Wno-unused -Wno-unknown-pragmas -include "$root/tests/e2e/cuda_words.h" -fsyntax-only "$tmp/$name.cpp"
    fi
done
expect 4 "$TOOL" run-kernel "$gallery/gemm.tk" --emit-source "$tmp/none/k.cl"
says "cannot"

# without a driver, and with a number that no device has
OCL_ICD_VENDORS=$tmp/none expect 2 "$TOOL" run-kernel "$gallery/double_buffer.tk" --input x="$tmp/x.npy" --device opencl
says "no OpenCL"
expect 2 "$TOOL" run-kernel "$gallery/double_buffer.tk" --input x="$tmp/x.npy" --device opencl:4096
says "no OpenCL"
if ! "$TOOL" run-kernel "$gallery/double_buffer.tk" --input x="$tmp/x.npy" --device opencl -q >"$tmp/out" 2>&1; then
    grep -q "no OpenCL" "$tmp/out" || fail "$(cat "$tmp/out")"
    echo "skipped: no OpenCL device: what runs on one"
    finish
fi

expect 0 "$TOOL" run-kernel "$gallery/double_buffer.tk" --input x="$tmp/x.npy" --device opencl --work-items 4 --stats --repeat 2 --emit-source "$tmp/k.cl"
grep -q '^device   .*: 1 work-group of 4 items, [0-9.]* s$' "$tmp/out" || fail "stats of a device: $(cat "$tmp/out")"
grep -q '^#define ITEMS 4$' "$tmp/k.cl" || fail "the source is not the one that ran"
expect 0 "$TOOL" run-kernel "$gallery/double_buffer.tk" --input x="$tmp/x.npy" --device opencl --json
"$PYTHON" -c "import json; r = json.load(open('$tmp/out')); assert r['groups'] == 1 and r['items'] >= 1 and r['outputs'][0]['name'] == 'y'" || fail "json"
expect 1 "$TOOL" run-kernel "$gallery/double_buffer.tk" --device opencl
says "'x' has no input [input-missing]"
expect 1 "$TOOL" run-kernel "$gallery/softmax.tk" --input x="$tmp/x.npy" --device opencl
says "'x' has another shape or element type than its input [input-type]"
expect 2 "$TOOL" run-kernel "$gallery/double_buffer.tk" --input x="$tmp/x.npy" --input q="$tmp/x.npy" --device opencl
says "the kernel has no param 'q'"

# sizes by measured runs: what does not fit is tried and left, the fastest is what runs
POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable "$PYTHON" "$root/tests/e2e/kernel_tune.py" "$TOOL" "$tmp" || fail "kernel_tune.py"

seed=$((${OT_SEED:-1} * 1000000))
random=${RANDOM_KERNELS:-8} # a quarter of so many as the device's compiler makes them best, the others as it makes them fast
few=$((random / 4))
"$PYTHON" "$root/tests/property/random_kernels.py" "$TOOL" $few "$seed" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
tail -n 1 "$tmp/out"
"$PYTHON" "$root/tests/property/random_kernels.py" "$TOOL" $((random - few)) $((seed + few)) --quick >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
tail -n 1 "$tmp/out"
"$PYTHON" "$root/tests/e2e/kernels.py" "$TOOL" "$root" "$tmp" device >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
tail -n 1 "$tmp/out"

# regions that stream, as programs: rows put together, line buffers
make_model --small vgg16_head --size 16 --width 4
for plan in "--form stream --force" "--form stream --goal memory --max-slowdown 1000"; do
    POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable expect 0 "$PYTHON" "$root/scripts/region_programs.py" "$TOOL" "$tmp/vgg16_head.onnx" \
        --targets tlf-16m --l2 16K --plan="$plan" --run="--device opencl"
    grep -q "^[1-9][0-9]* regions: {'equal': [0-9]*}$" "$tmp/out" || fail "streams on a device ($plan): $(cat "$tmp/out")"
    tail -n 1 "$tmp/out"
done

# transposed convolutions
make_model --small fsrcnn --size 8
POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable expect 0 "$PYTHON" "$root/scripts/region_programs.py" "$TOOL" "$tmp/fsrcnn.onnx" \
    --targets ascend-a2 --l2 16K --run="--device opencl"
grep -q "^[1-9][0-9]* regions: {'equal': [0-9]*}$" "$tmp/out" || fail "transposed convolutions on a device: $(cat "$tmp/out")"
tail -n 1 "$tmp/out"

if command -v oclgrind >/dev/null; then
    "$PYTHON" "$root/tests/e2e/kernels.py" "$TOOL" "$root" "$tmp" checker >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
    tail -n 1 "$tmp/out"
    "$PYTHON" "$root/tests/property/random_kernels.py" "$TOOL" "${RANDOM_KERNELS:-6}" "$seed" --checker >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
    tail -n 1 "$tmp/out"
    # and it would see one: iterations that are spread over groups and write the same bytes
    sed 's/store y\[i:i+16, 0:200\]/store y[0:16, 0:200]/; s/  for i/  parallel for i/' "$gallery/softmax.tk" >"$tmp/race.tk"
    "$PYTHON" -c "import numpy as np; np.save('$tmp/rows.npy', np.random.default_rng(1).random((64, 200), np.float32))"
    expect 0 oclgrind --data-races --build-options -cl-opt-disable "$TOOL" run-kernel "$tmp/race.tk" --input x="$tmp/rows.npy" -q --device opencl
    grep -q "data race at global memory" "$tmp/out" "$tmp/err" || fail "oclgrind finds no race: $(head -5 "$tmp/err")"
else
    echo "skipped: no oclgrind"
fi
finish
