"""Networks that end in large products. weight_pieces.py TOOL FOLDER; weight_pieces.py --takes MODEL: bytes of a process that runs it"""
import json
import subprocess
import sys

import numpy as np

from checks import nmse, outputs, printed, session

FED = {'x': np.random.default_rng(0).standard_normal([1, 16, 48, 48], dtype='f4')}

if sys.argv[1] == '--takes':
    def held(key): return next(int(l.split()[1]) for l in open('/proc/self/status') if l.startswith(key)) << 10
    before = held('VmRSS')
    s = session(sys.argv[2])
    for _ in range(2): s.run(None, FED)
    print(held('VmHWM') - before)
    sys.exit()

import onnx

from builder import Net, save

tool, d = sys.argv[1:]


def classifier():
    """Rows that pieces do not divide; a bias of all outputs, of one number, none; a product, and one that is a convolution."""
    net = Net(seed=3)
    x = net.op('Relu', net.conv(net.input('x', [1, 16, 48, 48]), 16, 32, pads=[1] * 4, strides=[4, 4]))
    w = lambda *e: net.const(net.rng.normal(0, e[-1] ** -.5, e))
    fc = net.op('Relu', net.op('Conv', x, net.const(net.rng.normal(0, .01, (1000, 32, 12, 12))), w(1000)))
    x = net.op('Flatten', fc)
    x = net.op('Relu', net.op('Gemm', x, w(9000, 1000), w(1, 9000), transB=1))
    x = net.op('Gemm', x, w(1030, 9000), w(1, 1), transB=1, alpha=.5, beta=2.)
    x = net.op('Gemm', x, w(2100, 1030), transB=1)
    net.output(x, [1, 2100])
    return net.model()


def takes(path):
    return int(subprocess.run([sys.executable, __file__, '--takes', path], capture_output=True, text=True, check=True).stdout)


model = classifier()
path, apart, out = save(model, f'{d}/m.onnx'), save(model, f'{d}/apart.onnx', 'apart.data'), f'{d}/t.onnx'
args = [path, '-o', out, '--goal', 'memory', '--target', 'cpu-generic']
plan = json.loads(printed(tool, *args, '--json'))
onnx.checker.check_model(out)
each = plan['weight_piece_bytes']
assert plan['data_file'] and each <= 8 << 20, plan
assert 'large weights are read in pieces' in printed(tool, *args)
written = onnx.load(out, load_external_data=False)
pieces = [t for t in written.graph.initializer if t.name.startswith('tile/piece/') and len(t.dims) > 1 and t.dims[0] > 1]
assert len({t.name.rsplit('/', 1)[0] for t in pieces}) == 4 and all(np.prod(t.dims) * 4 < 2 * each for t in pieces), [(t.name, t.dims) for t in pieces]
for want, got in zip(outputs(path, FED), outputs(out, FED)):
    assert got.shape == want.shape and nmse(got, want) < 1e-10, nmse(got, want)
# beside the same weights in a file, whole: half of the largest at least
whole, split = takes(f'{d}/apart.onnx'), takes(out)
assert split < whole - (9000 * 1000 * 4 >> 1), (whole, split)
assert plan['tiled']['process_bytes'] < 1.25 * split + (30 << 20), (plan['tiled'], split)
# one file, another goal, another runtime: weights stay whole
for more in ['--single-file'], ['--goal', 'time'], ['--runtime', 'openvino']:
    assert 'weight_piece_bytes' not in json.loads(printed(tool, *args, *more, '--json')), more
printed(tool, *args, '-q')
if '--verify' in printed(tool, '--help') and 'needs the native engine' not in printed(tool, '--help'):
    nodes = lambda *a: len(json.loads(printed(tool, 'run', *a, '--json'))['nodes'])
    assert nodes(out, '--no-plan') == nodes(path, '--no-plan') < nodes(out, '--as-is')
    printed(tool, *args, '--verify')
    printed(tool, 'run', path, '--no-plan', '--output-dir', f'{d}/want')
    printed(tool, 'run', out, '--no-plan', '--output-dir', f'{d}/got')
    assert np.array_equal(np.load(f'{d}/want/0.npy'), np.load(f'{d}/got/0.npy'))
print('all good')
