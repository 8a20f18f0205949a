"""What the matrix runs: small networks in every output form, and models, tiled by the tool.

A case is a dictionary: "table" (forms or models), "row", "network", "plain" and "tiled" (paths), "feeds" (.npz), "regions" (their
number), "coarse" (it computes with few bits). A network whose regions cannot take a form has no case in that row.
"""
import json
import os
import re
import subprocess
import sys

import numpy as np
import onnx
from onnx import helper

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Networks of tests/oracle/forms.py, at one opset; a fast memory that holds a few rows of them.
NETWORKS = ('chain', 'residual', 'strided', 'depthwise', 'unet', 'deconv', 'linear', 'attention', 'batch', 'nhwc', 'turned', 'mlp',
            'pools', 'outputs', 'shuffle', 'norm', 'parts', 'signal', 'volume', 'softmax')
OPSET = 13
NETWORK_ARGS = ['--force', '--l2', '16K', '--threads', '1']

# Models: (file or generated network, dimensions by input). Generated ones are those of models/make_models.py --small.
GENERATED = ('fsrcnn', 'espcn', 'sr', 'unet', 'dncnn', 'mobilenet_v2', 'mobilenet_v2_qdq', 'resnet50', 'vit', 'depthwise', 'elementwise')
SHARED = (
    ('models/ppocr_cls.onnx', {'x': [1, 3, 48, 192]}), ('models/ultraface_slim320_nopost.onnx', {'input': [1, 3, 240, 320]}),
    ('models/ultraface_rfb320.onnx', {'input': [1, 3, 240, 320]}), ('models/espcn_x3_subpixel.onnx', {'input': [1, 3, 64, 64]}),
    ('models/squeezenet_fp16.onnx', {}), ('models/dnsmos_model_v8.onnx', {'input_1': [1, 900, 120]}),
    ('models/bodypix_mnv1_s16.onnx', {'input': [1, 161, 161, 3]}), ('models/edge_residual_block.onnx', {}), ('models/edge_conv_follow_convtrans.onnx', {}),
    ('models/edge_sdpa_b32h8.onnx', {}), ('models/yolox_nano.onnx', {}),
    ('real/unet_sed.onnx', {'input': [1, 1, 128, 128]}),
    ('real/yunet_n.onnx', {'input': [1, 3, 160, 160]}),
    ('real/waifu2x_upconv7.onnx', {'input': [1, 3, 78, 78]}), ('real/litemono_decoder.onnx', {}),
    ('real/portrait_prisma.onnx', {'input_3': [1, 3, 128, 128]}), ('real/meshnet3d.onnx', {'input': [1, 1, 32, 32, 32]}),
    ('real/ppocrv3_en_det.onnx', {'x': [1, 3, 160, 160]}),
)
MODEL_ARGS = ['--force', '--l2', '256K', '--threads', '1']


class Tool:
    """The program under test and what its command line knows."""

    def __init__(self, path):
        self.path, self.errors = path, []        # what it refused to tile, or failed at
        words = self.say('matrix', '-o', 'none', '--form', '?')
        found = re.search(r"must be (.*?)$", words.strip())
        self.forms = re.split(r', | or ', found.group(1)) if found else []
        self.runtimes = [x.split()[0] for x in self.say('--list-runtimes').splitlines() if x and not x.startswith('engine')]

    def say(self, *args):
        p = subprocess.run([self.path, *args], capture_output=True, text=True, env=dict(os.environ, ONNX_TILE_CACHE='off'))
        return p.stdout + p.stderr

    def tile(self, model, out, args):
        """Forms of the regions, or the error as a string."""
        p = subprocess.run([self.path, model, '-o', out, '--json', *args], capture_output=True, text=True,
                           env=dict(os.environ, ONNX_TILE_CACHE='off'))
        if p.returncode:
            return f'exit {p.returncode}: {p.stderr.strip()}'
        return [r['form'] for r in json.loads(p.stdout)['regions']]


def sample(rng, value):
    kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
    if kind.kind in 'iu':
        return rng.integers(0, 127, shape).astype(kind)
    if kind.kind == 'b':
        return rng.integers(0, 2, shape).astype(kind)
    return rng.standard_normal(shape).astype(kind)


