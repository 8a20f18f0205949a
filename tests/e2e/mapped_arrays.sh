#!/usr/bin/env bash
# run: large arrays stay in their files. The bits of the run that reads and writes, in less memory; one line where a file is wrong.
. "$(dirname "$0")/lib.bash"

if "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; then
    echo "skipped: this build has no engine"
    exit 0
fi
cd "$tmp" || exit 1
py networks || fail "cannot make the models"
nothing_left() { ! ls -A "${1:-.}" | grep -q '\.tmp$' || fail "a temporary file is left: $(ls -A "${1:-.}")"; }

# ---- the same bits, whatever is mapped ----
# threads, tiles in order and not, files that are .npy and raw; what comes through a pipe is read, what goes into one is put
for k in 0 1 2 3; do
    mkfifo in$k.npy out$k.raw
    shape=x=$(cat shape$k)
    for form in plain forced stream; do
        [ $form = plain ] && cp net$k.onnx m.onnx
        [ $form = forced ] && expect 0 "$TOOL" net$k.onnx -o m.onnx --emit engine --force --no-streams --shape $shape --l2 256K -q
        [ $form = stream ] && expect 0 "$TOOL" net$k.onnx -o m.onnx --emit engine --goal memory --shape $shape -q
        cat x$k.npy >in$k.npy & cat out$k.raw >want & expect 0 "$TOOL" run m.onnx --input x=in$k.npy --output y=out$k.raw -q; wait
        for threads in 1 3; do
            expect 0 "$TOOL" run m.onnx --input x=x$k.npy --output y=y.npy --threads $threads -q
            py same want y.npy || fail "net$k $form, $threads threads"
            expect 0 "$TOOL" run m.onnx --shape $shape --input x=x$k.raw --output y=y.raw --threads $threads -q --repeat 2
            cmp -s want y.raw || fail "net$k $form, $threads threads, raw files"
        done
        expect 0 "$TOOL" run m.onnx --input x=x$k.npy --output-dir d -q
        py same want d/0.npy || fail "net$k $form, a folder"
    done
done
nothing_left

# ---- inputs of other types ----
# converted by NumPy, or in the graph: one type and one product
for k in 0 1 2 3; do
    shape=x=$(cat shape$k)
    expect 0 "$TOOL" net$k.onnx -o tiled.onnx --emit engine --goal memory --shape $shape -q
    for type in uint8 int16 float16; do
        scale=1/255
        [ $type = int16 ] && scale=-0.001953125
        py typed $k $type $scale
        for m in net$k.onnx tiled.onnx; do
            expect 0 "$TOOL" run $m --input x=float.npy --output y=want.npy -q
            expect 0 "$TOOL" run $m --input x=typed.npy --input-type $type --scale $scale --output y=y.npy -q --threads 2
            cmp -s want.npy y.npy || fail "$m: an input of $type"
        done
        expect 0 "$TOOL" run tiled.onnx --shape $shape --input x=typed.raw --input-type x=$type --scale x=$scale --output y=y.npy -q
        cmp -s want.npy y.npy || fail "net$k: a raw input of $type"
    done
done
expect 0 "$TOOL" run half.onnx --input x=typed.npy --input-type float16 --output-dir d -q
py halved typed.npy d/0.npy || fail "half precision"
expect 0 "$TOOL" run half.onnx --input x=typed.npy --scale 3 --output-dir d -q
py halved typed.npy d/0.npy 3 || fail "half precision, scaled"

# bytes of a picture are never floats: 11 MB and 15 MB of files under 24 MiB, of which the floats would take 46
expect 0 "$TOOL" net0.onnx -o bytes.onnx --emit engine --goal memory --shape x=1,3,1960,1960 -q
py large 1960 bytes.npy u1
expect 0 bash -c 'ulimit -d 24576 && exec "$@"' - "$TOOL" run bytes.onnx --input x=bytes.npy --input-type uint8 --scale 1/255 --output y=y.npy -q

expect 2 "$TOOL" run net0.onnx --input-type text; says 'must end in a type like uint8'
expect 2 "$TOOL" run net0.onnx --input-type x=uint8 --input-type x=int8; says 'gives an input twice'
for scale in 0 nan 1/0 1/ x 1e999; do
    expect 2 "$TOOL" run net0.onnx --scale $scale; says 'must end in a number like 0.5 or 1/255, not 0'
