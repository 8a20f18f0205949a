"""The matrix as text: cells, words of runtimes as notes, the page between its markers, the JSON twin."""
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


class Notes:
    """Words with numbers, in the order in which they come; words that differ in names and figures of a network are one."""

    def __init__(self):
        self.numbers, self.texts = {}, []

    def of(self, words):
        key = ' '.join(re.findall(r'[a-zA-Z]{3,}', re.sub(r'tile/[\w/.]+|\[.*|\(.*|[\w/.]*\d[\w/.]*', ' ', words))[:5]) or words
        if key not in self.numbers:
            self.texts.append(words)
            self.numbers[key] = len(self.texts)
        return self.numbers[key]

    def lines(self):
        return [f'{n}. {words}' for n, words in enumerate(self.texts, 1)]


def sum_cell(results, notes):
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
        marks = sorted({notes.of(r['words']) for r in some if r['words']})
        text = f'{verdict} {len(some)}' if len(counts) > 1 or len(some) > 1 else verdict
        text = f'**{text}**' if verdict in ('wrong', 'crashed') else text
        parts.append(text + (f' ({", ".join(map(str, marks))})' if marks else ''))
    return ', '.join(parts)


def table(rows, runtimes, titles, results, notes, head):
    lines = ['| ' + ' | '.join([head] + [titles[r] for r in runtimes]) + ' |', '|' + '---|' * (len(runtimes) + 1)]
    for row in rows:
        cells = [sum_cell([x for x in results if x['row'] == row and x['runtime'] == r], notes) for r in runtimes]
        lines.append('| ' + ' | '.join([row] + cells) + ' |')
    return lines


def equal_alone(row, results):
    """Whether every runtime that can run the row's untiled model gives equal results of the tiled one."""
    return all(x['verdict'] in ('equal', '-') for x in results if x['row'] == row)


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
        notes, rows = Notes(), ordered(x['row'] for x in results)
        plain = [row for row in rows if key == 'models' and equal_alone(row, results)]
        if plain:
            intro = f'{intro.rstrip(":")}. Equal wherever the untiled model runs: {", ".join(plain)}. The others:'
        lines += ['', intro, ''] + table([row for row in rows if row not in plain], runtimes, titles, results, notes, head)
        if notes.numbers:
            lines += ['', 'What they say:', ''] + notes.lines()
    if result.get('bugs'):
        lines += ['', 'Bugs of runtimes that the forms must keep clear of (`tests/runtimes/`), in these versions:', '',
                  '| reproducer | what is shown | now |', '|---|---|---|']
        lines += [f'| {b["file"]} | {b["what"]} | {b["now"]} |' for b in result['bugs']]
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
