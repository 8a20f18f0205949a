#!/usr/bin/env python3
"""The option table from outside: options.py TOOL ROOT

--help says which command takes which option; every pair is tried, those that it lists and those that it leaves out. The man page has
the same options with the same values, and neither it nor README.md nor docs/ speaks of an option that is not there.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

# A command that gets as far as its file, which is not there.
COMMANDS = {
    'tiling': ['absent.onnx', '-o', 'x'],
    'inspect': ['inspect', 'absent.onnx'],
    'explain': ['explain', 'absent.onnx'],
    'plan-memory': ['plan-memory', 'absent.csv'],
    'run': ['run', 'absent.onnx'],
    'bench': ['bench', 'absent.onnx'],
    'run-kernel': ['run-kernel', 'absent.tk'],
    'calibrate': ['calibrate'],  # without a cache to write to
    'compare': ['compare', 'absent.xml', 'absent.xml', '-o', 'x.html'],
}
# Commands of a heading of --help; an option's own line may say "(not run, bench)" or "(also run)".
HEADINGS = {
    'options': list(COMMANDS),
    'of tiling, inspect, explain and bench': ['tiling', 'inspect', 'explain', 'bench'],
    'of run and bench': ['run', 'bench'],
    'of plan-memory and run-kernel': ['plan-memory', 'run-kernel'],
}
VALUES = {
    'output': 'absent/x', 'target': 'host', 'threads': '1', 'report': 'r.xml', 'debug': 'T', 'l2': '1M', 'weight-memory': '1M', 'shape': 'x=1', 'design': 'x=1', 'range': 'x=1', 'goal': 'time',
    'memory-budget': '1G', 'max-tensor': '1G', 'max-slowdown': '5', 'emit': 'onnx', 'runtime': 'openvino', 'dump-dir': 'd', 'input': 'x=x.npy',
    'seed': '1', 'output-dir': 'd', 'repeat': '1', 'trace': 't.json', 'capacity': '1K', 'fast-memory': '1M', 'mode': 'auto', 'mem-plan-mode': 'local', 'time-limit': '1', 'svg': 'm.svg', 'size': 'n=1',
    'device': 'cpu', 'emit-source': 'k.cl', 'work-items': '8',
}
REFUSED = ("is for 'onnx-tile", "is not for '", 'leave out -o')

problems = []


def run(tool, words, folder):
    env = dict(os.environ, ONNX_TILE_CACHE='off')
    p = subprocess.run([tool, *words], capture_output=True, text=True, cwd=folder, env=env, stdin=subprocess.DEVNULL, timeout=60)
    return p.returncode, p.stdout, p.stderr


def read_help(text):
    """{option: (the words before its help, commands that take it)}, and the commands that this build lacks."""
    options, commands = {}, None
    for line in text.splitlines():
        heading = re.match(r'(\S.*?)( \(.*\))?:$', line)
        if heading:
            if heading[1] not in HEADINGS:
                problems.append(f'--help has a heading that this test does not know: {line}')
            commands = HEADINGS.get(heading[1], [])
        option = re.match(r'  (?:-(\w), |    )--([\w-]+)( \S+)? ', line)
        if option and commands is not None:
            take = set(commands)
            for sign, names in re.findall(r'\((not|also) ([a-z, -]+)\)', line):
                take = take - set(names.split(', ')) if sign == 'not' else take | set(names.split(', '))
            words = f'--{option[2]}{option[3] or ""}'
            options[option[2]] = (f'-{option[1]}, {words}' if option[1] else words, take)
    lacks = re.findall(r'^  onnx-tile (\S+) .*\(needs ', text, re.M)
    return options, set(lacks)


def try_pairs(tool, options, lacks):
    with tempfile.TemporaryDirectory() as folder:
        for name, (words, take) in options.items():
            for command, base in COMMANDS.items():
                if command in lacks or (name == 'verify' and lacks):
                    continue
                given = [f'--{name}'] + ([VALUES[name]] if ' ' in words.split('--')[1] else [])
                if command == 'calibrate' and name == 'output':
                    given = ['--output', '']    # taken, and wrong: it would measure the machine otherwise
                status, _, err = run(tool, base + given, folder)
                refused = any(r in err for r in REFUSED)
                if refused == (command in take):
                    problems.append(f'--help says that {command} {"takes" if command in take else "refuses"} --{name}; it says: {err.strip()}')
                if status < 0 or (status == 0) != (name in ('help', 'version', 'list-targets', 'list-runtimes')):
                    problems.append(f'{command} {" ".join(given)}: exit {status}: {err.strip()}')


def read_man(path):
    """{option: synopsis} of the paragraphs that begin with an option."""
    found = {}
    with open(path, encoding='utf-8') as f:
        text = f.read()
    for line in re.findall(r'^\.TP\n\.BR? (.*\\-\\-.*)', text, re.M):
        plain = re.sub(r'\\f.', '', line).replace('\\-', '-').replace('"', ' ')
        plain = re.sub(r' +', ' ', plain).replace(' ,', ',').strip()
        found[re.search(r'--([\w-]+)', plain)[1]] = plain
    return found


def check_documents(root, options):
    man = read_man(os.path.join(root, 'docs/onnx-tile.1'))
    for name, (words, take) in options.items():
        if name not in man:
            problems.append(f'the man page lacks --{name}')
            continue
        synopsis = re.sub(r' \[ ?=\w+ ?\]| \(\w+\)$', '', man[name])
        if synopsis != words:
            problems.append(f'the man page has "{man[name]}", --help "{words}"')
        if 'run' in take and take <= {'run', 'bench'} and man[name].endswith('(run)') != ('bench' not in take):
            problems.append(f'the man page has "{man[name]}" for what {" and ".join(sorted(take))} take')
    for name in set(man) - set(options):
        problems.append(f'the man page has --{name}, --help has not')
    for path in [os.path.join(root, 'README.md'), *sorted(glob.glob(os.path.join(root, 'docs/*')))]:
        with open(path, encoding='utf-8') as f:
            text = f.read().replace('\\-', '-')
        for line in text.splitlines():
            if any(w in line for w in ('scripts/', '.py', '.sh', 'xmllint', '-->')):
                continue    # another program's, or a drawing
            for name in re.findall(r'(?<![\w-])--([a-z][a-z0-9-]+)', line):
                if name not in options:
                    problems.append(f'{os.path.relpath(path, root)} speaks of --{name}, which is no option: {line.strip()[:80]}')


def main():
    tool, root = os.path.abspath(sys.argv[1]), sys.argv[2]
    options, lacks = read_help(run(tool, ['--help'], '.')[1])
    if len(options) < 30:
        problems.append(f'--help has {len(options)} options only')
    missing = [n for n, (words, _) in options.items() if ' ' in words.split('--')[1] and n not in VALUES]
    if missing:
        problems.append(f'no value to try --{missing[0]} with: add one to VALUES')
    else:
        try_pairs(tool, options, lacks)
    check_documents(root, options)
    print('\n'.join(problems) or f'{len(options)} options, {len(COMMANDS)} commands: all good')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
