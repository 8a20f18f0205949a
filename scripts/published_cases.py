#!/usr/bin/env python3
"""Published cases planned by the tool, nothing measured: sections published-* of docs/results.md.

  published_cases.py [--tool build/onnx-tile] [--table vgg|vgg-apart|mobilenet|msf]

Makes the models (models/make_models.py), runs `inspect --json` and prints what it says, in Markdown. Feature maps: bytes moved less those of weights, which are read once where a region keeps them (and of
every untiled node), else once in every tile.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MIB = 1 << 20
VGG = [(t, l2, []) for t in ('ethos-u55', 'tlf-16m') for l2 in ('362K', '512K', '1M', '2M', '4M')]
VGG_APART = [(t, l2, o) for t in ('ethos-u55', 'tlf-16m')
             for l2, o in (('362K', []), ('362K', ['--memory-budget', '3460K']), ('362K', ['--goal', 'memory']), ('1M', []))]
# Networks of msf-CNN, what it reports (bytes, multiply-adds), and the slowdown with which there are about as many here.
MSF = [('mobilenet_chain_144', 67905, 1.10, 10), ('mobilenet_chain_144', 21288, 1.30, 30), ('mobilenet_chain_144', 7887, 1.68, 300),
       ('mcunet_chain_176', 94184, 1.45, 5), ('mcunet_vww_chain_80', 26128, 1.11, 5)]
VGG_WEIGHTS = 2221312  # bytes of constants of the model


def inspect(tool, model, *options):
    p = subprocess.run([tool, 'inspect', model, '--json', '-q', *options], capture_output=True, text=True,
                       env=dict(os.environ, ONNX_TILE_CACHE='off'))
    if p.returncode != 0:
        sys.exit(f'{options}: exit {p.returncode}: {p.stderr.strip()}')
    return json.loads(p.stdout)


def tiles(region):
    n = 1
    for d in region['dims']:
        n *= d['tiles']
    return n


def regions(plan):
    """'10: H/19 x W/7, rows kept', by region."""
    def one(r):
        cut = ' x '.join(f"{d['axis']}/{d['tiles']}" for d in r['dims'])
        return f"{len(r['nodes'])}: {cut}" + (' in lines' if r['form'] == 'stream' else '')
    return ', '.join(one(r) for r in plan['regions'])


def macs(plan):
    return plan['tiled']['macs'] / plan['untiled']['macs']


def feature_maps(plan):
    """Bytes moved that are no weights, before and after."""
    again = sum(r['weight_bytes'] * (tiles(r) - 1) for r in plan['regions'] if not r['weights_stay'])
    return plan['untiled']['traffic_bytes'] - VGG_WEIGHTS, plan['tiled']['traffic_bytes'] - VGG_WEIGHTS - again


def vgg_row(tool, model, target, l2, options):
    p = inspect(tool, model, '--target', target, '--l2', l2, *options)
    u, t = p['untiled']['traffic_bytes'] / MIB, p['tiled']['traffic_bytes'] / MIB
    before, after = (x / MIB for x in feature_maps(p))
    return (f'| {u:.1f} -> {t:.1f} | {before:.1f} -> {after:.1f} | x{macs(p):.3f} | {p["untiled"]["time_seconds"] * 1e3:.3g} -> '
            f'{p["tiled"]["time_seconds"] * 1e3:.3g} ms | {regions(p)} |')


def vgg(tool, model):
    yield '| target | fast memory | bytes moved, MiB | feature maps, MiB | MACs | predicted time | regions (nodes: tiles) |'
    yield '|---|---|---|---|---|---|---|'
    for target, l2, options in VGG:
        yield f'| `{target}` | {l2} ' + vgg_row(tool, model, target, l2, options)


def vgg_apart(tool, model):
    yield '| target | fast memory | options | bytes moved, MiB | feature maps, MiB | MACs | predicted time | regions (nodes: tiles) |'
    yield '|---|---|---|---|---|---|---|---|'
    for target, l2, options in VGG_APART:
        words = f"`{' '.join(options)}`" if options else ''
        yield f'| `{target}` | {l2} | {words} ' + vgg_row(tool, model, target, l2, ['--weight-memory', '4M'] + options)


def mobilenet(tool, model):
    yield '| `--max-slowdown` | peak, bytes | | MACs | predicted time | working sets, KiB | regions (nodes: tiles) |'
    yield '|---|---|---|---|---|---|---|'
    for percent in ('1', '10', '30'):
        p = inspect(tool, model, '--target', 'mcu-512k', '--goal', 'memory', '--l2', '172K', '--max-slowdown', percent)
        a, b = p['untiled']['peak_bytes'], p['tiled']['peak_bytes']
        sets = ', '.join(f"{r['working_set_bytes'] / 1024:.0f}" for r in p['regions'])
        yield (f'| {percent} | {a:,} -> {b:,} | {a / 1024:.0f} -> {b / 1024:.1f} KiB, x{b / a:.3f} | x{macs(p):.3f} | '
               f'{p["untiled"]["time_seconds"] * 1e3:.0f} -> {p["tiled"]["time_seconds"] * 1e3:.0f} ms | {sets} | {regions(p)} |')


def msf(tool, folder):
    yield '| network | untiled, bytes | msf-CNN | MACs | here | MACs | `--max-slowdown` | predicted time |'
    yield '|---|---|---|---|---|---|---|---|'
    for name, theirs, factor, percent in MSF:
        p = inspect(tool, os.path.join(folder, name + '.onnx'), '--target', 'mcu-512k', '--goal', 'memory', '--max-slowdown', str(percent))
        a, b = p['untiled'], p['tiled']
        yield (f'| `{name}` | {a["peak_bytes"]:,} | {theirs:,} | x{factor:.2f} | {b["peak_bytes"]:,} | x{macs(p):.3f} | {percent} | '
               f'{a["time_seconds"] * 1e3:.0f} -> {b["time_seconds"] * 1e3:.0f} ms |')


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', default=os.path.join(ROOT, 'build', 'onnx-tile'))
    p.add_argument('--table', choices=('vgg', 'vgg-apart', 'mobilenet', 'msf'))
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in ('vgg16_head', 'mobilenet_v2_int8'):
            make = os.path.join(ROOT, 'models', 'make_models.py')
            subprocess.run([sys.executable, make, folder, name, '--size', '224'], check=True, stdout=subprocess.DEVNULL)
        make = os.path.join(ROOT, 'models', 'chain_models.py')
        subprocess.run([sys.executable, make, folder, *sorted({m[0] for m in MSF})], check=True, stdout=subprocess.DEVNULL)
        head, net = (os.path.join(folder, n + '.onnx') for n in ('vgg16_head', 'mobilenet_v2_int8'))
        tables = {'vgg': vgg(o.tool, head), 'vgg-apart': vgg_apart(o.tool, head), 'mobilenet': mobilenet(o.tool, net), 'msf': msf(o.tool, folder)}
        print('\n\n'.join('\n'.join(rows) for name, rows in tables.items() if o.table in (None, name)))


if __name__ == '__main__':
    main()
