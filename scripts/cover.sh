#!/usr/bin/env bash
# Line coverage of the unit tests, per file and in all, from the gcov data under the given build folder.
set -eu
build=${1:-build/cover}
find "$build/obj" -name '*.gcda' -not -path '*/gen/*' | sort | while read -r data; do
    gcov -n "$data" 2>/dev/null
done | awk '
    /^File / { f = $2; gsub(/\047/, "", f) }
    /^Lines executed:/ && f ~ /^src\// {
        split($0, a, /[:% ]+/); pct = a[3]; n = $NF
        if (!(f in lines)) { order[++k] = f; lines[f] = n; hit[f] = n * pct / 100 }
        f = ""
    }
    END {
        for (i = 1; i <= k; i++) { printf "%6.1f %%  %5d  %s\n", 100 * hit[order[i]] / lines[order[i]], lines[order[i]], order[i]; t += lines[order[i]]; h += hit[order[i]] }
        if (!t) { print "no coverage data"; exit 1 }
        printf "%6.1f %%  %5d  total\n", 100 * h / t, t
    }'
