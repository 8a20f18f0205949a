#!/usr/bin/env bash
# Make the sample reports: reports.sh FOLDER. Nothing in them depends on the machine: presets, no measurement.
#
#   resnet50.{html,xml}           ResNet-50, batch 8, on a chip with a scratchpad of 16 MB, for less time
#   super-resolution.{html,xml}   the super-resolution network of the README at 1280 x 720 on four CPU cores with 1 MiB of L2 each, for less memory
#   compare.html                  that network on two targets: the cores, and a chip with a scratchpad of 16 MB
#
# TOOL and PYTHON come from the Makefile.
set -eu
out=$(cd "${1:?usage: reports.sh FOLDER}" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
TOOL=${TOOL:-$root/build/onnx-tile}
PYTHON=${PYTHON:-$root/.venv/bin/python}
export ONNX_TILE_CACHE=off
models=$(mktemp -d)
trap 'rm -rf "$models"' EXIT

"$PYTHON" "$root/models/make_models.py" "$models" resnet50 --size 224 --batch 8
"$PYTHON" "$root/models/make_models.py" "$models" sr --size 720
mv "$models/sr.onnx" "$models/super-resolution.onnx"
cd "$models" # the reports name the models as they are given here
report() {
    local name=$1
    shift
    "$TOOL" inspect -q "$name.onnx" --goal memory --max-slowdown 20 --emit engine "$@"
}
"$TOOL" inspect -q resnet50.onnx --target tlf-16m --report "$out/resnet50.html" --report "$out/resnet50.xml"
report super-resolution --target cpu-generic --threads 4 --report "$out/super-resolution.html" --report "$out/super-resolution.xml"
report super-resolution --target tlf-16m --report "$models/other.xml"
"$TOOL" compare "$out/super-resolution.xml" "$models/other.xml" -o "$out/compare.html"
