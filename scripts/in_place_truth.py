#!/usr/bin/env python3
"""Which operators write their result over an input that dies there? Measured in ONNX Runtime, one release or several.

  in_place_truth.py [--python EXE]... [--only OPERATOR]... [--situations] [--json FILE] [--markdown]

For every element-wise, shape, normalising and activation operator and element type: a chain of six such nodes, of whose result one row is
read. The process of each model runs three times; growth over the loaded session divided by the size of one value is the number of
buffers that the chain took: 1, in place; 2, two values in turn; 3, the node runs as several. The second run shows twice that: a block for
the recorded pattern comes beside the chunks of the first. --situations: the same for a few operators in other surroundings (a second operand
that broadcasts, free extents, optimizations off, ...). EXE: interpreters that have an ONNX Runtime, default this one; each needs numpy
besides. A cell is '-' where the runtime has no such kernel. One row an operator; releases that differ from the first are named in it.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXTENTS = [1, 16, 256, 1024]
STEPS = 6
RUNS = 3
TYPES = {'float': 'f4', 'float16': 'f2', 'int64': 'i8', 'int32': 'i4', 'bool': '?'}


# ---- the process that measures: one child of its own for each model ----

def status_bytes(key):
    with open('/proc/self/status', encoding='ascii') as f:
        for line in f:
            if line.startswith(key):
                return int(line.split()[1]) * 1024
    return 0


def measure(ort, np, job):
    """Growth in bytes after each run; a string says why there is none."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    if job.get('plain'):
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = ort.InferenceSession(job['model'], options, providers=['CPUExecutionProvider'])
        feeds = {name: np.ones(extents, dtype) for name, dtype, extents in job['feeds']}
        with open('/proc/self/clear_refs', 'w', encoding='ascii') as f:
            f.write('5')
        base, growth = status_bytes('VmRSS'), []
        for _ in range(RUNS):
            session.run(None, feeds)
            growth.append(status_bytes('VmHWM') - base)
        return growth
    except Exception as error:  # whatever this release raises
        return str(error)[:200]


