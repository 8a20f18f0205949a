#!/usr/bin/env bash
# On a terminal: a bar of progress that is wiped, a red "error". Neither where the terminal is dumb; no colour with NO_COLOR; on a pipe plain text. What goal memory would give is told where results are looked at. Names of strangers are shown without what drives a terminal.
. "$(dirname "$0")/lib.bash"
make_model vgg16_head
make_model fsrcnn --size 540
cp "$root/examples/kernels/gemm.tk" "$tmp/gemm.tk"
py "$TOOL" "$tmp" || fail "see above"
finish
