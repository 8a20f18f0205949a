#!/usr/bin/env bash
# plan-memory: tables and kernels in, the same with offsets out; every exit status, streams, JSON, maps.
. "$(dirname "$0")/lib.bash"

# check.py IN OUT [HEIGHT]: OUT has the rows of IN, a legal offset in each, and at most this height. Shares nothing with the tool.
check() { py check "$@" 2>"$tmp/why" || fail "$*: $(tail -n 1 "$tmp/why")"; }

# ---- a table: minimalloc's example, optimum 12 ----
printf 'id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n' >"$tmp/five.csv"
five=$tmp/five.csv
expect 0 "$TOOL" plan-memory "$five" -o "$tmp/o.csv" --capacity 12
check "$five" "$tmp/o.csv" 12
[ "$(head -n 1 "$tmp/o.csv")" = id,lower,upper,size,offset ] || fail "header: $(head -n 1 "$tmp/o.csv")"
grep -qE '^ +5 +12 +12 +0\.00 % +yes +12 +search' "$tmp/out" || fail "summary: $(cat "$tmp/out")"
expect 0 "$TOOL" plan-memory "$five" -o "$tmp/m.csv"
check "$five" "$tmp/m.csv" 12
for mode in sequential reuse search auto; do
    expect 0 "$TOOL" plan-memory "$five" -o "$tmp/o.csv" --mode $mode
    check "$five" "$tmp/o.csv" 20
done
expect 0 "$TOOL" plan-memory "$five" -o "$tmp/o.csv" --mode sequential
[ "$(cut -d, -f5 "$tmp/o.csv" | tr '\n' ' ')" = 'offset 0 4 8 12 16 ' ] || fail "sequential: $(cat "$tmp/o.csv")"

# every column, old names, quotes, line ends; a plan replays; fixed stays
printf 'note, buffer ,begin,end,size,alignment,gaps,hint,offset\r\n"a, ""b""",x 1,0,9,100,32,3-4,,\r\n,"y,2",3,4,100,,,64,\r\n,z,2,12,50,64,,,128\r\n' >"$tmp/all.csv"
expect 0 "$TOOL" plan-memory "$tmp/all.csv" -o "$tmp/o.csv"
check "$tmp/all.csv" "$tmp/o.csv" 228
expect 0 "$TOOL" plan-memory "$tmp/o.csv" -o "$tmp/again.csv"
cmp -s "$tmp/o.csv" "$tmp/again.csv" || fail "a plan does not replay"
printf 'id,lower,upper,size,gaps\na,0,9,8,2-4@0:4 5-6\n' >"$tmp/window.csv"
expect 0 "$TOOL" plan-memory "$tmp/window.csv" -o "$tmp/o.csv"
grep -q 'warning: 1 gap that keeps a part' "$tmp/out" || fail "no warning about a gap that keeps a part"
printf 'id,lower,upper,size\n' >"$tmp/none.csv"
expect 0 "$TOOL" plan-memory "$tmp/none.csv" -o "$tmp/o.csv"
[ "$(cat "$tmp/o.csv")" = id,lower,upper,size,offset ] || fail "no rows: $(cat "$tmp/o.csv")"

# random tables, each mode, one thread or two: legal, and the same bytes
py tables "$tmp"
for k in 0 1 2 3 4 5; do
    for mode in reuse search; do
        expect 0 "$TOOL" plan-memory "$tmp/r$k.csv" -o "$tmp/o1.csv" --mode $mode
        check "$tmp/r$k.csv" "$tmp/o1.csv"
        expect 0 "$TOOL" plan-memory "$tmp/r$k.csv" -o "$tmp/o2.csv" --mode $mode --threads 2
        cmp -s "$tmp/o1.csv" "$tmp/o2.csv" || fail "r$k, $mode: two threads give another plan"
    done
done

expect 0 "$TOOL" plan-memory "$tmp/r0.csv" -o "$tmp/o1.csv" --time-limit 0.001
check "$tmp/r0.csv" "$tmp/o1.csv"

