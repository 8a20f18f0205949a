#!/usr/bin/env bash
# Skip connections that are computed twice in place of being kept (--runtime openvino, --goal memory): random encoders and decoders, in ONNX
# Runtime, and in OpenVINO where it is installed; never where normal plans keep them (--runtime onnxruntime, --force).
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" "${ROUNDS:-3}" >"$tmp/out" 2>&1 || fail "$(tail -n 5 "$tmp/out")"
[[ -z ${VERBOSE:-} ]] || cat "$tmp/out"
finish
