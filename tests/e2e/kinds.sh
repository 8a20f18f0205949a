#!/usr/bin/env bash
# Each kind of network that tests/models/builder.py makes: valid, the same bytes each time, and tiled by force the same outputs.
. "$(dirname "$0")/lib.bash"
py models "$tmp" >"$tmp/kinds" || fail "cannot make the models"
tiled=0
while read -r kind error; do
    expect 0 "$TOOL" "$tmp/$kind.onnx" -o "$tmp/$kind-tiled.onnx" --force --l2 4K --target cpu-generic --threads 1 --json
    grep -q '"id": 0' "$tmp/out" && tiled=$((tiled + 1))
    py same "$tmp/$kind.onnx" "$tmp/$kind-tiled.onnx" "$error" >"$tmp/said" 2>&1 || fail "$kind: $(tail -n 1 "$tmp/said")"
done <"$tmp/kinds"
[ "$(wc -l <"$tmp/kinds")" = 10 ] && [ $tiled -ge 8 ] || fail "only $tiled kinds are tiled: $(cat "$tmp/kinds")"
finish
