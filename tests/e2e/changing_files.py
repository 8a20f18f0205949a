"""Files that change while the program reads them. changing_files.py TOOL FOLDER"""
import os
import subprocess
import sys

import numpy as np
import onnx

from builder import Net, save
from checks import outputs

tool, folder = sys.argv[1:3]
os.chdir(folder)
FORMS = (('inspect',), ('run', '-q'), ('gate', '--max-peak', '1G'), ('-q', '-o', 'out.onnx'), ('-q', '--verify', '-o', 'out.onnx'))


def network():
    """Its weights take 9 MiB."""
    net = Net()
    x = net.input('x', [1, 512, 4, 4])
    x = net.op('Relu', net.conv(x, 512, 512, pads=[1] * 4))
    net.op('Identity', x, out='y')
    net.output('y', [1, 512, 4, 4])
    return net.model()


def command(form, file, *more):
    return [tool, *form[:1], file, *form[1:], *more] if not form[0].startswith('-') else [tool, file, *form, *more]


def answered(p, what):
    """Done, or refused in one line, without a file."""
    lines = p.stderr.splitlines()
    assert p.returncode in (0, 1), f'{what}: exit {p.returncode}: {p.stderr}'
    if p.returncode == 1:
        assert len(lines) == 1 and lines[0].startswith('onnx-tile: error: '), f'{what}: {p.stderr}'
        assert not os.path.exists('out.onnx'), f'{what}: left a file'
    elif os.path.exists('out.onnx'):
        assert np.allclose(outputs('out.onnx', feed)[0], want, atol=1e-5), f'{what}: written, and not true'
    return p.returncode


def at_moments(file, form, change, mend):
    """The file is changed at moments spread over a run, and mended. How many runs were refused."""
    refused = 0
    for k in range(8):
        p = subprocess.Popen(command(form, file), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try: p.wait(k * .006)
        except subprocess.TimeoutExpired: change()
        err = p.communicate(timeout=120)[1]
        mend()
        refused += answered(subprocess.CompletedProcess(p.args, p.returncode, '', err), ' '.join(p.args))
        if os.path.exists('out.onnx'): os.remove('out.onnx')
    return refused


save(network(), 'inner.onnx')
save(network(), 'outer.onnx', outside='outer.bin')
feed = {'x': np.random.default_rng(0).standard_normal((1, 512, 4, 4)).astype('f4')}
np.save('x.npy', feed['x'])
want = outputs('inner.onnx', feed)[0]
content = {f: open(f, 'rb').read() for f in ('inner.onnx', 'outer.bin')}


def mend(file):
    with open(file, 'r+b') as f: f.write(content[file])


for form in FORMS:
    at_moments('outer.onnx', form, lambda: os.truncate('outer.bin', 4096), lambda: mend('outer.bin'))
    at_moments('inner.onnx', form, lambda: os.truncate('inner.onnx', 70000), lambda: mend('inner.onnx'))
    at_moments('inner.onnx', form, lambda: open('inner.onnx', 'r+b').write(os.urandom(1 << 20)), lambda: mend('inner.onnx'))

# shortened between reading the model and the first use of its weights: the program waits for an input
os.mkfifo('late.npy')
p = subprocess.Popen([tool, 'run', 'outer.onnx', '--input', 'x=late.npy', '-q'], stderr=subprocess.PIPE, text=True)
with open('late.npy', 'wb') as f:  # opens when the program does
    os.truncate('outer.bin', 4096)
    f.write(open('x.npy', 'rb').read())
err = p.communicate(timeout=120)[1]
mend('outer.bin')
assert p.returncode == 1 and "external data 'outer.bin' has become shorter, or unreadable, while it was in use" in err, (p.returncode, err)
assert subprocess.run([tool, 'run', 'outer.onnx', '--input', 'x=x.npy', '-q']).returncode == 0
print('all good')
