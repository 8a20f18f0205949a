#!/usr/bin/env python3
"""What does a change do to plans and written models? Two programs over the same models and options, side by side.

  refdiff.py OLD NEW [--models DIR]... [--highres DIR] [--only GLOB]... [--modes NAME,...] [--keep DIR] [--cache FILE] [--added] [-v]

Models: DIR/models.json (file, shapes) where there is one, else every .onnx below DIR. --highres: make_models.py and highres.py of that folder
make their networks (in --keep's folder, where they stay). --cache: what OLD answered is kept there. Modes: those of MODES; a
target's name: plan only, by inspect; else options by
which a model is written. Compared: exit status, standard error's first line, the model's bytes, the plan (inspect --json) without its file
name. Closes with `N same, N differ`; exit 1 when one differs.
"""
import argparse
import fnmatch
import glob
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

STRICT = True  # a member that only one of the two has is a difference

# Members of plans as programs of before one name a figure wrote them (docs/json.md), and as they are called now; None: told under another
# name beside it
RENAMED = {
    'time_s': None, 'benefit_s': None, 'l2_bytes': None, 'working_set_lower_bound_bytes': None, 'time_untiled_s': None, 'time_tiled_s': None,
    'axes': None, 'tiles': None, 'refused': 'refusals', 'late_weights_from_bytes': 'deferred_packing_from_bytes', 'free_dims': 'dynamic_dims',
    'stays_free': 'stays_dynamic', 'live_bytes': 'peak_bytes', 'live_at': 'peak_at',
}
# of regions: what such programs did not tell
ADDED = ['fill', 'placement', 'stall_seconds', 'cores', 'scopes', 'blocks']

MODES = {
    'time': [],
    'memory': ['--goal', 'memory'],
    'forced': ['--force', '--l2', '512K'],
    'forced-memory': ['--force', '--goal', 'memory', '--l2', '128K'],
    'engine': ['--emit', 'engine'],
    'engine-forced': ['--emit', 'engine', '--force', '--l2', '512K'],
    'openvino': ['--runtime', 'openvino'],
    'openvino-memory': ['--runtime', 'openvino', '--goal', 'memory'],
    'engine-device': ['--runtime', 'engine-device', '--emit', 'engine'],
    'engine-device-memory': ['--runtime', 'engine-device', '--emit', 'engine', '--goal', 'memory'],
    'h200': ['--target', 'h200'],
    'ascend-a2-16m': ['--target', 'ascend-a2-16m'],
    'tlf-16m': ['--target', 'tlf-16m'],
    'ethos-u55': ['--target', 'ethos-u55'],
    'mcu-512k': ['--target', 'mcu-512k', '--goal', 'memory'],
}


def cases(folder):
    """(name, file, --shape options)."""
    table = os.path.join(folder, 'models.json')
    if not os.path.exists(table):
        for f in sorted(glob.glob(os.path.join(folder, '*.onnx'))):
            yield os.path.basename(f)[:-5], f, []
        return
    with open(table, encoding='utf-8') as f:
        for m in json.load(f):
            shapes = m.get('shapes') or {}
            bound = [k for k in shapes if k in (m.get('dynamic') or [])]
            yield m['name'], os.path.join(folder, m['file']), [x for k in bound for x in ('--shape', f"{k}={','.join(map(str, shapes[k]))}")]


def make_highres(judge, out):
    """The networks of the judge's high-resolution set as files."""
    def load(name):
        spec = importlib.util.spec_from_file_location(name, os.path.join(judge, name + '.py'))
        m = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(m)
        return m
    import onnx  # pylint: disable=import-outside-toplevel
    highres, models = load('highres'), load('make_models')
    os.makedirs(out, exist_ok=True)
    made = highres.MODELS if hasattr(highres, 'MODELS') else highres.cases(models)
    for name, build in (made.items() if isinstance(made, dict) else made):
        path = os.path.join(out, name + '.onnx')
        if not os.path.exists(path):
            m = build()
            onnx.save(m, path)
    return out


def run(tool, args):
    env = dict(os.environ, ONNX_TILE_CACHE='off')
    p = subprocess.run([tool, *args], capture_output=True, timeout=300, env=env)
    err = p.stderr.decode(errors='replace').splitlines()
    return p.returncode, (err[0] if err and p.returncode else ''), p.stdout


def plan_of(text):
    try:
        d = json.loads(text)
    except ValueError:
        return text.decode(errors='replace')
    d.pop('model', None)
    return d


