"""What docs/results.md and README show of the tables in docs/results: fewer columns and rows than are stored, means first.

VIEWS has a function for each section that is not shown as it is stored: tables to tables. README_ROWS names the rows of README.
"""
import re
import statistics

README_ROWS = (('networks', 'fsrcnn_x2_540p', 'FSRCNN x2, 960 x 540'), ('real', 'waifu2x_upconv7', 'waifu2x, 526 x 526'),
               ('networks', 'vit_4096_tokens', 'ViT, 4096 tokens, 2 layers'), ('real', 'taef2_decoder@1024', 'TAEF2 decoder, 1024 x 1024'),
               ('networks', 'unet16_1024', 'U-Net, 1024 x 1024'))

# Of process-memory: one model of each kind and size, those that gain least among them.
PROCESS_ROWS = ('resnet50_640', 'deeplabv3_resnet50_513', 'r3d_18_16x112', 'maxvit_tiny_448', 'segformer_b0_512', 'bert_base_512', 'dpt_384',
                'sd_vae_decoder_64', 'nafnet_512', 'taef2_decoder@1024', 'style_candy', 'unet_sed', 'yunet_n', 'ppocrv3_en_det',
                'waifu2x_upconv7', 'portrait_deeplab@513', 'meshnet3d@128')
REAL_ROWS = ('taef2_decoder@1024', 'style_candy', 'unet_sed', 'ppocrv3_en_det', 'waifu2x_upconv7', 'portrait_deeplab@513')
ENGINE_ROWS = ('vgg16_512', 'unet_1024', 'fsrcnn_x2_540p', 'sr_x2_720p', 'resnet50_1024', 'vit_4096_tokens')
STATIC_ROWS = ('Restormer', 'NAFNet', 'ESRGAN', 'yunet_n', 'style_candy')
MSF_ROWS = ('18,711', '7,788', '76,832')  # by what the plan takes: the first and the last of one network, and another network


def table(columns, rows, align='', title='', after=()):
    """align: one of l and r a column; by default all but the first are numbers."""
    return {'title': title, 'columns': columns, 'align': align or 'l' + 'r' * (len(columns) - 1), 'rows': rows, 'after': list(after)}


def kept(t, columns, rows=None):
    """The table with some of its columns, by number, and its first rows."""
    return {**t, 'columns': [t['columns'][k] for k in columns], 'align': ''.join(t['align'][k] for k in columns),
            'rows': [[r[k] for k in columns] for r in t['rows'][:rows]]}


def number(cell):
    return float(cell.replace(',', '').lstrip('x'))


def errors(pairs):
    """Of (predicted, measured), as text: "median 2%, largest 24%"."""
    off = [abs(number(p) - number(m)) / number(m) for p, m in pairs if p]
    return f'median {statistics.median(off):.0%}, largest {max(off):.0%}'


def means(t):
    """The memory and the time of "geometric means: memory x0.19, time x0.96"."""
    return re.search(r'memory (x\d+\.\d+), time (x\d+\.\d+)', t['after'][0]).groups()


def real_models(tables):
    """One row a model. ONNX Runtime's memory is in section process-memory."""
    ort, openvino, engine = tables
    rows = [[o[0], o[4], v[1], v[4], e[1], e[4]] for o, v, e in zip(ort['rows'], openvino['rows'], engine['rows']) if o[0] in REAL_ROWS]
    rows.append(['geometric mean', means(ort)[1], *means(openvino), *means(engine)])
    apart = [f'{r[0]} {r[5].removeprefix("equal ")}' for r in ort['rows'] if 'within' in r[5]]
    told = f'Outputs equal; in ONNX Runtime {", ".join(apart)}.' if apart else 'Outputs equal.'
    return [table(['model', 'ONNX Runtime: time', 'OpenVINO: MiB', 'time', 'engine: MiB', 'time'], rows, after=[told])]


def engine(tables):
    time, memory = tables
    rows = [r[:5] + [m[1], m[3], m[4]] for r, m in zip(time['rows'], memory['rows']) if r[0] in ENGINE_ROWS]
    columns = ['network', 'ms: ONNX Runtime', 'OpenVINO', 'engine', 'tiled', 'MiB: ONNX Runtime', 'engine', 'tiled']
    return [table(columns, rows, after=time['after'])]


def out_of_memory(tables):
    rows = [[r[0], ' '.join(filter(None, r[1:3])), f'{number(r[3]) / 2**20:.0f} -> {number(r[4]) / 2**20:.0f}', r[5]] for r in tables[0]['rows']]
    return [table(['thread', 'model, options', 'MiB', 'ratio'], rows, 'llrr')]


def process_memory(tables):
    t = tables[0]
    rows = [[r[0], f'{r[2]} -> {r[4]}', r[5]] for r in t['rows'] if r[0] in PROCESS_ROWS]
    assert len(rows) == len(PROCESS_ROWS), 'a row that is shown is not stored'
    return [table(['model', 'whole process, MiB', 'ratio'], rows, after=t['after'])]


