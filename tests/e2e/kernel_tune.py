"""run-kernel --tune TOOL FOLDER: a product in tiles whose sizes have names, tried on an OpenCL device."""
import json
import subprocess
import sys

import numpy as np

TOOL, FOLDER = sys.argv[1:]
KERNEL = '''kernel gemm target "h200" {
  size t = 32 multiple=16
  size d = 32 multiple=16
  size room = 64 multiple=64
  param a: 64x128 f32 @gm
  param b: 128x64 f32 @gm
  empty c: 64x64 f32 @gm
  alloc filled: [room, 128] f32 @shared
  filled = vector.fill(value=0)
  for i in 0..64 step t {
    for j in 0..64 step t {
      alloc zero: [t, t] f32 @shared
      zero = cube.fill(value=0)
      sum = for k in 0..128 step d carry (acc = zero) {
        alloc as: [t, d] f32 @shared
        alloc bs: [d, t] f32 @shared
        load as <- a[i:i+t, k:k+d]
        load bs <- b[k:k+d, j:j+t]
        alloc next: [t, t] f32 @shared
        next = cube.mmad(as, bs, acc)
        yield (next)
      }
      store c[i:i+t, j:j+t] <- sum
    }
  }
}
'''


def tune(*options):
    """The answer as JSON, after the results were compared."""
    path = f'{FOLDER}/tune.tk'
    with open(path, 'w', encoding='utf-8') as f:
        f.write(KERNEL)
    args = [TOOL, 'run-kernel', path, f'--input=a={FOLDER}/a.npy', f'--input=b={FOLDER}/b.npy', f'--output-dir={FOLDER}/tuned', '--device', 'opencl', '--tune']
    r = subprocess.run([*args, *options], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    assert np.abs(np.load(f'{FOLDER}/tuned/c.npy') - a @ b).max() < 1e-4, options
    return json.loads(r.stdout) if '--json' in options else r.stdout


rng = np.random.default_rng(5)
a, b = rng.standard_normal((64, 128)).astype(np.float32), rng.standard_normal((128, 64)).astype(np.float32)
np.save(f'{FOLDER}/a.npy', a)
np.save(f'{FOLDER}/b.npy', b)

told = tune('--json')
tried, best = told['tried'], told['tried'][told['fastest']]
assert tried[0]['sizes'] == {'t': 32, 'd': 32, 'room': 64}, tried
assert {x['sizes']['t'] for x in tried} >= {16, 32} and len({x['sizes']['d'] for x in tried}) > 1, tried
assert all(s % 16 == 0 for x in tried for s in x['sizes'].values()), tried
# Which sizes grow depends on what is fastest: tiles of 64 fit beside a room of 64, no tiles fit beside a larger one.
assert all(('time_seconds' in x) == (x['sizes']['room'] == 64) for x in tried if max(x['sizes']['t'], x['sizes']['d']) <= 64), tried
assert any(x['sizes']['room'] == 128 for x in tried), tried
assert len({json.dumps(x) for x in tried}) == len(tried), f'tried twice: {tried}'
assert best['time_seconds'] <= 1.03 * min(x.get('time_seconds', 1e9) for x in tried), tried
assert told['items'] == best['items'], told

told = tune('--json', '--size', 't=16', '--size', 'room=64', '--work-items', '1')
assert all('t' not in x['sizes'] and x['items'] == 1 for x in told['tried']) and len(told['tried']) > 1, told

lines = tune('--size', 't=16', '--size', 'd=16', '--size', 'room=64', '--work-items', '2').splitlines()    # nothing is left to try
assert lines[1].startswith('planned  2 work items: ') and lines[2:] == ['fastest  that, of 1 tried', 'options  --work-items 2'], lines
