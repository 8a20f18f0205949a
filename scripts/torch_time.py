"""An ONNX network in PyTorch on CUDA, for its time alone: float32 without TF32, cuDNN's choice of algorithms, events around runs."""
import functools

import numpy as np
import onnx
from onnx import numpy_helper


class NotHere(Exception):
    """An operator that this has not, or no torch with CUDA."""


def pads_of(x, attrs, torch):
    """The input with its pads written out, where they differ by side."""
    pads = attrs.get('pads')
    if not pads:
        return x, 0
    n = len(pads) // 2
    if pads[:n] == pads[n:]:
        return x, tuple(pads[:n])
    return torch.nn.functional.pad(x, [p for k in reversed(range(n)) for p in (pads[k], pads[n + k])]), 0


def convolution(torch, name, ins, attrs):
    f, dims = torch.nn.functional, ins[0].dim() - 2
    if attrs.get('auto_pad', 'NOTSET') not in ('NOTSET', b'NOTSET'):
        raise NotHere('auto_pad')
    kind = f'conv_transpose{dims}d' if name == 'ConvTranspose' else f'conv{dims}d'
    x, pad = (ins[0], tuple(attrs.get('pads', [0] * dims)[:dims])) if name == 'ConvTranspose' else pads_of(ins[0], attrs, torch)
    more = {'output_padding': tuple(attrs['output_padding'])} if 'output_padding' in attrs else {}
    return getattr(f, kind)(x, ins[1], ins[2] if len(ins) > 2 else None, stride=tuple(attrs.get('strides', [1] * dims)), padding=pad,
                            groups=attrs.get('group', 1), dilation=tuple(attrs.get('dilations', [1] * dims)), **more)


def pool(torch, name, ins, attrs):
    f, x = torch.nn.functional, ins[0]
    dims = len(attrs['kernel_shape'])
    pads = attrs.get('pads', [0] * 2 * dims)
    if pads[:dims] != pads[dims:] or attrs.get('auto_pad', b'NOTSET') != b'NOTSET':
        raise NotHere('pads of a pool')
    more = {'ceil_mode': bool(attrs.get('ceil_mode', 0))} if name == 'MaxPool' else {'count_include_pad': bool(attrs.get('count_include_pad', 0))}
    return getattr(f, ('max' if name == 'MaxPool' else 'avg') + f'_pool{dims}d')(x, attrs['kernel_shape'], attrs.get('strides', [1] * dims), pads[:dims], **more)


def gemm(torch, ins, attrs):
    a, b = (ins[k].t() if attrs.get(t) else ins[k] for k, t in enumerate(('transA', 'transB')))
    y = a @ b * attrs.get('alpha', 1)
    return y + ins[2] * attrs.get('beta', 1) if len(ins) > 2 else y


def numbers(x):
    return [int(v) for v in x.tolist()]


def reshape(ins, attrs):
    dims = [ins[0].shape[k] if v == 0 else v for k, v in enumerate(numbers(ins[1]))]
    return ins[0].reshape(dims)


def rows_of(x, attrs):
    return attrs.get('axes') or list(range(2, x.dim()))


def slice_of(ins, attrs):
    x, starts, ends = ins[0], numbers(ins[1]), numbers(ins[2])
    axes = numbers(ins[3]) if len(ins) > 3 and ins[3] is not None else range(len(starts))
    steps = numbers(ins[4]) if len(ins) > 4 else [1] * len(starts)
    at = [slice(None)] * x.dim()
    for k, axis in enumerate(axes):
        at[axis] = slice(starts[k], min(ends[k], x.shape[axis]), steps[k])
    return x[tuple(at)]


def pixels(torch, ins, attrs):
    if attrs.get('mode', b'DCR') != b'CRD':
        raise NotHere('DepthToSpace, DCR')
    return torch.nn.functional.pixel_shuffle(ins[0], attrs['blocksize'])


