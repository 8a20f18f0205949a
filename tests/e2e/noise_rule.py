"""One rule in two languages. noise_rule.py PROGRAM _COMPARE.PY FOLDER"""
import collections
import importlib.util
import subprocess
import sys

import numpy as np

program, module, folder = sys.argv[1:4]
spec = importlib.util.spec_from_file_location('compare', module)
rule = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rule)
rng = np.random.default_rng(0)
TYPES = 'f4', 'f8', 'f2', 'i4', 'u1', '?', 'i8'


def moved(a, step):
    """a with each element some `step` of itself, or of the largest, away; of integers, a share `step` of them."""
    if a.dtype.kind == 'f': return (a + (a if rng.random() < .5 else 1) * rng.standard_normal(a.shape) * step).astype(a.dtype)
    change = rng.random(a.shape) < step
    return np.where(change, ~a if a.dtype.kind == 'b' else a + 1, a).astype(a.dtype)


def spoilt(a):
    """Not finite in places."""
    a = a.copy()
    if a.dtype.kind == 'f' and a.size: a.ravel()[rng.integers(a.size)] = rng.choice([np.nan, np.inf, -np.inf])
    return a


def case():
    """(half, original, other, original again...)"""
    kind = rng.choice(TYPES)
    a = rng.standard_normal(rng.integers(0, 6, rng.integers(0, 4)) if rng.random() < .4 else [4, 5]) * rng.choice([0, 1e-7, 1, 1e4 if kind in 'f4f8' else 9])
    a = (np.abs(a) if kind in 'u1?' else a).astype(kind)
    if rng.random() < .1: a = spoilt(a)
    step = 10. ** rng.uniform(-8, 0)
    b = a if rng.random() < .1 else moved(a, step)
    if rng.random() < .05: b = spoilt(b)
    if rng.random() < .03: b = b.astype('f8' if kind == 'f4' else 'f4')
    if rng.random() < .03: b = b[None]
    if kind in 'f4f8' and a.size and rng.random() < .4:  # squared errors about TIMES apart, or largest errors
        d, ratio = rng.standard_normal(a.shape) * step, rng.choice([rng.uniform(2.9, 3.4), rng.uniform(9, 11)])
        return False, a, (a + d * ratio).astype(kind), [(a + d).astype(kind)]
    if kind in 'i4i8' and a.size > 10 and rng.random() < .7:  # so many elements that differ
        other = lambda n: (a.ravel() + (np.arange(a.size) < n)).reshape(a.shape).astype(kind)
        return False, a, other(rng.integers(8, 13)), [other(1)]
    again = [spoilt(a) if rng.random() < .05 else moved(a, step * 10. ** rng.uniform(-3, 1)) for _ in range(rng.integers(0, 3))]
    return bool(rng.random() < .2), a, b, again


def python(half, a, b, again):
    found, noise = rule._compare(a, b, False, half), {}
    for other in again: rule.add_noise(noise, [rule._compare(a, other, False, half)])
    return 'same' if found.same else 'noise' if rule.within_noise(found, noise.get(0)) else 'differs'


with np.errstate(all='ignore'):
    cases = [case() for _ in range(1500)]
    lines, said = [], [python(*c) for c in cases]
for k, (half, a, b, again) in enumerate(cases):
    names = [f'{folder}/{k}-{j}.npy' for j in range(2 + len(again))]
    for name, array in zip(names, [a, b, *again]): np.save(name, array)
    lines.append(' '.join([str(int(half)), *names]))
told = subprocess.run([program], input='\n'.join(lines) + '\n', capture_output=True, text=True, check=True).stdout.split()
bad = [f'{c[0]} {c[1]!r} {c[2]!r} {c[3]!r}: the library says {t}, Python {s}' for c, t, s in zip(cases, told, said) if t != s]
counts = collections.Counter(said)
assert len(told) == len(cases) and not bad, f'{len(bad)} differ, the first: ' + '; '.join(bad[:3])
assert min(counts[k] for k in ('same', 'noise', 'differs')) > 50, counts
print(counts)