# ---- pairs: what shares bytes at a price ----
# b1, b4 and b2 take turns in 12 bytes: b4 follows b1 or b2 in one place, whatever is done
printf 'first,second,weight\nb1,b4,3\nb2,b4,1\nb1,b2,9\n' >"$tmp/pairs.csv"
printf '{"pairs": [{"first": "b1", "second": "b4", "weight": 3}, {"first": "b2", "second": "b4"}, {"first": "b1", "second": "b2", "weight": 9}]}' >"$tmp/pairs.json"
for pairs in csv json; do
    expect 0 "$TOOL" plan-memory "$five" --pairs "$tmp/pairs.$pairs" -o "$tmp/o.csv"
    check "$five" "$tmp/o.csv" 12
    grep -q '^  reuse costs 9: proved optimal within 12 bytes$' "$tmp/out" || fail "price: $(cat "$tmp/out")"
    "$TOOL" plan-memory "$five" --pairs - -q -o "$tmp/o2.csv" <"$tmp/pairs.$pairs" || fail "pairs from stdin"
    cmp -s "$tmp/o.csv" "$tmp/o2.csv" || fail "pairs from stdin give other bytes"
done
expect 0 "$TOOL" plan-memory "$five" --pairs "$tmp/pairs.csv" --capacity 16
grep -q '^  reuse costs 0: proved optimal within 16 bytes$' "$tmp/out" || fail "price with room: $(cat "$tmp/out")"
expect 0 "$TOOL" plan-memory "$five" --pairs "$tmp/pairs.csv" --mode reuse
grep -q '^  reuse costs [0-9]*: best known, at least 0$' "$tmp/out" || fail "price of another mode: $(cat "$tmp/out")"
expect 0 "$TOOL" plan-memory "$five" --pairs "$tmp/pairs.csv" --json
py price_json "$tmp/out" 9 || fail "JSON of a price: $(cat "$tmp/out")"
cp "$tmp/out" "$tmp/priced"
expect 0 "$TOOL" plan-memory "$five" --json
py price_json "$tmp/out" none || fail "JSON without a price: $(cat "$tmp/out")"
grep -q '"reuse": "costs 9: proved optimal within 12 bytes"' "$tmp/priced" || fail "JSON has no sentence of the price"
expect 0 "$TOOL" plan-memory "$five" --pairs "$tmp/pairs.csv" --report "$tmp/p.xml" --report "$tmp/p.html" --report "$tmp/p.json"
for report in xml html json; do
    grep -q 'costs 9: proved optimal within 12 bytes' "$tmp/p.$report" || fail "p.$report does not tell the price"
done
py pairs "$tmp"
for k in 0 1 2 3 4 5; do
    expect 0 "$TOOL" plan-memory "$tmp/r$k.csv" --pairs "$tmp/q$k.csv" -o "$tmp/o1.csv" --json
    check "$tmp/r$k.csv" "$tmp/o1.csv"
    py paid "$tmp/o1.csv" "$tmp/q$k.csv" "$tmp/out" || fail "r$k: another price than the plan's"
    expect 0 "$TOOL" plan-memory "$tmp/r$k.csv" --pairs "$tmp/q$k.csv" -o "$tmp/o2.csv" --threads 2
    cmp -s "$tmp/o1.csv" "$tmp/o2.csv" || fail "r$k with pairs: two threads give another plan"
done
printf 'first,second\nb1,b9\n' >"$tmp/bad.csv"
expect 1 "$TOOL" plan-memory "$five" --pairs "$tmp/bad.csv" -o "$tmp/no.csv"; says "bad.csv:2: no buffer of the table is called 'b9'"
[ ! -e "$tmp/no.csv" ] || fail "an output of broken pairs appeared"
expect 1 "$TOOL" plan-memory "$five" --pairs "$tmp/absent.csv"; says absent.csv
expect 2 "$TOOL" plan-memory - --pairs -; says 'cannot both come from stdin'

