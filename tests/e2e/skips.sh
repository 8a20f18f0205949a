#!/usr/bin/env bash
# Skip connections that are computed twice in place of being kept (--goal memory): random encoders and decoders, in ONNX Runtime, and in OpenVINO
# where it is installed; never where little time is allowed, or with --force. With dynamic shapes, too.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" "${ROUNDS:-3}" >"$tmp/out" 2>&1 || fail "$(tail -n 5 "$tmp/out")"
[[ -z ${VERBOSE:-} ]] || cat "$tmp/out"
finish
