#!/usr/bin/env bash
# Outputs appear whole or not at all; pipes and devices are written to; broken inputs are one line and exit 1.
. "$(dirname "$0")/lib.bash"
make_model --small sr depthwise
m=$tmp/sr.onnx

# a good run, twice: same bytes, nothing else left in the folder
mkdir "$tmp/o"
expect 0 "$TOOL" "$m" -o "$tmp/o/t.onnx" --l2 64K
cp "$tmp/o/t.onnx" "$tmp/first.onnx"
expect 0 "$TOOL" "$m" -o "$tmp/o/t.onnx" --l2 64K
cmp -s "$tmp/o/t.onnx" "$tmp/first.onnx" || fail "two runs differ"
[ "$(ls -A "$tmp/o")" = t.onnx ] || fail "left behind: $(ls -A "$tmp/o")"
mode=$(stat -c %a "$tmp/o/t.onnx")
touch "$tmp/plain"
[ "$mode" = "$(stat -c %a "$tmp/plain")" ] || fail "mode $mode of the output is not that of a new file"

# in place
cp "$m" "$tmp/same.onnx"
expect 0 "$TOOL" "$tmp/same.onnx" -o "$tmp/same.onnx" --l2 64K
cmp -s "$tmp/same.onnx" "$tmp/first.onnx" || fail "in place gives other bytes"

# stdin, stdout, pipe, device
"$TOOL" - -o - --l2 64K <"$m" >"$tmp/piped.onnx" 2>"$tmp/err" || fail "pipe: $(cat "$tmp/err")"
cmp -s "$tmp/piped.onnx" "$tmp/first.onnx" || fail "through pipes other bytes come out"
expect 0 "$TOOL" "$m" -o /dev/null -q
[ -c /dev/null ] || fail "/dev/null was replaced"
mkfifo "$tmp/fifo"
cat "$tmp/fifo" >"$tmp/from_fifo" &
expect 0 "$TOOL" "$m" -o "$tmp/fifo" -q --l2 64K
wait
[ -p "$tmp/fifo" ] || fail "the pipe was replaced"
cmp -s "$tmp/from_fifo" "$tmp/first.onnx" || fail "the pipe got other bytes"

# failures leave no file, and leave the file that was there
broken() { # file, text that the message must have
    rm -f "$tmp/no.onnx"
    expect 1 "$TOOL" "$1" -o "$tmp/no.onnx"; says "$2"
    [ ! -e "$tmp/no.onnx" ] || fail "$1: an output file appeared"
    [ ! -s "$tmp/out" ] || fail "$1: something on stdout"
}
: >"$tmp/empty.onnx"
broken "$tmp/empty.onnx" ''
head -c 1000 "$m" >"$tmp/cut.onnx"
broken "$tmp/cut.onnx" ''
echo 'this is no protobuf at all' >"$tmp/text.onnx"
broken "$tmp/text.onnx" ''
echo keep >"$tmp/keep.onnx"
expect 1 "$TOOL" "$tmp/cut.onnx" -o "$tmp/keep.onnx"
[ "$(cat "$tmp/keep.onnx")" = keep ] || fail "a failed run changed the output"
expect 1 "$TOOL" "$tmp/absent.onnx" -o "$tmp/no.onnx"; says absent.onnx
expect 4 "$TOOL" "$m" -o "$tmp/no/such/folder/x.onnx"; says 'no/such/folder'
expect 4 "$TOOL" "$m" -o /dev/full -q; says '/dev/full'
"$TOOL" inspect "$m" >/dev/full 2>"$tmp/err"; [ $? = 4 ] || fail "a full disk under the table is not exit 4"
expect 2 "$TOOL" "$m" -o "$tmp/no.onnx" --target nowhere; says "no target 'nowhere'"
expect 2 "$TOOL" "$m" -o "$tmp/no.onnx" --shape nope=1,2; says nope

# a budget that cannot be met
expect 3 "$TOOL" "$m" -o "$tmp/no.onnx" --goal memory --memory-budget 1K
[ ! -e "$tmp/no.onnx" ] || fail "an output appeared although the budget was missed"

# text form, dumps
expect 0 "$TOOL" "$m" -o "$tmp/t.ot" --l2 64K -q
expect 0 "$TOOL" "$tmp/t.ot" -o "$tmp/again.ot" -q
expect 0 "$TOOL" "$m" -o "$tmp/x.onnx" --l2 64K -q --dump-dir "$tmp/dump"
for f in 01-import.ot 01-import.dot 08-rewrite.ot 08-rewrite.dot; do
    [ -s "$tmp/dump/$f" ] || fail "no dump $f"
done
expect 0 "$TOOL" "$m" -o "$tmp/x.onnx" -q -d S
grep -q '^# after shapes' "$tmp/err" || fail "-d S prints nothing"
expect 0 "$TOOL" "$m" -o "$tmp/x.onnx" -q
[ ! -s "$tmp/out" ] && [ ! -s "$tmp/err" ] || fail "-q is not quiet"
finish
