"""What random graphs are judged by: running the tool, and when two arrays are the same."""
import os
import pickle
import subprocess
import sys
import traceback

import numpy as np

LIMIT_S = 60


class Failed(Exception):
    pass


def run_tool(tool, words):
    """(exit status, what it said on stderr); raises Failed when it takes too long."""
    try:
        p = subprocess.run([tool, *words], capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        raise Failed(f'the tool takes more than {LIMIT_S} s: {" ".join(words)}') from None
    return p.returncode, p.stderr.strip()


def tile(tool, model_path, out, args, bound):
    """Tile a model; the command. bound: inputs whose dimensions the file leaves open."""
    words = [model_path, '-o', out, '-q', *args]
    for v in bound:
        words += ['--shape', f'{v.name}={",".join(map(str, v.shape))}']
    status, said = run_tool(tool, words)
    if status != 0:
        raise Failed(f'the tool exits {status}: {said[-600:]}')
    return [tool, *words]


def nmse(a, b):
    """Normalised mean square difference of what is finite in both."""
    x, y = a.astype('f8'), b.astype('f8')
    both = np.isfinite(x) & np.isfinite(y)
    return ((x[both] - y[both]) ** 2).sum() / max((x[both] ** 2).sum(), 1e-30)


def difference(a, b):
    """'' or what differs between two arrays."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return f'{a.dtype}{list(a.shape)} became {b.dtype}{list(b.shape)}'
    if a.dtype.kind != 'f':
        return '' if np.array_equal(a, b) else f'{int((a != b).sum())} of {a.size} elements differ'
    odd = ~np.isfinite(a)
    if not np.array_equal(odd, ~np.isfinite(b)) or not np.array_equal(a[odd], b[odd], equal_nan=True):
        return 'NaN or infinity in other places'
    x, y = a[~odd].astype('f8'), b[~odd].astype('f8')
    if not x.size:
        return ''
    top, err = np.abs(x).max(), np.abs(x - y).max()
    off = nmse(x, y)
    return '' if off <= 1e-8 and err <= 1e-3 * max(top, 1e-6) else f'NMSE {off:.1e}, error {err:.2e} of {top:.2e}'


def differences(names, want, got):
    """'' or the first output that is not as wanted."""
    for name, a, b in zip(names, want, got, strict=True):
        why = difference(a, b)
        if why:
            return f'output {name}: {why}'
    return ''


def apart(work):
    """(what work(say) returns, what it said last, the signal that ended it or 0), in a process of its own: a crash of the runtime takes nothing
    else with it. What it returns is None where it crashed. Call before any session is made here: threads do not survive a fork."""
    back, there = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(back)
        status = 1
        try:
            with os.fdopen(there, 'wb') as pipe:
                def say(word):
                    pickle.dump(('said', word), pipe)
                    pipe.flush()
                pickle.dump(('result', work(say)), pipe)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    os.close(there)
    heard = {'result': None, 'said': ''}
    with os.fdopen(back, 'rb') as pipe:
        while True:
            try:
                kind, what = pickle.load(pipe)
            except EOFError:
                break
            heard[kind] = what
    _, ended = os.waitpid(child, 0)
    if os.WIFEXITED(ended) and os.WEXITSTATUS(ended):
        raise RuntimeError('the child process failed: see above')
    return heard['result'], heard['said'], os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else 0
