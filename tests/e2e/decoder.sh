#!/usr/bin/env bash
# Decoders of latent diffusion models in small, --goal memory: normalisations decomposed, what the process is predicted to grow by, and that
# the tiled ones give what the untiled ones do. (Values that stay in pieces: unjoined_tiles.sh.)
. "$(dirname "$0")/lib.bash"

# check MOST ARGUMENTS...: the decoder made with the arguments
check() {
    local most=$1
    shift
    make_model decoder "$@"
    expect 0 "$TOOL" "$tmp/decoder.onnx" -o "$tmp/tiled.onnx" --goal memory --threads 1 --target cpu-generic --json
    cp "$tmp/out" "$tmp/results.json"
    py "$tmp/decoder.onnx" "$tmp/tiled.onnx" "$tmp/results.json" "$most" >"$tmp/out" 2>&1 || fail "decoder $*: $(cat "$tmp/out")"
}
check 0.39 --size 160
check 0.31 --size 256 --width 64
finish