def child():
    """Jobs as JSON lines on stdin, what was measured on stdout."""
    import numpy as np
    import onnxruntime as ort
    ort.set_default_logger_severity(4)
    print(json.dumps(ort.__version__), flush=True)
    for line in sys.stdin:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(write, json.dumps(measure(ort, np, json.loads(line))).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as f:
            answer = f.read()
        os.waitpid(pid, 0)
        print(answer or json.dumps('died'), flush=True)


class Runtime:
    """An interpreter with an ONNX Runtime."""

    def __init__(self, python):
        self.process = subprocess.Popen([python, os.path.abspath(__file__), '--child'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.release = json.loads(self.process.stdout.readline())

    def measure(self, job):
        self.process.stdin.write(json.dumps(job) + '\n')
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# ---- models ----

def unary(op, since=13, **attrs):
    return since, lambda net, v: net.op(op, v, **attrs)


def scalar(op, value, since=13, **attrs):
    """The second operand is a constant number."""
    return since, lambda net, v: net.op(op, v, net.const(value), **attrs)


def with_self(op, since=13, **attrs):
    """Both operands are the model's input or made from it: the second is as large, and stays."""
    return since, lambda net, v: net.op(op, v, 'x', **attrs)


def ints(op, values, since=13, **attrs):
    """The second operand is a list of numbers, of extents or axes."""
    return since, lambda net, v: net.op(op, v, net.const(values, 'i8'), **attrs)


def per_channel(op, n, since=13, **attrs):
    """As many constants of one number a channel."""
    return since, lambda net, v: net.op(op, v, *[net.const([1] * EXTENTS[1]) for _ in range(n)], **attrs)


def in_turn(*ops):
    """One after the other: shapes or types that return to what they were."""
    def step(net, v):
        net.turn = getattr(net, 'turn', -1) + 1
        return ops[net.turn % len(ops)][1](net, v)
    return max(op[0] for op in ops), step


def cast(dtype):
    import onnx
    return unary('Cast', to=getattr(onnx.TensorProto, dtype))


def where(net, v):
    net.condition = getattr(net, 'condition', None) or net.op('Equal', 'row', net.const(0))
    return net.op('Where', net.condition, v, net.const(0))


def clip(net, v):
    return net.op('Clip', v, net.const(0), net.const(6))


def layer_norm(net, v):
    return net.op('LayerNormalization', v, net.const([1] * EXTENTS[3]), net.const([0] * EXTENTS[3]))


def rms_norm(net, v):
    return net.op('RMSNormalization', v, net.const([1] * EXTENTS[3]))


def group_norm(net, v):
    return net.op('GroupNormalization', v, net.const([1] * EXTENTS[1]), net.const([0] * EXTENTS[1]), num_groups=4)


def resize(net, v):
    return net.op('Resize', v, '', net.const([1, 1, 1, 1], 'f4'), mode='linear')


def cum_sum(net, v):
    return net.op('CumSum', v, net.const(3, 'i8'))


def pad(net, v):
    return net.op('Pad', v, net.const([0, 0, 1, 0, 0, 0, -1, 0], 'i8'))


def scatter(net, v):
    return net.op('ScatterElements', v, net.const([[[[0]]]], 'i8'), net.const([[[[1]]]]), axis=3)


def scatter_nd(net, v):
    return net.op('ScatterND', v, net.const([[0, 0, 0, 0]], 'i8'), net.const([1]))


def quantize(net, v):
    return net.op('QuantizeLinear', v, net.const(.1, 'f4'), net.const(0, 'u1'))


def dequantize(net, v):
    return net.op('DequantizeLinear', v, net.const(.1, 'f4'), net.const(0, 'u1'))


def conv(net, v):
    return net.op('Conv', v, net.const([[[[1]]]] * EXTENTS[1]), group=EXTENTS[1])


def cases():
    """{operator: (least opset, function that appends one node to a network)}; a key of two words is an operator in a variant."""
    import numpy as np
    bits = {op: scalar(op, 1, 18) for op in ('BitwiseAnd', 'BitwiseOr', 'BitwiseXor')}
    plain = ('Relu Sigmoid Tanh Elu Selu Celu LeakyRelu HardSigmoid Softplus Softsign ThresholdedRelu Abs Neg Sign Ceil Floor Round Reciprocal Sqrt Exp '
             'Log Erf Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Not Shrink').split()
    return {
        **{op: unary(op) for op in plain}, 'HardSwish': unary('HardSwish', 14), 'Mish': unary('Mish', 18), 'Gelu': unary('Gelu', 20),
        'Gelu tanh': unary('Gelu', 20, approximate='tanh'), 'Swish': unary('Swish', 24),
        **{op: scalar(op, 2) for op in ('Add', 'Sub', 'Mul', 'Div', 'Pow', 'Max', 'Min', 'Mod')},
        'Mod float': (13, lambda net, v: net.op('Mod', v, net.const(2), fmod=1)),
        **{op: scalar(op, 2) for op in ('Sum', 'Mean', 'PRelu')},
        **{op: scalar(op, 1) for op in ('And', 'Or', 'Xor', 'Equal')}, **bits, 'BitwiseNot': unary('BitwiseNot', 18),
        'Where': (13, where), 'Clip': (13, clip), 'Softmax': unary('Softmax'), 'LogSoftmax': unary('LogSoftmax'), 'Hardmax': unary('Hardmax'),
        'BatchNormalization': per_channel('BatchNormalization', 4, 15), 'InstanceNormalization': per_channel('InstanceNormalization', 2),
        'LayerNormalization': (17, layer_norm), 'GroupNormalization': (21, group_norm), 'RMSNormalization': (23, rms_norm),
        'LpNormalization': unary('LpNormalization'), 'MeanVarianceNormalization': unary('MeanVarianceNormalization'),
        'LRN': unary('LRN', size=3),
        'Cast same size': in_turn(cast('INT32'), cast('FLOAT')), 'Cast half': in_turn(cast('FLOAT16'), cast('FLOAT')),
        'Cast bool': in_turn(cast('BOOL'), cast('FLOAT')),
        'Identity': unary('Identity'), 'Dropout': (13, lambda net, v: net.op('Dropout', v)),
        'Reshape': in_turn(ints('Reshape', [EXTENTS[1], *EXTENTS[2:]]), ints('Reshape', EXTENTS)),
        'Flatten': in_turn(unary('Flatten'), ints('Reshape', EXTENTS)),
        'Squeeze Unsqueeze': in_turn(ints('Squeeze', [0]), ints('Unsqueeze', [0])),
        'Transpose': in_turn(unary('Transpose', perm=[0, 1, 3, 2]), unary('Transpose', perm=[0, 1, 3, 2])),
        'Expand': ints('Expand', EXTENTS), 'Concat': (13, lambda net, v: net.op('Concat', v, axis=1)),
        'Pad': (13, pad), 'Resize': (13, resize), 'Tile': ints('Tile', [1, 1, 1, 1]),
        'DepthToSpace SpaceToDepth': in_turn(unary('DepthToSpace', blocksize=2), unary('SpaceToDepth', blocksize=2)),
        'Gather': (13, lambda net, v: net.op('Gather', v, net.const(np.arange(EXTENTS[1])[::-1], 'i8'), axis=1)),
        'CumSum': (14, cum_sum), 'Trilu': unary('Trilu', 14), 'ScatterElements': (13, scatter), 'ScatterND': (13, scatter_nd),
        'QuantizeLinear DequantizeLinear': in_turn((13, quantize), (13, dequantize)),
        'MatMul': (13, lambda net, v: net.op('MatMul', v, net.const(np.eye(EXTENTS[3])))),
        'Conv depthwise': (13, conv), 'MaxPool': unary('MaxPool', kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    }


def chain(step, dtype, since, extents=None, steps=STEPS):
    """`steps` nodes from x on, then one row of the last as y. `row`: an input of one row, for what a node compares."""
    import numpy as np
    import onnx
    from builder import Net
    tensor_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    net = Net(opset=since, dtype=tensor_type)
    extents = extents or EXTENTS
    v = net.input('x', extents)
    net.input('row', [1, 1, 1, EXTENTS[3]])
    for _ in range(steps):
        v = step(net, v)
    first, last, axis = (net.const([k], 'i8') for k in (0, 1, 2))
    net.op('Slice', v, first, last, axis, out='y')
    net.output('y', None)
    return net.model(), [('x', dtype, EXTENTS), ('row', dtype, [1, 1, 1, EXTENTS[3]])]


def situations():
    """{what: (dtype, least opset, step, extents, further members of the job)} of operators in other surroundings."""
    def turns(net, v):
        return net.op('Add', v, net.op('Relu', v))

    def twice(net, v):
        return net.op('Mul', v, v)

    def broadcast(op):
        return lambda net, v: net.op(op, v, 'row')
    named, unnamed = ['n', 'c', 'h', 'w'], [None] * 4
    rows = {}
    for op, step in (('Relu', unary('Relu')[1]), ('Add', scalar('Add', 2)[1]), ('Softmax', unary('Softmax')[1])):
        rows[f'{op}, optimizations off'] = ('f4', 13, step, None, {'plain': True})
        rows[f'{op}, extents with names'] = ('f4', 13, step, named, {})
        rows[f'{op}, extents without names'] = ('f4', 13, step, unnamed, {})
    rows['Add of a row'] = ('f4', 13, broadcast('Add'), None, {})
    rows['Add of the input'] = ('f4', 13, with_self('Add')[1], None, {})
    rows['PRelu of a row'] = ('f4', 13, broadcast('PRelu'), None, {})
    rows['Mul of a value with itself'] = ('f4', 13, twice, None, {})
    rows['Relu whose input Add reads, too'] = ('f4', 13, turns, None, {})
    rows['HardSwish, optimizations off'] = ('f4', 14, unary('HardSwish')[1], None, {'plain': True})
    rows['Sigmoid x Mul'] = ('f4', 13, lambda net, v: net.op('Mul', v, net.op('Sigmoid', v)), None, {})
    return rows


# ---- the table ----

def buffers(growth, size):
    """Values held after the first run, and after the last one where that is not twice as many; '-': no such kernel."""
    if isinstance(growth, str):
        return '-'
    first, last = (round(g / size * 2) / 2 for g in (growth[0], growth[-1]))
    return f'{first:g}' if last == 2 * first else f'{first:g}/{last:g}'


def look(runtimes, tmp, model, feeds, size, more):
    """Cells of one model, one a runtime."""
    import onnx
    path = os.path.join(tmp, 'm.onnx')
    onnx.save(model, path)
    growth = [r.measure({'model': path, 'feeds': feeds, **more}) for r in runtimes]
    return [buffers(g, size) for g in growth], growth


def joined(cells, runtimes):
    """One cell; runtimes that have another answer than the first that has any are named."""
    known = next((c for c in cells if c != '-'), '-')
    others = [f'{c} in {r.release}' for c, r in zip(cells, runtimes) if c not in (known, '-')]
    return ', '.join([known, *others])


def measure_situations(runtimes, tmp, table, facts):
    import numpy as np
    size = int(np.prod(EXTENTS))
    for what, (dtype, since, step, extents, more) in situations().items():
        model, feeds = chain(step, dtype, since, extents)
        cells, growth = look(runtimes, tmp, model, feeds, size * np.dtype(dtype).itemsize, more)
        facts.append({'case': what, 'growth_bytes': dict(zip([r.release for r in runtimes], growth))})
        table.add(what, joined(cells, runtimes))


def measure_operators(runtimes, tmp, table, facts, only):
    import numpy as np
    size = int(np.prod(EXTENTS))
    for op, (since, step) in cases().items():
        if only and op.split()[0] not in only:
            continue
        row = []
        for kind, dtype in TYPES.items():
            model, feeds = chain(step, dtype, since)
            cells, growth = look(runtimes, tmp, model, feeds, size * np.dtype(dtype).itemsize, {})
            row.append(joined(cells, runtimes))
            facts.append({'case': op, 'type': kind, 'growth_bytes': dict(zip([r.release for r in runtimes], growth))})
        table.add(op, *row)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--python', action='append')
    a.add_argument('--only', action='append')
    a.add_argument('--situations', action='store_true')
    a.add_argument('--json')
    a.add_argument('--markdown', action='store_true')
    a.add_argument('--child', action='store_true', help=argparse.SUPPRESS)
    args = a.parse_args()
    if args.child:
        return child()
    sys.path[:0] = [os.path.join(HERE, '..', 'tests', 'models')]
    from arena_table import Table
    runtimes, facts = [Runtime(python) for python in args.python or [sys.executable]], []
    table = Table(args.markdown, 'situation', 'buffers') if args.situations else Table(args.markdown, 'operator', *TYPES)
    print(f'ONNX Runtime {", ".join(r.release for r in runtimes)}', flush=True)
    with tempfile.TemporaryDirectory() as tmp:
        if args.situations:
            measure_situations(runtimes, tmp, table, facts)
        else:
            measure_operators(runtimes, tmp, table, facts, args.only)
    table.show()
    for r in runtimes:
        r.close()
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as f:
            json.dump(facts, f, indent=1)
    return 0


if __name__ == '__main__':
    sys.exit(main())
