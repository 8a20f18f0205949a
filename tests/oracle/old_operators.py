"""Operators of old opsets, tiled: what was read as a newer opset, Crop, and transposed convolutions larger than they paint.

    old_operators.py TOOL

Every case is tiled by force, in the form that the tool takes by itself and under --goal memory. The written model passes onnx.checker
(but for operators that are not in its schemas), gives what the original gives in ONNX Runtime bit for bit, and prints nothing on
standard output when it is loaded. Where ONNX Runtime has no kernel for the old form, onnx's reference evaluator gives what is wanted,
within rounding; where that has none, either, the tiled model must run all the same.
"""
import ctypes, os, subprocess, sys, tempfile
import numpy as np, onnx, onnxruntime as ort
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'models'))
import builder  # noqa: E402

F = np.float32
R = np.random.default_rng(5)
N = helper.make_node


def array(name, *dims, positive=False):
    a = R.standard_normal(dims).astype(F)
    return numpy_helper.from_array(np.abs(a) + F(.5) if positive else a, name)


def ints(name, *values):
    return numpy_helper.from_array(np.array(values, 'i8'), name)


def floats(name, *values):
    return numpy_helper.from_array(np.array(values, F), name)


def given(constant):
    return N('Constant', [], [constant.name], value=constant)


def conv(out, x='x', **attrs):
    return N('Conv', [x, 'w'], [out], kernel_shape=[3, 3], **{'pads': [1] * 4, **attrs})


