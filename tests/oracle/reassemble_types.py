#!/usr/bin/env python3
"""Element types x opsets x output forms: what a form writes around a region takes the types that pass through it, or is refused.

  reassemble_types.py FORCE_TILE [--opset N]... [--every N] [--keep DIR] [-v]

Small networks that only move elements, or cast to a type and back, are tiled by force_tile in each form. What is written must pass
onnx.checker with full_check and load in ONNX Runtime where the untiled model does; where both run, they give the same numbers. Some
combinations must be legal, some must be refused. --every: of the tilings of a form every Nth, others in the next opset. Ends with 'N passed, N failed, N not legal, N without a model'.
"""
import argparse, collections, os, subprocess, sys, tempfile
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as TP, helper as H

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'models'))
import builder  # noqa: E402

ort.set_default_logger_severity(4)
OPSETS = (7, 9, 10, 11, 13, 15, 16, 18, 19, 21, 23, 24, 25)
TYPES = {n: v for n, v in TP.DataType.items() if v and n != 'UNDEFINED'}
SHAPE, TURNED = [4, 7, 6], [4, 6, 7]
OLD, F8 = range(1, 16), ('FLOAT8E4M3FN', 'FLOAT8E4M3FNUZ', 'FLOAT8E5M2', 'FLOAT8E5M2FNUZ')


def moves(t):
    return [H.make_node('Identity', ['x'], ['a'], name='a'), H.make_node('Identity', ['a'], ['y'], name='y')], t, t, SHAPE


def turns(t):
    return [H.make_node('Transpose', ['x'], ['a'], perm=[0, 2, 1], name='a'),
            H.make_node('Identity', ['a'], ['y'], name='y')], t, t, TURNED


def inside(t):
    return [H.make_node('Cast', ['x'], ['a'], to=t, name='a'), H.make_node('Cast', ['a'], ['y'], to=TP.FLOAT, name='y')], TP.FLOAT, TP.FLOAT, SHAPE


def read(t):
    return [H.make_node('Identity', ['x'], ['a'], name='a'), H.make_node('Cast', ['a'], ['y'], to=TP.FLOAT, name='y')], t, TP.FLOAT, SHAPE


def made(t):
    return [H.make_node('Cast', ['x'], ['a'], to=t, name='a'), H.make_node('Identity', ['a'], ['y'], name='y')], TP.FLOAT, t, SHAPE


NETS = [moves, turns, inside, read, made]
FORMS = ['scan', 'unrolled', 'peeled', 'loop', 'prescan']
TILINGS = [('0', '4'), ('0', '2'), ('1', '3'), ('0,1', '2,3')]


def must(net, name, opset, form, axes):
    """True: this must be legal; False: it must not be; None: either."""
    value = TYPES[name]
    if form == 'unrolled' and value in OLD:
        return True
    if form == 'unrolled' and name == 'BFLOAT16' and opset >= 13:
        return True
    if name in F8 and form == 'unrolled':
        return net is inside
    if name in F8 and form == 'scan' and axes == '0' and opset >= 21 and net in (moves, read, made):
        return True
    return None


def checked(model):
    try:
        onnx.checker.check_model(model, full_check=True)
        return ''
    except Exception as ex:
        return 'checker: ' + str(ex).strip().split('\n')[0]


def session(path):
    so = ort.SessionOptions()
    so.intra_op_num_threads = so.inter_op_num_threads = 1
    so.log_severity_level = 4
    return ort.InferenceSession(path, so, providers=['CPUExecutionProvider'])


def numbers(s):
    """What the session gives for fixed numbers; None: they cannot be fed."""
    rng = np.random.default_rng(1)
    try:
        x = rng.integers(-3, 4, SHAPE).astype(np.float32)
        return s.run(None, {'x': x}) if s.get_inputs()[0].type == 'tensor(float)' else None
    except Exception:
        return None


def same(a, b):
    return np.array_equal(a, b) if a.dtype == object else a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def judge(dst, before):
    wrong = checked(onnx.load(dst))
    if wrong or before is None:
        return wrong
    try:
        after = session(dst)
    except Exception as ex:
        return 'load: ' + str(ex).replace('\n', ' ')[:200]
    want, got = numbers(before), numbers(after)
    if want is not None and (got is None or not all(map(same, want, got))):
        return 'other numbers'
    return ''


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('tool')
    ap.add_argument('--opset', type=int, action='append')
    ap.add_argument('--every', type=int, default=1)
    ap.add_argument('--keep')
    ap.add_argument('-v', action='store_true')
    args = ap.parse_args()
    tally = collections.Counter()
    with tempfile.TemporaryDirectory() as tmp:
        folder = args.keep or tmp
        os.makedirs(folder, exist_ok=True)
        for turn, opset in enumerate(args.opset or OPSETS):
            for (name, value), net in ((t, n) for t in TYPES.items() for n in NETS):
                nodes, tin, tout, shape = net(value)
                ends = [builder.value('x', SHAPE, tin)], [builder.value('y', shape, tout)]
                model = builder.model(nodes, *ends, opset=opset, ir=8 if opset < 19 else 10)
                src = os.path.join(folder, f'{net.__name__}_{name}_{opset}.onnx')
                if checked(model):
                    tally['without'] += 1
                    continue
                onnx.save(model, src)
                try:
                    before = session(src)
                except Exception:
                    before = None
                for form, (axes, tiles) in ((f, t) for f in FORMS for t in TILINGS[turn % args.every::args.every]):
                    dst = os.path.join(folder, f'{net.__name__}_{name}_{opset}_{form}_{axes}_{tiles}.onnx'.replace(',', '-'))
                    p = subprocess.run([args.tool, src, dst, form, axes, tiles], capture_output=True, text=True)
                    want = must(net, name, opset, form, axes) if tiles != '2' else None
                    if p.returncode == 5:
                        verdict, why = ('failed' if want else 'not legal'), p.stdout.strip()
                    elif p.returncode:
                        verdict, why = 'failed', f'exit {p.returncode}: {p.stderr.strip()[-200:]}'
                    else:
                        why = 'legal, and should not be' if want is False else judge(dst, before)
                        verdict = 'failed' if why else 'passed'
                    tally[verdict] += 1
                    if verdict == 'failed' or args.v:
                        print(f'{net.__name__:7s} {name:16s} opset {opset:2d}  {form:9s} axes {axes:4s} tiles {tiles:4s} {verdict:10s}{why}', flush=True)
    print(f"{tally['passed']} passed, {tally['failed']} failed, {tally['not legal']} not legal, {tally['without']} without a model")
    return 1 if tally['failed'] or not tally['passed'] else 0


if __name__ == '__main__':
    sys.exit(main())
