#!/usr/bin/env python3
"""The tables of docs/results.md, and README's. Each section lies as JSON in docs/results: where and with which version it was
measured, and its tables. The document has a pair of marks for each, `<!-- results: SECTION -->` and `<!-- /results -->`; what of the
tables it shows is in results_view.py. README's rows are some of theirs, so that the two cannot differ.

  results.py [--only SECTION]...                            write the tables of the documents anew, from the JSON
  results.py --check                                        only say whether the documents have the tables of the JSON: exit 1 if not
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

import results_view

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOCUMENT, README = f'{ROOT}/docs/results.md', f'{ROOT}/README.md'
USUAL_MACHINE = r'2 (virtual )?cores of an x86-64 server, shared'  # the document's first lines name it
MEASURED_BY = {  # section: words of the command, and whether it prints Markdown
    'real-models': (['scripts/real_models.py'], True),
    'engine': (['scripts/perf_table.py'], True),
    'out-of-memory': (['scripts/out_of_memory.py'], True),
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
    'networks': (['scripts/memory_truth.py'], False),
    'latent-decoders': (['scripts/latent_decoders.py'], False),
    'openvino-memory': (['scripts/memory_truth_openvino.py'], False),
    'device-memory': (['scripts/device_suite.py'], False),
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
    for line in t['after']:
        yield from (line, '')
    if not t['columns']:
        return
    yield '| ' + ' | '.join(t['columns']) + ' |'
    yield '|' + ''.join('--:|' if a == 'r' else '---|' for a in t['align'])
    for row in t['rows']:
        yield '| ' + ' | '.join(row) + ' |'


def stored(section):
    with open(f'{ROOT}/docs/results/{section}.json', encoding='utf-8') as f:
        return json.load(f)


def render(section):
    """What stands between the marks of a section."""
    if section == 'readme':
        return '\n'.join(table_lines(*results_view.readme(lambda name: stored(name)['tables']))) + '\n'  # marks go in packages
    data = stored(section)
    tables = results_view.VIEWS.get(section, list)(data['tables'])
    machine = '; '.join(s for s in data['machine'].split('; ') if not re.fullmatch(USUAL_MACHINE, s))
    version = re.sub(r'^0\.1\.0 \((.*)\)$', r'\1', data['version'].partition(', before:')[0])
    parts = [f'*{machine + "; " if machine else ""}{version}; `{data["by"]}`.*']
    parts += ['\n'.join(table_lines(t)) for t in tables]
    return '\n\n'.join(parts)


def page_with(page, only):
    """The page with the tables of its sections. README's rows may be of any of them."""
    def put(m):
        return f'{m[1]}\n{render(m[2])}\n{m[4]}' if not only or m[2] in [*only, 'readme'] else m[0]
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
    pages = {}
    for path in (DOCUMENT, README):
        with open(path, encoding='utf-8') as f:
            pages[path] = f.read()
    marked = re.findall(r'<!-- results: ([\w-]+) -->', pages[DOCUMENT])
    kept = {os.path.basename(f)[:-5] for f in glob.glob(f'{ROOT}/docs/results/*.json')}
    wrong = sorted({*marked} ^ kept) + sorted(kept - {*MEASURED_BY}) + ['readme'] * (pages[README].count('<!-- results: readme -->') != 1)
    if wrong or len(marked) != len({*marked}):
        sys.exit(f'sections that the document, docs/results and this script do not have alike: {" ".join(wrong) or "one twice"}')
    new = {path: page_with(page, a.only) for path, page in pages.items()}
    if a.check:
        other = [os.path.relpath(path, ROOT) for path in pages if new[path] != pages[path]]
        if results_view.headline(lambda name: stored(name)['tables']) not in ' '.join(pages[README].split()):
            other.append('the first sentence of README.md')
        print(f'{len(marked)} sections: ' + (f'{" and ".join(other)}: other tables: run scripts/results.py' if other else 'as stored'))
        return 1 if other else 0
    for path, page in new.items():
        with open(path, 'w', encoding='utf-8') as f:
            f.write(page)
    return 0


if __name__ == '__main__':
    sys.exit(main())
