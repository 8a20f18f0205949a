#!/usr/bin/env bash
# Run every program named on the command line; one line each, the output of those that fail, and a sum.
# Exit 1 when one failed or when there was nothing to run.
set -u
passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
limit=${TEST_LIMIT:-1800}
export ONNX_TILE_CACHE=off # what somebody calibrated here changes no test
for t in "$@"; do
    start=$(date +%s.%N)
    timeout "$limit" "$t" >"$log" 2>&1 </dev/null
    rc=$?
    took=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
    if [ $rc = 0 ]; then
        passed=$((passed + 1))
        printf 'ok    %-44s %6s s\n' "$(basename "$t")" "$took"
    else
        failed=$((failed + 1))
        printf 'FAIL  %-44s %6s s  (exit %d)\n' "$(basename "$t")" "$took" "$rc"
        sed 's/^/      | /' "$log" | tail -n "${TEST_TAIL:-60}"
    fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
