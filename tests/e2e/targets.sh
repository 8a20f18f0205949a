#!/usr/bin/env bash
# Target files: a good one works, and each broken one is named by element and rule.
. "$(dirname "$0")/lib.bash"
make_model --small depthwise
m=$tmp/depthwise.onnx
cat >"$tmp/good.xml" <<'X'
<?xml version="1.0"?>
<!-- a comment is fine -->
<target name="chip" cores="4">
  <fast bytes="65536" bandwidth="1e11" granule="64" cache="false" double-buffer="true"/>
  <slow bandwidth="1e10"/>
  <rates conv="1e10" conv-depthwise="1e9" conv-pointwise="1e10" gemm="1e10" elementwise="1e9" transcendental="1e8" reduction="1e9" pooling="1e9"/>
  <overheads node="1e-6" loop="1e-6" region="0"/>
</target>
X
expect 0 "$TOOL" inspect "$m" --target "$tmp/good.xml" --json
grep -q '"name": "chip", "l2_bytes": 65536' "$tmp/out" || fail "the file's figures are not used"
expect 0 "$TOOL" inspect "$m" --target "$tmp/good.xml" --json --l2 128K
grep -q '"l2_bytes": 131072' "$tmp/out" || fail "--l2 does not override"

bad() { # sed expression, text the message must have
    sed "$1" "$tmp/good.xml" >"$tmp/bad.xml"
    cmp -s "$tmp/good.xml" "$tmp/bad.xml" && fail "nothing changed by $1"
    expect 1 "$TOOL" inspect "$m" --target "$tmp/bad.xml"; says "$2"
    if command -v xmllint >/dev/null; then
        xmllint --noout --schema "$root/reports/target.xsd" "$tmp/bad.xml" 2>/dev/null && fail "the schema allows: $1"
    fi
}
if command -v xmllint >/dev/null; then
    xmllint --noout --schema "$root/reports/target.xsd" "$tmp/good.xml" 2>/dev/null || fail "the schema refuses the good file"
fi
bad 's/<target/<machine/; s/target>/machine>/' 'root element must be <target>'
bad 's/ cores="4"//' "attribute 'cores' is missing"
bad 's/cores="4"/cores="0"/' '<target cores="0">'
bad 's/bytes="65536"/bytes="64K"/' 'whole number of bytes'
bad 's/bytes="65536"/bytes="-1"/' 'whole number of bytes'
bad 's/conv="1e10"/conv="nan"/' '<rates conv="nan">'
bad 's/conv="1e10"/conv="0x10"/' '<rates conv="0x10">'
bad 's/cores="4"/cores="4" fuses="1"/' 'must be true or false'
bad 's/cache="false"/cache="maybe"/' 'must be true or false'
bad 's/node="1e-6"/node="-1"/' '<overheads node="-1">'
bad 's/<slow/<slow color="red"/' "no attribute 'color'"
bad '/<rates/d' '<rates> must come here'
bad '/<overheads/d' '<overheads> must come here'
bad 's/<slow.*/<slow bandwidth="1e10"><x\/><\/slow>/' '<slow> must be empty'
bad 's/<slow/words <slow/' 'text is not allowed'
bad 's/name="chip"/name=""/' 'must not be empty'
bad 's/<\/target>//' 'not well-formed'
printf '<!DOCTYPE target [<!ENTITY a "b">]>\n%s\n' "$(sed 1d "$tmp/good.xml")" >"$tmp/dtd.xml"
expect 1 "$TOOL" inspect "$m" --target "$tmp/dtd.xml"; says 'DTD'
expect 1 "$TOOL" inspect "$m" --target "$tmp/absent.xml"; says absent.xml
finish