W = array('w', 3, 3, 3, 3)
NORM = [array(n, 3, positive=True) for n in 'stmv']
X = [1, 3, 60, 70]
CASES = [
    # opset of the file, of the tiled model, nodes, constants, shape of x
    (6, 13, [conv('c'), N('LeakyRelu', ['c'], ['y'], alpha=.1)], [W], X),
    (6, 13, [conv('c'), N('Add', ['c', 'b'], ['y'], broadcast=1)], [W, array('b', 3, 1, 1)], X),
    (6, 13, [conv('c'), N('BatchNormalization', ['c', *'stmv'], ['n'], is_test=1), N('Relu', ['n'], ['y'])], [W, *NORM], X),
    (6, 13, [conv('c'), N('Clip', ['c'], ['y'], min=0., max=1.)], [W], X),
    (8, 13, [conv('c'), N('Clip', ['c'], ['d'], max=.5), conv('e', 'd'), N('Clip', ['e'], ['y'])], [W], X),
    (6, 13, [conv('c'), N('Dropout', ['c'], ['d'], is_test=1), N('MaxPool', ['d'], ['y'], kernel_shape=[2, 2], strides=[2, 2])], [W], X),
    (6, 13, [conv('c'), N('Concat', ['c', 'x'], ['y'], axis=1)], [W], X),
    (6, 13, [conv('c'), N('Pad', ['c'], ['p'], pads=[0, 0, 1, 1, 0, 0, 1, 1]), N('Elu', ['p'], ['y'])], [W], X),
    (9, 9, [conv('c'), N('Slice', ['c'], ['s'], starts=[0, 1, -70], ends=[9, -1, 60]), N('Tanh', ['s'], ['y'])], [W], X),
    (10, 13, [conv('c'), *(given(ints(*v)) for v in (('s', 1, 2), ('e', 50, 60), ('a', 2, 3))), N('Slice', ['c', *'sea'], ['d']),
              N('Clip', ['d'], ['y'], min=0.)], [W], X),
    (10, 13, [conv('c'), given(floats('s', 1, 1, 2, 1)), N('Resize', ['c', 's'], ['u']), conv('y', 'u')], [W], X),
    (10, 12, [conv('c'), given(floats('s', 1, 1, 1, 4)), N('Resize', ['c', 's'], ['u'], mode='linear'), N('Softmax', ['u'], ['y'], axis=3)], [W], X),
    (10, 13, [conv('c'), N('Mul', ['f', 'f'], ['k']), N('Resize', ['c', 'k'], ['u'], mode='linear'), N('Relu', ['u'], ['y'])],
     [W, floats('f', 1, 1, .5, 2)], X),
    (9, 13, [conv('c'), N('Shape', ['c'], ['q']), N('Slice', ['q'], ['r'], starts=[2], ends=[9]), N('Cast', ['r'], ['t'], to=1), N('Div', ['t', 't'], ['o']),
             N('Concat', ['f', 'o'], ['s'], axis=0), N('Upsample', ['c', 's'], ['u'], mode='linear'), N('Relu', ['u'], ['y'])], [W, floats('f', 1, 1)], X),
    # not raised: nearest ones are elsewhere where it makes smaller
    (10, 10, [conv('c'), given(floats('s', 1, 1, .5, .5)), N('Resize', ['c', 's'], ['u']), conv('y', 'u')], [W], X),
    (7, 13, [conv('c'), N('Upsample', ['c'], ['u'], scales=[1., 1., 2., 2.]), conv('y', 'u')], [W], X),
    (8, 12, [conv('c'), N('Upsample', ['c'], ['u'], scales=[1., 1., 2., 1.5], mode='linear'), N('Softmax', ['u'], ['y'], axis=3)], [W], X),
    (9, 13, [conv('c'), N('Upsample', ['c', 's'], ['u'], mode='linear'), N('Relu', ['u'], ['y'])], [W, floats('s', 1, 1, 1, 2)], X),
    (9, 13, [conv('c'), N('Upsample', ['c', 's'], ['u']), conv('y', 'u')], [W, floats('s', 1, 1, 2.5, 3)], X),
    (6, 9, [conv('c'), N('Slice', ['c'], ['s'], starts=[1, 2], ends=[50, 60], axes=[2, 3]), N('Tanh', ['s'], ['y'])], [W], X),
    (6, 13, [conv('c'), N('Crop', ['c'], ['y'], border=[3, 2, 1, 5])], [W], X),
    (7, 13, [conv('c'), N('Crop', ['c'], ['d'], border=[3, 2, 1, 5]), conv('e', 'd', pads=[0] * 4),
            N('Crop', ['e'], ['f'], border=[2, 2, 0, 0], scale=[31, 41]), N('Relu', ['f'], ['y'])], [W], X),
    (9, 13, [N('Crop', ['x'], ['c'], border=[2, 0, 1, 0]), N('Relu', ['c'], ['y'])], [], [2, 3, 60, 70]),
    (9, 13, [conv('c'), N('ImageScaler', ['c'], ['s'], bias=[1., -2., .5], scale=2.), N('Affine', ['s'], ['a'], alpha=.5, beta=.25),
            conv('y', 'a')], [W], X),
    # written as they are: something else is not raised, or they cannot be replaced
    (7, 7, [conv('c'), N('Crop', ['c'], ['d'], border=[3, 2, 1, 5]), conv('e', 'd', pads=[0] * 4), N('ThresholdedRelu', ['e'], ['f'], alpha=.5),
            N('Crop', ['f'], ['y'], border=[2, 2, 0, 0], scale=[31, 41])], [W], X),
    (9, 9, [conv('c'), N('ImageScaler', ['c'], ['s'], bias=[1., -2., .5], scale=2.), N('Affine', ['s'], ['a'], alpha=.5, beta=.25),
            N('ThresholdedRelu', ['a'], ['b'], alpha=.5), conv('y', 'b')], [W], X),
    (6, 10, [conv('c'), N('Pad', ['c'], ['p'], pads=[0, 0, 1, 1, 0, 0, 1, 1], value=.5), N('Elu', ['p'], ['y'])], [W], X),
    (9, 13, [N('Affine', ['x'], ['a'], alpha=.3), conv('c', 'a'), N('Affine', ['c'], ['b'], beta=.7), N('Affine', ['b'], ['y'])], [W], X),
    (8, 13, [conv('c'), N('Pad', ['c'], ['p'], pads=[0, 0, 3, 2, 0, 0, 1, 4], mode='reflect', value=.5), conv('y', 'p')], [W], X),
    (10, 13, [conv('c'), N('Pad', ['c'], ['p'], pads=[0, 0, 3, 2, 0, 0, 1, 4], mode='edge'), conv('y', 'p')], [W], X),
    (7, 13, [N('ConvTranspose', ['x', 't', 'b'], ['c'], output_shape=[82, 82], strides=[2, 2], auto_pad='VALID'), N('Relu', ['c'], ['y'])],
     [array('t', 4, 3, 3, 3), array('b', 3)], [1, 4, 40, 40]),
    (7, 13, [N('ConvTranspose', ['x', 't', 'b'], ['c'], output_shape=[82, 81], strides=[2, 2]), N('Relu', ['c'], ['y'])],
     [array('t', 4, 3, 3, 3), array('b', 3)], [1, 4, 40, 40]),
    (9, 13, [N('ConvTranspose', ['x', 't', 'b'], ['c'], output_shape=[79, 79], strides=[2, 2], auto_pad='SAME_UPPER'), N('Relu', ['c'], ['y'])],
     [array('t', 4, 3, 3, 3), array('b', 3)], [1, 4, 40, 40]),
    (7, 13, [conv('c'), N('BatchNormalization', ['c', *'stmv'], ['n'], momentum=.9), N('Dropout', ['n'], ['d'], ratio=.5),
             N('AveragePool', ['d'], ['y'], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)], [W, *NORM], X),
    (9, 13, [conv('c'), N('PRelu', ['c', 'a'], ['p']), N('LpNormalization', ['p'], ['l'], axis=1), N('Erf', ['l'], ['y'])], [W, array('a', 3, 1, 1)], X),
    (10, 12, [conv('c'), N('Softmax', ['c'], ['s'], axis=3), N('Softplus', ['s'], ['y'])], [W], X),
    (9, 13, [conv('c'), N('Clip', ['c'], ['y'], min=0., max=1.)], [W], X),
    (13, 13, [N('ConvTranspose', ['x', 't', 'b'], ['c'], output_shape=[82, 81], strides=[2, 2]), N('Relu', ['c'], ['y'])],
     [array('t', 4, 3, 3, 3), array('b', 3)], [1, 4, 40, 40]),
]

