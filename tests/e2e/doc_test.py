#!/usr/bin/env python3
"""What the documents say is true: README.md, CONTRIBUTING.md, CHANGELOG.md, docs/**/*.md and the comments of the sources.

  doc_test.py TOOL ROOT [--only GLOB] [-v]

* Commands: a block of code whose lines begin with "$ " or with the name of a program is run, in a scratch folder of its
  document. After "$ COMMAND" stands its output, which is compared line by line ("..." stands for any lines, or the rest of one).
  Other command blocks have no output: each line has to exit with 0. A comment before a block says what is special:

      <!-- doc-test: setup          a script for bash, run once, where it stands; the reader does not see it
      python3 models/make_models.py . resnet50 --small
      -->
      <!-- doc-test: numbers -->    figures depend on the machine: compared are the words between them
      <!-- doc-test: exit 3 -->     the last command of the block ends with this status; its stderr is compared, too
      <!-- doc-test: skip WHY -->   cannot be run here: a GPU, a registry, minutes

* Files and folders of the repository that a document or a comment names exist; so do options of commands, targets of make, links,
  headings that links lead to, members of JSON that docs/json.md lists, all that commands print among them; docs/architecture.md has every module.

Prints how many blocks ran, were compared, were skipped. Exit 1 when something is not true.
"""
import argparse
import collections
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAMS = ('onnx-tile', 'make', 'python3', 'pip', 'scripts/', 'models/', 'tests/', 'build/', 'tools/', '.venv', 'docker', 'git',
            'clang-format', 'xmllint', '.ci/')
FOLDERS = ('src', 'docs', 'tests', 'scripts', 'include', 'models', 'examples', 'reports', 'python', 'debian')
SUFFIXES = ('.c', '.h', '.def', '.py', '.sh', '.xsd', '.md', '.supp', '.bash', '.dict', '-tile.1')
NUMBER = re.compile(r'(?<![\w.])x?[0-9][0-9,]*(\.[0-9]+)?(e[+-]?[0-9]+)?( ?(B|KiB|MiB|GiB|ns|us|ms|s|%)(?![\w]))?')
LIMIT_S = 300

problems = []
counts = collections.Counter()


def problem(where, text):
    problems.append(f'{where}: {text}')


# ---- blocks ----

class Block:
    """Code of a document: its lines, whether a comment before it says something, and where it stands."""

    def __init__(self, line, language, directive):
        self.line, self.language, self.directive, self.lines = line, language, directive, []

    def is_command(self):
        if self.language not in ('', 'sh', 'bash', 'console'):
            return False
        return any(s.startswith('$ ') or s.startswith(PROGRAMS) for s in self.lines)


def read_blocks(text):
    """Blocks in fences and indented ones, setups among them, in order. (kind, block): "setup" or "code"."""
    lines, found, directive, k = text.splitlines(), [], '', 0
    while k < len(lines):
        s = lines[k]
        if s.startswith('<!-- doc-test:'):
            words = s[len('<!-- doc-test:'):]
            if words.split()[:1] == ['setup']:
                b = Block(k + 1, 'setup', '')
                while '-->' not in lines[k]:
                    k += 1
                    b.lines.append(lines[k])
                b.lines.pop()
                found.append(('setup', b))
            else:
                directive = words.split('-->')[0].strip()
        elif s.startswith('```'):
            b = Block(k + 1, s[3:].strip(), directive)
            k += 1
            while not lines[k].startswith('```'):
                b.lines.append(lines[k])
                k += 1
            found.append(('code', b))
            directive = ''
        elif s.startswith('    ') and (k == 0 or not lines[k - 1].strip()):
            b = Block(k + 1, '', directive)
            while k < len(lines) and (lines[k].startswith('    ') or not lines[k].strip()):
                b.lines.append(lines[k][4:])
                k += 1
            while b.lines and not b.lines[-1].strip():
                b.lines.pop()
            found.append(('code', b))
            directive = ''
            continue
        elif s.strip():
            directive = ''
        k += 1
    return found