# ---- streams ----
"$TOOL" plan-memory - -o - <"$five" >"$tmp/piped.csv" 2>"$tmp/err" || fail "pipe: $(cat "$tmp/err")"
cmp -s "$tmp/piped.csv" "$tmp/m.csv" || fail "through pipes other bytes come out"
grep -q '^stdin: 5 buffers' "$tmp/err" || fail "the summary is not on stderr: $(cat "$tmp/err")"
"$TOOL" plan-memory <(cat "$five") -o >(cat >"$tmp/sub.csv"; : >"$tmp/done") -q || fail "process substitution"
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -e "$tmp/done" ] && break; sleep 0.2; done
cmp -s "$tmp/sub.csv" "$tmp/m.csv" || fail "through /dev/fd other bytes come out"
expect 0 "$TOOL" plan-memory "$five" -o /dev/null -q
[ ! -s "$tmp/out" ] && [ ! -s "$tmp/err" ] || fail "-q is not quiet"
expect 0 "$TOOL" plan-memory "$five" -q -v
grep -q '^onnx-tile: plan ' "$tmp/err" || fail "-v tells no times"
cp "$five" "$tmp/same.csv"
expect 0 "$TOOL" plan-memory "$tmp/same.csv" -o "$tmp/same.csv"
cmp -s "$tmp/same.csv" "$tmp/m.csv" || fail "in place gives other bytes"
mkdir "$tmp/dir"
expect 0 "$TOOL" plan-memory "$five" -o "$tmp/dir/o.csv" --svg "$tmp/dir/m.svg"
[ "$(ls -A "$tmp/dir" | tr '\n' ' ')" = 'm.svg o.csv ' ] || fail "left behind: $(ls -A "$tmp/dir")"

# ---- what does not fit: exit 3, why, and no file ----
misses() { # text, arguments
    rm -f "$tmp/no.csv" "$tmp/no.svg"
    expect 3 "$TOOL" plan-memory "${@:2}" -o "$tmp/no.csv" --svg "$tmp/no.svg"; says "$1"
    [ ! -e "$tmp/no.csv" ] && [ ! -e "$tmp/no.svg" ] || fail "an output appeared although nothing fits"
    [ ! -s "$tmp/out" ] || fail "something on stdout"
}
misses 'proved infeasible: at time 0 buffers of 12 bytes are alive, capacity 11; the smallest set above it: b1 (4), b3 (4), b5 (4)' "$five" --capacity 11
misses 'proved infeasible: at time 0 buffer b1 alone has 4 bytes, capacity 3' "$five" --capacity 3
misses 'mode sequential needs 20 bytes, capacity 19 (lower bound 12)' "$five" --capacity 19 --mode sequential
# at most 4 bytes are alive, but c finds no hole of 2 beside a and b
printf 'id,lower,upper,size,offset\na,0,2,1,0\nb,0,2,1,2\nc,0,3,2,\nd,2,3,2,\n' >"$tmp/hole.csv"
misses 'proved infeasible: no plan fits capacity 4' "$tmp/hole.csv" --capacity 4
printf 'id,lower,upper,size,offset\na,0,2,4,8\n' >"$tmp/high.csv"
misses 'buffer a is fixed at 8 and ends at 12, capacity 11' "$tmp/high.csv" --capacity 11
echo keep >"$tmp/keep.csv"
expect 3 "$TOOL" plan-memory "$five" -o "$tmp/keep.csv" --capacity 11
[ "$(cat "$tmp/keep.csv")" = keep ] || fail "a failed run changed the output"

# ---- wrong input: exit 1 ----
printf 'id,lower,upper,size,offset\na,0,2,4,0\nb,1,3,4,2\n' >"$tmp/clash.csv"
expect 1 "$TOOL" plan-memory "$tmp/clash.csv"; says 'fixed offsets'
printf 'id,lower,upper,size\na,0,2,4\na,0,2,4\n' >"$tmp/twice.csv"
expect 1 "$TOOL" plan-memory "$tmp/twice.csv"; says "twice.csv:3: id 'a' is already on line 2"
: >"$tmp/empty.csv"
expect 1 "$TOOL" plan-memory "$tmp/empty.csv"; says 'the file is empty'
expect 1 "$TOOL" plan-memory -; says 'stdin:1: the file is empty'
expect 1 "$TOOL" plan-memory "$tmp/absent.csv"; says absent.csv
expect 1 "$TOOL" plan-memory "$tmp"; says 'directory'
echo 'kernel broken {' >"$tmp/broken.tk"
expect 1 "$TOOL" plan-memory "$tmp/broken.tk" -o "$tmp/no.tk"; says 'broken.tk:'
[ ! -e "$tmp/no.tk" ] || fail "an output of a broken kernel appeared"

