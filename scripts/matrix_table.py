"""The matrix as text: cells, the page between its markers, the JSON twin, which has the words of runtimes."""
import json
import re

BEGIN, END = '<!-- matrix: written by make matrix -->', '<!-- end of matrix -->'
WORDS_MAX = 120


# Lines of an error that only say where it was raised, and parts that differ from one machine or version to another.
NOISE = re.compile(r"^(Exception from |Check '|While validating|Traceback|FrontEnd API failed with|Model wasn't fully converted|-- \w|"
                   r'Conversion is failed for|Summary:|Caused by:|error: *$|[\w.]*Error: *$|Stack backtrace)')
PARTS = ((r'OpenCV\([\d.]+\) \S+ error: (\([^)]*\) ?)?', ''), (r'\(onnx_node![^)]*\)', ''), (r'(?<![\w.])(/[\w.+-]+){2,}/?', '...'),
         (r'0x[0-9a-f]+', '0x..'), (r'^> ', ''), (r'\s+', ' '))


def shorten(words):
    """What a runtime says, in one line: the first that means something, or the last of its causes."""
    words = re.sub(r'^\w*(Error|Exception): ', '', words.strip()).replace('\t', ' ')
    causes = re.findall(r'^ +\d+: (.*)$', words.split('Stack backtrace')[0].partition('Caused by:')[2], re.M)
    lines = [x.strip() for x in words.splitlines() if x.strip()]
    if any('parse error' in x for x in lines):
        lines = [x for x in lines if 'parse error' in x]
    elif any(': error: ' in x for x in lines):
        lines = [x.partition(': error: ')[2] for x in lines if ': error: ' in x]
    lines = causes[-1:] or [x for x in lines if not NOISE.match(x)] or lines or ['no words']
    text = lines[0]
    for pattern, new in PARTS:
        text = re.sub(pattern, new, text)
    text = text.replace('|', '/').replace('`', "'").replace('<', '&lt;')
    return text if len(text) <= WORDS_MAX else text[:WORDS_MAX - 3].rstrip() + '...'


def sum_cell(results):
    """One cell for several networks: how many are equal, and what became of the others; empty where none was run."""
    if not results:
        return ''
    counts = {}
    for r in results:
        if r['verdict'] != '-':
            counts.setdefault(r['verdict'], []).append(r)
    if not counts:
        return '-'
    parts = []
    for verdict in ('equal', 'refused', 'crashed', 'wrong'):
        some = counts.get(verdict, [])
        if not some:
            continue
        text = f'{verdict} {len(some)}' if len(counts) > 1 or len(some) > 1 else verdict
        parts.append(f'**{text}**' if verdict in ('wrong', 'crashed') else text.removeprefix('equal '))
    return ', '.join(parts)


def table(rows, runtimes, titles, results, head):
    lines = ['| ' + ' | '.join([head] + [titles[r] for r in runtimes]) + ' |', '|' + '---|' * (len(runtimes) + 1)]
    for row in rows:
        cells = [sum_cell([x for x in results if x['row'] == row and x['runtime'] == r]) for r in runtimes]
        lines.append('| ' + ' | '.join([row] + cells) + ' |')
    return lines


def equal_alone(row, results):
    """Whether every runtime that can run the row's untiled model gives equal results of the tiled one."""
    return all(x['verdict'] in ('equal', '-') for x in results if x['row'] == row)


def exceptions(rows, runtimes, titles, results):
    """A line a model: the runtimes that do otherwise than give equal results, by what they do."""
    lines = ['| model | |', '|---|---|']
    for row in rows:
        by = {}
        for r in runtimes:
            for x in results:
                if (x['row'], x['runtime']) == (row, r) and x['verdict'] not in ('equal', '-'):
                    by.setdefault(x['verdict'], []).append(titles[r].rpartition(' ')[0])
        lines.append(f'| {row} | ' + '; '.join((f'**{v}**' if v != 'refused' else v) + ': ' + ', '.join(names) for v, names in by.items()) + ' |')
    return lines


def ordered(items):
    return list(dict.fromkeys(items))


def page(result):
    """Markdown lines between the markers."""
    runtimes = list(result['runtimes'])
    titles = {k: f'{v["title"]} {v["version"]}' for k, v in result['runtimes'].items()}
    lines = []
    for key, head, intro in result['headings']:
        results = [x for x in result['results'] if x['table'] == key]
        if not results:
            continue
        rows = ordered(x['row'] for x in results)
        plain = [row for row in rows if key == 'models' and equal_alone(row, results)]
        if plain:
            intro = f'{intro.rstrip(":")}. Equal wherever the untiled model runs: {", ".join(plain)}. The others, where they are not:'
        lines += ['', intro, '']
        lines += exceptions([r for r in rows if r not in plain], runtimes, titles, results) if key == 'models' else \
            table(rows, runtimes, titles, results, head)
    if result.get('bugs'):
        by = {}
        for b in result['bugs']:
            by.setdefault(b['what'].partition(':')[0], []).append('`' + b['file'] + '`' + ('' if b['now'].startswith('shown') else f' ({b["now"]})'))
        lines += ['', 'Bugs of runtimes that the forms must keep clear of: `tests/runtimes` has reproducers, each of which says what goes wrong. '
                  + ' '.join(f'{name}: {", ".join(files)}.' for name, files in by.items())]
    return lines


def write_page(path, result):
    with open(path, encoding='utf-8') as f:
        text = f.read()
    before, rest = text.split(BEGIN)
    text = before + BEGIN + '\n' + '\n'.join(page(result)).strip() + '\n\n' + END + rest.split(END)[1]
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)


def write_json(path, result):
    short = dict(result)
    short.pop('headings')
    short['results'] = [{k: v for k, v in x.items() if v != ''} for x in result['results']]
    text = json.dumps(short, indent=1)
    text = re.sub(r'\{\n\s+("table".*?)\n\s+\}', lambda m: '{' + re.sub(r'\n\s+', ' ', m.group(1)) + '}', text, flags=re.S)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text + '\n')
