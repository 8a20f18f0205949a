#!/usr/bin/env bash
# What ENGINE=no and GLPK=no change, by a complete build with both (docs/testing.md):
#
#   scripts/config_changes.sh sources BUILD
#       files of src/ whose objects are others: they, or headers that they include, ask for the options
#   scripts/config_changes.sh programs BUILD SOURCE...
#       tests and oracle programs that are others: they ask themselves, or hold a function of such an object or of one that is
#       not of the sources named; all others are linked of the same objects
set -euo pipefail
cd "$(dirname "$0")/.."
what=$1 build=$2
asks='OT_(ENGINE|GLPK)\b'
files=$(grep -rlE "$asks" src tests/unit tests/oracle --include='*.[ch]' | tr '\n' '|')
including() { grep -rlE "(^|[ :])(${files%|})( |:|\$)" --include='*.d' "$1"; } # dependencies of objects or of programs

objects=$(including "$build/obj" | grep -v "^$build/obj/shared/" | sed "s|^$build/obj/\(.*\)\.d$|\1|" | sort)
if [ "$what" = sources ]; then
    for o in $objects; do echo "src/$o.c"; done
    exit
fi
shift 2
others=$(mktemp)
trap 'rm -f "$others"' EXIT
{
    for o in $objects; do echo "$build/obj/$o.o"; done
    find "$build/obj" -name '*.o' | grep -vE "^$build/obj/(shared|gen)/" | sort |
        comm -23 - <(for c in "$@"; do o=${c#src/}; echo "$build/obj/${o%.c}.o"; done | sort)
} | sort -u | xargs nm --defined-only | awk '$2 ~ /^[TDBRV]$/ && $3 != "main" { print $3 }' | sort -u >"$others"
{
    including "$build/tests" | sed 's|.*/\(.*\)\.d$|\1|'
    for c in tests/unit/test_*.c tests/oracle/*.c; do echo "$build/tests/$(basename "$c" .c)"; done |
        xargs nm -A --defined-only | awk -v others="$others" 'BEGIN { while ((getline s < others) > 0) other[s] = 1 }
            $2 ~ /^[TDBRV]$/ && ($3 in other) { sub(/:.*/, "", $1); sub(/.*\//, "", $1); print $1 }'
} | sort -u
