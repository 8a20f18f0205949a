#!/usr/bin/env bash
# Run a sanitizer build of the tool over small generated models, good and broken ones. A sanitizer report makes the
# tool exit with a status that is not in its own list, and that fails here.
set -u
cd "$(dirname "$0")/.."
tool=${TOOL:?}
py=${PYTHON:?}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
run() { # allowed statuses, then the command
    allowed=$1; shift
    "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    rc=$?
    if ! printf '%s\n' $allowed | grep -qx "$rc" || grep -qE 'Sanitizer|runtime error' "$tmp/err"; then
        echo "FAIL exit $rc: $*"; tail -n 25 "$tmp/err"; bad=$((bad + 1))
    fi
}
"$py" models/make_models.py "$tmp" --small all || exit 1
for m in "$tmp"/*.onnx; do
    run 0 "$tool" "$m" -o "$tmp/t.out" --force --l2 64K
    run 0 "$tool" "$m" -o "$tmp/t.out" --goal memory --l2 128K
    run 0 "$tool" inspect "$m" --json
    run 0 "$tool" inspect "$m" -q --force --l2 64K --report "$tmp/a.html" --report "$tmp/a.xml" --report "$tmp/a.json" --report "$tmp/a.csv"
    run 0 "$tool" inspect "$m" -q --goal memory --target tlf-16m --l2 256K --report "$tmp/b.xml"
    run 0 "$tool" compare "$tmp/a.xml" "$tmp/b.xml" -o "$tmp/c.html"
    # broken copies: cut short, and bytes turned over
    size=$(stat -c %s "$m")
    for cut in 0 7 $((size / 3)) $((size - 5)); do
        head -c "$cut" "$m" >"$tmp/cut.bin"
        run '0 1' "$tool" inspect "$tmp/cut.bin"
    done
    for seed in 1 2 3; do
        "$py" - "$m" "$tmp/flip.bin" "$seed" <<'P'
import random, sys
b = bytearray(open(sys.argv[1], 'rb').read())
r = random.Random(int(sys.argv[3]))
for _ in range(20):
    b[r.randrange(min(len(b), 4000))] = r.randrange(256)
open(sys.argv[2], 'wb').write(b)
P
        run '0 1' "$tool" inspect "$tmp/flip.bin"
    done
done

# mutations of small random models through the whole path, in one process
"$py" tests/fuzz/make_corpus.py "$tmp/corpus" 40 || exit 1
driver=$(realpath "${BUILD:?}/tests/fuzz_driver")
if ! (cd "$tmp" && "$driver" "${FUZZ_SECONDS:-20}" "${OT_SEED:-1}" corpus/*) >"$tmp/log" 2>&1; then
    echo "FAIL fuzz_driver, seed ${OT_SEED:-1}:"; tail -n 40 "$tmp/log"; bad=$((bad + 1))
    cp "$tmp/fuzz-current.bin" "$BUILD/" 2>/dev/null && echo "the input is $BUILD/fuzz-current.bin"
fi
tail -n 1 "$tmp/log"
[ $bad = 0 ] && echo "sanitizer run clean"
[ $bad = 0 ]