def openvino_memory(tables):
    rows = tables[0]['rows']
    told = 'Predictions are off, untiled: {}; tiled: {}.'.format(errors([r[1:3] for r in rows]), errors([r[3:5] for r in rows]))
    tiled = sorted(([r[0], f'{r[2]} -> {r[4]}', f'x{number(r[4]) / number(r[2]):.2f}'] for r in rows if r[4]), key=lambda r: number(r[2]))
    return [table(['model: most and least saved', 'growth, MiB', 'ratio'], tiled[:2] + tiled[-2:], after=[told])]


def streaming(tables):
    rows = [[[*(c.replace(', MACs x1.000', '') for c in r[:4]), r[4].partition('time ')[2]] for r in t['rows']] for t in tables]
    return [{**t, 'columns': t['columns'][:4] + ['time, to that of tiles'], 'rows': r[:3]} for t, r in zip(tables, rows)]


def static_dynamic(tables):
    """The second table as a line: of all models and sizes the mean, the least and the most."""
    one, many = tables
    parts = [number(x) for r in many['rows'] for x in r[2].split(', ')]
    told = f'One dynamic file takes x{min(parts):.2f} to x{max(parts):.2f} of a static file per size, geometric mean ' \
        f'x{statistics.geometric_mean(parts):.2f} ({len(many["rows"])} files, {len(parts)} sizes).'
    return [{**one, 'title': '', 'rows': [r for r in one['rows'] if r[0].partition(',')[0] in STATIC_ROWS], 'after': [told]}]


def ranges(tables):
    """A line: the least and the most of what was measured, as a part of the bound."""
    untiled, tiled = ([re.search(r'x[\d.]+', r[k])[0] for r in tables[0]['rows']] for k in (2, 3))
    told = f'{len(untiled)} models: untiled {min(untiled)} to {max(untiled)} of the bound, tiled {min(tiled)} to {max(tiled)}; none above it.'
    assert max(untiled + tiled) <= 'x1.00', 'a bound does not hold'
    return [{**tables[0], 'rows': [], 'columns': [], 'after': [told]}]


def operator(tables):
    by_time = sorted(tables[0]['rows'], key=lambda r: number(r[4]))
    rows = [[r[0], r[2], r[4]] for r in by_time[:2] + by_time[-2:]]
    return [table(['model: fastest and slowest', 'growth', 'time'], rows, after=[' '.join(tables[0]['after'])])]


def tool_time(tables):
    """The times of now, without those of the version before."""
    now = [[c.split(' -> ')[-1] for c in r] for r in tables[0]['rows']]
    return [kept({**tables[0], 'rows': now, 'after': []}, [0, 1, 3, 5], 3)]


def packing(tables):
    t, = tables  # the sets whose lowest height is not proved at once, and all
    rows = [[c.replace('the same: ', '') for c in r] for r in t['rows'] if r[0] == 'all' or r[1] and r[2] != r[3]]
    return [{**t, 'rows': rows}]


def networks(tables):
    rows = [[r[0], f'{r[1]} -> {r[2]}', r[3], r[5]] for r in tables[0]['rows'] if r[5]]
    return [table(['network', 'whole process, MiB', 'ratio', 'time'], rows, after=tables[0]['after'])]


def device_memory(tables):
    t = kept(tables[0], [0, 1, 2, 3])
    by_ratio = sorted(t['rows'], key=lambda r: number(r[3]))
    told = f'{len(by_ratio)} networks, geometric mean x{statistics.geometric_mean(number(r[3]) for r in by_ratio):.3f}; the most and the least saved:'
    return [{**t, 'rows': by_ratio[:2] + by_ratio[-2:], 'after': [told]}]


VIEWS = {
    'device-memory': device_memory,
    'latent-decoders': lambda tables: [kept(tables[0], [0, 1, 2, 3])],
    'networks': networks,
    'real-models': real_models,
    'engine': engine,
    'out-of-memory': out_of_memory,
    'process-memory': process_memory,
    'openvino-memory': openvino_memory,
    'streaming': streaming,
    'tool-time': tool_time,
    'packing': packing,
    'operators': lambda tables: [kept(tables[0], [0, 1, 2, 3], 3)],
    'operator': operator,
    'static-dynamic': static_dynamic,
    'ranges': ranges,
    'published-msf': lambda tables: [{**tables[0], 'rows': [r for r in tables[0]['rows'] if r[4] in MSF_ROWS]}],
    'published-mobilenet': lambda tables: [kept(tables[0], [0, 2, 3, 4])],
}


def readme(stored):
    """README's table. stored: the tables of a section by its name."""
    process = {r[0]: r for r in stored('process-memory')[0]['rows']}
    times = {r[0]: r[4] for r in stored('real-models')[0]['rows']}
    networks = {r[0]: r for r in stored('networks')[0]['rows']}
    rows = []
    for kind, name, title in README_ROWS:
        of = networks[name][1:4] + networks[name][5:] if kind == 'networks' else \
            [process[name][2], process[name][4], process[name][5], times[name]]
        rows.append([title, f'{of[0]} -> {of[1]}', of[2], of[3]])
    return [table(['model', 'whole process, MiB', '', 'time'], rows)]


def headline(stored):
    """What README says first: of its first row."""
    _, untiled, tiled, *_ = next(r for r in stored('networks')[0]['rows'] if r[0] == README_ROWS[0][1])
    return f'{tiled} MiB in place of {untiled},'
