#!/usr/bin/env bash
# Everything that a GPU shows and nothing else does: sessions on CUDA (and Vulkan) devices, their memory, their time. JSON.
#
#   scripts/gpu_check.sh [-o gpu.json] [--seconds 480] [--model F.onnx[:INPUT=D,D]]...      (gpu_check.py --help has the rest)
#
# Builds the project here, if what that needs is here (scripts/setup.sh build: headers that no package of Python has), or takes TOOL=... (and
# TESTS=..., a folder of its unit tests), built elsewhere for this processor, with the libraries that it needs beside it. Needs NVIDIA's driver, and NVRTC: of the toolkit, or of
# the Python package nvidia-cuda-nvrtc. PYTHON (python3) has numpy, onnx and onnxruntime; torch, where it has it, is timed beside.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
PYTHON=${PYTHON:-python3}
if [ -z "${TOOL:-}" ]; then
    # what is missing is named, and nothing is installed: such a machine may have no network
    lacks=$("$root/scripts/setup.sh" missing)
    if [ -n "$lacks" ]; then
        echo "gpu_check: to build here, install: $lacks; or build elsewhere and set TOOL=... and TESTS=..." >&2
        exit 2
    fi
    make -C "$root" -j"$(nproc)" PYTHON="$PYTHON" all build/tests/test_device_cuda build/tests/test_engine_device build/tests/test_engine_device_layout \
        build/tests/test_engine_device_shared >&2
    TOOL=$root/build/onnx-tile TESTS=$root/build/tests
fi

# NVRTC: as the loader finds it, of the toolkit, of Python's package
there_is() { "$PYTHON" -c "import ctypes; ctypes.CDLL('libnvrtc.so.$1')" 2>/dev/null; }
there_is 13 || there_is 12 || {
    for folder in /usr/local/cuda/lib64 /usr/local/cuda/targets/*/lib $("$PYTHON" -c 'import sys; print(*[p + "/nvidia/*/lib" for p in sys.path if p])'); do
        for library in "$folder"/libnvrtc.so.1[23]; do
            [ -e "$library" ] && export LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" && break 2
        done
    done
}
if ! "$TOOL" devices | grep -qE '^(cuda|vulkan):'; then
    "$TOOL" devices >&2
    echo "no machine was lent: there is no device of CUDA or Vulkan" >&2
    exit 2
fi
exec "$PYTHON" "$root/scripts/gpu_check.py" --tool "$TOOL" ${TESTS:+--tests "$TESTS"} "$@"
