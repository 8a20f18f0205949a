#!/usr/bin/env python3
"""Wrong, broken and hostile models, one file or folder each: bad_input.py TOOL [part of a case's name]

Every case says what the tool must answer: an exit status, and words that its one line on stderr must have. No output file
may appear, nothing may be written next to it, and the tool has 10 seconds and 2 GiB of address space.
"""
import os
import resource
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as TP, helper as H, numpy_helper as NH

CASES = {}


def case(*says, status=1, args=()):
    """Register a maker: it gets a folder and returns the model's path (or the arguments as a list)."""
    def register(make):
        CASES[make.__name__] = (make, says, status, list(args))
        return make
    return register


def info(name, shape, dtype=TP.FLOAT):
    return H.make_tensor_value_info(name, dtype, shape)


def model(nodes, inits=(), inputs=None, outputs=None, functions=(), opset=17):
    g = H.make_graph(nodes, 'g', inputs or [info('x', [1, 4, 16, 16])], outputs or [info('y', None)], list(inits))
    return H.make_model(g, opset_imports=[H.make_opsetid('', opset), H.make_opsetid('own', 1)], ir_version=9, functions=list(functions))


def good():
    """Two convolutions: what the broken variants start from."""
    rng = np.random.default_rng(1)
    w = [NH.from_array(rng.standard_normal((4, 4, 3, 3)).astype('f4'), f'w{k}') for k in range(2)]
    return model([H.make_node('Conv', ['x', 'w0'], ['h'], 'first', pads=[1] * 4), H.make_node('Relu', ['h'], ['r'], 'middle'),
                  H.make_node('Conv', ['r', 'w1'], ['y'], 'last', pads=[1] * 4)], w)


def save(folder, m, name='model.onnx'):
    path = os.path.join(folder, name)
    with open(path, 'wb') as f:
        f.write(m if isinstance(m, bytes) else m.SerializeToString())
    return path


# ---- not a model ----

@case('empty', 'model.onnx')
def zero_bytes(d):
    return save(d, b'')


@case('model.onnx')
def not_protobuf(d):
    return save(d, b'\x7fELF this is a program, not a model' + bytes(range(256)) * 8)


@case('model.onnx')
def text_file(d):
    return save(d, b'# a read-me\n' * 50)


