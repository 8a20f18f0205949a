"""Rows of include/ops.def against the schemas of the onnx package: how many operands an operator takes over all its versions, and
which kinds of element types its first input has. And the standard's operators, all of them: each has a row, or by name a rule or a reason
in src/ops/access_extra.c, and one of these.

    ops_table.py

Prints what differs, and a sum. Exit 1 when something does, or when nothing was compared. Control flow is not compared: its subgraphs'
operands are not the schema's.
"""
import os, re, sys
from onnx import defs

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = os.path.join(HERE, '..', '..', 'include', 'ops.def')
EXTRA = os.path.join(HERE, '..', '..', 'src', 'ops', 'access_extra.c')
MANY = 2147483647  # as schemas say it
OWN = ('Moments', 'NormFactors', 'GatherRows')  # of domain onnx_tile
LEGACY = ('Affine', 'Crop', 'ImageScaler')  # experimental until opset 9: ONNX Runtime still runs them, the schemas are gone
TYPES = {'FLOAT': 'f', 'SIGNED': 'fs', 'INTEGER': 'su', 'NUMBER': 'fsu', 'BOOL': 'b', 'ANY': 'fsub'}


def kinds(schemas):
    """Kinds of element types of input 0; sign is not told apart where there are no floats."""
    names = {t[len('tensor('):-1] for s in schemas if s.inputs for t in s.inputs[0].types if t.startswith('tensor(')}
    found = {'f': 'float' in names, 's': any(re.fullmatch(r'int(8|16|32|64)', t) for t in names),
             'u': any(re.fullmatch(r'uint(8|16|32|64)', t) for t in names), 'b': 'bool' in names}
    return ''.join(k for k, there in found.items() if there)


def untold(standard, rows):
    """Operators of the standard about which nothing is said, or more than one thing; names that are none of its."""
    with open(EXTRA, encoding='utf-8') as text:
        extra = re.findall(r'^    \{"(\w+)", \w+\},', text.read(), re.M)
    told = rows + extra
    wrong = [f'{name}: neither a row of ops.def nor a rule or reason in access_extra.c' for name in standard if name not in told]
    wrong += [f'{name}: told twice' for name in sorted(set(told)) if told.count(name) > 1]
    wrong += [f'{name} of access_extra.c: not an operator of this onnx package' for name in extra
              if name not in standard and name != 'SimplifiedLayerNormalization']  # ONNX Runtime's, in the standard's domain
    return wrong, len(extra)


def main():
    schemas = {}
    for s in defs.get_all_schemas_with_history():
        if s.domain == '' and not s.deprecated:
            schemas.setdefault(s.name, []).append(s)
    bad = count = 0
    with open(ROWS, encoding='utf-8') as text:
        rows = re.findall(r'^OP\(([^)]*)\)', text.read(), re.M)
    for row in rows:
        name, _, _, _, *arity, _, _, types = [x.strip() for x in row.split(',')]
        own = schemas.get(name)
        if name in LEGACY + OWN:
            continue
        if not own:
            print(f'{name}: not an operator of this onnx package')
            bad += 1
            continue
        if name in ('If', 'Loop', 'Scan'):
            continue
        count += 1
        want = [min(s.min_input for s in own), max(s.max_input for s in own), max(s.max_output for s in own)]
        if [MANY if x == 'MANY' else int(x) for x in arity] != want:
            print(f'{name}: takes {arity}, the standard says {want}')
            bad += 1
        kind = kinds(own)
        if kind and kind != TYPES[types] and not (kind == 's' and types == 'INTEGER'):
            print(f'{name}: {types}, the standard has {kind}')
            bad += 1
    wrong, extra = untold(sorted(n for n, all_of in schemas.items() if not defs.get_schema(n).deprecated),
                          [row.split(',')[0].strip() for row in rows])
    for line in wrong: print(line)
    bad += len(wrong)
    print(f'{count} operators, {extra} by name, {bad} differ')
    return 1 if bad or not count else 0


sys.exit(main())
