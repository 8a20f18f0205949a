#!/usr/bin/env python3
"""The tables of docs/results.md. Each section lies as JSON in docs/results: where and with which version it was measured,
and its tables. The document has a pair of marks for each, `<!-- results: SECTION -->` and `<!-- /results -->`.

  results.py [--only SECTION]...                            write the tables of the document anew, from the JSON
  results.py --check                                        only say whether the document has the tables of the JSON: exit 1 if not
  results.py --list                                         sections, and which script measures each
  results.py --measure SECTION --machine TEXT -- ARGS...    run that section's script with ARGS, keep its tables as JSON, write the document

Scripts that print tables in Markdown are run by --measure; what the others print is entered in the JSON by hand. A table is
{"title", "columns", "align": one of l and r a column, "rows", "after": lines below it}.
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOCUMENT = f'{ROOT}/docs/results.md'
MEASURED_BY = {  # section: words of the command, and whether it prints Markdown
    'real-models': (['scripts/real_models.py'], True),
    'engine': (['scripts/perf_table.py'], True),
    'out-of-memory': (['scripts/out_of_memory.py'], True),
    'published-vgg-apart': (['scripts/published_cases.py', '--table', 'vgg-apart'], True),
    'published-mobilenet': (['scripts/published_cases.py', '--table', 'mobilenet'], True),
    'published-msf': (['scripts/published_cases.py', '--table', 'msf'], True),
    'exactness': (['scripts/exactness_table.py', '--markdown'], True),
    'operator': (['scripts/operator_table.py'], True),
    'operators': (['scripts/op_speed.py', '--worst', '30'], True),
    'packing': (['scripts/pack_bench.py'], False),
    'streaming': (['scripts/streams_table.py'], False),
    'static-dynamic': (['scripts/dynamic_truth.py'], False),
    'ranges': (['scripts/bounds_truth.py'], False),
    'process-memory': (['scripts/memory_table.py'], True),
    'openvino-memory': (['scripts/memory_truth_openvino.py'], False),
    'device-memory': (['scripts/device_suite.py'], False),
    'busy': (['scripts/busy_bench.py'], False),
    'tool-time': (['scripts/tool_time.py'], True),
}


def cells_of(line):
    return [c.strip() for c in line.strip().strip('|').split('|')]


def parse(text):
    """The tables of a Markdown text, each with the heading above it and the lines below it."""
    tables, title, lines, k = [], '', text.splitlines(), 0
    while k < len(lines):
        s = lines[k]
        if s.startswith('#'):
            title = s.lstrip('# ')
        elif s.startswith('|') and k + 1 < len(lines) and re.fullmatch(r'[|\s:-]+', lines[k + 1]):
            align = ''.join('r' if c.endswith(':') else 'l' for c in cells_of(lines[k + 1]))
            tables.append({'title': title, 'columns': cells_of(s), 'align': align, 'rows': [], 'after': []})
            title, k = '', k + 1
        elif s.startswith('|') and tables:
            tables[-1]['rows'].append(cells_of(s))
        elif s.strip() and tables:
            tables[-1]['after'].append(s.strip())
        k += 1
    return tables


def table_lines(t):
    if t['title']:
        yield from (f'### {t["title"]}', '')
    yield '| ' + ' | '.join(t['columns']) + ' |'
    yield '|' + ''.join('--:|' if a == 'r' else '---|' for a in t['align'])
    for row in t['rows']:
        yield '| ' + ' | '.join(row) + ' |'
    for line in t['after']:
        yield from ('', line)


def render(section):
    """What stands between the marks of a section."""
    with open(f'{ROOT}/docs/results/{section}.json', encoding='utf-8') as f:
        data = json.load(f)
    parts = [f'*{data["machine"]}; onnx-tile {data["version"]}; `{data["by"]}`.*']
    parts += ['\n'.join(table_lines(t)) for t in data['tables']]
    return '\n\n'.join(parts)


def document_with(page, only):
    """The page with the tables of its sections. ValueError where a section has no JSON."""
    def put(m):
        return f'{m[1]}\n{render(m[2])}\n{m[4]}' if not only or m[2] in only else m[0]
    return re.sub(r'(<!-- results: ([\w-]+) -->)\n(.*?)(<!-- /results -->)', put, page, flags=re.S)


def version():
    git = ['git', '-C', ROOT, 'log', '-1', '--format=%h, %ad', '--date=short']
    return '0.1.0 ({})'.format(subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip())


def measure(section, machine, more):
    command, markdown = MEASURED_BY[section]
    if not markdown:
        sys.exit(f'{command[0]} prints no Markdown: enter what it says in docs/results/{section}.json')
    p = subprocess.run([sys.executable, f'{ROOT}/{command[0]}', *command[1:], *more], stdout=subprocess.PIPE, text=True, check=False)
    tables = parse(p.stdout)
    if p.returncode or not tables:
        sys.exit(f'{command[0]}: exit {p.returncode}, {len(tables)} tables')
    data = {'machine': machine, 'version': version(), 'by': ' '.join(command), 'tables': tables}
    with open(f'{ROOT}/docs/results/{section}.json', 'w', encoding='utf-8') as f:
        json.dump(data, f, indent=1, ensure_ascii=False)
        f.write('\n')


def main():
    args, more = sys.argv[1:], []
    if '--' in args:
        args, more = args[:args.index('--')], args[args.index('--') + 1:]
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--only', action='append', metavar='SECTION')
    p.add_argument('--check', action='store_true')
    p.add_argument('--list', action='store_true')
    p.add_argument('--measure', choices=sorted(MEASURED_BY), metavar='SECTION')
    p.add_argument('--machine', help='the processor and runtime versions, as the document should say them')
    a = p.parse_args(args)
    if a.list:
        for name, (command, markdown) in MEASURED_BY.items():
            print(f'{name:20s} {" ".join(command)}{"" if markdown else "   (JSON by hand)"}')
        return 0
    if a.measure:
        if not a.machine:
            p.error('--measure needs --machine')
        measure(a.measure, a.machine, more)
        a.only = [a.measure]
    with open(DOCUMENT, encoding='utf-8') as f:
        page = f.read()
    marked = re.findall(r'<!-- results: ([\w-]+) -->', page)
    stored = {os.path.basename(f)[:-5] for f in glob.glob(f'{ROOT}/docs/results/*.json')}
    wrong = sorted({*marked} ^ stored) + sorted(stored - {*MEASURED_BY})
    if wrong or len(marked) != len({*marked}):
        sys.exit(f'sections that the document, docs/results and this script do not have alike: {" ".join(wrong) or "one twice"}')
    new = document_with(page, a.only)
    if a.check:
        print(f'{len(marked)} sections: {"as stored" if new == page else "docs/results.md has other tables: run scripts/results.py"}')
        return 0 if new == page else 1
    with open(DOCUMENT, 'w', encoding='utf-8') as f:
        f.write(new)
    return 0


if __name__ == '__main__':
    sys.exit(main())
