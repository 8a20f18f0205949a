#!/usr/bin/env python3
"""Measure a runtime on this machine, for plans of what it runs.

  calibrate_runtime.py --runtime onnxruntime|openvino -o T.xml [--threads N] [--seconds S] [--json F]

Small generated networks are timed in the runtime itself, and the planner's cost model is solved for its figures: rates by class of
operator, bandwidths by level, overheads of nodes and loops, and factors of what is far from its class. The result is a target file:
`onnx-tile MODEL -o OUT --target T.xml [--runtime ...]` plans with it. With the threads that the model will run on (default: all cores).

  a node takes   max(compute, memory) + overlap * min(compute, memory) + overhead        (src/cost/node_cost.c)

Times are differences of a longer and a shorter network that run in turn, the least of each: what else the machine does shows little.
"""
import argparse
import ctypes
import importlib.metadata
import json
import math
import multiprocessing
import os
import sys
import time
import xml.sax.saxutils as sax

import numpy as np

import calibrate_networks as networks
from calibrate_timing import Clock, RUNTIMES

KIB, MIB = 1024, 1 << 20
ELEMENTS = [1, 64, 28, 28]             # 200 kB: two of them in a second-level cache
# A class for each operator that differs from it, as in include/ops.def.
SLOW_ELEMENTWISE = ('PRelu', 'LeakyRelu', 'Clip', 'HardSigmoid')
SLOW_TRANSCENDENTAL = ('Exp', 'Erf', 'Pow', 'Tanh')


def read_line(path):
    try:
        with open(path) as f:
            return f.read().strip()
    except OSError:
        return ''


def cache_bytes(level, otherwise):
    """Of one core's data or unified cache of a level, as the system tells it."""
    for k in range(8):
        folder = f'/sys/devices/system/cpu/cpu0/cache/index{k}/'
        if read_line(folder + 'level') == str(level) and read_line(folder + 'type') != 'Instruction':
            size = read_line(folder + 'size')
            if size[:-1].isdigit():
                return int(size[:-1]) * {'K': KIB, 'M': MIB}.get(size[-1], 1)
    return otherwise


def processor():
    """As the tool writes it: name (family/model/stepping)."""
    found = {}
    for line in read_line('/proc/cpuinfo').split('\n\n')[0].splitlines():
        key, _, value = line.partition(':')
        found.setdefault(key.strip(), value.strip())
    name = found.get('model name', 'processor')
    text = f"{name} ({found.get('cpu family', found.get('CPU implementer', ''))}/{found.get('model', found.get('CPU part', ''))}/{found.get('stepping', '')})"
    return ''.join(c if ' ' <= c <= '~' else '?' for c in text)[:127]


def growth(runtime, model, threads):
    """Bytes that a fresh process grows by when it makes a session and runs twice, beyond its input and the packages."""
    session = RUNTIMES[runtime](networks.chain([1, 1, 8, 8], lambda net, v: net.unary(v, 'Neg'), 1), threads)
    session.run()
    in_status = lambda key: int(next(x for x in read_line('/proc/self/status').splitlines() if x.startswith(key)).split()[1]) * KIB
    before = in_status('VmRSS')
    session = RUNTIMES[runtime](model, threads)
    session.run()
    session.run()
    return max(in_status('VmHWM') - before - session.input_bytes, 0)


