"""What deferred_packing.sh has in Python."""
import sys

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from builder import Net, norm_constants, save
from checks import outputs
from command_line import commands


def models(path, opset):
    """Eight convolutions with normalisations; at opset 9 a transposed one behind them."""
    net = Net(3, int(opset))
    v = net.input('x', [1, 16, 24, 24])
    for c_in, c_out in ((16, 192), *[(192, 192)] * 6, (192, 8)):
        v = net.conv(v, c_in, c_out, scale=1, pads=[1] * 4)
        v = net.op('Relu', net.op('BatchNormalization', v, *norm_constants(net, 'BatchNormalization', c_out)))
    if opset == '9':  # not for the reference evaluator: it is slow at that, and takes old normalisations for trained ones
        v = net.op('ConvTranspose', v, net.const(net.rng.standard_normal((8, 32, 16, 16))), strides=[2, 2])
    net.output(v)
    save(onnx.shape_inference.infer_shapes(net.model()), path)


def compare(src, dst, opset):
    """Weights are made right before they are read, and the outputs are the same in every runtime."""
    m = onnx.load(dst)
    onnx.checker.check_model(m, full_check=True)
    made = {o: n for n in m.graph.node for o in n.output}
    convs = [n for n in m.graph.node if n.op_type in ('Conv', 'ConvTranspose')]
    late = [n for n in convs if n.input[1] in made and made[n.input[1]].op_type == 'Gather']
    if len(late) < 4: sys.exit(f'{len(late)} weights packed late')
    if any(n.op_type == 'BatchNormalization' for n in m.graph.node): sys.exit('a normalisation is left')
    names = {t.name for t in m.graph.initializer}
    if unread := names - {i for n in m.graph.node for i in n.input}: sys.exit(f'nobody reads {unread}')
    order = {n.output[0]: k for k, n in enumerate(m.graph.node)}
    for n in late:  # each stands right before what reads it
        first = min(order[k.output[0]] for k in late if k.input[1] == n.input[1])
        if order[n.input[1]] != first - 1: sys.exit(f'{n.output[0]}: its weights are made too early')

    def ort_run(path, x):
        return outputs(path, {'x': x})[0]

    def openvino_run(path, x):
        import openvino as ov
        return ov.Core().compile_model(path, 'CPU', {'INFERENCE_PRECISION_HINT': 'f32'})([x])[0]

    def same(name, run, x):
        a, b = run(src, x), run(dst, x)
        if a.shape != b.shape or not np.allclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True): sys.exit(f'{name}: outputs differ')

    runs = {'onnxruntime': ort_run}
    try:
        import openvino  # noqa: F401
        runs['openvino'] = openvino_run
    except ImportError:
        pass
    x = np.random.default_rng(1).standard_normal((1, 16, 24, 24)).astype('f4')
    not_a_number = x.copy()
    not_a_number.flat[0] = np.nan  # the number that the zero is computed from
    for name, run in runs.items():
        same(name, run, x)
        same(name, run, not_a_number)
    if opset != '9':
        same('reference', lambda path, x: ReferenceEvaluator(path).run(None, {'x': x})[0], x)


if __name__ == '__main__':
    commands(models, compare)
