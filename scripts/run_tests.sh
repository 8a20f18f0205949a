#!/usr/bin/env bash
# Run every program named on the command line, several at a time; one line each in the order given, with what those that fail
# printed, and a sum. Exit 1 when one failed or when there was nothing to run.
#
#   scripts/run_tests.sh [-j N] TEST...      N tests at a time (TEST_JOBS, else one for each processor)
#
#   ok    test_plan                              12.3 s  11.9 s
#   FAIL  forms.sh                               30.1 s  29.0 s  (exit 1)      wall time, then processor time
#         | what it printed
#
# A script says how it wants to be run in a line of its own: "# run: first" before the others, because it takes long; "# run: alone"
# after them with nothing beside it, because it measures time or memory.
set -u
jobs=${TEST_JOBS:-$(nproc)}
case ${1:-} in
-j) jobs=$2; shift 2 ;;
-j*) jobs=${1#-j}; shift ;;
esac
[ "$jobs" -ge 1 ] || exit 2
limit=${TEST_LIMIT:-1800}
export ONNX_TILE_CACHE=off     # what somebody calibrated here changes no test
export OMP_WAIT_POLICY=passive # a thread that waits leaves its processor to the test beside it
dir=$(mktemp -d)
tests=("$@")
running=() # processes of tests under way
trap 'kill "${running[@]}" 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

run_one() { # number of the test: its output, exit status and times are left in $dir
    local TIMEFORMAT='%R %U %S' call=("${tests[$1]}")
    case $call in *.sh) call=(bash "$call") ;; esac
    { time timeout "$limit" "${call[@]}" >"$dir/$1.out" 2>&1 </dev/null; } 2>"$dir/$1.time"
    echo $? >"$dir/$1.status"
    mv "$dir/$1.status" "$dir/$1.rc"
}

wish() { # first, alone or nothing
    case $1 in
    *.sh) sed -n '1,12s/^# run: \(first\|alone\)$/\1/p' "$1" ;;
    */test_select | */test_size_bounds) echo first ;; # long, and late in the alphabet
    esac
}

shown=0 passed=0 failed=0
show_done() { # the next lines of the list, as far as their tests are done
    local name rc wall cpu
    while [ $shown -lt ${#tests[@]} ] && [ -e "$dir/$shown.rc" ]; do
        name=$(basename "${tests[$shown]}") rc=$(cat "$dir/$shown.rc")
        read -r wall cpu < <(awk 'END { printf "%.1f %.1f\n", $1, $2 + $3 }' "$dir/$shown.time")
        if [ "$rc" = 0 ]; then
            passed=$((passed + 1))
            printf 'ok    %-44s %6s s %6s s\n' "$name" "$wall" "$cpu"
        else
            failed=$((failed + 1))
            printf 'FAIL  %-44s %6s s %6s s  (exit %d)\n' "$name" "$wall" "$cpu" "$rc"
            sed 's/^/      | /' "$dir/$shown.out" | tail -n "${TEST_TAIL:-60}"
        fi
        shown=$((shown + 1))
    done
}

run_some() { # how many at a time, then numbers of tests
    local most=$1 k
    shift
    for k in "$@"; do
        while mapfile -t running < <(jobs -pr); [ ${#running[@]} -ge "$most" ]; do
            wait -n
            show_done
        done
        run_one "$k" &
    done
    while mapfile -t running < <(jobs -pr); [ ${#running[@]} -gt 0 ]; do
        wait -n
        show_done
    done
    show_done
}

first=() rest=() alone=()
for k in "${!tests[@]}"; do
    case $(wish "${tests[$k]}") in
    first) first+=("$k") ;;
    alone) alone+=("$k") ;;
    *) rest+=("$k") ;;
    esac
done
run_some "$jobs" "${first[@]}" "${rest[@]}"
run_some 1 "${alone[@]}"
awk '{ cpu += $2 + $3 } END { printf "%.0f s of processor time\n", cpu }' "$dir"/*.time 2>/dev/null
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
