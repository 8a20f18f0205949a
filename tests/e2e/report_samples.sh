#!/usr/bin/env bash
# The sample reports that are checked in are what the tool makes today. `make reports` makes them anew.
. "$(dirname "$0")/lib.bash"
if "$TOOL" --help | grep -q 'bench MODEL.*needs the native engine'; then
    echo "skipped: this build has no engine, for which the samples are planned"
    exit 0
fi
mkdir "$tmp/made"
expect 0 env TOOL="$TOOL" PYTHON="$PYTHON" "$root/scripts/reports.sh" "$tmp/made"
for name in resnet50.html resnet50.xml super-resolution.html super-resolution.xml compare.html; do
    cmp -s "$tmp/made/$name" "$root/reports/$name" || fail "reports/$name is not what the tool makes: 'make reports', then look at it"
    [ "$(wc -c <"$tmp/made/$name")" -lt 400000 ] || fail "$name: $(wc -c <"$tmp/made/$name") bytes"
done
[ "$(wc -c <"$root/reports/resnet50.png")" -lt 250000 ] || fail "reports/resnet50.png is too large for a README"
finish
