"""What the program writes to a terminal. terminal.py TOOL FOLDER"""
import os
import pty
import subprocess
import sys

tool, folder = sys.argv[1:]
BAR, RED, WIPE = b'\r\x1b[Konnx-tile: ', b'\x1b[1;31m', b'\r\x1b[K'


def on_terminal(words, **env):
    """What the program writes to a terminal that is its standard error."""
    leader, follower = pty.openpty()
    p = subprocess.Popen([tool, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=follower,
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