def changes(a, b, at=''):
    """Paths where two JSON values differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        for k in sorted({*a, *b} if STRICT else a):
            yield from changes(a.get(k), b.get(k), f'{at}.{k}')
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for k, (x, y) in enumerate(zip(a, b)):
            yield from changes(x, y, f'{at}[{k}]')
    elif a != b:
        yield f'{at}: {str(a)[:60]} -> {str(b)[:60]}'


def renamed(x, in_dims=False):
    """The same with the names of now; `tiles` of a dimension is one of them."""
    if isinstance(x, list):
        return [renamed(v, in_dims) for v in x]
    if not isinstance(x, dict):
        return x
    named = {k if in_dims else RENAMED.get(k, k): renamed(v, k == 'dims') for k, v in x.items()}
    return {k: v for k, v in named.items() if k is not None}


def in_words_of_now(old, new):
    """Both plans with the same names, where OLD is a program of before one name a figure."""
    if not (isinstance(old, dict) and isinstance(new, dict) and 'refused' in old and 'refusals' in new):
        return old, new
    def bare(region):
        told = {k: v for k, v in region.items() if k not in ADDED}
        if isinstance(told.get('arena'), dict):
            told['arena'] = {k: v for k, v in told['arena'].items() if k not in ADDED}
        return told
    return [dict(p, regions=[bare(r) for r in p['regions']]) for p in (renamed(old), new)]


def look(tool, file, shapes, mode, out):
    base = [*MODES[mode], *shapes]
    if '--target' not in base:
        base += ['--target', 'cpu-generic', '--threads', '1']
    rc, err, text = run(tool, ['inspect', file, '--json', *base])
    found = {'exit': rc, 'error': err, 'plan': plan_of(text)}
    if '--target' not in MODES[mode] and rc == 0:
        if os.path.exists(out):
            os.remove(out)
        rc, err, _ = run(tool, [file, '-o', out, '-q', *base])
        with open(out, 'rb') if os.path.exists(out) else open(os.devnull, 'rb') as f:
            found.update(tiled=hashlib.sha256(f.read()).hexdigest()[:16], tile_exit=rc, tile_error=err)
    return found


def main():
    p = argparse.ArgumentParser()
    p.add_argument('old')
    p.add_argument('new')
    p.add_argument('--models', action='append', default=[])
    p.add_argument('--highres')
    p.add_argument('--only', action='append', default=[])
    p.add_argument('--modes', default=','.join(MODES))
    p.add_argument('--keep')
    p.add_argument('--cache')
    p.add_argument('--added', action='store_true', help='members that OLD does not write are no difference')
    p.add_argument('-v', action='store_true', help='every difference in the plan, not the first three')
    a = p.parse_args()
    global STRICT  # pylint: disable=global-statement
    STRICT = not a.added
    same = differ = 0
    known = {}
    stamp = f'{os.path.abspath(a.old)} {os.stat(a.old).st_mtime_ns}'
    if a.cache and os.path.exists(a.cache):
        with open(a.cache, encoding='utf-8') as f:
            known = json.load(f)
    with tempfile.TemporaryDirectory() as scratch:
        folders = list(a.models)
        if a.highres:
            folders.append(make_highres(a.highres, a.keep or os.path.join(scratch, 'highres')))
        for name, file, shapes in (c for f in folders for c in cases(f)):
            if a.only and not any(fnmatch.fnmatch(name, g) for g in a.only):
                continue
            for mode in a.modes.split(','):
                out = os.path.join(scratch, 'tiled.onnx')
                key = f'{stamp} {file} {shapes} {mode}'
                if key not in known:
                    known[key] = json.loads(json.dumps(look(a.old, file, shapes, mode, out)))
                x, y = known[key], json.loads(json.dumps(look(a.new, file, shapes, mode, out)))
                plans = in_words_of_now(x['plan'], y['plan'])
                found = list(changes({**x, 'plan': plans[0]}, {**y, 'plan': plans[1]}))
                if not found:
                    same += 1
                    continue
                differ += 1
                print(f'{name} {mode}:')
                for line in found if a.v else found[:3]:
                    print(f'    {line}')
                if not a.v and len(found) > 3:
                    print(f'    and {len(found) - 3} more')
                sys.stdout.flush()
    if a.cache:
        with open(a.cache, 'w', encoding='utf-8') as f:
            json.dump(known, f)
    print(f'{same} same, {differ} differ')
    return 1 if differ else 0


sys.exit(main())
