#!/usr/bin/env bash
# Squeeze and excitation: what is pooled and then scaled is computed twice in place of being kept (--goal memory): random networks in ONNX
# Runtime, equal; never with goal time.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" "${ROUNDS:-3}" >"$tmp/out" 2>&1 || fail "$(tail -n 5 "$tmp/out")"
[[ -z ${VERBOSE:-} ]] || cat "$tmp/out"
finish