def write_feeds(model, path):
    weights = {t.name for t in model.graph.initializer}
    rng = np.random.default_rng(1)
    np.savez(path, **{v.name: sample(rng, v) for v in model.graph.input if v.name not in weights})


def static(model, shapes):
    """The model with the given dimensions of its inputs: what a runtime without free dimensions needs. Inputs that only repeat weights
    (old files) are dropped, and so are inner shapes, which may be those of other dimensions."""
    for v in model.graph.input:
        for d, n in zip(v.type.tensor_type.shape.dim, shapes.get(v.name, [])):
            d.dim_value = n
    if shapes:
        del model.graph.value_info[:]
        for v in model.graph.output:
            for d in v.type.tensor_type.shape.dim:
                d.Clear()
    return onnx.shape_inference.infer_shapes(model) if shapes else model


def is_coarse(model):
    """8-bit arithmetic or half precision: runtimes round at different places."""
    return (any(n.op_type.startswith(('Quantize', 'QLinear')) for n in model.graph.node) or
            any(t.data_type == onnx.TensorProto.FLOAT16 for t in model.graph.initializer))


def network_cases(tool, folder, only=None):
    sys.path.insert(0, os.path.join(ROOT, 'tests', 'oracle'))
    import forms as generator
    rows = [(f'form {f}', ['--form', f], f) for f in tool.forms] + [('as chosen', [], None)]
    rows += [(f'--runtime {r}', ['--runtime', r], None) for r in tool.runtimes]
    cases = []
    for network in only or NETWORKS:
        build = generator.MODELS[network][0]
        net = generator.Net(OPSET)
        build(net)
        plain = os.path.join(folder, f'{network}.onnx')
        model = net.model()
        onnx.save(model, plain)
        feeds = os.path.join(folder, f'{network}.npz')
        write_feeds(model, feeds)
        for row, args, form in rows:
            tiled = os.path.join(folder, f'{network}-{row.replace(" ", "-").strip("-")}.onnx')
            regions = tool.tile(plain, tiled, NETWORK_ARGS + args)
            if isinstance(regions, str):
                tool.errors.append(f'{network}, {row}: {regions}')
                continue
            if not regions or (form and set(regions) != {form}):
                continue
            cases.append({'table': 'forms', 'row': row, 'network': network, 'plain': plain, 'tiled': tiled, 'feeds': feeds,
                          'regions': len(regions),
                          'coarse': is_coarse(model)})
    order = [r[0] for r in rows]
    return sorted(cases, key=lambda c: order.index(c['row']))


def generated_models(folder):
    sys.path.insert(0, os.path.join(ROOT, 'models'))
    script = os.path.join(ROOT, 'models', 'make_models.py')
    subprocess.run([sys.executable, script, folder, '--small', *GENERATED], check=True, capture_output=True)
    return [(name, os.path.join(folder, name + '.onnx'), {}) for name in GENERATED]


def model_cases(tool, folder, shared, only=None):
    """Generated models, and those of a folder that is not part of the project, when it is there."""
    own = os.path.join(folder, 'generated')
    os.makedirs(own, exist_ok=True)
    models = generated_models(own)
    for path, shapes in SHARED:
        full = os.path.join(shared, path)
        if os.path.exists(full):
            models.append((os.path.splitext(os.path.basename(path))[0], full, shapes))
    portable = 'portable' in tool.runtimes
    args = MODEL_ARGS + (['--runtime', 'portable'] if portable else [])
    cases = []
    for name, path, shapes in models:
        if only and name not in only:
            continue
        plain, tiled = os.path.join(folder, f'model-{name}.onnx'), os.path.join(folder, f'model-{name}-tiled.onnx')
        model = static(onnx.load(path), shapes)
        onnx.save(model, plain)
        regions = tool.tile(plain, tiled, args)
        if isinstance(regions, str):
            tool.errors.append(f'{name}: {regions}')
            continue
        if not regions:
            continue
        feeds = os.path.join(folder, f'model-{name}.npz')
        write_feeds(model, feeds)
        cases.append({'table': 'models', 'row': name, 'network': name, 'plain': plain, 'tiled': tiled, 'feeds': feeds,
                      'regions': len(regions), 'coarse': is_coarse(model)})
    return cases