@case('model.onnx')
def truncated(d):
    whole = good().SerializeToString()
    return save(d, whole[:len(whole) * 2 // 3])


@case('model.onnx')
def truncated_by_one(d):
    return save(d, good().SerializeToString()[:-1])


@case('model.onnx')
def no_graph(d):
    return save(d, onnx.ModelProto(ir_version=8, opset_import=[H.make_opsetid('', 17)]))


@case('absent.onnx')
def absent(d):
    return os.path.join(d, 'absent.onnx')


@case(status=None)
def a_folder(d):
    os.mkdir(os.path.join(d, 'folder.onnx'))
    return os.path.join(d, 'folder.onnx')


@case('model.ot')
def broken_text_form(d):
    return save(d, b'model ir 8 opset 17\ngraph g {\n  input %x float32[1]\n}\n', 'model.ot')


@case(status=None, args=['--target', 'ascend-a2', '--force', '--json'])
def rows_of_four_hundred_million(d):
    return save(d, b'model ir 8 opset 17\ngraph g {\n  input %x : float32[1,4,400000000,16]\n  init %w : float32[4,4,3,3] = random 1\n'
                b'  %c = Conv(%x, %w) {pads=[1, 1, 1, 1]}\n  %r = Relu(%c)\n  %e = Conv(%r, %w) {pads=[1, 1, 1, 1]}\n  %a = Add(%e, %x)\n'
                b'  %y = Relu(%a)\n  output %y\n}\n', 'model.ot')


def varint(n):
    out = b''
    while True:
        out += bytes([n & 127 | (128 if n > 127 else 0)])
        n >>= 7
        if not n:
            return out


def field(tag, body):
    """A length-delimited field of a protobuf message."""
    return varint(tag << 3 | 2) + varint(len(body)) + body


@case('nest')
def messages_nested_10000_deep(d):
    """Graph > node > attribute > graph ..., by hand: no library writes this."""
    body = b''
    for _ in range(3300):
        for tag in (6, 5, 1):    # AttributeProto.g, NodeProto.attribute, GraphProto.node
            body = field(tag, body)
    return save(d, b'\x08\x08' + field(7, body))


@case(status=None)
def unknown_groups_nested(d):
    return save(d, good().SerializeToString() + b'\x9b\x06' * 20000)


@case('nest')
def subgraphs_nested_200_deep(d):
    """If in If in If: well-formed, but deeper than anyone's stack should go."""
    part = lambda m: m.SerializeToString()
    graph = part(H.make_graph([H.make_node('Identity', ['x'], ['b200'])], 'g', [], [info('b200', None)]))
    for k in range(199, -1, -1):
        other = part(H.make_graph([H.make_node('Identity', ['x'], [f'e{k}'])], 'e', [], [info(f'e{k}', None)]))
        branch = lambda name, g: field(5, field(1, name) + b'\xa0\x01\x05' + field(6, g))   # AttributeProto of type GRAPH
        node = field(1, b'c') + field(2, b'b%d' % k) + field(4, b'If') + branch(b'then_branch', graph) + branch(b'else_branch', other)
        graph = field(1, node) + field(2, b'g%d' % k) + field(12, part(info(f'b{k}', None)))
    graph += b''.join(field(11, part(i)) for i in (info('x', [4]), info('c', [], TP.BOOL)))
    return save(d, b'\x08\x08' + field(7, graph) + field(8, part(H.make_opsetid('', 17))))


@case(status=None)
def length_prefix_beyond_the_end(d):
    return save(d, b'\x08\x08\x3a' + varint(1 << 40) + b'abc')


# ---- graphs that cannot be ----

@case("'first'", 'cycle')
def cycle(d):
    m = good()
    m.graph.node[0].input[0] = 'y'
    return save(d, m)


@case('cycle')
def node_reads_itself(d):
    m = good()
    m.graph.node[1].input[0] = 'r'
    return save(d, m)


@case("'r'")
def duplicate_value(d):
    m = good()
    m.graph.node.append(H.make_node('Neg', ['h'], ['r'], 'again'))
    return save(d, m)


@case("'w0'")
def duplicate_initializer(d):
    m = good()
    m.graph.initializer.append(m.graph.initializer[0])
    return save(d, m)


@case("'w0'", 'shape')
def initializer_contradicts_its_input(d):
    m = good()
    m.graph.input.append(info('w0', [4, 4, 5, 5]))
    return save(d, m)


@case("'w0'", 'type')
def initializer_of_another_type_than_its_input(d):
    m = good()
    m.graph.input.append(info('w0', [4, 4, 3, 3], TP.INT64))
    return save(d, m)


@case("'x'")
def duplicate_input(d):
    m = good()
    m.graph.input.append(m.graph.input[0])
    return save(d, m)


@case("'nowhere'")
def undefined_input(d):
    m = good()
    m.graph.node[1].input[0] = 'nowhere'
    return save(d, m)


@case("'nothing'")
def undefined_output(d):
    m = good()
    m.graph.output[0].name = 'nothing'
    return save(d, m)


@case('first', 'Conv', 'rank')
def wrong_rank(d):
    m = good()
    m.graph.input[0].CopyFrom(info('x', [1, 4, 16]))
    return save(d, m)


@case('first', 'Conv')
def wrong_channels(d):
    m = good()
    m.graph.input[0].CopyFrom(info('x', [1, 5, 16, 16]))
    return save(d, m)


@case('first', 'Conv')
def strides_of_zero(d):
    m = good()
    m.graph.node[0].attribute.append(H.make_attribute('strides', [0, 1]))
    return save(d, m)


@case('first', 'Conv')
def negative_dilations(d):
    m = good()
    m.graph.node[0].attribute.append(H.make_attribute('dilations', [-1, 1]))
    return save(d, m)


@case('first', 'Conv')
def group_of_zero(d):
    m = good()
    m.graph.node[0].attribute.append(H.make_attribute('group', 0))
    return save(d, m)


@case(status=None)
def absurd_pads(d):
    m = good()
    del m.graph.node[0].attribute[:]
    m.graph.node[0].attribute.append(H.make_attribute('pads', [2 ** 62] * 4))
    return save(d, m)


@case(status=None)
def absurd_input(d):
    """2^61 elements: a plan may be refused, the sizes may not wrap around."""
    m = good()
    m.graph.input[0].CopyFrom(info('x', [2 ** 31 - 1, 4, 2 ** 30, 2 ** 30]))
    return save(d, m)


@case("'w0'")
def absurd_initializer(d):
    m = good()
    del m.graph.initializer[0].dims[:]
    m.graph.initializer[0].dims.extend([2 ** 40, 2 ** 40, 3, 3])
    return save(d, m)


@case("'w0'")
def negative_initializer(d):
    m = good()
    m.graph.initializer[0].dims[0] = -4
    return save(d, m)


@case("'w0'")
def initializer_too_short(d):
    m = good()
    m.graph.initializer[0].raw_data = m.graph.initializer[0].raw_data[:-4]
    return save(d, m)


@case('1000 dimensions')
def rank_of_1000(d):
    m = good()
    m.graph.input[0].CopyFrom(info('x', [1] * 1000))
    return save(d, m)


@case(status=None)
def huge_reshape(d):
    m = model([H.make_node('Reshape', ['x', 's'], ['y'], 'huge')], [NH.from_array(np.array([2 ** 62, 4, -1]), 's')])
    return save(d, m)


@case(status=None)
def huge_constant_of_shape(d):
    """A terabyte that nobody may allocate."""
    m = model([H.make_node('ConstantOfShape', ['s'], ['c'], 'fill'), H.make_node('Add', ['c', 'c'], ['y'])],
              [NH.from_array(np.array([2 ** 20, 2 ** 20]), 's')])
    return save(d, m)


@case(status=None)
def huge_range(d):
    m = model([H.make_node('Range', ['a', 'b', 'c'], ['y'], 'range')],
              [NH.from_array(np.array(v), k) for k, v in (('a', 0), ('b', 2 ** 62), ('c', 1))])
    return save(d, m)


@case(status=None)
def function_calls_itself(d):
    f = H.make_function('own', 'F', ['a'], ['b'], [H.make_node('F', ['a'], ['b'], domain='own')], [H.make_opsetid('', 17), H.make_opsetid('own', 1)])
    return save(d, model([H.make_node('F', ['x'], ['y'], 'call', domain='own')], functions=[f]))


@case('calls itself')
def functions_in_a_cycle(d):
    imports = [H.make_opsetid('', 17), H.make_opsetid('own', 1)]
    fs = [H.make_function('own', a, ['a'], ['b'], [H.make_node(b, ['a'], ['b'], domain='own')], imports) for a, b in (('F', 'G'), ('G', 'F'))]
    return save(d, model([H.make_node('F', ['x'], ['y'], 'call', domain='own')], functions=fs))


# ---- hostile external data ----

def external(d, location, offset=None, length=None, name='model.onnx'):
    m = good()
    t = m.graph.initializer[0]
    raw = t.raw_data
    t.ClearField('raw_data')
    t.data_location = TP.EXTERNAL
    for k, v in (('location', location), ('offset', offset), ('length', length)):
        if v is not None:
            e = t.external_data.add()
            e.key, e.value = k, str(v)
    return save(d, m, name), raw


def outside(d, raw):
    """A file that the model has no business to read, in the folder above."""
    secret = os.path.join(os.path.dirname(d), 'secret.bin')
    with open(secret, 'wb') as f:
        f.write(raw)
    return secret


@case("'w0'", 'secret.bin')
def external_absolute(d):
    secret = outside(d, bytes(1000))
    return external(d, secret)[0]


@case("'w0'", '..')
def external_parent(d):
    outside(d, bytes(1000))
    return external(d, '../secret.bin')[0]


@case("'w0'", '..')
def external_parent_hidden(d):
    outside(d, bytes(1000))
    os.mkdir(os.path.join(d, 'sub'))
    return external(d, 'sub/../../secret.bin')[0]


@case("'w0'", 'link.bin')
def external_symlink(d):
    secret = outside(d, bytes(1000))
    os.symlink(secret, os.path.join(d, 'link.bin'))
    return external(d, 'link.bin')[0]


@case("'w0'", 'sub')
def external_symlinked_folder(d):
    outside(d, bytes(1000))
    os.symlink(os.path.dirname(d), os.path.join(d, 'sub'))
    return external(d, 'sub/secret.bin')[0]


@case("'w0'", 'hard.bin')
def external_hard_link(d):
    os.link(outside(d, bytes(1000)), os.path.join(d, 'hard.bin'))
    return external(d, 'hard.bin')[0]


@case("'w0'", 'w.bin')
def external_absent(d):
    return external(d, 'w.bin')[0]


@case("'w0'")
def external_too_short(d):
    path, raw = external(d, 'w.bin')
    save(d, raw[:-1], 'w.bin')
    return path


@case("'w0'")
def external_offset_beyond_end(d):
    path, raw = external(d, 'w.bin', offset=10 ** 9)
    save(d, raw, 'w.bin')
    return path


@case("'w0'", 'offset')
def external_negative_offset(d):
    path, raw = external(d, 'w.bin', offset=-8)
    save(d, raw, 'w.bin')
    return path


@case("'w0'")
def external_offset_wraps_around(d):
    path, raw = external(d, 'w.bin', offset=2 ** 64 - 8, length=16)
    save(d, raw, 'w.bin')
    return path


@case("'w0'", 'length')
def external_wrong_length(d):
    path, raw = external(d, 'w.bin', length=12)
    save(d, raw, 'w.bin')
    return path


@case("'w0'")
def external_empty_location(d):
    return external(d, '')[0]


@case("'w0'", 'pipe')
def external_pipe(d):
    os.mkfifo(os.path.join(d, 'pipe'))
    return external(d, 'pipe')[0]


@case("'w0'")
def external_device(d):
    return external(d, '/dev/zero')[0]


# ---- wrong requests ----

@case("--frobnicate", status=2, args=['--frobnicate'])
def unknown_option(d):
    return save(d, good())


@case('nope', status=2, args=['--shape', 'nope=1,2'])
def shape_of_no_input(d):
    return save(d, good())


@case('--shape x', '2 dims', status=2, args=['--shape', 'x=1,2'])
def shape_of_other_rank(d):
    return save(d, good())


@case('--shape', 'last', 'pos', 'old size', status=2, args=['--shape', 'x=1,4,32,32'])
def constant_of_the_old_size(d):
    m = model([H.make_node('Relu', ['x'], ['r'], 'first'), H.make_node('Add', ['r', 'pos'], ['y'], 'last')],
              [NH.from_array(np.zeros((1, 4, 16, 16), 'f4'), 'pos')])
    return save(d, m)


@case('required', 'excess', 'available', status=3, args=['--goal', 'memory', '--memory-budget', '256'])
def budget_that_cannot_be_met(d):
    return save(d, good())


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))