def without_blocks(text):
    """The text with its code in fences and its indented code taken out, lines kept in number."""
    gone = set()
    for _, b in read_blocks(text):
        gone.update(range(b.line - 1, b.line + len(b.lines) + 1) if b.language else range(b.line - 1, b.line - 1 + len(b.lines)))
    return '\n'.join('' if k in gone else s for k, s in enumerate(text.splitlines()))


# ---- running ----

def commands_of(block):
    """[(command, expected lines or None)]: None where no output is shown."""
    dialog, found, k = any(s.startswith('$ ') for s in block.lines), [], 0
    while k < len(block.lines):
        s = block.lines[k]
        k += 1
        if dialog and not s.startswith('$ '):
            found[-1][1].append(s)
            continue
        s = s[2:] if dialog else s
        while s.endswith('\\') and k < len(block.lines):
            s = s[:-1] + block.lines[k].strip()
            k += 1
        if s.strip() and not s.startswith('#'):
            found.append((s, [] if dialog else None))
    return [(c, None if e is None else [x.rstrip() for x in e]) for c, e in found]


def masked(line):
    return re.sub(r'[\s─-]+', ' ', NUMBER.sub('N', line)).strip()


def same(expected, got):
    """Whether the lines agree; "..." in expected stands for any number of lines, at the end of a line for any rest of it."""
    if not expected:
        return not got
    if expected[0].strip() == '...':
        return any(same(expected[1:], got[k:]) for k in range(len(got) + 1))
    if not got or not (expected[0] == got[0] or expected[0].endswith('...') and got[0].startswith(expected[0][:-3])):
        return False
    return same(expected[1:], got[1:])


def trimmed(lines):
    lines = [s.rstrip() for s in lines]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines


def run_shell(script, folder, env):
    try:
        return subprocess.run(['bash', '-c', script], cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(script, 124, '', f'took longer than {LIMIT_S} s')


def run_block(doc, block, folder, env):
    todo = commands_of(block)
    want = re.match(r'exit (\d+)', block.directive)
    compared = False
    for k, (command, expected) in enumerate(todo):
        p = run_shell(command, folder, env)
        status = int(want[1]) if want and k + 1 == len(todo) else 0
        where = f'{doc}:{block.line}'
        if p.returncode != status:
            problem(where, f'exit {p.returncode}, not {status}: {command.strip()} ({(p.stderr or p.stdout).strip()[-300:]})')
            continue
        if not expected or not trimmed(expected):
            continue
        compared = True
        got = trimmed((p.stdout + (p.stderr if want else '')).splitlines())
        expected = trimmed(expected)
        if block.directive.startswith('numbers'):
            got, expected = [masked(s) for s in got], [masked(s) for s in expected]
        if not same(expected, got):
            problem(where, f'{command.strip()} prints otherwise:\n' + '\n'.join('      | ' + s for s in got))
    counts['ran'] += 1
    counts['compared'] += compared


def run_document(doc, text, root, tool, verbose):
    blocks = [(kind, b) for kind, b in read_blocks(text) if kind == 'setup' or b.is_command()]
    if not blocks:
        return
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f'{folder}/.bin')
        os.symlink(tool, f'{folder}/.bin/onnx-tile')
        with open(f'{folder}/.bin/python3', 'w', encoding='utf-8') as f:  # a link would leave the virtual environment
            f.write(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        os.chmod(f'{folder}/.bin/python3', 0o755)
        for name in FOLDERS:
            if os.path.isdir(f'{root}/{name}'):
                os.symlink(f'{root}/{name}', f'{folder}/{name}')
        env = dict(os.environ, PATH=f'{folder}/.bin:{os.environ["PATH"]}', ONNX_TILE_CACHE='off', HOME=folder)
        for kind, b in blocks:
            if verbose:
                print(f'{doc}:{b.line} {kind} {b.directive}', file=sys.stderr, flush=True)
            if kind == 'setup':
                p = run_shell('set -e\n' + '\n'.join(b.lines), folder, env)
                if p.returncode:
                    problem(f'{doc}:{b.line}', f'setup: exit {p.returncode}: {p.stderr.strip()[-300:]}')
            elif b.directive.startswith('skip'):
                if len(b.directive.split()) < 2:
                    problem(f'{doc}:{b.line}', 'skipped without a reason')
                counts['skipped'] += 1
            else:
                run_block(doc, b, folder, env)


# ---- names ----

class Repository:
    """What there is to name: files, folders, options, targets, headings."""

    def __init__(self, root, tool):
        self.root = root
        self.files = set(subprocess.run(['git', '-C', root, 'ls-files', '-co', '--exclude-standard'], capture_output=True, text=True,
                                        check=True).stdout.split('\n'))
        self.files = {f for f in self.files if f and os.path.exists(f'{root}/{f}')}
        self.names = {os.path.basename(f) for f in self.files}
        self.folders = {d for f in self.files for d in self.above(f)}
        self.options = {'help', 'version'}
        for topic in ('--help=all',):
            out = subprocess.run([tool, topic], capture_output=True, text=True, check=True).stdout
            self.options.update(re.findall(r'--([a-z][a-z0-9-]+)', out))
        self.script_options = set()
        for f in self.files:
            if f.startswith(('scripts/', 'tests/', 'models/', 'python/', '.ci/')) and f.endswith(('.py', '.sh', '.bash')) or f == '.ci/run':
                self.script_options.update(re.findall(r'--([a-z][a-z0-9-]+)', self.read(f)))
        makefile = self.read('Makefile')
        self.targets = set(re.findall(r'^([a-z][a-z-]*)(?=[^\n=]*:(?!=))', makefile, re.M))
        phony = re.search(r'^\.PHONY:((?:.*\\\n)*.*)$', makefile, re.M)
        self.targets.update(phony[1].replace('\\\n', ' ').split())
        self.anchors = {}

    @staticmethod
    def above(f):
        while '/' in f:
            f = os.path.dirname(f)
            yield f

    def read(self, f):
        with open(f'{self.root}/{f}', encoding='utf-8') as text:
            return text.read()

    def exists(self, path, beside=''):
        """Whether a path, perhaps with * or {a,b} in it, is that of a file or folder; from the root, from src or beside the document."""
        alternatives = [path]
        while any('{' in p for p in alternatives):
            alternatives = [re.sub(r'\{[^{}]*\}', part, p, count=1) for p in alternatives
                            for part in re.search(r'\{([^{}]*)\}', p)[1].split(',')]
        for p in alternatives:
            p = p.rstrip('/')
            places = [os.path.normpath(os.path.join(base, p)) for base in ('', 'src', 'tests', beside)]
            if not any(x in self.files or x in self.folders or ('*' in x and (fnmatch.filter(self.files, x) or fnmatch.filter(self.folders, x)))
                       for x in places):
                return False
        return True

    def headings(self, f):
        if f not in self.anchors:
            seen = collections.Counter()
            self.anchors[f] = set()
            for title in re.findall(r'^#+ +(.*?) *$', without_blocks(self.read(f)), re.M):
                slug = re.sub(r'[^\w\- ]', '', re.sub(r'\[([^]]*)\]\([^)]*\)', r'\1', title).replace('`', '').lower()).replace(' ', '-')
                self.anchors[f].add(slug + (f'-{seen[slug]}' if seen[slug] else ''))
                seen[slug] += 1
        return self.anchors[f]


def check_links(doc, text, repo):
    for target in re.findall(r'\]\(([^)\s]+)\)', without_blocks(text)):
        if re.match(r'[a-z]+:', target):
            continue
        path, _, anchor = target.partition('#')
        f = os.path.normpath(os.path.join(os.path.dirname(doc), path)) if path else doc
        counts['links'] += 1
        if f not in repo.files and f not in repo.folders:
            problem(doc, f'link to {target}, which is not there')
        elif anchor and f.endswith('.md') and anchor not in repo.headings(f):
            problem(doc, f'link to {target}: no such heading')


def check_span(doc, span, made, repo):
    """A piece of text that is marked as code, or a line of a block of commands."""
    beside = os.path.dirname(doc)
    if re.search(r'[_/-](NAME|MODEL)|<\w+>|^share/', span):  # a pattern, not a name; what is installed
        return
    for path in re.findall(r'(?<![\w/.$~<>-])((?:%s)/[\w./*{},-]*[\w*/}])' % '|'.join(FOLDERS), span):
        counts['paths'] += 1
        if not repo.exists(path, beside) and os.path.basename(path) not in made:
            problem(doc, f'names {path}, which is not there')
    if re.fullmatch(r'[\w*][\w.*{},/-]+', span) and span.endswith(SUFFIXES) and not span.startswith(FOLDERS):
        counts['paths'] += 1
        name = os.path.basename(span)
        if not (repo.exists(span, beside) or name in made or ('/' not in span and fnmatch.filter(repo.names, name))
                or any(fnmatch.fnmatch(f, '*/' + span) for f in repo.files)):
            problem(doc, f'names {span}, which is not there')
    other = not re.search(r'onnx-tile(?!-apply)', span) or re.search(r'\.py|\.sh|scripts/|\.ci/|xmllint|pip |docker', span)
    for option in re.findall(r'(?<![\w-])--([a-z][a-z0-9-]+)', span):
        counts['options'] += 1
        if option not in repo.options and not (other and option in repo.script_options):
            problem(doc, f'speaks of --{option}, which is no option')
    for words in re.findall(r'(?:^|[;&(]\s*)make((?: +[a-z][a-z-]*)+)(?![\w./=-])', span):
        for target in words.split():
            counts['targets'] += 1
            if target not in repo.targets:
                problem(doc, f'speaks of make {target}, which is no target')


def check_names(doc, text, repo):
    blocks = read_blocks(text)
    made = {w for kind, b in blocks for s in b.lines for w in re.findall(r'[\w.-]+', s)}  # what commands write may be spoken of
    for _, b in blocks:
        if b.language in ('', 'sh', 'bash', 'console'):
            for s in b.lines:
                if b.is_command() and (s.startswith('$ ') or s.startswith(PROGRAMS)):
                    check_span(doc, s.removeprefix('$ ').split(' # ')[0].strip(), made, repo)
    for span in re.findall(r'(?<!`)`([^`\n]+)`(?!`)', without_blocks(text)):
        check_span(doc, span, made - {w for w in made if w in repo.names}, repo)


def check_comments(repo):
    """Documents that the sources, scripts and tests name."""
    for f in sorted(repo.files):
        if f.endswith(('.c', '.h', '.def', '.py', '.sh', '.xsd', '.bash')) or f in ('Makefile', 'include/onnx_tile.h'):
            if f.startswith('tests/e2e/doc_test.'):
                continue
            for path in re.findall(r'\bdocs/[\w/-]+\.(?:md|1|json)\b', repo.read(f)):
                counts['comments'] += 1
                if path not in repo.files:
                    problem(f, f'names {path}, which is not there')


def check_members(repo):
    """Members of JSON that docs/json.md lists are written somewhere in src/."""
    words = set()
    for f in repo.files:
        if f.startswith('src/') and f.endswith(('.c', '.h', '.def')):
            words.update(re.findall(r'\b[a-z][a-z0-9_-]*[a-z0-9]\b', repo.read(f)))
    for name in set(re.findall(r'`([a-z]+(?:_[a-z0-9]+)+)`', without_blocks(repo.read('docs/json.md')))):
        counts['members'] += 1
        if name not in words and name.replace('_', '-') not in words and not re.fullmatch(r'onnx_tile_\w+', name):
            problem('docs/json.md', f'lists {name}, which nothing writes')


def members_of(x):
    """Names of all members of a JSON value, inner ones included."""
    if isinstance(x, dict):
        for name, inner in x.items():
            yield name
            yield from members_of(inner)
    elif isinstance(x, list):
        for inner in x:
            yield from members_of(inner)


JSON_COMMANDS = ('inspect m.onnx --force --l2 64K', 'inspect m.onnx --target tlf-16m --l2 64K', 'inspect m.onnx --target h200 --force',
                 'inspect m.onnx --goal memory --range input=1,3,32:64,32:64', 'explain m.onnx', 'gate m.onnx --max-peak 1G', 'run static.onnx',
                 'bench static.onnx', 'plan-memory k.tk --analyse', 'run-kernel k.tk --input x=x.npy', 'devices')


def check_json(repo, tool, root):
    """Every member that a command prints with --json is described in docs/json.md."""
    described = set(re.findall(r'[a-z][a-z0-9_]*', ' '.join(re.findall(r'`([^`]*)`', repo.read('docs/json.md')))))
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(f'{root}/examples/kernels/softmax.tk', f'{folder}/k.tk')
        make_x = "import numpy; numpy.save('x.npy', numpy.ones((64, 200), 'f4'))"
        subprocess.run([sys.executable, '-c', make_x], cwd=folder, check=True)
        for name, more in (('m.onnx', []), ('static.onnx', ['--static'])):
            subprocess.run([sys.executable, f'{root}/tests/e2e/doc_models.py', 'sr', f'{folder}/{name}', *more], check=True)
        for command in JSON_COMMANDS:
            p = subprocess.run([tool, *command.split(), '--json'], cwd=folder, capture_output=True, text=True, check=False)
            if p.returncode:
                problem('docs/json.md', f'{command}: exit {p.returncode}: {p.stderr.strip()[-200:]}')
                continue
            for name in sorted(set(members_of(json.loads(p.stdout))) - described):
                problem('docs/json.md', f'does not describe {name}, which {command.split()[0]} --json prints')
            counts['members'] += 1


def check_modules(repo):
    """Folders of src/ that scripts/arrows.py lists are in the table of docs/architecture.md, by themselves or as FOLDER/*."""
    listed = re.search(r'^MODULES = """(.*?)"""', repo.read('scripts/arrows.py'), re.M | re.S)[1].split()
    table = re.findall(r'^\| (`[^|]*) \|', repo.read('docs/architecture.md'), re.M)
    spans = {s for row in table for s in re.findall(r'`([\w/*]+)`', row)}
    text = re.findall(r'`([\w/*]+)`', repo.read('docs/architecture.md'))
    for module in listed:
        counts['modules'] += 1
        if module not in spans | set(text) and os.path.dirname(module) + '/*' not in spans and not any(m.startswith(module + '/') for m in spans):
            problem('docs/architecture.md', f'does not say what {module} is')


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('tool')
    p.add_argument('root')
    p.add_argument('--only', default='*', help='of the documents, by a pattern; sources and members are not looked at then')
    p.add_argument('-v', action='store_true', help='name each block before it is run')
    a = p.parse_args()
    tool, root = os.path.abspath(a.tool), os.path.abspath(a.root)
    sys.setrecursionlimit(10000)
    repo = Repository(root, tool)
    for doc in sorted(f for f in repo.files if f.endswith('.md') and (f.startswith('docs/') or '/' not in f)):
        if not fnmatch.fnmatch(doc, a.only):
            continue
        text = repo.read(doc)
        counts['documents'] += 1
        check_links(doc, text, repo)
        if not doc.startswith('CHANGELOG'):  # these tell of what was
            check_names(doc, text, repo)
        run_document(doc, text, root, tool, a.v)
    if a.only == '*':
        check_comments(repo)
        check_members(repo)
        if 'docs/runtimes.md' in repo.files:  # not in a document of a test
            check_json(repo, tool, root)
            check_modules(repo)
    for text in problems:
        print(text)
    print(f'{counts["documents"]} documents: {counts["ran"]} blocks of commands ran, of which {counts["compared"]} were compared; '
          f'{counts["skipped"]} skipped; {counts["links"]} links, {counts["paths"]} paths, {counts["options"]} options, '
          f'{counts["targets"]} targets, {counts["comments"]} documents in sources, {counts["members"]} members, {counts["modules"]} modules')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
