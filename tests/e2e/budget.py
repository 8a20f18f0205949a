"""What budget.sh has in Python: its models, what a process takes, what the tool told against that."""
import json

import numpy as np
import onnxruntime as ort

from command_line import commands


def models(d):
    """chain: eight convolutions; norms: wide ones with a normalisation between."""
    from builder import Net, norm_constants, save  # what this loads is not there while memory is measured
    rng = np.random.default_rng(0)
    for name, widths, normalised in ('chain', [32] * 8, False), ('norms', [8, 64, 8], True):
        net = Net(rng=rng)
        v, c = net.input('x', [1, 3, 512, 512]), 3
        for width in widths:
            v = net.op('Conv', v, net.const(rng.normal(0, .08, (width, c, 3, 3))), pads=[1] * 4)
            if normalised and width > 8:
                v = net.op('InstanceNormalization', v, *norm_constants(net, 'InstanceNormalization', width))
            v, c = net.op('Relu', v), width
        net.op('Conv', v, net.const(rng.normal(0, .08, (3, c, 1, 1))), out='y')
        net.output('y', [1, 3, 512, 512])
        save(net.model(), f'{d}/{name}.onnx')


def takes(model, results):
    """Bytes that a process takes to load the model and to run it twice; the outputs go to a file."""
    def held(key): return next(int(l.split()[1]) for l in open('/proc/self/status') if l.startswith(key)) << 10
    o = ort.SessionOptions()
    o.intra_op_num_threads = 1
    x = np.random.default_rng(1).random((1, 3, 512, 512), dtype='f4')
    before = held('VmRSS')
    s = ort.InferenceSession(model, o, providers=['CPUExecutionProvider'])
    for _ in range(2): y = s.run(None, {'x': x})
    print(held('VmHWM') - before)
    np.save(results, y[0])


def keeps(told_file, budget_bytes, taken_bytes, untiled, tiled):
    """Told and measured figures are within the budget, and the outputs are those of the untiled model."""
    told, budget, taken = json.load(open(told_file)), int(budget_bytes), int(taken_bytes)
    a, b = np.load(untiled), np.load(tiled)
    assert told['tiled']['peak_bytes'] <= budget, told['tiled']
    assert told['tiled']['process_bytes'] <= budget, told['tiled']
    assert taken <= budget, f'{taken} measured, {budget} allowed'
    assert np.abs(a - b).max() <= 1e-4 * np.abs(a).max(), np.abs(a - b).max()


if __name__ == '__main__':
    commands(models, takes, keeps)
