#!/usr/bin/env bash
# Line coverage from the gcov data under a build folder: a table by folder of src/; below it, of every folder under the aim (85 %),
# its files with the lines that nothing reaches.
#
#   scripts/cover.sh [BUILD [FOLDER...]]      FOLDER: src/api src/select/bounds ...: these alone, with the lines of all of them
#
#   lines  missed    reached  folder
#     381      12    96.9 %  src/api
#
# `make cover` builds the unit tests that way, runs them, and calls this: what other tests reach does not count.
set -eu
build=${1:-build/cover}
shift || true
find "$build/obj" -name '*.gcda' -not -path '*/gen/*' | sort | xargs -r -n 40 gcov --stdout 2>/dev/null |
    awk -F: -v aim="${COVER_AIM:-85}" -v only="$*" '
    function folder_of(path) { sub(/\/[^\/]*$/, "", path); return path }
    function missed_lines(f,    k, from, text) { # "12-15, 20": runs of lines that are not reached; lines without code do not end one
        from = 0
        for (k = 1; k <= last[f] + 1; k++) {
            if (!((f, k) in state) && k <= last[f]) continue
            if (k <= last[f] && state[f, k] == 0) { if (!from) from = k; to = k; continue }
            if (from) text = text (text ? ", " : "") (from == to ? from : from "-" to)
            from = 0
        }
        return text
    }
    $2 + 0 == 0 && $3 == "Source" { f = $4; ours = f ~ /^src\//; next }
    !ours || $1 ~ /-/ || $2 !~ /^ *[0-9]+$/ { next }
    { # a line of several objects, or of several instances of a function, is reached where one of them reaches it
        k = $2 + 0
        hit = $1 !~ /[#=]/
        if (!((f, k) in state)) state[f, k] = 0
        if (hit) state[f, k] = 1
        if (k > last[f]) last[f] = k
    }
    END {
        for (key in state) {
            split(key, part, SUBSEP)
            d = folder_of(part[1])
            lines[d]++; missed[d] += !state[key]
            file_lines[part[1]]++; file_missed[part[1]] += !state[key]
            all++; all_missed += !state[key]
        }
        if (!all) { print "no coverage data"; exit 1 }
        n = split(only, wanted, " ")
        for (k = 1; k <= n; k++) { sub(/\/$/, "", wanted[k]); asked[wanted[k]] = 1 }
        print "  lines  missed    reached  folder"
        for (d in lines) if (!n || d in asked) printf "%7d %7d    %5.1f %%  %s\n", lines[d], missed[d], 100 * (1 - missed[d] / lines[d]), d | "sort -k5"
        close("sort -k5")
        printf "%7d %7d    %5.1f %%  all of src\n", all, all_missed, 100 * (1 - all_missed / all)
        for (f in file_lines) {
            d = folder_of(f)
            if (!file_missed[f] || (n ? !(d in asked) : 100 * (1 - missed[d] / lines[d]) >= aim)) continue
            printf "%s: %.1f %%, not reached: %s\n", f, 100 * (1 - file_missed[f] / file_lines[f]), missed_lines(f) | "sort"
        }
    }'
