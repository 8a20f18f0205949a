#!/usr/bin/env bash
# Weights of 2, 4 and 8 bits: tiled models load in ONNX Runtime and give the bits of the untiled ones, whoever reads what is dequantised.
# run: first
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
finish