class Calibration:
    """Figures as they are found; each uses those before it."""

    def __init__(self, runtime, threads, budget, log):
        self.clock = Clock(runtime, threads, budget)
        self.plain = Clock(RUNTIMES['onnxruntime'], threads, budget)       # bandwidths are the machine's: nothing merges these operators
        self.one = Clock(RUNTIMES['onnxruntime'], 1, budget)
        self.runtime, self.threads, self.log = runtime, threads, log
        self.f = {}                    # figures by name
        self.slow, self.few, self.habits = {}, [], {}

    def note(self, name, value, unit='', scale=1.0):
        self.f[name] = value
        self.log(f'{name:24s} {value / scale:10.3f} {unit}')
        return value

    # ---- the cost model, solved ----

    def bandwidth(self, size):
        f = self.f
        return f['bw_fast'] if size <= f['fast_bytes'] else f['bw_mid'] if f['mid_bytes'] and size <= f['mid_bytes'] else f['bw_slow']

    def compute_of(self, seconds, sizes, merged=False):
        """Compute time of a node that takes so long and reads and writes tensors of these sizes."""
        seconds -= self.f['node_overhead']
        memory = 0 if merged else sum(s / self.bandwidth(s) for s in sizes)
        overlap = self.f['overlap']
        compute = seconds - overlap * memory
        if compute < memory:           # memory is the longer of the two, and little is known of the other: at most as long
            compute = min(seconds / (1 + overlap), memory)
        return max(compute, 1e-9)

    def per_step(self, shape, step, depth=8):
        return self.clock.difference(networks.chain(shape, step, depth + 2), networks.chain(shape, step, 2)) / depth

    def of_one(self, shape, step, out_shape):
        return self.clock.difference(networks.behind(shape, step), networks.behind(out_shape, None))

    # ---- bandwidths, overheads ----

    def memory(self):
        f = self.f
        f['fast_bytes'] = min(cache_bytes(2, MIB), 4 * MIB)
        f['mid_bytes'] = min(cache_bytes(3, 0), 32 * MIB)
        if f['mid_bytes'] <= f['fast_bytes']:
            f['mid_bytes'] = 0
        moved = lambda clock, n, depth: 12 * n * depth / clock.difference(networks.differences(n, depth + 2), networks.differences(n, 2))
        in_cores = min(self.threads, 8)
        self.note('bw_fast', moved(self.plain, in_cores * f['fast_bytes'] // 32, 16), 'GB/s', 1e9)   # with the arithmetic beside it
        slow = max(64 * MIB, f['mid_bytes']) // 4
        if f['mid_bytes']:
            self.note('bw_mid', min(f['bw_fast'], moved(self.plain, f['mid_bytes'] // 40, 8)), 'GB/s', 1e9)
        self.note('bw_slow', min(f.get('bw_mid', f['bw_fast']), moved(self.plain, slow, 4)), 'GB/s', 1e9)
        if self.threads > 1:
            self.note('bw_mid_core', min(f['bw_mid'], moved(self.one, f['mid_bytes'] // 40, 8)) if f['mid_bytes'] else 0, 'GB/s', 1e9)
            self.note('bw_slow_core', min(f['bw_slow'], moved(self.one, slow, 4)), 'GB/s', 1e9)
        f.setdefault('bw_mid', f['bw_slow'])

    def overheads(self):
        """Of operators that tilings write, on tensors of next to no size: a pool alone takes a tenth of what a convolution or a Slice does."""
        tiny = [1, 16, 8, 4]
        steps = {'pool': lambda net, v: net.unary(v, 'MaxPool'), 'convolution': lambda net, v: net.conv(v, 16),
                 'Slice': lambda net, v: net.cut(net.conv(v, 16), 2, 0, v[1][2])}
        found = {}
        for name, step in steps.items():
            found[name] = self.clock.difference(networks.chain(tiny, step, 40), networks.chain(tiny, step, 8)) / 32
            self.log(f'  a {name:20s} {found[name] * 1e6:10.2f} us')
        # A Slice behind a convolution takes it out of its layout: half of the pair is an operator.
        node = self.note('node_overhead', max(found['Slice'] / 2, found['pool']), 'us', 1e-6)
        if self.runtime.name == 'onnxruntime':   # its loops carry sequences
            looped, operators = networks.sequence_loop, 6
        else:
            looped, operators = networks.loop, 1
        per_step = self.clock.difference(looped(72), looped(8)) / 64
        self.log(f'  a step of a loop       {per_step * 1e6:10.2f} us')
        self.note('loop_overhead', max(per_step - operators * node, node / 4), 'us', 1e-6)
        once = self.clock.difference(looped(8), networks.chain(tiny, steps['pool'], 1))
        self.note('region_overhead', min(max(once - 8 * per_step, 1e-6), 1e-3), 'us', 1e-6)

    # ---- rates ----

    def convolutions(self):
        c, size, bytes_ = 64, 28 * 28, 4 * 64 * 28 * 28
        dense = self.compute_of(self.per_step(ELEMENTS, lambda net, v: net.conv(v, c)), [bytes_] * 2)
        rate = self.note('rate_conv', c * c * 9 * size / dense, 'G multiply-adds/s', 1e9)
        wide = [1, 128, 28, 28]
        seconds = self.per_step(wide, lambda net, v: net.conv(v, 128, 1))
        self.note('rate_conv_pointwise', 128 * 128 * size / self.compute_of(seconds, [2 * bytes_] * 2), 'G multiply-adds/s', 1e9)
        depthwise = self.compute_of(self.per_step(ELEMENTS, lambda net, v: net.conv(v, c, 3, c)), [bytes_] * 2)
        self.note('rate_conv_depthwise', c * 9 * size / depthwise, 'G multiply-adds/s', 1e9)
        for below, channels in ((8, 3), (24, 16), (48, 32)):
            shape, out = [1, channels, 56, 56], [1, c, 56, 56]
            seconds = self.of_one(shape, lambda net, v: net.conv(v, c), out)
            sizes = [4 * channels * 56 * 56, 4 * c * 56 * 56]
            part = c * channels * 9 * 56 * 56 / self.compute_of(seconds, sizes) / rate
            self.few.append((below, min(max(part, self.few[-1][1] if self.few else 0.05), 1.0)))
            self.log(f'  below {below:3d} channels     {self.few[-1][1]:10.3f} of the rate')
        shape, out = [1, 32, 28, 28], [1, 32, 56, 56]
        seconds = self.of_one(shape, lambda net, v: net.transposed(v, 32), out)
        self.note('transposed_part', 32 * 32 * 16 * size / self.compute_of(seconds, [4 * 32 * size, 16 * 32 * size]) / rate, 'of the rate')

    def products(self):
        n = 256
        seconds = self.per_step([1, 1, n, n], lambda net, v: net.unary(v, 'MatMul'))
        self.note('rate_gemm', n ** 3 / self.compute_of(seconds, [4 * n * n] * 3), 'G multiply-adds/s', 1e9)

    def element_rate(self, kind, depth=8):
        """In a chain: what a runtime merges computes in one pass."""
        elements = math.prod(ELEMENTS)
        seconds = self.per_step(ELEMENTS, lambda net, v: net.unary(v, kind), depth)
        return elements / self.compute_of(seconds, [4 * elements] * 2, self.runtime.fuses_chains)

    def class_rate(self, kind):
        """Of the class: on its own where the runtime merges chains, which then say nothing of the first."""
        if not self.runtime.fuses_chains:
            return self.element_rate(kind)
        elements = math.prod(ELEMENTS)
        return elements / self.compute_of(self.of_one(ELEMENTS, lambda net, v: net.unary(v, kind), ELEMENTS), [4 * elements] * 2)

    def elements(self):
        rates = [self.class_rate(k) for k in ('MulScalar', 'Relu')]
        plain = self.note('rate_elem', math.sqrt(rates[0] * rates[1]), 'G elements/s', 1e9)
        curved = self.note('rate_trans', self.class_rate('Sigmoid'), 'G elements/s', 1e9)
        self.f['rate_trans'] = curved = min(curved, plain)
        for kind in SLOW_ELEMENTWISE:
            value = plain / self.element_rate(kind)
            self.factor((kind, None), max(value, 1.0) if self.runtime.fuses_chains else value)
        for kind in SLOW_TRANSCENDENTAL:
            self.factor((kind, None), curved / self.element_rate(kind, 4))
        rows = [1, 1, 196, 256]
        soft = self.per_step(rows, lambda net, v: net.op('Softmax', [v[0]], v[1], axis=-1))
        self.factor(('Softmax', None), curved * self.compute_of(soft, [4 * math.prod(rows)] * 2) / math.prod(rows))

    def factor(self, key, value):
        """Of an operator; one near 1 counts as well, since the runtime's own table may have another."""
        self.slow[key] = value = min(max(value, 0.1), 1e5)
        self.log(f'  {key[0]} {key[1] or "":18s} {value:10.2f} times as long')

    def moves(self):
        for mode in ('nearest', 'linear', 'cubic'):
            small, out = [1, 32, 24, 24], [1, 32, 48, 48]
            elements = math.prod(out)
            seconds = self.of_one(small, lambda net, v: net.resize(v, mode), out)
            self.factor(('Resize', mode), self.f['rate_elem'] * self.compute_of(seconds, [elements, 4 * elements]) / elements)
        small, out = [1, 128, 24, 24], [1, 32, 48, 48]
        seconds = self.of_one(small, lambda net, v: net.depth_to_space(v), out)
        for op in ('DepthToSpace', 'SpaceToDepth'):
            self.factor((op, None), max(1.0, self.f['rate_elem'] * self.compute_of(seconds, [4 * math.prod(out)] * 2) / math.prod(out)))

    def reductions(self):
        shape = [1, 1, 512, 256]
        seconds = self.clock.times(networks.behind(shape, None))[0]        # the reduction that ends every network
        twice = self.clock.times(networks.behind([1, 1, 1024, 256], None))[0]
        self.note('rate_reduce', 512 * 256 / self.compute_of(max(twice - seconds, 1e-9) + self.f['node_overhead'], [4 * 512 * 256]), 'G elements/s', 1e9)
        elements = math.prod(ELEMENTS)
        seconds = self.per_step(ELEMENTS, lambda net, v: net.unary(v, 'MaxPool'))
        self.note('rate_pool', 9 * elements / self.compute_of(seconds, [4 * elements] * 2), 'G elements/s', 1e9)

    # ---- movement ----

    def rows(self):
        """What each short row of a window costs: columns against as many bytes of rows."""
        c, n, part = 32, 128, 16
        narrow = self.of_one([1, c, n, n], lambda net, v: net.cut(v, 3, 8, 8 + part), [1, c, n, part])
        whole = self.of_one([1, c, n, n], lambda net, v: net.cut(v, 2, 8, 8 + part), [1, c, part, n])
        self.note('run_seconds', min(max(narrow - whole, 0) / (c * n), 1e-3), 'ns', 1e-9)

    def layouts(self):
        """Bytes moved when a tensor changes into blocks and back, and for a window of a blocked one."""
        shape, size = [1, 64, 96, 96], 4 * 64 * 96 * 96
        bw = self.bandwidth(size)
        conv = lambda net, v: net.conv(v, 64, 1)
        alone = self.per_step(shape, conv, 4)
        neg = self.per_step(shape, lambda net, v: net.unary(v, 'Neg'), 4)
        both = self.per_step(shape, lambda net, v: net.unary(conv(net, v), 'Neg'), 4)
        change = max(both - alone - neg, 0) * bw / size
        self.note('blocks_into', min(change * 5 / 9, 1000), 'bytes moved per byte')
        self.note('blocks_out_of', min(change * 4 / 9, 1000), 'bytes moved per byte')
        cut = lambda net, v: net.cut(v, 2, 1, v[1][2] - 1)
        plain = self.per_step(shape, cut, 4)
        blocked = self.per_step(shape, lambda net, v: cut(net, conv(net, v)), 4)
        self.note('crop', min(max(plain * bw / size, 0.5), 1000), 'bytes moved per byte')
        self.note('crop_blocked', min(max(max(blocked - alone, 0) * bw / size, self.f['crop']), 1000), 'bytes moved per byte')

    def overlap(self):
        """Part of the shorter of compute and memory that shows: the one with which the same convolutions, on small tensors and on those
        in slow memory, compute at one rate."""
        small = [1, 32, 40, 40]
        large = [1, 32, max(self.f['mid_bytes'], 16 * MIB) * 2 // (4 * 32 * 512), 512]
        scale = math.prod(large) / math.prod(small)
        memory = 8 * math.prod(large) / self.f['bw_slow']
        near = 8 * math.prod(small) / self.f['bw_fast']
        found = []
        for step in (lambda net, v: net.conv(v, 32, 3, 32), lambda net, v: net.conv(v, 32, 1)):
            in_cache = self.per_step(small, step) - self.f['node_overhead']
            outside = self.per_step(large, step, 2)
            tried = [k / 50 for k in range(51)]
            predicted = []
            for part in tried:
                compute = max(in_cache - part * near, in_cache / (1 + part)) * scale
                predicted.append(max(compute, memory) + part * min(compute, memory))
            found.append(min(zip(tried, predicted), key=lambda x: abs(x[1] - outside))[0])
            self.log(f'  in slow memory {outside * 1e3:.2f} ms, in cache {in_cache * scale * 1e3:.2f}, memory alone {memory * 1e3:.2f}')
        self.note('overlap', sum(found) / len(found))

    def memory_habits(self):
        """Growth of a process that runs: a chain of convolutions, against the two tensors that are live at once; tiles written out and
        joined, and the scan outputs of a Loop, against their result."""
        size = [1, 16, 512, 512]
        bytes_ = 4 * math.prod(size)
        for name, model, unit in (('chain', networks.chain(size, lambda net, v: net.conv(v, 16), 6), 2 * bytes_),
                                  ('tiles written out', networks.tiles(size, 8), bytes_), ('scan outputs', networks.scan_outputs(size, 8), bytes_)):
            with multiprocessing.get_context('spawn').Pool(1) as pool:
                grown = pool.apply(growth, (self.runtime.name, model, self.threads))
            self.habits[name] = grown / unit
            self.log(f'memory, {name:17s} {grown / unit:9.2f} of what is live')

    def all(self):
        for step in (self.memory, self.overheads, self.overlap, self.convolutions, self.products, self.elements, self.reductions, self.moves,
                     self.rows, self.layouts, self.memory_habits):
            step()
        if self.f['mid_bytes'] == 0:
            self.f['bw_mid'] = self.f['bw_slow']


def number(x):
    return f'{x:.6g}'


def attributes(pairs):
    return ''.join(f' {k}={sax.quoteattr(str(v))}' for k, v in pairs if v is not None)


def target_file(c, version):
    """The XML of reports/target.xsd."""
    f, cpu = c.f, processor()
    core = lambda key: number(f[key]) if f.get(key) else None
    description = f'{c.runtime.name} {version} on {cpu}, {c.threads} thread{"s" if c.threads > 1 else ""}'[:255]
    habits = ', '.join(f'{k} {v:.2f}' for k, v in c.habits.items())
    lines = ['<?xml version="1.0" encoding="UTF-8"?>',
             f'<!-- by scripts/calibrate_runtime.py; memory that the process grew by, of what is live: {habits} -->',
             '<target' + attributes([('name', f'here-{c.runtime.name}'), ('description', description), ('cpu', cpu), ('cores', c.threads),
                                     ('fuses', 'true')]) + '>',
             ' <fast' + attributes([('bytes', f['fast_bytes']), ('bandwidth', number(f['bw_fast'])), ('granule', 64), ('cache', 'true'),
                                    ('double-buffer', 'false')]) + '/>']
    if f['mid_bytes']:
        lines.append(' <mid' + attributes([('bytes', f['mid_bytes']), ('bandwidth', number(f['bw_mid'])), ('core-bandwidth', core('bw_mid_core'))]) + '/>')
    lines.append(' <slow' + attributes([('bytes', os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')), ('bandwidth', number(f['bw_slow'])),
                                        ('core-bandwidth', core('bw_slow_core'))]) + '/>')
    rates = (('conv', 'rate_conv'), ('conv-depthwise', 'rate_conv_depthwise'), ('conv-pointwise', 'rate_conv_pointwise'), ('gemm', 'rate_gemm'),
             ('elementwise', 'rate_elem'), ('transcendental', 'rate_trans'), ('reduction', 'rate_reduce'), ('pooling', 'rate_pool'))
    lines.append(' <rates' + attributes([(k, number(f[v])) for k, v in rates]) + '/>')
    lines.append(' <overheads' + attributes([(k, number(f[k + '_overhead'])) for k in ('node', 'loop', 'region')]) + '/>')
    factors = ('overlap', 'run_seconds', 'transposed_part', 'blocks_into', 'blocks_out_of', 'crop', 'crop_blocked')
    lines.append(' <runtime' + attributes([('name', c.runtime.name)] + [(k.replace('_', '-'), number(f[k])) for k in factors]) + '>')
    lines += ['  <slow' + attributes([('op', op), ('mode', mode), ('factor', number(x))]) + '/>' for (op, mode), x in c.slow.items()]
    lines += ['  <few' + attributes([('below', below), ('part', number(part))]) + '/>' for below, part in c.few]
    return '\n'.join(lines + [' </runtime>', '</target>', ''])


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--runtime', choices=sorted(RUNTIMES), required=True)
    ap.add_argument('-o', '--output', required=True)
    ap.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
    ap.add_argument('--seconds', type=float, default=70, help='that it takes, about')
    ap.add_argument('--json', help='the figures')
    a = ap.parse_args()
    runtime, start = RUNTIMES[a.runtime], time.perf_counter()
    c = Calibration(runtime, a.threads, a.seconds / 60, lambda line: print(line, flush=True))
    c.all()
    text = target_file(c, importlib.metadata.version(runtime.package))
    with open(a.output, 'w', encoding='utf-8') as f:
        f.write(text)
    if a.json:
        with open(a.json, 'w') as f:
            json.dump({'figures': c.f, 'slow': [[*k, v] for k, v in c.slow.items()], 'few': c.few, 'memory': c.habits}, f, indent=1)
    print(f'written to {a.output} in {time.perf_counter() - start:.0f} s')
    return 0


if __name__ == '__main__':
    sys.exit(main())
