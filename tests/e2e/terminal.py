"""What the program writes to a terminal. terminal.py TOOL FOLDER"""
import fcntl
import glob
import os
import pty
import re
import struct
import subprocess
import sys
import termios

from builder import Net, save

tool, folder = sys.argv[1:]
BAR, RED, WIPE = b'\r\x1b[Konnx-tile: ', b'\x1b[1;31m', b'\r\x1b[K'


def on_terminal(words, shows_results=False, columns=0, **env):
    """What the program writes to a terminal that is its standard error; shows_results: and its standard output."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    p = subprocess.Popen([tool, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=follower if shows_results else subprocess.DEVNULL, stderr=follower,
                         env={k: v for k, v in {**os.environ, 'TERM': 'xterm', 'NO_COLOR': '', **env}.items()})
    os.close(follower)
    text = b''
    while True:
        try:
            more = os.read(leader, 65536)
        except OSError:     # the other side is closed
            more = b''
        if not more:
            break
        text += more
    os.close(leader)
    p.wait()
    return text


work, wrong = ['vgg16_head.onnx', '-o', 't.onnx'], ['--goal', 'speed']
text = on_terminal(work)
assert BAR in text and text.endswith(WIPE), text
assert b'onnx-tile: ' + RED + b'error:\x1b[0m --goal' in on_terminal(wrong)
assert BAR in on_terminal(work, NO_COLOR='1')
plain = on_terminal(wrong, NO_COLOR='1')
assert plain.startswith(b'onnx-tile: error: --goal') and b'\x1b' not in plain, plain
for words in (work, wrong, work + ['-q']):
    assert b'\x1b' not in on_terminal(words, TERM='dumb'), words
assert on_terminal(work + ['-q']) == b''
assert b'\x1b' not in subprocess.run([tool, *work], cwd=folder, capture_output=True, check=True).stderr

# who names no goal, and looks on, is told what the other one would give
HINT = b'--goal memory would take a process of '
gains = ['fsrcnn.onnx', '-o', 't.onnx', '--target', 'cpu-generic']
assert HINT in on_terminal(gains, shows_results=True)
assert HINT not in on_terminal(gains)
for words in ([*gains, '--goal', 'time'], [*gains, '--goal', 'memory'], [*gains, '-q'], [*gains, '--json'], [*gains, '--memory-budget', '2G']):
    assert HINT not in on_terminal(words, shows_results=True), words

# lines keep to the terminal's, but for words and for commands to copy; what goes to a file keeps its lines
ESCAPES = re.compile(r'\x1b\[[0-9;]*[A-Za-z]')
COMMANDS = (['inspect', 'fsrcnn.onnx', '--goal', 'memory', '--target', 'cpu-generic'], ['explain', 'fsrcnn.onnx'], [*gains, '--goal', 'memory'],
            ['inspect', 'vgg16_head.onnx', '--target', 'mcu-512k', '--goal', 'memory'], ['run', 'vgg16_head.onnx'], ['devices'],
            ['bench', 'vgg16_head.onnx', '--repeat', '1'], ['--list-targets'], ['plan-memory', 'gemm.tk', '--footprint', '-o', 'planned.tk'])


def result_lines(words, columns):
    text = on_terminal(words, shows_results=True, columns=columns).decode().replace('\r\n', '\n')
    return [ESCAPES.sub('', line.rsplit('\r', 1)[-1]) for line in text.split('\n')]


for words in COMMANDS:
    for columns in (80, 60):
        for line in result_lines(words, columns):
            left = line.strip()
            assert len(line) <= columns or ' ' not in left or left.startswith('onnx-tile '), (words, columns, line)
    if words[0] in ('inspect', 'explain'):
        wide = [line for line in result_lines(words, 400) if line]
        assert wide == [line for line in subprocess.run([tool, *words], cwd=folder, capture_output=True, text=True).stdout.split('\n') if line], words
assert any('benefit' in line for line in result_lines(COMMANDS[0], 400))
narrow = result_lines(COMMANDS[0], 80)
assert not any('benefit' in line for line in narrow) and any(re.match(r' {10}\d+ nodes?, .* \.\. .*$', line) for line in narrow), narrow


# ---- names of strangers ----

BAD = '\x1b]0;owned\x07\x1b[31m\r\n\x7f\u009b1m\u202eab\u2066c\u061c\u200fd\u2028'
# what would drive a terminal, but for the end of a line
DRIVES = re.compile(r'[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]')
# what of BAD starts a line of its own
FORGED = re.compile(r'^\x7f?.?\u009b?1m', re.M)


def hostile():
    """A model in which every name is hostile, and what it names as an operator of another domain."""
    net = Net(1)
    at, w = net.input(BAD + 'x', ['n', 8, 128, 128]), net.const(net.rng.normal(0, .1, (8, 8, 3, 3)), name=BAD + 'w')
    for k in range(6):
        at = net.op('Conv', at, w, out=f'{BAD}c{k}', name=f'{BAD}conv{k}', pads=[1] * 4)
        at = net.op('Relu', at, out=f'{BAD}r{k}', name=f'{BAD}relu{k}')
    net.output(net.op('CumSum', at, net.const(2, 'i8', name=BAD + 'axis'), out=BAD + 'y', name=BAD + 'sum'))
    return net.model()


os.chdir(folder)
path = save(hostile(), 'm\x1b[31m\u202e\u2066\n.onnx')
SHAPE = ['--shape', BAD + 'x=1,8,128,128']
for words in (['inspect', path], ['inspect', path, *SHAPE, '--target', 'mcu-512k'], ['explain', path], ['explain', path, *SHAPE],
              ['run', path, *SHAPE, '-v'], ['bench', path, *SHAPE, '--repeat', '1'], ['gate', path, '--max-peak', '1G'],
              ['inspect', path, *SHAPE, '-d', 'ICSARWDGTLMPX'], ['inspect', path, *SHAPE, '--goal', 'memory', '-d', 'CP'],
              ['gate', path, '--max-peak', '1'], [path, '-o', 't.onnx', *SHAPE, '--force', '--dump-dir', 'dump', '-v'],
              ['inspect', path, '--target', 'mcu-512k', '--report', 'r\x1b.xml'], ['gate', 'r\x1b.xml', '--max-peak', '1']):
    done = subprocess.run([tool, *words], capture_output=True)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode in (0, 3) and said, (words, said)
    assert not DRIVES.search(said) and not FORGED.search(said), (words, said)
dumped = glob.glob('dump/*.tk')
assert dumped
for name in dumped:
    assert not DRIVES.search(open(name).read()), name