# ---- options for the other kind: exit 2; the system: exit 4 ----
for o in --target=host --no-inplace --restrict-inplace --workspace-reuse; do
    expect 2 "$TOOL" plan-memory "$five" $o; says "${o%=*} is for kernels"
done
echo 'kernel k {' >"$tmp/pairs.tk"
expect 2 "$TOOL" plan-memory "$tmp/pairs.tk" --pairs "$tmp/pairs.csv"; says '--pairs is for tables'
expect 2 "$TOOL" plan-memory "$five" -o "$tmp/o.tk"; says 'name it .csv'
expect 4 "$TOOL" plan-memory "$five" -o "$tmp/no/such/o.csv"; says 'no/such'
expect 4 "$TOOL" plan-memory "$five" -o /dev/full; says '/dev/full'
expect 4 "$TOOL" plan-memory "$five" -o "$tmp/no.csv" --svg "$tmp/no/such/m.svg"; says 'm.svg'
[ ! -e "$tmp/no.csv" ] || fail "one of two outputs appeared"
"$TOOL" plan-memory "$five" >/dev/full 2>"$tmp/err"; [ $? = 4 ] || fail "a full disk under the summary is not exit 4"

# ---- kernels: each runs with its own arguments, twice, and its plan replays ----
n=0
for k in "$root"/tests/golden/kernel/*.tk; do
    read -ra args < <(sed -n 's/^# run: plan-memory case.tk -o planned.tk//p' "$k")
    want=$(sed -n 's/^exit //p' "${k%.tk}.expect")
    rm -f "$tmp/o.tk" "$tmp/again.tk" "$tmp/replay.tk"
    expect "${want:-0}" "$TOOL" plan-memory "$k" -o "$tmp/o.tk" "${args[@]}"
    n=$((n + 1))
    if [ "${want:-0}" != 0 ]; then
        [ ! -e "$tmp/o.tk" ] || fail "$k: an output appeared"
        continue
    fi
    "$TOOL" plan-memory - -o "$tmp/again.tk" -q "${args[@]}" <"$k" || fail "$k: from stdin"
    cmp -s "$tmp/o.tk" "$tmp/again.tk" || fail "$k: two runs differ"
    expect 0 "$TOOL" plan-memory "$tmp/o.tk" -o "$tmp/replay.tk" "${args[@]}"
    cmp -s "$tmp/o.tk" "$tmp/replay.tk" || fail "$k: its plan does not replay"
    grep -q 'offset=' "$tmp/o.tk" || fail "$k: no offsets"
done
[ $n -ge 10 ] || fail "only $n kernels"
expect 3 "$TOOL" plan-memory "$root/tests/golden/kernel/06_overflow.tk"
says 'ub overflow, requires 3219456 bits while 1572864 bits available!'

# storages without alloc: the planned kernel says where they lie; a place that is given stays, and is checked
swap=$root/tests/golden/kernel/13_swap.tk
expect 0 "$TOOL" plan-memory "$swap" -o "$tmp/swap.tk" --json
grep -q '^  place yield u: 1024 f32 @ub offset=8192$' "$tmp/swap.tk" || fail "the third buffer of a swap has no line: $(cat "$tmp/swap.tk")"
grep -q '"names": \["u"\], "scope": "ub", "size_bytes": 4096, "offsets_bytes": \[8192\]' "$tmp/out" || fail "the third buffer is not in the JSON"
sed 's/^\(  place yield u: .*\)=8192/\1=65536/' "$tmp/swap.tk" >"$tmp/moved.tk"
expect 0 "$TOOL" plan-memory "$tmp/moved.tk" -o "$tmp/o.tk"
cmp -s "$tmp/moved.tk" "$tmp/o.tk" || fail "a given place moved: $(diff "$tmp/moved.tk" "$tmp/o.tk")"
wrong_place() { # edit of the line, message
    sed "s/^  place yield u: .*/$1/" "$tmp/swap.tk" >"$tmp/wrong.tk"
    expect 1 "$TOOL" plan-memory "$tmp/wrong.tk"; says "$2"
}
wrong_place '  place yield u: 1024 f32 @ub offset=4096' 'at the given offset it overlaps'
wrong_place '  place yield u: 512 f32 @ub offset=8192' "'u' is 1024 f32 @ub, its place 512 f32 @ub"
wrong_place '  place yield p: 1024 f32 @ub offset=8192' "'p' is no carried value"
wrong_place '  place a: 1024 f32 @ub offset=8192' "'a' is no carried value and no result"
wrong_place '  place yield u: 1024 f32 @ub' 'has an offset for each slot'
wrong_place '&\n&' "'u' has two places"
sed '/^  place/d; s/\ba\b/place/g' "$tmp/swap.tk" >"$tmp/word.tk" # a buffer may have that name
expect 0 "$TOOL" plan-memory "$tmp/word.tk" -q

