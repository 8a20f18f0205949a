#!/usr/bin/env bash
# Weights in Constant nodes, as PaddlePaddle's exporter writes them (src/onnx/import/lift_constants.c): planned and written as initializers are;
# what is not tiled keeps its nodes.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(head -n 20 "$tmp/out")"
finish
