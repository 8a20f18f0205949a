"""Files that are written: whole or not at all, whoever stops the program, and data that goes with its model. written_files.py TOOL FOLDER"""
import os
import resource
import signal
import subprocess
import sys

import numpy as np
import onnx

from builder import Net, save
from checks import outputs

tool, folder = sys.argv[1:3]
os.chdir(folder)
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def network(seed, file):
    net = Net(seed=seed)
    x = net.input('x', [1, 8, 96, 96])
    for k in range(3): x = net.op('Relu', net.conv(x, 8, 8, pads=[1] * 4))
    net.op('Identity', x, out='y')
    net.output('y', [1, 8, 96, 96])
    return save(net.model(), file, outside=file + '.weights')


def tile(file, out, *more, **how):
    return subprocess.run([tool, file, '-o', out, '-q', '--force', '--l2', '64K', *more], capture_output=True, text=True, **how)


def listing(): return sorted(os.listdir('.'))


def data_of(file):
    m = onnx.load(file, load_external_data=False)
    return {e.value for t in m.graph.initializer for e in t.external_data if e.key == 'location'}


first, second = network(1, 'a.onnx'), network(2, 'b.onnx')
x = {'x': np.random.default_rng(0).standard_normal((1, 8, 96, 96)).astype('f4')}
want = {f: outputs(f, x)[0] for f in (first, second)}

# one name for one content: the same model again is the same two files, another one leaves the first's data alone
assert tile(first, 'o.onnx').returncode == 0
one, names = data_of('o.onnx'), listing()
assert len(one) == 1 and next(iter(one)).startswith('o.onnx.') and next(iter(one)).endswith('.data'), one
assert tile(first, 'o.onnx').returncode == 0 and listing() == names and data_of('o.onnx') == one
os.rename('o.onnx', 'kept.onnx')
assert tile(second, 'o.onnx').returncode == 0 and data_of('o.onnx') != one
for file, source in (('kept.onnx', first), ('o.onnx', second)):
    assert np.allclose(outputs(file, x)[0], want[source], atol=1e-5), file
assert tile('o.onnx', 'o.onnx').returncode == 0  # in its own place

# two writers at once: one of them wins as a whole
for k in range(6):
    both = [subprocess.Popen([tool, f, '-o', 'two.onnx', '-q', '--force', '--l2', '64K']) for f in (first, second)]
    assert [p.wait() for p in both] == [0, 0]
    got = outputs('two.onnx', x)[0]
    assert any(np.allclose(got, w, atol=1e-5) for w in want.values()), 'the graph of one with the data of the other'

# signals, at moments spread over a run
for sig in SIGNALS:
    for k in range(8):
        p = subprocess.Popen([tool, first, '-o', 's.onnx', '-q'], stderr=subprocess.DEVNULL)
        try: p.wait(k * .004)
        except subprocess.TimeoutExpired: p.send_signal(sig)
        p.wait(60)
        left = [f for f in listing() if f.endswith('.tmp')]
        if left: sys.exit(f'{sig.name}: {left} stays')
        if os.path.exists('s.onnx'): outputs('s.onnx', x)  # whole

# a limit on the size of files; a closed standard output
def limited(): resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))


r = tile(first, 'limited.onnx', preexec_fn=limited)
assert r.returncode == 4 and r.stderr.count('\n') == 1 and 'too large' in r.stderr, (r.returncode, r.stderr)
assert not any(f.startswith('limited') or f.endswith('.tmp') for f in listing()), listing()
old = open('o.onnx', 'rb').read()
for stream in ('>&-', '>/dev/full'):
    r = subprocess.run(['bash', '-c', f'"{tool}" {first} -o o.onnx --force --l2 64K {stream}'], capture_output=True, text=True)
    assert r.returncode == 4 and r.stderr.count('\n') == 1, (stream, r.returncode, r.stderr)
    assert open('o.onnx', 'rb').read() == old, f'{stream}: replaced'
print('whole or not at all')
