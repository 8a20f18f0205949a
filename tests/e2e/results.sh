#!/usr/bin/env bash
# The table and the JSON: keys, types, and that both tell the same numbers of regions and barriers.
. "$(dirname "$0")/lib.bash"
make_model --small resnet50 vgg16_head

# its sentences are compiled once: a changed one builds one file
[ "$(grep -rl --include="*.[ch]" 'include .*reasons.def' "$root/src")" = "$root/src/ops/reasons.c" ] || fail "reasons.def is included by more than reasons.c"

# every reason of the table is given somewhere, and nothing searches its sentences
src="$root/src"
for id in $(sed -n 's/^REASON\(_UNFORCED\)\?(\([A-Z_]*\),.*/\2/p' "$src/ops/reasons.def"); do
    grep -rqw --include='*.c' "OT_WHY_$id" "$src" || fail "reason $id is never given"
done

cat >"$tmp/check.py" <<'P'
import json, sys
def no_constants(name): raise SystemExit(f'{name} in JSON')
d = json.load(open(sys.argv[1]), parse_constant=no_constants)
def need(o, **kinds):
    for k, t in kinds.items():
        if not isinstance(o.get(k), t): raise SystemExit(f'{k}: {o.get(k)!r}')
num = (int, float)
need(d, model=str, target=dict, untiled=dict, tiled=dict, compulsory_bytes=num, benefit_s=num, speedup=num,
     regions=list, barriers=list, refused=list, arena=dict)
a = d['arena']
need(a, naive_bytes=int, lower_bound_bytes=int, planned_bytes=int, greedy_by_size_bytes=int, in_place_bytes=int, buffers=int,
     unsized=int, proved=bool)
assert 0 < a['in_place_bytes'] <= a['planned_bytes'] <= a['greedy_by_size_bytes'] <= a['naive_bytes'], a
assert a['lower_bound_bytes'] <= a['planned_bytes'], a
need(d['target'], name=str, l2_bytes=int)
for side in ('untiled', 'tiled'):
    need(d[side], time_s=num, peak_bytes=int, traffic_bytes=num)
seen = set()
for r in d['regions']:
    need(r, id=int, nodes=list, axes=list, tiles=list, form=str, working_set_bytes=int, working_set_lower_bound_bytes=int,
         weight_bytes=int, weights_stay=bool, time_untiled_s=num, time_tiled_s=num, benefit_s=num, mac_ratio=num, traffic_bytes=num)
    assert 0 < r['working_set_lower_bound_bytes'] <= r['working_set_bytes']
    assert len(sys.argv) < 3 or r['working_set_bytes'] <= d['target']['l2_bytes'], 'a scratchpad that does not hold its tiles'
    assert r['form'] in ('scan', 'unrolled', 'loop-peeled', 'loop-window', 'loop', 'prescan'), r['form']
    assert len(r['axes']) == len(r['tiles']) in (1, 2, 3) and all(t >= 2 for t in r['tiles'])
    assert not seen & set(r['nodes']), 'a node in two regions'
    seen |= set(r['nodes'])
    assert abs(r['benefit_s'] - (r['time_untiled_s'] - r['time_tiled_s'])) <= 1e-6 * max(r['time_untiled_s'], 1e-9)
for b in d['barriers']: need(b, node=str, op=str, reason=str)
for r in d['refused']: need(r, nodes=list, reason=str)
assert d['tiled']['traffic_bytes'] >= 0.999 * d['compulsory_bytes'] or not d['regions'], 'below the lower bound'
print(len(d['regions']), len(d['barriers']))
P

for m in resnet50 vgg16_head; do
    expect 0 "$TOOL" inspect "$tmp/$m.onnx" --json --l2 64K --force --target cpu-generic
    cp "$tmp/out" "$tmp/a.json"
    read -r regions barriers < <("$PYTHON" "$tmp/check.py" "$tmp/a.json" || echo 'bad bad')
    [ "$regions" != bad ] || { fail "$m: JSON"; continue; }
    [ "$regions" -gt 0 ] || fail "$m: --force tiles nothing"
    expect 0 "$TOOL" "$tmp/$m.onnx" -o "$tmp/x.onnx" --json --l2 64K --force --target cpu-generic
    cmp -s "$tmp/out" "$tmp/a.json" || fail "$m: inspect and optimise tell different stories"
    expect 0 "$TOOL" inspect "$tmp/$m.onnx" --l2 64K --force --target cpu-generic
    [ "$(grep -cE '^  r[0-9]+ +[0-9]' "$tmp/out")" = "$regions" ] || fail "$m: the table has other regions than the JSON"
    [ "$barriers" = 0 ] || grep -q "^  $barriers barriers" "$tmp/out" || fail "$m: the table has other barriers"
done