ort.set_default_logger_severity(4)


def load_and_run(model, folder):
    """In a process of its own, whose texts go to files, those of libraries included; never returns."""
    status = 1
    for fd, name in (1, 'said'), (2, 'failed'):
        os.dup2(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), fd)
    try:
        s = ort.InferenceSession(model, providers=['CPUExecutionProvider'])
        np.save(os.path.join(folder, 'y.npy'), s.run(None, {'x': np.load(os.path.join(folder, 'x.npy'))})[0])
        status = 0
    except Exception as e:
        print(e, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)
    os._exit(status)


def run(model, folder):
    """(result or None, what the process wrote: its output, or why it failed). A child has ONNX Runtime loaded already."""
    child = os.fork()
    if child == 0:
        load_and_run(model, folder)
    _, status = os.waitpid(child, 0)
    with open(os.path.join(folder, 'failed' if status else 'said'), errors='replace') as f:
        said = f.read()
    return (None, said[-300:]) if status else (np.load(os.path.join(folder, 'y.npy')), said)


def wanted(path, x, folder):
    """(result or None, exact)"""
    y, _ = run(path, folder)
    if y is not None:
        return y, True
    try:
        return ReferenceEvaluator(onnx.load(path)).run(None, {'x': x})[0], False
    except Exception:
        return None, False


def save_old(case, path):
    """The case as a file of IR 3, whose constants are inputs."""
    old, _, nodes, inits, shape = case
    ins = [builder.value('x', shape)] + [builder.value(i.name, i.dims) for i in inits]
    builder.save(builder.model(nodes, ins, [builder.value('y', [None] * 4)], inits, old, ir=3), path)


def judge(case, form, tool, folder):
    old, new, nodes, inits, shape = case
    path, out = os.path.join(folder, 'a.onnx'), os.path.join(folder, 'b.onnx')
    save_old(case, path)
    x = R.standard_normal(shape).astype(F)
    np.save(os.path.join(folder, 'x.npy'), x)
    want, exact = wanted(path, x, folder)
    p = subprocess.run([tool, path, '-o', out, '--force', '--l2', '24K', '-q', *form], capture_output=True, text=True)
    if p.returncode:
        return 'the tool fails: ' + p.stderr
    tiled = onnx.load(out)
    if not any(n.name.startswith('tile/') for n in tiled.graph.node):
        return 'nothing was tiled'
    if tiled.opset_import[0].version != new:
        return f'opset {tiled.opset_import[0].version}, not {new}'
    if all(onnx.defs.has(n.op_type) for n in nodes):
        onnx.checker.check_model(tiled, full_check=True)
    got, said = run(out, folder)
    if got is None or said:
        return 'loading the tiled model: ' + said
    if want is None:
        return ''
    if got.shape != want.shape:
        return f'shape {got.shape}, not {want.shape}'
    same = np.array_equal(got, want) if exact else np.allclose(got, want, rtol=1e-4, atol=1e-5)
    return '' if same else f'differs by {np.abs(got - want).max()}'


def judge_untouched(case, tool, folder):
    """Nothing is tiled: the file as it was, whatever it was read as, but for what nobody reads."""
    old, _, nodes, inits, shape = case
    path, out = os.path.join(folder, 'a.onnx'), os.path.join(folder, 'b.onnx')
    save_old(case, path)
    p = subprocess.run([tool, path, '-o', out, '--json', '--l2', '1G'], capture_output=True, text=True)
    if p.returncode:
        return 'the tool fails: ' + p.stderr
    if '"narrowed_nodes"' in p.stdout:
        return ''
    with open(path, 'rb') as a, open(out, 'rb') as b:
        return '' if a.read() == b.read() else 'untouched, and not the same bytes'


def main():
    bad = 0
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            why = judge_untouched(case, sys.argv[1], folder)
        if why:
            print([n.op_type for n in case[2]], case[0], why)
        bad += bool(why)
    for case in CASES:
        for form in ([], ['--goal', 'memory']):
            with tempfile.TemporaryDirectory() as folder:
                why = judge(case, form, sys.argv[1], folder)
            if why:
                print([n.op_type for n in case[2]], case[0], form, why)
            bad += bool(why)
    print(f'{2 * len(CASES)} tilings, {bad} bad')
    return 1 if bad else 0


sys.exit(main())