def problem(tool, name, folder):
    """'' or what is wrong with the answer."""
    make, says, status, args = CASES[name]
    path, out = make(folder), os.path.join(folder, 'out', 'tiled.onnx')
    os.mkdir(os.path.dirname(out))
    try:
        p = subprocess.run([tool, path, '-o', out] + args, capture_output=True, text=True, timeout=10, preexec_fn=limits, errors='replace')
    except subprocess.TimeoutExpired:
        return 'took more than 10 s'
    if status is None and p.returncode == 0 and not p.stderr:
        return ''                       # harmless: may be accepted or refused, but never crash
    if status is None and p.returncode in (1, 3) or p.returncode == status:
        if p.stdout or os.listdir(os.path.dirname(out)):
            return f'stdout or a file in spite of exit {p.returncode}: {p.stdout[:80]!r} {os.listdir(os.path.dirname(out))}'
        if not p.stderr.startswith('onnx-tile: error: ') or p.stderr.count('\n') != 1 or not p.stderr.endswith('\n'):
            return f'not one line: {p.stderr!r}'
        lacks = [s for s in says if s not in p.stderr]
        return f'does not say {lacks}: {p.stderr!r}' if lacks else ''
    return f'exit {p.returncode}: {p.stderr!r}'


def main():
    tool, wanted, bad = os.path.abspath(sys.argv[1]), sys.argv[2:] or [''], 0
    for name in CASES:
        if not any(w in name for w in wanted):
            continue
        with tempfile.TemporaryDirectory() as tmp:
            folder = os.path.join(tmp, 'model')
            os.mkdir(folder)
            why = problem(tool, name, folder)
        bad += bool(why)
        print(f'FAIL {name}: {why}' if why else f'ok {name}')
    print(f'bad input: {len(CASES) - bad} passed, {bad} failed')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
