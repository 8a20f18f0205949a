#!/usr/bin/env bash
# Folders of src/ use those before them only: `make arrows`.
. "$(dirname "$0")/lib.bash"
cd "$root" || exit 1
"$PYTHON" scripts/arrows.py --objects "$BUILD/obj" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
tail -n 1 "$tmp/out"
finish
