"""What kinds.sh has in Python: a model of each kind, and outputs of two models."""
import numpy as np
import onnx

import builder
from checks import range_error, session
from command_line import commands

# kind: how to make it; how far outputs may be off, by their range
KINDS = {
    'chain': (lambda: builder.conv_chain([8, 8, 4], act='Relu'), 1e-6),
    'free': (lambda: builder.conv_chain([8, 8, 4], extents=('n', 'h', 'w'), act='PRelu'), 1e-6),
    'batch_norm': (lambda: builder.conv_chain([8, 8], normalise='BatchNormalization', act='Relu'), 1e-6),
    'instance_norm': (lambda: builder.conv_chain([8, 8], normalise='InstanceNormalization'), 1e-5),
    'residual': (builder.residual, 1e-6),
    'half': (lambda: builder.halve(builder.residual()), 2 ** -9),
    'freed': (lambda: builder.free_extents(builder.residual()), 1e-6),
    'attention': (lambda: builder.attention(heads=4), 1e-6),
    'quantised': (builder.quantised_conv, 1 / 200),  # a step of its bytes
    'loop': (builder.counted_loop, 0),
}


def models(folder):
    """KIND.onnx of each; prints its name and how far outputs may be off. Made twice, it is the same."""
    for kind, (make, error) in KINDS.items():
        m = make()
        onnx.checker.check_model(m, full_check=True)
        assert m.SerializeToString(deterministic=True) == make().SerializeToString(deterministic=True), kind
        builder.save(m, f'{folder}/{kind}.onnx')
        print(kind, error)


def same(original, tiled, error):
    """Outputs of both, where dynamic extents are 33, and the batch 2."""
    one, two = session(original), session(tiled)
    feeds = {}
    for i in one.get_inputs():
        extents = [d if isinstance(d, int) else 2 if k == 0 else 33 for k, d in enumerate(i.shape)]
        x = np.random.default_rng(1).standard_normal(extents)
        feeds[i.name] = x.astype('f2' if 'float16' in i.type else 'f4')
    for a, b in zip(one.run(None, feeds), two.run(None, feeds), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, a.shape, b.dtype, b.shape)
        assert np.ptp(a) > 0, 'outputs are all the same'
        assert range_error(b, a.astype('f8')) <= float(error), range_error(b, a.astype('f8'))


if __name__ == '__main__':
    commands(models, same)
