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
grep -q '"name": "chip", "fast_bytes": 65536' "$tmp/out" || fail "the file's figures are not used"
expect 0 "$TOOL" inspect "$m" --target "$tmp/good.xml" --json --l2 128K
grep -q '"fast_bytes": 131072' "$tmp/out" || fail "--l2 does not override"

sed 's/double-buffer="true"/& weights="1048576"/' "$tmp/good.xml" >"$tmp/apart.xml"
expect 0 "$TOOL" inspect "$m" --target "$tmp/apart.xml" -q
expect 0 "$TOOL" inspect "$m" --target "$tmp/good.xml" --weight-memory 1M -q
if command -v xmllint >/dev/null; then
    xmllint --noout --schema "$root/reports/target.xsd" "$tmp/apart.xml" 2>/dev/null || fail "the schema refuses a memory for weights"
fi

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
# every shipped target as a file: good, the same plan, and what each number is said above it
for name in $("$TOOL" --list-targets | cut -d ' ' -f 1); do
    expect 0 "$TOOL" --dump-target "$name"
    cp "$tmp/out" "$tmp/dumped.xml"
    grep -q '<!-- what the working set of a tile must fit' "$tmp/dumped.xml" || fail "$name: no comments"
    if command -v xmllint >/dev/null; then
        xmllint --noout --schema "$root/reports/target.xsd" "$tmp/dumped.xml" 2>/dev/null || fail "the schema refuses $name as it is dumped"
    fi
    expect 0 "$TOOL" inspect "$m" --target "$name" --json
    cp "$tmp/out" "$tmp/named.json"
    expect 0 "$TOOL" inspect "$m" --target "$tmp/dumped.xml" --json
    cmp -s "$tmp/named.json" "$tmp/out" || [ "$name" = host ] || fail "$name: another plan from its file: $(diff "$tmp/named.json" "$tmp/out")"
done
expect 2 "$TOOL" --dump-target nothing; says "no target 'nothing'"
for file in "$root"/examples/targets/*.xml; do expect 0 "$TOOL" inspect "$m" --target "$file" -q; done

sed 's/cores="4"/cores="0"/; s/ granule="64"//; s/gemm="1e10"/gemm="fast"/' "$tmp/good.xml" >"$tmp/bad.xml"
expect 1 "$TOOL" inspect "$m" --target "$tmp/bad.xml"
says '<target cores="0">: must be a whole number from 1 to 4096; <fast>: attribute '"'granule'"' is missing; <rates gemm="fast">: must be'

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
bad 's/<overheads/<memory scope="ub" bytes="1"\/><overheads/' '<overheads> must come here, not <memory>'

# measured factors of a runtime
sed 's/cache="false" double-buffer="true"/cache="true" double-buffer="false"/
     s/^<\/target>/  <runtime name="onnxruntime" overlap="0.5" run-seconds="1e-7"><slow op="PRelu" factor="2"\/><few below="8" part="0.5"\/><\/runtime>\n&/' \
    "$tmp/good.xml" >"$tmp/factors.xml"
cp "$tmp/good.xml" "$tmp/plain.xml"
mv "$tmp/factors.xml" "$tmp/good.xml"
if command -v xmllint >/dev/null; then
    xmllint --noout --schema "$root/reports/target.xsd" "$tmp/good.xml" 2>/dev/null || fail "the schema refuses <runtime>"
fi
expect 0 "$TOOL" inspect "$m" --target "$tmp/good.xml" --json
expect 0 "$TOOL" inspect "$m" --target "$tmp/good.xml" --runtime portable --json
bad 's/overlap="0.5"/overlap="2"/' '<runtime overlap="2">: must be a number from 0 to 1'
bad 's/overlap=/speed=/' "<runtime>: no attribute 'speed' here"
bad 's/ name="onnxruntime"//' "<runtime>: attribute 'name' is missing"
bad 's/factor="2"/factor="x"/' '<slow factor="x">: must be a number'
bad 's/ op="PRelu"//' "<slow>: attribute 'op' is missing"
bad 's/below="8"/below="1"/' '<few below="1">: must be a number from 2 to 65536'
bad 's/part="0.5"/part="1.5"/' '<few part="1.5">: must be a number'
bad 's/<few/<less/' '<less> is not allowed here'
mv "$tmp/plain.xml" "$tmp/good.xml"

# memories that kernels name
sed 's/^<\/target>/  <memory scope="ub" bytes="4096" alignment="48"\/>\n  <memory scope="l2" alignment="32"\/><!-- x -->\n  <memory scope="gm" alignment="1"\/>\n&/' \
    "$tmp/good.xml" >"$tmp/mem.xml"
mv "$tmp/mem.xml" "$tmp/good.xml"
if command -v xmllint >/dev/null; then
    xmllint --noout --schema "$root/reports/target.xsd" "$tmp/good.xml" 2>/dev/null || fail "the schema refuses <memory>"
fi
expect 0 "$TOOL" inspect "$m" --target "$tmp/good.xml" --json
bad 's/scope="ub"/scope="uc"/' 'must be one of ub, l1, l0a, l0b, l0c, bt, fp, l2, shared, gm'
bad 's/ scope="ub"//' "<memory>: attribute 'scope' is missing"
bad 's/bytes="4096"/bytes="0"/' '<memory bytes="0">'
bad 's/bytes="4096"/bytes="4K"/' '<memory bytes="4K">'
bad 's/bytes="4096"/bytes="9999999999999999999999"/' 'whole number of bytes from 1 to 2^50'
bad 's/alignment="48"/alignment="-32"/' '<memory alignment="-32">'
bad 's/alignment="48"/alignment="2097152"/' 'from 1 to 2^20'
bad 's/alignment="48"/align="48"/' "<memory>: no attribute 'align'"
bad 's/scope="gm"/scope="ub" bytes="1"/' '<memory scope="ub">: given twice'
bad 's/alignment="48"\/>/alignment="48">x<\/memory>/' 'text is not allowed'
bad 's/alignment="48"\/>/alignment="48"><x\/><\/memory>/' '<memory> must be empty'
bad 's/<!-- x -->/<x\/>/' '<x> is not allowed here'
# rules between elements, which the schema cannot state
refused() { sed "$1" "$tmp/good.xml" >"$tmp/bad.xml"; expect 1 "$TOOL" inspect "$m" --target "$tmp/bad.xml"; says "$2"; }
refused 's/ bytes="4096"//' "<memory scope=\"ub\">: attribute 'bytes' is missing"
refused 's/scope="l2"/scope="l2" bytes="65537"/' 'bytes must be those of <fast>'
refused 's/scope="gm"/scope="gm" bytes="1"/' 'bytes must be those of <slow>'
sed 's/scope="l2"/scope="l2" bytes="65536"/' "$tmp/good.xml" >"$tmp/same.xml"
expect 0 "$TOOL" inspect "$m" --target "$tmp/same.xml" --json

printf '<!DOCTYPE target [<!ENTITY a "b">]>\n%s\n' "$(sed 1d "$tmp/good.xml")" >"$tmp/dtd.xml"
expect 1 "$TOOL" inspect "$m" --target "$tmp/dtd.xml"; says 'DTD'
expect 1 "$TOOL" inspect "$m" --target "$tmp/absent.xml"; says absent.xml
finish
