"""--max-tensor: no tensor of the written model is larger, by onnx's own shape inference, and the outputs are the original's.

    max_tensor.py --tool build/onnx-tile MODEL.onnx... [--args "--goal memory"] [--limits 0.5,0.2]

Limits are parts of the largest tensor that the original makes (by shape inference of fixed models). A model that cannot keep one must
say so: exit status 3, one line that names the value, what it takes and what is allowed. Exit status 1 when anything is wrong.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, shape_inference

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from other_size import differ, feeds, run  # noqa: E402


def bytes_of(value):
    """Of a described tensor; None when it is none, or its size is not known."""
    if not value.type.HasField('tensor_type') or not value.type.tensor_type.HasField('shape'):
        return None
    t = value.type.tensor_type
    if t.elem_type == TensorProto.STRING or any(not d.HasField('dim_value') for d in t.shape.dim):
        return None
    return int(np.prod([d.dim_value for d in t.shape.dim], dtype=object)) * helper.tensor_dtype_to_np_dtype(t.elem_type).itemsize


def made(graph, top=True):
    """(bytes, name) of what nodes make, bodies included; slices that a Scan hands in as well."""
    own = {o for n in graph.node for o in n.output if n.op_type != 'Constant'} | ({i.name for i in graph.input} if not top else set())
    for v in list(graph.value_info) + list(graph.output) + list(graph.input):
        b = bytes_of(v) if v.name in own else None
        if b is not None:
            yield b, v.name
    for n in graph.node:
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from made(a.g, False)


def largest(model):
    return max(made(shape_inference.infer_shapes(model, data_prop=True).graph), default=(0, ''))


def judge(tool, path, limit, options, tmp):
    """'held', 'refused' or what is wrong."""
    out = os.path.join(tmp, 'out.onnx')
    if os.path.exists(out):
        os.remove(out)
    r = subprocess.run([tool, path, '-o', out, '-q', '--threads', '1', '--max-tensor', str(limit), *options], capture_output=True, text=True)
    if r.returncode == 3:
        m = re.fullmatch(r"onnx-tile: error: max tensor cannot be kept: .*\n", r.stderr)
        return 'refused: ' + r.stderr[18:].strip() if m and not os.path.exists(out) else 'wrong words: ' + r.stderr
    if r.returncode != 0:
        return 'exit %d: %s' % (r.returncode, r.stderr.strip())
    model, original = onnx.load(out), onnx.load(path)
    size, name = largest(model)
    if size > limit:
        return '%s takes %d bytes, %d were allowed' % (name, size, limit)
    feed = feeds(original, {})
    return differ(run(out, feed), run(path, feed)) or 'held: %d of %d' % (size, limit)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', required=True)
    p.add_argument('--args', default='')
    p.add_argument('--limits', default='0.7,0.3,0.1')
    p.add_argument('models', nargs='+')
    a = p.parse_args()
    bad = count = held = 0
    with tempfile.TemporaryDirectory() as tmp:
        for path in a.models:
            most = largest(onnx.load(path, load_external_data=False))[0]
            for part in a.limits.split(','):
                limit = max(1, int(most * float(part)))
                said = judge(a.tool, path, limit, a.args.split(), tmp)
                ok = said.startswith(('held', 'refused'))
                bad, count, held = bad + (not ok), count + 1, held + said.startswith('held')
                print('%s%s at %s: %s' % ('' if ok else 'FAIL ', os.path.basename(path), part, said), flush=True)
    print('%d models and limits, %d held, %d refused, %d wrong' % (count, held, count - held - bad, bad))
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