# the target: the command's, else the kernel's, else this machine
cat >"$tmp/t.tk" <<'K'
kernel t {
  param x: 64 f32 @gm
  param y: 64 f32 @gm
  alloc a: 64 f32 @ub
  load a <- x
  store y <- a
}
K
expect 1 "$TOOL" plan-memory "$tmp/t.tk"; says "target 'host' has no such memory"
expect 0 "$TOOL" plan-memory "$tmp/t.tk" --target ascend-a2
expect 2 "$TOOL" plan-memory "$tmp/t.tk" --target nowhere; says "no target 'nowhere'"
sed 's/kernel t/kernel t target "nowhere"/' "$tmp/t.tk" >"$tmp/n.tk"
expect 1 "$TOOL" plan-memory "$tmp/n.tk"; says "n.tk: no target 'nowhere'"
expect 0 "$TOOL" plan-memory "$tmp/n.tk" --target ascend-a2
sed "s|kernel t|kernel t target \"$tmp/x.xml\"|" "$tmp/t.tk" >"$tmp/n.tk"
expect 1 "$TOOL" plan-memory "$tmp/n.tk"; says 'cannot name a target file'
expect 2 "$TOOL" plan-memory "$tmp/t.tk" --target ascend-a2 -o "$tmp/o.csv"; says 'name it .tk'

# ---- JSON and maps ----
well_formed() {
    if command -v xmllint >/dev/null; then
        xmllint --noout "$1" 2>"$tmp/why" || fail "$1: $(head -n 2 "$tmp/why")"
    else
        "$PYTHON" -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$1" 2>"$tmp/why" || fail "$1: $(tail -n 1 "$tmp/why")"
    fi
}
printf 'id,lower,upper,size\n"</title><script>""\xff\x01",0,9,4096\nb,0,3,4096\nc,3,9,4096\n' >"$tmp/hostile.csv"
expect 0 "$TOOL" plan-memory "$tmp/hostile.csv" --json --svg "$tmp/m.svg" --capacity 8K
py table_json "$tmp/out" || fail "JSON of a table"
printf 'id,lower,upper,size,gaps\na,0,9,8,2-4 5-6\n' >"$tmp/gaps.csv"
expect 0 "$TOOL" plan-memory "$tmp/gaps.csv" --json
grep -q '"live": \[{"lower": 0, "upper": 2}, {"lower": 4, "upper": 5}, {"lower": 6, "upper": 9}\]' "$tmp/out" || fail "gaps: $(cat "$tmp/out")"
well_formed "$tmp/m.svg"
grep -q '<script' "$tmp/m.svg" && fail "a name became markup"
"$TOOL" plan-memory "$five" --svg - -q >"$tmp/s.svg" || fail "--svg -"
well_formed "$tmp/s.svg"
for k in 02_same_pipe 11_control_flow 12_scopes 13_swap; do
    f=$root/tests/golden/kernel/$k.tk
    read -ra args < <(sed -n 's/^# run: plan-memory case.tk -o planned.tk//p' "$f")
    expect 0 "$TOOL" plan-memory "$f" --json --svg "$tmp/$k.svg" -o "$tmp/$k.tk" "${args[@]}"
    well_formed "$tmp/$k.svg"
    py kernel_json "$tmp/out" "$tmp/$k.tk" || fail "JSON of $k"