done
expect 2 "$TOOL" run net0.onnx --input-type q=uint8; says "the model has no input 'q' to convert"
expect 2 "$TOOL" run sum.onnx --input-type uint8; says 'need its name, INPUT='
expect 1 "$TOOL" run sum.onnx --input-type a=bool; says "input 'a' cannot come as bool"
expect 1 "$TOOL" run sum.onnx --scale b=2; says 'whole numbers of the model cannot be scaled'
expect 1 "$TOOL" run branch.onnx --input-type x=uint8; says 'a subgraph of the model reads it'
expect 1 "$TOOL" run net0.onnx --input x=x0.npy --input-type uint8; says "input 'x' is uint8, but 'x0.npy' holds float32"

# ---- in less memory than the arrays ----
# 46 MB of input and 15 MB of output under a limit of 32 MiB for everything that is no file
expect 0 "$TOOL" net0.onnx -o big.onnx --emit engine --goal memory --shape x=1,3,1960,1960 -q
py large 1960 large.npy
limited() { (ulimit -d 32768 && "$@"); }
expect 0 limited "$TOOL" run big.onnx --input x=large.npy --output y=large_y.npy -q
expect 0 limited "$TOOL" run big.onnx --input x=large.npy --output y=large_y.npy -q --threads 2
expect 4 limited "$TOOL" run big.onnx --shape x=1,3,1960,1960 -q; says 'out of memory'

# ---- what is wrong ----
expect 2 "$TOOL" run big.onnx --input x=large.npy --output z=z.npy; says "--output z: the model has no output of that name; it has 'y'"
expect 2 "$TOOL" run big.onnx --input x=large.npy --output z.npy; says 'must be NAME=F.npy or NAME=F.raw'
expect 2 "$TOOL" run big.onnx --output y=a.npy --output y=b.npy; says 'gives an output twice'
expect 2 "$TOOL" run big.onnx --output y=a.npy --output-dir d; says 'leave one out'
expect 2 "$TOOL" run big.onnx --input x=large.npy --output y=large.npy; says 'this file is read'
ln -s large.npy link.npy
expect 2 "$TOOL" run big.onnx --input x=large.npy --output y=./link.npy; says 'this file is read'
expect 2 "$TOOL" run big.onnx --input x=large.npy --output y=big.onnx; says 'this file is read'
expect 2 "$TOOL" run two.onnx --output y=t.npy --output z=./t.npy; says "output 'y' goes there, too"
expect 2 "$TOOL" run net0.onnx --input x=x0.raw; says 'a raw file has no shape of its own: give --shape x=D,D,...'
expect 1 "$TOOL" run net0.onnx --input x=x0.raw --shape x=1,3,64,64; says "'x0.raw' holds"
head -c 40000000 large.npy >short.npy
expect 1 "$TOOL" run big.onnx --input x=short.npy --output y=y1.npy; says 'it holds fewer elements than its shape asks for'
py large 1960 double.npy f8
expect 1 "$TOOL" run big.onnx --input x=double.npy --output y=y1.npy; says "input 'x' is float32, but 'double.npy' holds float64"
expect 1 "$TOOL" run big.onnx --input x=x0.npy --output y=y1.npy; says "input 'x' has shape [1,3,1960,1960]"
expect 1 "$TOOL" run big.onnx --input x=none.raw --output y=y1.npy; says "cannot read 'none.raw'"
expect 4 "$TOOL" run big.onnx --input x=large.npy --output y=none/y1.npy; says 'none/y1.npy'
expect 4 "$TOOL" run big.onnx --input x=large.npy --output y=d; says 'it is a folder'
# a limit on files is what a full disk is: found before the run
full() { (ulimit -f 1000 && "$@"); }
expect 4 full "$TOOL" run big.onnx --input x=large.npy --output y=y1.npy; says "cannot write 'y1.npy'"
expect 4 full "$TOOL" run big.onnx --input x=large.npy --output-dir d1; says "cannot write 'd1/0.npy'"
[ ! -e d1 ] || fail "the folder of a run that failed is left"
[ ! -e y1.npy ] || fail "an output of a run that failed"
nothing_left
py changing "$TOOL" || fail "files that change during a run"
nothing_left
finish
