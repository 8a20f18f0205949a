#!/usr/bin/env python3
"""What scripts/gpu_check.sh runs on a machine with a GPU; JSON into the file of -o.

Parts, each left out when its time is not there any more:

  tests      unit tests that find the GPU, the end-to-end test of devices
  equal      small networks, networks at usual sizes and the models given: ONNX Runtime against the device, untiled and tiled for
             memory (device_suite.py's rules); memory planned = taken
  speed      the device's peak rates (calibrate), each larger network's time on it, next to ONNX Runtime on the host's processors and to
             torch's cuDNN without TF32; the floor that the peaks allow, and what keeps the network from it
  overlap    a tiled model whose tiles stream from the host: how much of the transfers lies beside
             kernels; a Chrome trace of each beside the JSON
  checker    small networks under compute-sanitizer: accesses, leaks, reads of memory that nothing wrote

Exit 1 when something differs, is refused, leaks or takes other memory than planned.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import types

import numpy as np
import onnxruntime as ort

import device_suite
from compare import make_inputs
from torch_time import torch_bandwidth, torch_seconds

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LARGE = ('resnet50', 'mobilenet_v2', 'vit', 'unet', 'dncnn', 'espcn', 'vgg16_features', 'decoder', 'depthwise', 'elementwise')
UNIT_TESTS = ('test_device_cuda', 'test_engine_device', 'test_engine_device_layout', 'test_engine_device_shared')
CUDA_CORES = 128  # of a multiprocessor, since compute capability 8.6; each makes a product and a sum a cycle


def command(args, seconds, **more):
    try:
        r = subprocess.run(args, capture_output=True, text=True, timeout=seconds, **more)
        return r.returncode, r.stdout, r.stderr
    except subprocess.TimeoutExpired:
        return 124, '', f'more than {seconds:.0f} s'
    except OSError as ex:
        return 127, '', str(ex)


def last_lines(out, err, n=8):
    return [x[:2000] for x in (out + err).strip().splitlines()[-n:]]


class Check:
    def __init__(self, a, folder):
        self.a, self.folder, self.end = a, folder, time.monotonic() + a.seconds
        self.faults, self.report = [], {'device': {}, 'tests': {}, 'networks': {}, 'overlap': {}, 'checker': {}}

    def left(self):
        return self.end - time.monotonic()

    def fault(self, what):
        self.faults.append(what)
        print('FAULT', what, file=sys.stderr, flush=True)

    def write(self):
        self.report['faults'] = self.faults
        with open(self.a.output + '.part', 'w', encoding='utf-8') as f:
            json.dump(self.report, f, indent=1)
        os.replace(self.a.output + '.part', self.a.output)


# ---- what there is ----

def devices(c):
    code, out, err = command([c.a.tool, 'devices', '--json'], 60)
    if code:
        sys.exit(err)
    found = json.loads(out)
    c.report['device'] = {'all': found}
    code, out, _ = command(['nvidia-smi', '--query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem', '--format=csv,noheader,nounits'], 60)
    if code == 0:
        keys = ('name', 'driver', 'memory_mib', 'sm_mhz', 'memory_mhz')
        c.report['device']['smi'] = dict(zip(keys, (x.strip() for x in out.splitlines()[0].split(','))))
    return [api for api in ('cuda', 'vulkan') if any(d['device'] == f'{api}:0' and not d['cpu'] for d in found['devices'])]


# ---- tests ----

def tests(c):
    for name in UNIT_TESTS if c.a.tests else ():
        code, out, err = command([f'{c.a.tests}/{name}'], min(120, c.left()), env={**os.environ, 'OCL_ICD_VENDORS': '/none'})
        said = out + err
        c.report['tests'][name] = {'exit': code, 'passed': said.count('[       OK ]'), 'skipped': said.count('[  SKIPPED ]'), 'said': last_lines(out, err, 60 if code else 8)}
        if code:
            c.fault(f'{name}: exit {code}')
    for script in ('device.sh',):
        env = {**os.environ, 'TOOL': c.a.tool, 'PYTHON': sys.executable, 'BUILD': c.a.tests or '', 'OCL_ICD_VENDORS': '/none'}  # CUDA and Vulkan alone
        code, out, err = command(['bash', f'{ROOT}/tests/e2e/{script}'], min(240, c.left()), env=env)
        c.report['tests'][script] = {'exit': code, 'said': last_lines(out, err, 20)}
        if code:
            c.fault(f'{script}: exit {code}')


# ---- equality and memory ----

def equal(c, api, name, path, shapes):
    """One network on one API: its entry."""
    a = types.SimpleNamespace(tool=c.a.tool, device=api, args='--goal memory --runtime engine-device', seed=1, timeout=120)
    entry = {}
    try:
        results = device_suite.one(a, path, shapes)
    except device_suite.Refused as ex:
        return {'skipped': str(ex)}
    for form, (report, why) in results.items():
        d = report['device'] if report else None
        entry[form] = {'equal': not why, 'why': why}
        if d:
            entry[form].update({k: d[k] for k in ('planned_bytes', 'peak_bytes', 'arena_bytes', 'nodes_on_device', 'nodes_on_host', 'launches', 'compile_seconds',
                                                  'fallbacks')})
            entry[form]['planned_is_taken'] = d['planned_bytes'] == d['peak_bytes'] == d['held_bytes']
    return entry


def equality(c, apis, networks):
    def one(job):
        api, name, path, shapes = job
        if c.left() < 25:
            return job, {'skipped': 'no time left'}
        try:
            return job, equal(c, api, name, path, shapes)
        except Exception as ex:  # noqa: BLE001: one network must not end the others
            return job, {'untiled': {'equal': False, 'why': f'{type(ex).__name__}: {ex}'[:300]}}

    jobs = [(api, name, path, shapes) for name, (path, shapes) in networks.items() for api in apis]
    with concurrent.futures.ThreadPoolExecutor(c.a.jobs) as pool:
        for (api, name, _, _), entry in pool.map(one, jobs):
            c.report['networks'].setdefault(name, {})[api] = entry
            for form in ('untiled', 'tiled'):
                if form in entry and not entry[form]['equal']:
                    c.fault(f"{name}, {api}, {form}: {entry[form]['why']}")
                elif form in entry and not entry[form].get('planned_is_taken', True):
                    c.fault(f"{name}, {api}, {form}: {entry[form]['planned_bytes']} bytes planned, {entry[form]['peak_bytes']} taken")


# ---- speed ----

def peaks(c, api):
    """Bytes and operations a second: measured copies (of `calibrate`, of torch), cores by their clock."""
    import xml.etree.ElementTree as ET
    path = f'{c.folder}/{api}.xml'
    code, out, err = command([c.a.tool, 'calibrate', '--device', api, '-o', path], min(150, c.left()))
    if code:
        c.fault(f'calibrate, {api}: {err.strip()[-200:]}')
        return None
    root = ET.parse(path).getroot()
    found = {'said': out.splitlines()[-20:], 'bytes_per_second': float(root.find('slow').get('bandwidth')), 'rates': dict(root.find('rates').attrib),
             'overheads': dict(root.find('overheads').attrib), 'fast_bytes_per_second': float(root.find('fast').get('bandwidth'))}
    found['torch_bytes_per_second'] = torch_bandwidth() if api == 'cuda' else None
    clock = float(c.report['device'].get('smi', {}).get('sm_mhz', 0)) * 1e6
    found['flops_per_second'] = float(root.get('cores')) * CUDA_CORES * 2 * clock
    c.report['device'].setdefault('peaks', {})[api] = found
    return found


def onnxruntime_seconds(path, shapes):
    o = ort.SessionOptions()
    o.log_severity_level = 4
    session = ort.InferenceSession(path, o, providers=['CPUExecutionProvider'])
    feeds, times = make_inputs(session, shapes, 1), []
    for _ in range(6):
        start = time.perf_counter()
        session.run(None, feeds)
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:]))


def limit_of(e):
    """What takes most of a run."""
    parts = {'arithmetic' if e['floor_arithmetic_seconds'] >= e['floor_bytes_seconds'] else 'bytes': max(e['floor_arithmetic_seconds'], e['floor_bytes_seconds']),
             'kernels below the floor': e['kernel_seconds'] - max(e['floor_arithmetic_seconds'], e['floor_bytes_seconds']),
             'transfers': e['transfer_seconds'], 'launches and the host': e['median_seconds'] - e['kernel_seconds'] - e['transfer_seconds']}
    return max(parts, key=parts.get)


def speed(c, api, name, path, shapes, peak):
    args = [c.a.tool, 'run', path, '--device', api, '--json', '--repeat', '20', '--trace', f'{c.folder}/trace.json']
    for k, v in shapes.items():
        args += ['--shape', f"{k}={','.join(map(str, v))}"]
    code, out, err = command(args, min(60, c.left()))
    if code:
        c.fault(f'{name}, {api}: {err.strip()[-200:]}')
        return None
    r = json.loads(out)
    d, p = r['device'], r['device']['profile']
    e = {k: r[k] for k in ('least_seconds', 'median_seconds')}
    e |= {'launches': d['launches'], 'kernel_seconds': sum(k['time_seconds'] for k in p['kernels']), 'transfer_seconds': sum(t['time_seconds'] for t in p['transfers']),
          'span_seconds': p['span_seconds'], 'busy_seconds': p['busy_seconds'], 'kernels': sorted(p['kernels'], key=lambda k: -k['time_seconds'])[:8],
          'transfers': p['transfers'], 'kernel_bytes': sum(k['bytes'] for k in p['kernels'])}
    code, out, _ = command([c.a.tool, 'inspect', path, '--json', *sum((['--shape', f"{k}={','.join(map(str, v))}"] for k, v in shapes.items()), [])], min(60, c.left()))
    e['macs'] = json.loads(out)['untiled']['macs'] if code == 0 else 0
    if peak:
        e['floor_bytes_seconds'] = e['kernel_bytes'] / max(peak['bytes_per_second'], peak['torch_bytes_per_second'] or 0)
        e['floor_arithmetic_seconds'] = 2 * e['macs'] / peak['flops_per_second'] if peak['flops_per_second'] else 0
        e['share_of_roofline'] = max(e['floor_bytes_seconds'], e['floor_arithmetic_seconds']) / e['kernel_seconds']
        e['limit'] = limit_of(e)
    return e


def speeds(c, apis, networks):
    peak = {api: peaks(c, api) for api in apis}
    for name, (path, shapes) in networks.items():
        if c.left() < 15:
            break
        n = c.report['networks'].setdefault(name, {})
        for api in apis:
            n.setdefault(api, {})['speed'] = speed(c, api, name, path, shapes, peak[api])
        try:
            n['onnxruntime_cpu_seconds'] = onnxruntime_seconds(path, shapes)
        except device_suite.ORT_ERRORS as ex:
            n['onnxruntime_cpu_seconds'], n['onnxruntime_why'] = None, str(ex)[:200]
        n['torch_seconds'], n['torch_why'] = torch_seconds(path, shapes)
        c.write()


# ---- overlap ----

def covered(spans, others):
    """Seconds of `spans` during which one of `others` goes on."""
    total, others = 0.0, sorted(others)
    merged = []
    for a, b in others:
        if merged and a <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], b)
        else:
            merged.append([a, b])
    for a, b in spans:
        total += sum(max(0.0, min(b, y) - max(a, x)) for x, y in merged)
    return total


def overlap(c, api, name, path, shapes):
    tiled, trace = f'{c.folder}/streams.onnx', f'{os.path.splitext(c.a.output)[0]}-{name}-{api}.trace.json'
    shape = sum((['--shape', f"{k}={','.join(map(str, v))}"] for k, v in shapes.items()), [])
    code, out, err = command([c.a.tool, path, '-o', tiled, '--emit', 'engine', '--goal', 'memory', '--runtime', 'engine-device', '-q', *shape], min(90, c.left()))
    if code == 0:
        code, out, err = command([c.a.tool, 'run', tiled, '--device', api, '--json', '--repeat', '5', '--trace', trace, *shape], min(90, c.left()))
    if code:
        c.fault(f'overlap of {name}, {api}: {err.strip()[-200:]}')
        return
    with open(trace, encoding='utf-8') as f:
        x = [e for e in json.load(f)['traceEvents'] if e['ph'] == 'X']
    spans = {k: [(e['ts'] * 1e-6, (e['ts'] + e['dur']) * 1e-6) for e in x if e['cat'] == k] for k in ('kernel', 'upload', 'download')}
    moved = spans['upload'] + spans['download']
    d = json.loads(out)['device']
    c.report['overlap'][f'{name}, {api}'] = {
        'launches': d['launches'], 'arena_bytes': d['arena_bytes'], 'transfers': len(moved), 'transfer_seconds': sum(b - a for a, b in moved),
        'beside_kernels_seconds': covered(moved, spans['kernel']), 'kernel_seconds': sum(b - a for a, b in spans['kernel']),
        'span_seconds': d['profile']['span_seconds'], 'profile': d['profile']['transfers'], 'median_seconds': json.loads(out)['median_seconds']}


# ---- compute-sanitizer ----

def checker(c, networks):
    program = shutil.which('compute-sanitizer') or '/usr/local/cuda/bin/compute-sanitizer'
    if not os.path.exists(program):
        c.report['checker'] = {'skipped': 'no compute-sanitizer'}
        return
    for name, (path, _) in networks.items():
        tiled = f'{c.folder}/checked.onnx'
        code, _, _ = command([c.a.tool, path, '-o', tiled, '--emit', 'engine', '--force', '--l2', '64K', '-q'], 60)
        for form, model in (('untiled', path), *((('tiled', tiled),) if code == 0 else ())):
            for tool in (['--tool', 'memcheck', '--leak-check', 'full'], ['--tool', 'initcheck']):
                if c.left() < 8:
                    return
                code, out, err = command([program, *tool, '--error-exitcode', '9', c.a.tool, 'run', model, '--device', 'cuda', '-q'], min(60, c.left()))
                c.report['checker'][f'{name}, {form}, {tool[1]}'] = {'exit': code, 'said': last_lines(out, err, 12)}
                if code:
                    c.fault(f'compute-sanitizer {tool[1]}, {name}, {form}: exit {code}')


# ---- networks ----

def made(c, names, folder, *options):
    os.makedirs(folder, exist_ok=True)
    found = {}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        jobs = pool.map(lambda name: command([sys.executable, f'{ROOT}/models/make_models.py', folder, name, *options], 120), names)
        for name, (code, _, err) in zip(names, jobs):
            if code == 0:
                found[('small ' if options else '') + name] = (f'{folder}/{name}.onnx', {})
            else:
                c.fault(f'cannot make {name}: {err[-200:]}')
    return found


def given(models):
    found = {}
    for text in models:
        path, *bindings = text.split(':')
        shapes = {}
        for b in bindings:
            key, dims = b.rsplit('=', 1)
            shapes[key] = [int(d) for d in dims.split(',')]
        name = os.path.splitext(os.path.basename(path))[0]
        found[name if name not in found else f'{name} {len(found)}'] = (path, shapes)
    return found


def small_names():
    code, out, err = command([sys.executable, f'{ROOT}/models/make_models.py', '--list'], 60)
    return [line.split()[0] for line in out.splitlines() if line.strip()]


def table(c):
    print(f"{'network':22} {'equal':6} {'taken':6} {'ms':>9} {'kernels':>9} {'launches':>8} {'roofline':>8} {'ORT CPU':>9} {'torch':>9}  limit")
    for name, n in c.report['networks'].items():
        for api in ('cuda', 'vulkan'):
            e = n.get(api)
            if not e:
                continue
            forms = [e[f] for f in ('untiled', 'tiled') if f in e]
            said = 'skip' if 'skipped' in e else 'yes' if forms and all(f['equal'] for f in forms) else 'NO'
            taken = 'yes' if forms and all(f.get('planned_is_taken') for f in forms) else '-'
            s = e.get('speed')
            ms = lambda v: f'{v * 1e3:9.3f}' if v else f"{'-':>9}"
            tail = f"{ms(s['median_seconds'])} {ms(s['kernel_seconds'])} {s['launches']:8} {s.get('share_of_roofline', 0):8.1%} {ms(n.get('onnxruntime_cpu_seconds'))} " \
                   f"{ms(n.get('torch_seconds'))}  {s.get('limit', '')}" if s else ''
            if said != 'skip' or s:
                print(f'{name:22.22} {said:6} {taken:6} {tail}  {api}')


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', default='build/onnx-tile')
    p.add_argument('--tests', help='folder of unit tests')
    p.add_argument('-o', '--output', default='gpu.json')
    p.add_argument('--seconds', type=float, default=480, help='that it may take')
    p.add_argument('--jobs', type=int, default=8, help='models compared at a time')
    p.add_argument('--parts', default='tests,equal,speed,overlap,checker')
    p.add_argument('--large', default=','.join(LARGE), help='networks of models/make_models.py at usual sizes')
    p.add_argument('--apis', default='cuda,vulkan')
    p.add_argument('--model', action='append', default=[], metavar='F.onnx[:INPUT=D,D]', help='compared and timed, too')
    p.add_argument('--compare', action='append', default=[], metavar='F.onnx[:INPUT=D,D]', help='compared alone')
    a = p.parse_args()
    a.tool, parts = os.path.abspath(a.tool), a.parts.split(',')
    with tempfile.TemporaryDirectory() as folder:
        os.environ['XDG_CACHE_HOME'] = f'{folder}/cache'
        c = Check(a, folder)
        apis = [x for x in devices(c) if x in a.apis.split(',')]
        small = made(c, small_names(), f'{folder}/small', '--small')
        large = {**made(c, [x for x in a.large.split(',') if x], f'{folder}/large'), **given(a.model)}
        stages = {'tests': lambda: tests(c), 'equal': lambda: equality(c, apis, {**small, **large, **given(a.compare)}),
                  'speed': lambda: speeds(c, apis, large),
                  'overlap': lambda: [overlap(c, x, n, *large[n]) for n in ('dncnn', 'unet') if n in large for x in apis],
                  'checker': lambda: checker(c, {n: v for n, v in small.items() if n in ('small resnet50', 'small unet', 'small decoder')})}
        for part, run in stages.items():
            start = time.monotonic()
            if part in parts and c.left() > 10:
                run()
                c.report.setdefault('seconds', {})[part] = round(time.monotonic() - start, 1)
            c.write()
            print(f'{part}: {time.monotonic() - start:.0f} s', file=sys.stderr, flush=True)
    table(c)
    for f in c.faults:
        print('fault:', f)
    print(f"{len(c.faults)} faults, {a.seconds - c.left():.0f} s; {a.output}")
    return 1 if c.faults else 0


if __name__ == '__main__':
    sys.exit(main())