done
[ "$(grep -c 'class="plot"' "$tmp/12_scopes.svg")" = 7 ] || fail "not one map a scope"

# ---- footprint ----
printf 'kernel k {\n param y: 4096 f32 @gm\n alloc a: 4096 f32 @ub\n alloc b: 2048 f32 @ub\n alloc c: 1024 f32 @ub\n a = vector.fill(value=1)\n b = vector.fill(value=1)\n c = vector.fill(value=1)\n store y <- a\n store y[0:2048] <- b\n store y[0:1024] <- c\n}\n' >"$tmp/foot.tk"
expect 0 "$TOOL" plan-memory "$tmp/foot.tk" --target ascend-a2 --footprint --capacity 28K
for line in 'footprint of ub: 28672 of 28672 bytes' '  6 +16384 +1  fit at 16384' '  8-9 +28672 +3  take the place of c \(4096\)' \
    'most is alive in line 8-9: a \(16384\), b \(8192\), c \(4096\)' '4 KiB less, if these go: c \(4096\)' 'with 24576 bytes: nothing fits' \
    'with 32768 bytes: as now'; do
    grep -qE "$line" "$tmp/out" || fail "footprint: no '$line' in $(cat "$tmp/out")"
done
expect 0 "$TOOL" plan-memory "$tmp/foot.tk" --target ascend-a2 --footprint --capacity 28K --json
py footprint "$tmp/out" || fail "JSON of a footprint"
expect 0 "$TOOL" plan-memory "$root/tests/golden/mlir/01_basic.mlir" --footprint
grep -q 'footprint of ub' "$tmp/out" || fail "no footprint of MLIR"
expect 2 "$TOOL" plan-memory "$five" --footprint
says "--footprint is for kernels: '$five' is a table"

# ---- accesses ----
expect 2 "$TOOL" plan-memory "$five" --analyse
says "--analyse is for kernels: '$five' is a table"
expect 2 "$TOOL" plan-memory "$root/tests/golden/mlir/01_basic.mlir" --analyse
says "--analyse is for kernels as text"
expect 2 "$TOOL" plan-memory "$root/tests/golden/access/01_banks.tk" --apply -o "$tmp/x.tk"
says "--apply is for what --analyse finds: add --analyse"
expect 2 "$TOOL" plan-memory "$root/tests/golden/access/01_banks.tk" --analyse --apply
says "--apply writes the padded kernel: add -o OUT.tk"
expect 0 "$TOOL" plan-memory "$root/tests/golden/access/01_banks.tk" --analyse --apply -o "$tmp/padded.tk" --json
py accesses "$tmp/out" || fail "JSON of accesses"
expect 0 "$TOOL" plan-memory "$tmp/padded.tk" --analyse
grep -q "10 looked at, 0 not known, 0 take more" "$tmp/out" || fail "conflicts in the padded kernel: $(cat "$tmp/out")"
if ! "$TOOL" run-kernel 2>&1 | grep -q "native engine"; then # it computes the same
    "$PYTHON" -c "import numpy as np; np.save('$tmp/x.npy', np.arange(65536, dtype=np.float32).reshape(256, 256) % 257)"
    for k in "$root/tests/golden/access/01_banks.tk" "$tmp/padded.tk"; do
        expect 0 "$TOOL" run-kernel "$k" --input x="$tmp/x.npy" --output-dir "$tmp/o-$(basename "$k" .tk)" -q
    done
    cmp "$tmp/o-01_banks/y.npy" "$tmp/o-padded/y.npy" && cmp "$tmp/o-01_banks/z.npy" "$tmp/o-padded/z.npy" || fail "a padded kernel computes something else"
fi
finish
