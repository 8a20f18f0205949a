#!/usr/bin/env python3
"""Random tile kernels: the interpreter against an OpenCL device. random_kernels.py TOOL SEEDS [FIRST] [--keep D] [--checker] [--quick]

Seed n makes a kernel (types, shapes with broadcast, windows that leave their tensor, views with gaps, loops that carry, branches, parallel
iterations, transfers in streams), plans it in one of several ways and runs it twice. Values are small integers at first, and as long as every operation
on them is exact, results are the same bit by bit; behind one that rounds (exp, division, softmax) they agree within the rounding of
the types on the way. Nothing that jumps (floor, a comparison, an integer) follows on what was rounded.

--quick: the device's compiler optimises nothing (pocl: POCL_EXTRA_BUILD_FLAGS). It takes most of a kernel's time otherwise.
--checker: on the device of oclgrind, which reports races, accesses out of bounds and reads of what was not written.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

NUMPY = {'f32': np.float32, 'f16': np.float16, 'bf16': np.uint16, 'i8': np.int8, 'u8': np.uint8, 'i16': np.int16, 'i32': np.int32, 'f64': np.float64}
FLOATS = ('f32', 'f16', 'bf16', 'f64')
DIGITS = {'f32': 24, 'f16': 11, 'bf16': 8, 'f64': 53, 'i8': 7, 'u8': 8, 'i16': 15, 'i32': 31}   # integers up to 2^n are exact
LARGEST = {'i8': 127, 'u8': 255, 'i16': 32767, 'i32': 2**31 - 1}
CHECKER = ['oclgrind', '--data-races', '--uninitialized', '--build-options', '-cl-opt-disable']
SCOPES = {'ascend-a2': ('ub', 'l1', 'l0a', 'l0b', 'l0c', 'gm'), 'h200': ('shared', 'fragment', 'local', 'gm')}

EXACT_UNARY = {'relu': 1, 'abs': 1, 'neg': 1, 'sign': 0, 'floor': 1, 'ceil': 1, 'round': 1, 'trunc': 1, 'not': 0, 'identity': 1, 'cast': 1, 'square': 2}
SMOOTH_UNARY = ('relu', 'abs', 'neg', 'sigmoid', 'tanh', 'identity', 'leaky_relu', 'erf', 'silu', 'gelu', 'sin', 'cos')
EXACT_BINARY = ('add', 'sub', 'mul', 'max', 'min', 'and', 'or', 'xor', 'equal', 'not_equal', 'less', 'less_or_equal', 'greater', 'greater_or_equal', 'prelu')
SMOOTH_BINARY = ('add', 'sub', 'max', 'min', 'mul')


class Buffer:
    def __init__(self, name, dims, dtype, bound, exact, base=None):
        self.name, self.dims, self.dtype, self.bound, self.exact, self.base = name, dims, dtype, bound, exact, base

    def root(self):
        return self.base.root() if self.base else self


def product(dims):
    return int(np.prod(dims, dtype=np.int64))


class Maker:
    """One kernel. self.seen: buffers that are written and visible, innermost block last."""

    def __init__(self, seed):
        self.r = np.random.default_rng(seed)
        self.target = self.pick(list(SCOPES))
        self.lines, self.params, self.outputs, self.inputs = [], [], 0, {}
        self.seen, self.n, self.depth, self.loops = [], 0, 1, []
        self.tolerance = 0.0

    def pick(self, choices):
        return choices[int(self.r.integers(len(choices)))]

    def chance(self, p):
        return self.r.random() < p

    def dims(self, rank=None, most=9):
        return [int(self.r.integers(1, most + 1)) for _ in range(rank or int(self.r.integers(1, 4)))]

    def name(self, kind):
        self.n += 1
        return f'{kind}{self.n}'

    def say(self, text):
        self.lines.append('  ' * self.depth + text)

    def dtype(self, exact=True):
        return self.pick(['f32', 'f32', 'f16', 'bf16', 'f64'] if not exact else ['f32', 'f32', 'f16', 'bf16', 'i8', 'i32', 'i32', 'u8', 'i16', 'f64'])

    def alloc(self, dims, dtype, bound, exact, scope=None):
        b = Buffer(self.name('b'), list(dims), dtype, bound, exact)
        multi = f' multi={self.pick([2, 3])}' if self.loops and not scope and self.chance(0.3) else ''
        scope = scope or self.pick(SCOPES[self.target])
        word = 'workspace' if scope == 'gm' and not multi and self.chance(0.5) else 'alloc'
        where = '' if word == 'workspace' else f' @{scope}{multi}'
        self.say(f'{word} {b.name}: {"x".join(map(str, dims))} {dtype}{where}')
        return b

    def fits(self, bound, dtype, exact=True):
        """A type for results up to `bound`: exact ones stay exact, and nothing passes the range of an f16."""
        if not exact:
            return dtype if dtype in FLOATS else 'f32'
        if dtype in LARGEST:
            return dtype if bound <= LARGEST[dtype] or self.chance(0.3) else 'i32'    # saturation is the same on both
        return dtype if bound < 2.0**DIGITS[dtype] else 'f32'

    def result(self, dims, operands, bound, exact):
        """An output: allocated, with the bound that its type leaves."""
        dtype = self.fits(bound, self.dtype(exact), exact)
        within = 2.0**23 if any(o.dtype in FLOATS for o in operands) or dtype in FLOATS else 2.0**30
        if exact and bound >= within:
            return None
        if dtype in LARGEST:
            bound = min(bound, LARGEST[dtype])
        b = self.alloc(dims, dtype, bound, exact)
        if not exact:
            self.round(dtype)
        if dtype == 'u8':
            b.bound = min(bound, 255)
        return b

    def round(self, dtype):
        self.tolerance = max(self.tolerance, {'f16': 4e-3, 'bf16': 3e-2}.get(dtype, 2e-5))

    def compute(self, out, op, operands, settings=''):
        if out is None:
            return
        args = ', '.join([o.name for o in operands] + ([settings] if settings else []))
        self.say(f'{out.name} = {self.pick(["vector", "cube", "scalar"])}.{op}({args})')
        self.seen.append(out)

    # ---- where numbers come from ----

    def param(self, dims, dtype=None):
        dtype = dtype or self.pick(['f32', 'f16', 'bf16', 'i8', 'i32', 'u8'])
        name = f'x{len(self.params)}'
        values = self.r.integers(0 if dtype == 'u8' else -4, 5, dims)
        self.params.append(f'  param {name}: {"x".join(map(str, dims))} {dtype} @gm')
        self.inputs[name] = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) if dtype == 'bf16' else values.astype(NUMPY[dtype])
        return name, dtype

    def load(self):
        dims = self.dims()
        name, dtype = self.param([d + int(self.r.integers(0, 4)) for d in dims])
        ranges = []
        for d in dims:
            low = int(self.r.integers(-2, 3))
            loop = self.pick(self.loops) if self.loops and self.chance(0.6) else None
            move = f'{self.pick([1, 2, -1])}*{loop}' if loop else ''
            ranges.append(f'{move}{"+" if move and low >= 0 else ""}{low}:{move}{"+" if move and low + d >= 0 else ""}{low + d}')
        b = self.alloc(dims, dtype if self.chance(0.7) else self.fits(4, self.dtype()), 4, True)
        stream = self.name('s') if self.chance(0.25) else None
        self.say(f'load {b.name} <- {name}[{", ".join(ranges)}]' + (f' stream={stream}' if stream else ''))
        if stream:
            self.say(f'wait {stream}')
        self.seen.append(b)

    def any(self):
        if not self.seen or self.chance(0.1):
            self.load()
        return self.pick(self.seen[-8:])

    def like(self, dims):
        """A buffer that broadcasts with dims."""
        found = [b for b in self.seen if len(b.dims) <= len(dims) and all(m in (1, n) for m, n in zip(b.dims[::-1], dims[::-1]))]
        if found and self.chance(0.7):
            return self.pick(found)
        own = [d if self.chance(0.7) else 1 for d in dims][int(self.r.integers(0, len(dims))):]
        b = self.alloc(own, self.fits(4, self.dtype()), 4, True)
        name, _ = self.param(own)
        self.say(f'load {b.name} <- {name}')
        self.seen.append(b)
        return b

    # ---- operations ----

    def unary(self):
        x = self.any()
        if x.exact and self.chance(0.8):
            op = self.pick(list(EXACT_UNARY))
            bound = max(1, x.bound**EXACT_UNARY[op])
            self.compute(self.result(x.dims, [x], bound, True), op, [x])
        elif x.bound <= 64:
            op = self.pick(SMOOTH_UNARY)
            self.compute(self.result(x.dims, [x], max(1, x.bound), False), op, [x])

    def number(self):
        x = self.any()
        op, value = self.pick([('adds', 3), ('muls', -2), ('maxs', 1), ('mins', 2), ('clip', None)])
        bound = max({'adds': x.bound + 3, 'muls': 2 * x.bound}.get(op, x.bound), 3)
        self.compute(self.result(x.dims, [x], bound, x.exact), op, [x], 'min=-2, max=3' if op == 'clip' else f'value={value}')

    def binary(self):
        x = self.any()
        y = self.like(x.dims)
        exact = x.exact and y.exact
        op = self.pick(EXACT_BINARY if exact else SMOOTH_BINARY)
        bound = {'add': x.bound + y.bound, 'sub': x.bound + y.bound, 'mul': x.bound * y.bound, 'prelu': x.bound * max(1, y.bound)}.get(op, max(x.bound, y.bound, 1))
        if not exact and bound > 1e3:
            return
        operands = [y, x] if y.dims == x.dims and self.chance(0.5) and op != 'prelu' else [x, y]
        self.compute(self.result(x.dims, operands, bound, exact), op, operands)

    def ternary(self):
        x = self.any()
        y, z = self.like(x.dims), self.like(x.dims)
        if not (x.exact and y.exact and z.exact):
            return
        op = self.pick(['where', 'fma'])
        bound = max(y.bound, z.bound) if op == 'where' else x.bound * y.bound + z.bound
        self.compute(self.result(x.dims, [x, y, z], bound, True), op, [x, y, z])

    def reduce(self):
        x = self.any()
        op = self.pick(['reduce_sum', 'reduce_max', 'reduce_min', 'reduce_sum', 'reduce_mean', 'reduce_sum_square', 'softmax'])
        axes = sorted({int(self.r.integers(len(x.dims))) for _ in range(int(self.r.integers(1, 3)))})
        if op == 'softmax':
            if x.bound <= 64:
                self.compute(self.result(x.dims, [x], 1, False), op, [x], f'axis={axes[0] - len(x.dims)}')
            return
        count = product([x.dims[a] for a in axes])
        exact = x.exact and op != 'reduce_mean'
        bound = {'reduce_sum': count * x.bound, 'reduce_mean': x.bound, 'reduce_sum_square': count * x.bound**2}.get(op, x.bound)
        if not exact and bound > 1e3:
            return
        if op == 'reduce_mean' and x.dtype not in FLOATS:
            return
        dims = [1 if d in axes else n for d, n in enumerate(x.dims)]
        self.compute(self.result(dims, [x], bound, exact), op, [x], f'axis=[{", ".join(map(str, axes))}]')

    def matmul(self):
        m, k, n = (int(self.r.integers(1, 20)) for _ in range(3))
        turned = [self.chance(0.3), self.chance(0.3)]
        batch = [2] if self.chance(0.3) else []
        a = self.fresh(batch + ([k, m] if turned[0] else [m, k]))
        b = self.fresh((batch if self.chance(0.5) else []) + ([n, k] if turned[1] else [k, n]))
        settings = ', '.join(f'transpose_{c}=1' for c, t in zip('ab', turned) if t)
        bound = a.bound * b.bound * k
        operands, op = [a, b], 'matmul'
        if self.chance(0.5):
            c = self.fresh(batch + [m, n])
            operands, bound, op = ([c, a, b], bound + c.bound, 'accumulate') if self.chance(0.3) else ([a, b, c], bound + c.bound, 'mmad')
        self.compute(self.result(batch + [m, n], operands, bound, True), op, operands, settings)

    def fresh(self, dims):
        """A buffer of these very dims, with small integers."""
        b = self.alloc(dims, self.fits(4, self.dtype()), 4, True)
        name, _ = self.param(dims)
        self.say(f'load {b.name} <- {name}')
        self.seen.append(b)
        return b

    def window(self):
        c, m, size, k = int(self.r.integers(1, 4)), int(self.r.integers(1, 4)), self.dims(2, 8), int(self.r.integers(1, 4))
        size = [s + k for s in size]
        pad, stride = [int(v) for v in self.r.integers(0, min(2, k), 4)], int(self.r.integers(1, 3))
        x = self.fresh([1, c] + size)
        out = [(s + pad[i] + pad[2 + i] - k) // stride + 1 for i, s in enumerate(size)]
        settings = f'pad=[{", ".join(map(str, pad))}], stride={stride}'
        op = self.pick(['conv', 'conv_transpose', 'max_pool', 'average_pool', 'im2col', 'global_average_pool'])
        if op == 'conv':
            group = c if self.chance(0.3) else 1
            w, bias = self.fresh([m * group, c // group, k, k]), self.fresh([m * group])
            bound = x.bound * w.bound * c * k * k + bias.bound
            self.compute(self.result([1, m * group] + out, [x, w, bias], bound, True), op, [x, w, bias], f'{settings}, group={group}')
        elif op == 'conv_transpose':
            group, dilation, extra = c if self.chance(0.3) else 1, int(self.r.integers(1, 3)), int(self.r.integers(0, 2))
            w, bias = self.fresh([c, m, k, k]), self.fresh([m * group])
            out = [(s - 1) * stride + (k - 1) * dilation + 1 + extra - pad[i] - pad[2 + i] for i, s in enumerate(size)]
            bound = x.bound * w.bound * c * k * k + bias.bound
            self.compute(self.result([1, m * group] + out, [x, w, bias], bound, True), op, [x, w, bias],
                         f'{settings}, group={group}, dilation={dilation}, extra={extra}')
        elif op == 'im2col':
            self.compute(self.result([1, c * k * k, product(out)], [x], x.bound, True), op, [x], f'kernel={k}, {settings}')
        elif op == 'global_average_pool':
            self.compute(self.result([1, c, 1, 1], [x], x.bound, False), op, [x]) if x.dtype in FLOATS else None
        elif op == 'max_pool':
            self.compute(self.result([1, c] + out, [x], x.bound, True), op, [x], f'kernel={k}, {settings}')
        elif x.dtype in FLOATS:
            self.compute(self.result([1, c] + out, [x], x.bound, False), op, [x], f'kernel={k}, {settings}')

    def shape(self):
        x = self.any()
        op = self.pick(['transpose', 'concat', 'expand', 'reshape', 'iota', 'fill'])
        if op == 'transpose':
            perm = [int(p) for p in self.r.permutation(len(x.dims))]
            self.compute(self.result([x.dims[p] for p in perm], [x], x.bound, x.exact), op, [x], f'perm=[{", ".join(map(str, perm))}]')
        elif op == 'concat':
            axis = int(self.r.integers(len(x.dims)))
            dims = [n * 2 if d == axis else n for d, n in enumerate(x.dims)]
            self.compute(self.result(dims, [x], x.bound, x.exact), op, [x, x], f'axis={axis}')
        elif op == 'expand':
            dims = [int(self.r.integers(1, 4))] + [n if n > 1 else int(self.r.integers(1, 4)) for n in x.dims]
            self.compute(self.result(dims, [x], x.bound, x.exact), op, [x])
        elif op == 'reshape':
            self.compute(self.result([product(x.dims)], [x], x.bound, x.exact), op, [x])
        elif op == 'iota':
            self.compute(self.result(self.dims(), [], 2000, True), op, [], 'start=-7, step=2')
        else:
            self.compute(self.result(self.dims(), [], 4, True), op, [], f'value={int(self.r.integers(-4, 5))}')

    def view(self):
        """A part of a buffer, or other names for its elements, read or written in place."""
        x = self.any()
        low = [int(self.r.integers(n)) for n in x.dims]
        high = [int(self.r.integers(lo + 1, n + 1)) for lo, n in zip(low, x.dims)]
        part = Buffer(self.name('v'), [h - lo for lo, h in zip(low, high)], x.dtype, x.bound, x.exact, x)
        self.say(f'subview {part.name} = {x.name}[{", ".join(f"{lo}:{h}" for lo, h in zip(low, high))}]')
        if self.chance(0.4):
            flat = Buffer(self.name('f'), [product(part.dims)], x.dtype, x.bound, x.exact, part)
            self.say(f'alias {flat.name} = {part.name}: {flat.dims[0]} {x.dtype}')
            part = flat
        self.seen.append(part)
        if self.chance(0.4) and x.exact and not self.outer(x):
            op = self.pick(['relu', 'neg']) if x.dtype not in ('u8', 'i8') else 'relu'
            self.say(f'{part.name} = vector.{op}({part.name})')

    def outer(self, b):
        """Is it a buffer of a block around? Iterations would add up what is done to it."""
        return self.loops and b.root() not in self.seen[self.marks[-1]:]

    def copy(self):
        x = self.any()
        dtype = self.fits(x.bound, self.dtype(x.exact), x.exact)
        b = self.alloc(x.dims, dtype, min(x.bound, LARGEST.get(dtype, x.bound)), x.exact)
        if not x.exact:
            self.round(dtype)
        self.say(f'copy {b.name} <- {x.name}')
        self.seen.append(b)

    def store(self):
        x = self.any()
        y = f'y{self.outputs}'
        self.outputs += 1
        dtype = self.fits(x.bound, x.dtype if self.chance(0.6) else self.dtype(x.exact), x.exact)
        if not x.exact:
            self.round(dtype)
        if self.loops:
            loop, trips = self.loops[-1], self.trips[-1]
            self.params.append(f'  param {y}: {"x".join(map(str, [trips] + x.dims))} {dtype} @gm')
            if product(x.dims) > 0:
                spans = ', '.join([f'{loop}:{loop}+1'] + [f'0:{n}' for n in x.dims])
                self.say(f'store {y}[{spans}] <- {x.name}')
        else:
            self.params.append(f'  param {y}: {"x".join(map(str, x.dims))} {dtype} @gm')
            self.say(f'store {y} <- {x.name}')

    # ---- blocks ----

    marks, trips = (), ()

    def inside(self, body, loop=None, trips=0):
        self.marks, self.trips = self.marks + (len(self.seen),), self.trips + ((trips,) if loop else ())
        if loop:
            self.loops.append(loop)
        self.depth += 1
        value = body()
        self.depth -= 1
        if loop:
            self.loops.pop()
            self.trips = self.trips[:-1]
        del self.seen[self.marks[-1]:]
        self.marks = self.marks[:-1]
        return value

    def loop(self):
        i, trips = self.name('i'), int(self.r.integers(1, 5))
        if self.depth == 1 and self.chance(0.4) and not self.loops:
            self.say(f'parallel for {i} in 0..{trips} {{')
            self.inside(lambda: (self.some(4), self.store()), i, trips)
            self.say('}')
        elif self.chance(0.5):
            self.say(f'for {i} in 0..{trips} {{')
            self.inside(lambda: (self.some(4), self.store() if not self.trips[:-1] else None), i, trips)
            self.say('}')
        else:
            self.carry(i, trips)

    def carry(self, i, trips):
        """Two values, which may change places; what is yielded has the type of what was begun with."""
        scope = self.pick(SCOPES[self.target])
        x = self.alloc(self.dims(), 'f32', 4, True, scope)
        name, _ = self.param(x.dims)
        self.say(f'load {x.name} <- {name}')
        y = self.alloc(x.dims, 'f32', 4, True, scope)
        self.say(f'{y.name} = vector.fill(value=2)')
        u, v, p, q = (self.name(c) for c in 'uvpq')
        self.say(f'{p}, {q} = for {i} in 0..{trips} carry ({u} = {x.name}, {v} = {y.name}) {{')

        def body():
            n = self.alloc(x.dims, 'f32', 4, True, scope)
            self.say(f'{n.name} = vector.{self.pick(["add", "sub", "max"])}({u}, {v})')
            self.say(f'yield ({", ".join(self.pick([(v, u), (n.name, u), (v, n.name), (u, v), (n.name, v), (u, n.name)]))})')
        self.inside(body, i, trips)
        self.say('}')
        self.seen += [Buffer(n, x.dims, 'f32', 4 * 2**trips + 4, True) for n in (p, q)]

    def branch(self):
        c, r = self.any(), self.name('r')
        if not c.exact:
            return
        scope = self.pick(SCOPES[self.target])
        x = self.alloc(self.dims(), 'i32', 4, True, scope)
        self.say(f'{x.name} = vector.fill(value=3)')
        y = self.alloc(x.dims, 'i32', 4, True, scope)
        self.say(f'{y.name} = vector.fill(value=-1)')
        self.say(f'{r} = if ({c.name}) {{')
        self.inside(lambda: (self.some(2), self.say(f'yield ({x.name})')))
        self.say('} else {')
        self.inside(lambda: (self.some(2), self.say(f'yield ({y.name})')))
        self.say('}')
        self.seen.append(Buffer(r, x.dims, 'i32', 4, True))

    def while_loop(self):
        n, one = self.name('n'), self.name('one')
        self.say(f'var {n}: i32 = {int(self.r.integers(0, 4))}')
        self.say(f'var {one}: i32 = 1')
        self.say(f'while ({n}) {{')
        self.inside(lambda: (self.some(2), self.say(f'{n} = scalar.sub({n}, {one})')))
        self.say('}')

    def some(self, most):
        steps = [self.load, self.unary, self.unary, self.binary, self.binary, self.number, self.ternary, self.reduce, self.matmul, self.window, self.shape,
                 self.view, self.copy]
        if len(self.loops) < 2 and self.depth < 4:
            steps += [self.loop, self.branch, self.while_loop]
        for _ in range(int(self.r.integers(1, most + 1))):
            self.pick(steps)()

    def make(self):
        self.some(10)
        for _ in range(int(self.r.integers(1, 4))):
            self.store()
        return f'kernel random target "{self.target}" {{\n' + '\n'.join(self.params + self.lines) + '\n}\n'


def floats(a, dtype):
    return ((a.astype(np.uint32) << 16).view(np.float32) if dtype == 'bf16' else a).astype(np.float64)


def compare(text, folder, tolerance):
    """What is wrong, or None."""
    names = sorted(os.listdir(f'{folder}/ref'))
    if names != sorted(os.listdir(f'{folder}/dev')):
        return 'other outputs'
    for f in names:
        dtype = text.split(f'param {f[:-4]}: ')[1].split()[1]
        a, b = (floats(np.load(f'{folder}/{d}/{f}'), dtype) for d in ('ref', 'dev'))
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        error = np.abs(np.where(same, 0, a - b)).max(initial=0)
        if not error <= tolerance * max(1, np.abs(a[np.isfinite(a)]).max(initial=0)):
            return f'{f} ({dtype}) is off by {error:.3e}, {tolerance:.0e} allowed'
    return None


def one(args, seed):
    """Seed -> (what is wrong or None, was it run)."""
    maker = Maker(seed)
    text = maker.make()
    with tempfile.TemporaryDirectory() as d:
        path = f'{d}/k.tk'
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        inputs = []
        for name, values in maker.inputs.items():
            np.save(f'{d}/{name}.npy', values)
            inputs.append(f'--input={name}={d}/{name}.npy')
        items = maker.pick(['1', '3', '8', '17', '64'])
        plan = maker.pick([[], [], ['--mode', 'sequential'], ['--mode', 'search'], ['--no-inplace'], ['--workspace-reuse']])
        command = [args.tool, 'run-kernel', path, *inputs, *plan, '-q']
        ref = subprocess.run([*command, '--output-dir', f'{d}/ref'], capture_output=True, text=True)
        if ref.returncode != 0:
            bad = f'interpreter: {ref.stderr.strip()}'
        else:
            checker = CHECKER if args.checker else []
            dev = subprocess.run([*checker, *command, '--output-dir', f'{d}/dev', '--device', 'opencl', '--work-items', items], capture_output=True, text=True)
            if dev.returncode != 0 or dev.stdout or dev.stderr:
                bad = f'device, {items} items: {(dev.stdout + dev.stderr).strip()[:1000]}'
            else:
                bad = compare(text, d, maker.tolerance)
        if bad and args.keep:
            shutil.copytree(d, f'{args.keep}/{seed}', dirs_exist_ok=True)
        return bad and f'seed {seed} ({items} items, {" ".join(plan)}): {bad}'


def main():
    p = argparse.ArgumentParser()
    p.add_argument('tool')
    p.add_argument('seeds', type=int)
    p.add_argument('first', type=int, nargs='?', default=0)
    p.add_argument('--keep', help='folder for kernels that fail')
    p.add_argument('--checker', action='store_true')
    p.add_argument('--quick', action='store_true')
    args = p.parse_args()
    if args.quick:
        os.environ['POCL_EXTRA_BUILD_FLAGS'] = '-cl-opt-disable'
    failures = 0
    for seed in range(args.first, args.first + args.seeds):
        bad = one(args, seed)
        if bad:
            failures += 1
            print(bad, flush=True)
    if not failures:
        print(f'{args.seeds} random kernels from seed {args.first}: interpreter and {"oclgrind" if args.checker else "device"} agree')
    return failures > 0


if __name__ == '__main__':
    sys.exit(main())
