#!/usr/bin/env python3
"""The option table from outside: options.py TOOL ROOT

--help=all says which command takes which option; every pair is tried, those that it lists and those that it leaves out. Every screen of
help fits on one. The completion for bash offers what the help says. The man page has the same options with the same values, and neither
it nor README.md nor docs/ speaks of an option that is not there.
"""
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
    'geometry': ['geometry', 'absent.onnx'],
    'passes': ['passes', 'absent.onnx', '-o', 'x'],
    'devices': ['devices'],     # reads nothing, and is done
    'gate': ['gate', 'absent.onnx', '--max-peak', '1G'],
    'compare': ['compare', 'absent.xml', 'absent.xml', '-o', 'x.html'],
}
VALUES = {
    'output': 'absent/x', 'target': 'host', 'threads': '1', 'report': 'r.xml', 'debug': 'T', 'l2': '1M', 'weight-memory': '1M', 'shape': 'x=1', 'design': 'x=1', 'range': 'x=1', 'goal': 'time',
    'memory-budget': '1G', 'max-tensor': '1G', 'max-slowdown': '5', 'emit': 'onnx', 'ort-operators': 'parts', 'runtime': 'openvino', 'dump-dir': 'd', 'input': 'x=x.npy',
    'seed': '1', 'output-dir': 'd', 'repeat': '1', 'trace': 't.json', 'capacity': '1K', 'fast-memory': '1M', 'mode': 'auto', 'mem-plan-mode': 'local', 'time-limit': '1', 'svg': 'm.svg', 'pairs': 'p.csv', 'function': 'f', 'size': 'n=1',
    'max-peak': '1G', 'max-growth': '1G', 'max-process': '1G', 'max-peak-regression': '1', 'max-time-regression': '1', 'baseline': 'b.xml',
    'device': 'cpu', 'device-memory': '1G', 'emit-source': 'k.cl', 'work-items': '8', 'completion': 'bash', 'dump-target': 'host', 'axis': 'x:2', 'input-type': 'x=uint8', 'scale': 'x=1/255', 'store': 'auto',
}
ANSWERS = ('help', 'version', 'list-targets', 'list-runtimes', 'completion', 'dump-target')
REFUSED = ("is for 'onnx-tile", "is not for '", 'leave out -o')
LINES, COLUMNS = 24, 80     # of a screen

problems = []


def run(tool, words, folder):
    env = dict(os.environ, ONNX_TILE_CACHE='off')
    p = subprocess.run([tool, *words], capture_output=True, text=True, cwd=folder, env=env, stdin=subprocess.DEVNULL, timeout=60)
    return p.returncode, p.stdout, p.stderr


def read_help(text):
    """{option: (the words before its help, commands that take it)} of --help=all."""
    options, commands = {}, set()
    for block in re.split(r'\n(?=\S|  -)', text):   # a line, and those that go on with it
        block = ' '.join(block.split())
        heading = re.match(r'[a-z]+: .* \(([a-z, -]+)\)$', block)
        if heading:
            commands = set(COMMANDS if heading[1] == 'every command' else heading[1].split(', '))
            problems.extend(f'a topic is for {c}, which is no command that this test knows' for c in commands - set(COMMANDS))
        option = re.match(r'(?:-(\w), )?--([\w-]+)( [A-Za-z][^ ]*)? ', block)
        if option:
            word, value = option[2], option[3] or ''
            value = value if word in VALUES else ''   # else the first word of its help
            take = set(commands)
            for sign, names in re.findall(r'\((not|of) ([a-z]+(?:-[a-z]+)?(?:, [a-z-]+)*)\)', block):
                if set(names.split(', ')) <= set(COMMANDS):
                    take = take - set(names.split(', ')) if sign == 'not' else set(names.split(', '))
            options[word] = (f'-{option[1]}, --{word}{value}' if option[1] else f'--{word}{value}', take)
    return options


