#!/usr/bin/env bash
# Normalisations and reductions over cut axes: random networks, tiled by force in every form that hands out parts, in ONNX Runtime and the
# engine against float64 arithmetic: no further from it than 1e-6 of the range (half precision: two roundings), or twice as far as the
# untiled model. Recognised forms, --bit-exact.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" "${SEED:-1}" "${ROUNDS:-16}" ${VERBOSE:-} >"$tmp/out" 2>&1 || fail "$(tail -n 20 "$tmp/out")"

# InstanceNormalization of large maps, which OpenVINO makes otherwise (quirk LONG_SUM): in parts for ONNX Runtime, whole for OpenVINO and for all;
# smaller maps are decomposed for each.
for extent in 384 128; do
    cat >"$tmp/maps.ot" <<OT
model ir 8 opset 17
graph main {
  input %x : float32[1,3,$extent,$extent]
  init %w : float32[16,3,3,3] = random 1 * 0.3
  init %v : float32[3,16,3,3] = random 2 * 0.1
  init %one : float32[16] = fill 1
  init %zero : float32[16] = fill 0
  %a = Conv(%x, %w) {pads=[1, 1, 1, 1]}
  %n = InstanceNormalization(%a, %one, %zero)
  %r = Relu(%n)
  %y = Conv(%r, %v) {pads=[1, 1, 1, 1]}
  output %y
}
OT
    for runtime in onnxruntime openvino portable; do
        expect 0 "$TOOL" "$tmp/maps.ot" -o "$tmp/maps_tiled.ot" --force --l2 64K --target cpu-generic --threads 1 --runtime $runtime -q
        whole=$(grep -c 'InstanceNormalization(' "$tmp/maps_tiled.ot")
        if [ $extent = 384 ] && [ $runtime != onnxruntime ]; then
            [ "$whole" = 1 ] || fail "$runtime, $extent: a normalisation of large maps is decomposed"
        else
            [ "$whole" = 0 ] || fail "$runtime, $extent: a normalisation is not decomposed"
        fi
    done
done
finish
