#!/usr/bin/env bash
# A graph that runs as a branch (goal memory): valid, equal in ONNX Runtime and in the engine, its inputs and outputs as they were; where
# nothing is tiled dynamic extents stay dynamic. What cannot be a branch is written as it was.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(head -n 20 "$tmp/out")"

# The rank of the result is known at the design size alone: a branch could not say it.
cat >"$tmp/squeezed.ot" <<'OT'
model ir 8 opset 13
graph main {
  input %x : float32[?,8,?,512]
  init %w : float32[8,8,3,3] = random 1 * 0.1
  %a = Conv(%x, %w) {pads=[1,1,1,1]}
  %b = Relu(%a)
  %c = Conv(%b, %w) {pads=[1,1,1,1]}
  %y = Squeeze(%c)
  output %y
}
OT
expect 0 "$TOOL" "$tmp/squeezed.ot" -o "$tmp/squeezed.onnx" --goal memory --design x=1,8,512,512 -q
finish
