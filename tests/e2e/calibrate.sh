#!/usr/bin/env bash
# calibrate: figures of this machine in a valid target file; when the target `host` uses those in the cache, and when not.
# run: alone
. "$(dirname "$0")/lib.bash"

if "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; then
    echo "skipped: this build has no engine"
    exit 0
fi
make_model --small depthwise
m=$tmp/depthwise.onnx
cd "$tmp" || exit 1

# ---- measuring ----
expect 0 timeout 120 "$TOOL" calibrate -o t.xml --threads 1
grep -q '^matrix product .* G multiply-adds/s$' "$tmp/out" || fail "no figures: $(cat "$tmp/out")"
grep -q '<target name="host-calibrated" .*cpu="[^"]*" cores="1"' t.xml || fail "the file: $(cat t.xml)"
grep -qF -e "$tmp" -e "$(hostname)" t.xml && fail "the file names a path or the host"
if command -v xmllint >/dev/null; then
    xmllint --noout --schema "$root/reports/target.xsd" t.xml 2>/dev/null || fail "the schema refuses the file"
fi
py figures t.xml || fail "figures that no machine has"
expect 0 "$TOOL" inspect "$m" --target t.xml --json
grep -q '"name": "host-calibrated"' "$tmp/out" || fail "the file is not used as a target"

# ---- the cache ----
uses() { # words of the note, arguments
    local note=$1
    shift
    expect 0 "$TOOL" inspect "$m" --emit engine -v "$@"
    grep -q "^onnx-tile: host: $note" "$tmp/err" || fail "not '$note': $(cat "$tmp/err")"
}
export ONNX_TILE_CACHE=$tmp/t.xml
uses 'calibrated with 1 threads on' --threads 1
uses 'built-in estimates (the cached calibration is of 1 threads)' --threads 2
expect 0 "$TOOL" inspect "$m" --emit onnx --threads 1 --json
grep -q '"name": "host"' "$tmp/out" || fail "plans for other runtimes use the engine's figures"
expect 0 "$TOOL" inspect "$m" --emit engine --threads 1 --json
grep -q '"name": "host-calibrated"' "$tmp/out" || fail "plans for the engine do not use its figures"
expect 0 "$TOOL" inspect "$m" --emit engine --threads 1 --json --target cpu-generic
grep -q '"name": "cpu-generic"' "$tmp/out" || fail "another target is replaced, too"
sed 's/ cpu="[^"]*"/ cpu="another"/' t.xml >other.xml
ONNX_TILE_CACHE=$tmp/other.xml uses 'built-in estimates (the cached calibration is of another processor: another)' --threads 1
sed 's/<rates/<prices/' t.xml >broken.xml
ONNX_TILE_CACHE=$tmp/broken.xml uses 'built-in estimates (the cached calibration is not valid' --threads 1
ONNX_TILE_CACHE=$tmp/none.xml uses 'built-in estimates$' --threads 1
ONNX_TILE_CACHE=off uses 'built-in estimates$' --threads 1
sed 's/cores="1"/cores="4096"/' t.xml >many.xml
expect 0 env ONNX_TILE_CACHE="$tmp/many.xml" "$TOOL" --list-targets
grep -q '^host .*; for the engine calibrated with 4096 threads on ' "$tmp/out" || fail "the list: $(head -n 1 "$tmp/out")"
expect 0 env -u ONNX_TILE_CACHE XDG_CACHE_HOME="$tmp/cache" "$TOOL" --list-targets
grep -q 'for the engine' "$tmp/out" && fail "a calibration from nowhere"
mkdir -p cache/onnx-tile && cp many.xml cache/onnx-tile/host.xml
expect 0 env -u ONNX_TILE_CACHE XDG_CACHE_HOME="$tmp/cache" "$TOOL" --list-targets
grep -q 'for the engine' "$tmp/out" || fail "the cache folder is not looked at"

# ---- what is wrong ----
ONNX_TILE_CACHE=off expect 2 "$TOOL" calibrate; says 'there is no cache to write to'
finish