def operators(torch):
    f = torch.nn.functional
    each = {'Relu': f.relu, 'Sigmoid': torch.sigmoid, 'Tanh': torch.tanh, 'Sqrt': torch.sqrt, 'Erf': torch.erf, 'Exp': torch.exp, 'Identity': lambda x: x}
    two = {'Add': torch.add, 'Sub': torch.sub, 'Mul': torch.mul, 'Div': torch.div, 'MatMul': torch.matmul, 'Pow': torch.pow}
    return {
        **{k: lambda i, a, g=g: g(i[0]) for k, g in each.items()}, **{k: lambda i, a, g=g: g(i[0], i[1]) for k, g in two.items()},
        'Conv': lambda i, a: convolution(torch, 'Conv', i, a), 'ConvTranspose': lambda i, a: convolution(torch, 'ConvTranspose', i, a),
        'MaxPool': lambda i, a: pool(torch, 'MaxPool', i, a), 'AveragePool': lambda i, a: pool(torch, 'AveragePool', i, a),
        'GlobalAveragePool': lambda i, a: i[0].mean(tuple(range(2, i[0].dim())), keepdim=True), 'Gemm': lambda i, a: gemm(torch, i, a),
        'Concat': lambda i, a: torch.cat(i, a['axis']), 'Reshape': reshape, 'Flatten': lambda i, a: i[0].flatten(a.get('axis', 1)) if a.get('axis', 1) == 1 else NotHere,
        'BatchNormalization': lambda i, a: f.batch_norm(i[0], i[3], i[4], i[1], i[2], eps=a.get('epsilon', 1e-5)),
        'InstanceNormalization': lambda i, a: f.instance_norm(i[0], weight=i[1], bias=i[2], eps=a.get('epsilon', 1e-5)),
        'LayerNormalization': lambda i, a: f.layer_norm(i[0], i[1].shape, i[1], i[2] if len(i) > 2 else None, a.get('epsilon', 1e-5)),
        'Softmax': lambda i, a: torch.softmax(i[0], a.get('axis', -1)), 'Transpose': lambda i, a: i[0].permute(a['perm']), 'LeakyRelu': lambda i, a: f.leaky_relu(i[0], a.get('alpha', .01)),
        'PRelu': lambda i, a: torch.where(i[0] > 0, i[0], i[0] * i[1]), 'DepthToSpace': lambda i, a: pixels(torch, i, a), 'Slice': slice_of,
        'Clip': lambda i, a: torch.clamp(i[0], i[1] if len(i) > 1 else a.get('min'), i[2] if len(i) > 2 else a.get('max')),
        'ReduceMean': lambda i, a: i[0].mean(rows_of(i[0], a), keepdim=bool(a.get('keepdims', 1))), 'Unsqueeze': lambda i, a: i[0].unsqueeze(numbers(i[1])[0]),
        'Gather': lambda i, a: i[0].index_select(a.get('axis', 0), i[1].reshape(-1)).squeeze(a.get('axis', 0)) if i[1].dim() == 0 else NotHere,
    }


def program(torch, model):
    """[(function, inputs, attributes, output)], constants by name: on the host, those that say shapes."""
    known, steps = operators(torch), []
    shapes = {i for n in model.graph.node for k, i in enumerate(n.input) if k > 0 and n.op_type in ('Reshape', 'Slice', 'Unsqueeze')}
    values = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    for n in model.graph.node:
        attrs = {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute}
        attrs = {k: list(v) if not isinstance(v, (bytes, int, float, onnx.TensorProto)) else v for k, v in attrs.items()}
        if n.op_type == 'Constant':
            values[n.output[0]] = numpy_helper.to_array(attrs['value'])
        elif n.op_type not in known or len(n.output) > 1:
            raise NotHere(n.op_type)
        else:
            steps.append((known[n.op_type], list(n.input), attrs, n.output[0]))
    return steps, {k: torch.from_numpy(np.array(v)).to('cpu' if k in shapes else 'cuda') for k, v in values.items()}


def run(steps, values):
    for function, inputs, attrs, output in steps:
        values[output] = function([values[i] if i else None for i in inputs], attrs)


def timed(torch, once, runs=20):
    for _ in range(5):
        once()
    found = []
    for _ in range(runs):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        once()
        end.record()
        torch.cuda.synchronize()
        found.append(start.elapsed_time(end) * 1e-3)
    return float(np.median(found))


def torch_bandwidth():
    """Bytes a second, read and written, of a large copy on the device; None: no torch with CUDA."""
    try:
        import torch
        a, b = (torch.ones(1 << 28, device='cuda') for _ in range(2))
        return 2 * a.numel() * a.element_size() / timed(torch, lambda: b.copy_(a))
    except Exception:  # noqa: BLE001: a comparison, no check
        return None


def torch_seconds(path, shapes):
    """(seconds, None) or (None, why not)."""
    try:
        import torch
        if not torch.cuda.is_available():
            raise NotHere('no torch with CUDA')
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        model = onnx.load(path)
        with torch.no_grad():
            steps, values = program(torch, model)
            for i in model.graph.input:
                if i.name not in values:
                    dims = shapes.get(i.name) or [d.dim_value or 1 for d in i.type.tensor_type.shape.dim]
                    values[i.name] = torch.rand(dims, device='cuda')
            return timed(torch, functools.partial(run, steps, values)), None
    except Exception as ex:  # noqa: BLE001: a comparison, no check
        return None, f'{type(ex).__name__}: {ex}'[:200]