# --dump-dir: a kernel for each region, planned as the JSON says; plan-memory accepts it as it is and without its offsets
for target in cpu-generic tlf-16m; do
    for m in resnet50 vgg16_head; do
        rm -rf "$tmp/dump"
        expect 0 "$TOOL" inspect "$tmp/$m.onnx" --json --l2 128K --force --target $target --dump-dir "$tmp/dump"
        cp "$tmp/out" "$tmp/a.json"
        [ $target = cpu-generic ] || "$PYTHON" "$tmp/check.py" "$tmp/a.json" hard >"$tmp/out" || fail "$m on $target"
        "$PYTHON" -c 'import json, sys
for r in json.load(open(sys.argv[1]))["regions"]: print(r["id"], r.get("arena", {"height_bytes": r["working_set_bytes"]})["height_bytes"])' \
            "$tmp/a.json" >"$tmp/regions"
        [ "$(find "$tmp/dump" -name 'region-*.tk' | wc -l)" = "$(wc -l <"$tmp/regions")" ] || fail "$m on $target: kernels and regions differ"
        while read -r id height; do
            tk=$tmp/dump/region-$id.tk
            read -ra args < <(sed -n 's/^# args: //p' "$tk")
            expect 0 "$TOOL" plan-memory "$tk" -o "$tmp/again.tk" "${args[@]}" --json
            grep -q "\"height_bytes\": $height," "$tmp/out" || fail "$tk: not $height bytes"
            cmp -s <(grep -v '^#' "$tk") "$tmp/again.tk" || fail "$tk: planned again, it differs"
            sed 's/ offset=[0-9,]*//' "$tk" >"$tmp/bare.tk"
            expect 0 "$TOOL" plan-memory "$tmp/bare.tk" -o "$tmp/again.tk" "${args[@]}" -q
        done <"$tmp/regions"
    done
done

# one dialect: members that the plan's JSON shares with the report have the same values there, barriers and refusals included
cat >"$tmp/dialect.py" <<'P'
import json, sys
plan, report = (json.load(open(p)) for p in sys.argv[1:])
names = [n['name'] for n in report['nodes']]
def same(a, b, what):
    for k in a.keys() & b.keys() - {'node', 'id'}:
        if isinstance(a[k], float) or isinstance(b[k], float):
            if abs(a[k] - b[k]) > 1e-8 * abs(b[k]) + 1e-12: raise SystemExit(f'{what}: {k} is {a[k]} and {b[k]}')
        elif a[k] != b[k]: raise SystemExit(f'{what}: {k} is {a[k]} and {b[k]}')
    return a.keys() & b.keys()
for x, y, least in (('regions', 'regions', 14), ('barriers', 'barriers', 3), ('refused', 'refusals', 2)):
    if len(plan[x]) != len(report[y]): raise SystemExit(f'{x}: {len(plan[x])} and {len(report[y])}')
    for a, b in zip(plan[x], report[y]):
        if len(same(a, b, x)) < least: raise SystemExit(f'{x} share only {sorted(a.keys() & b.keys())}')
        if 'nodes' in a and a['nodes'] != [names[k] for k in b['members']]: raise SystemExit(f'{x}: other nodes')
        if 'op' in a and a['node'] != names[b['node']]: raise SystemExit(f'{x}: another node')
if not plan['regions']: raise SystemExit('nothing to compare')
P
for target in cpu-generic mcu-512k; do
    expect 0 "$TOOL" inspect "$tmp/resnet50.onnx" --json --l2 64K --force --target $target --report "$tmp/r.json"
    "$PYTHON" "$tmp/dialect.py" "$tmp/out" "$tmp/r.json" 2>"$tmp/why" || fail "$target: $(tail -n 1 "$tmp/why")"
    expect 0 "$TOOL" inspect "$tmp/resnet50.onnx" --l2 64K --force --target $target
    if [ $target = cpu-generic ]; then
        grep -Eq ' r0 .*[KM]iB (fits|streams) ' "$tmp/out" || fail "the cache's table does not say what fits"
        grep -q '[0-9] %)' "$tmp/out" && fail "a share of a cache in the table"
    else
        grep -Eq ' r0 .*[KM]?i?B \([0-9]+ %\)' "$tmp/out" || fail "no share of a scratchpad in the table"
    fi
done

# names that are hostile to JSON and terminals
"$PYTHON" - "$tmp" <<'P'
import sys, onnx
m = onnx.load(sys.argv[1] + '/vgg16_head.onnx')
for k, n in enumerate(m.graph.node):
    n.name = f'a"b\\c\n\x1b[31m\u00e9{k}'
onnx.save(m, sys.argv[1] + '/hostile.onnx')
P
expect 0 "$TOOL" inspect "$tmp/hostile.onnx" --json --l2 64K --force
"$PYTHON" "$tmp/check.py" "$tmp/out" >/dev/null || fail "hostile names break the JSON"
expect 0 "$TOOL" inspect "$tmp/hostile.onnx" --l2 64K --force
grep -q $'\x1b' "$tmp/out" && fail "an escape sequence reached the terminal"
finish