def check_screens(tool):
    overview = run(tool, ['--help'], '.')[1]
    topics = re.search(r'--help=TOPIC +(.*(?:\n {20,}.*)*)', overview)
    names = re.split(r',\s+', topics[1].strip()) if topics else []
    if len(names) < 5:
        problems.append(f'--help names the topics {names}')
    screens = {'--help': overview, **{f'--help={n}': run(tool, [f'--help={n}'], '.')[1] for n in names}}
    commands = {c: run(tool, [f'--help={c}'], '.')[1] for c in COMMANDS}
    for name, text in screens.items():
        if not 2 < text.count('\n') <= LINES:
            problems.append(f'{name} has {text.count(chr(10))} lines; a screen has {LINES}')
    for name, text in {**screens, **commands}.items():
        problems.extend(f'{name} has a line of {len(line)} columns: {line}' for line in text.splitlines() if len(line) > COLUMNS)
    for command, text in commands.items():
        if command != 'tiling' and run(tool, [command, '--help'], '.')[1] != text:
            problems.append(f'{command} --help and --help={command} differ')
    everything = run(tool, ['--help=all'], '.')[1]
    if any(text not in everything for name, text in screens.items() if name != '--help'):
        problems.append('--help=all lacks a topic')
    return everything, set(re.findall(r'^  onnx-tile (\S+) .*\(needs ', overview, re.M)), commands


def complete(script, words, folder):
    """What bash offers behind the words, the last of them not finished."""
    words = [w for word in words for w in re.split('(=)', word) if w or word == '']
    code = f'. {script}\nCOMP_WORDS=("$@")\nCOMP_CWORD=$(($# - 1))\n_onnx_tile\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
    p = subprocess.run(['bash', '-uc', code, 'bash', 'onnx-tile', *words], capture_output=True, text=True, cwd=folder, timeout=60)
    if p.returncode != 0 or p.stderr:
        problems.append(f'completion of {words}: {p.stderr.strip() or p.returncode}')
    return set(p.stdout.split())


def check_completion(tool, options):
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, 'onnx-tile.bash')
        with open(script, 'w', encoding='utf-8') as f:
            f.write(run(tool, ['--completion', 'bash'], folder)[1])
        os.mkdir(os.path.join(folder, 'sub'))
        for name in ('a.onnx', 't.xml'):
            open(os.path.join(folder, name), 'w', encoding='utf-8').close()
        for command in COMMANDS:
            has = {f'--{o}' for o, (_, take) in options.items() if command in take}
            offered = complete(script, ['a.onnx' if command == 'tiling' else command, '--'], folder)
            if offered != has:
                problems.append(f'completion of {command}: {sorted(offered ^ has)} on one side only')
        targets = {line.split()[0] for line in run(tool, ['--list-targets'], folder)[1].splitlines()}
        runtimes = {line.split()[0] for line in run(tool, ['--list-runtimes'], folder)[1].splitlines()}
        for words, want in ((['a.onnx', '--goal', ''], {'time', 'memory'}), (['a.onnx', '--goal=m'], {'memory'}),
                            (['inspect', '--runtime='], runtimes), (['inspect', '--target', ''], targets | {'t.xml', 'sub'}),
                            (['run', 'a.onnx', '--output-dir', ''], {'sub'}), (['run', 'a.onnx', '--input=x=a'], {'a.onnx'}),
                            (['run', '--seed', ''], set()), (['ins'], {'inspect'}), (['a.onnx', '-o', 'a'], {'a.onnx'}),
                            (['run', 'a'], {'a.onnx'}), (['a.onnx', '--help=siz'], {'sizes'})):
            offered = complete(script, words, folder)
            if offered != want:
                problems.append(f'completion of {words}: {sorted(offered)}, not {sorted(want)}')


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
                if status < 0 or (status == 0) != (name in ANSWERS or (command == 'devices' and 'devices' in take)):
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


def check_man(root, options):
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


def check_commands(options, commands):
    """A command's own help has the options that --help=all gives it."""
    for command, text in commands.items():
        has = set(re.findall(r'^  (?:-\w, )?--([\w-]+)', text, re.M))
        want = {o for o, (_, take) in options.items() if command in take}
        if has != want:
            problems.append(f'--help={command}: {sorted(has ^ want)} on one side only')


def main():
    tool, root = os.path.abspath(sys.argv[1]), sys.argv[2]
    everything, lacks, commands = check_screens(tool)
    options = read_help(everything)
    if len(options) < 30:
        problems.append(f'--help has {len(options)} options only')
    check_commands(options, commands)
    missing = [o for o in re.findall(r'^  (?:-\w, )?--([\w-]+) (?:[A-Z][A-Z]|[A-Z]\W|[A-Z]$|[\w:-]+\||bash)', everything, re.M) if o not in VALUES]
    if missing:
        problems.append(f'no value to try --{missing[0]} with: add one to VALUES')
    else:
        try_pairs(tool, options, lacks)
    check_completion(tool, options)
    check_man(root, options)
    print('\n'.join(problems) or f'{len(options)} options, {len(COMMANDS)} commands: all good')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
