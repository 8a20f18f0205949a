#!/usr/bin/env python3
"""What simplifiers, checkers and passes of other projects do with tiled models.

  other_tools.py --tool TOOL [--goal memory] [--only NAME,...] [--measure] MODEL [INPUT=D,D,...]...

Each model is tiled; then each tool reads the result in a process of its own, and ONNX Runtime loads what the tool writes. The packages are
those of scripts/requirements-tools.txt. Prints one line for each model and tool: ok, or the last line of the failure. Exit 1: a tool fails on
the tiled model and not on the given one.

--measure runs what each tool writes: outputs against the tiled model's (normalised mean square error), and the whole process of ONNX
Runtime, one thread, two runs: of the model, of the tiled one, and after the tool.
"""
import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile

from compare import Side, error_of

LOADS = '''
import sys
F, O = sys.argv[1:]
def loads(path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    onnxruntime.InferenceSession(path, options)
'''
TOOLS = {
    'onnx.checker': 'import onnx; onnx.checker.check_model(F, full_check=True)',
    'onnx.shape_inference': 'import onnx; onnx.shape_inference.infer_shapes(onnx.load(F), strict_mode=True, data_prop=True)',
    'onnx.version_converter': '''
import onnx, onnx.version_converter as v
m = onnx.load(F)
opset = next(x.version for x in m.opset_import if not x.domain)
onnx.save(v.convert_version(m, opset + 1), O); loads(O)''',
    'onnxoptimizer': 'import onnx, onnxoptimizer; onnx.save(onnxoptimizer.optimize(onnx.load(F)), O); loads(O)',
    'onnxsim': 'import onnx, onnxsim; m, same = onnxsim.simplify(onnx.load(F)); onnx.save(m, O); assert same; loads(O)',
    'onnxslim': 'import onnx, onnxslim; onnx.save(onnxslim.slim(F), O); loads(O)',
    'onnx_ir': '''
import onnx_ir, onnx_ir.passes.common as c
m = onnx_ir.load(F)
for p in (c.RemoveUnusedNodesPass, c.CommonSubexpressionEliminationPass, c.LiftConstantsToInitializersPass, c.IdentityEliminationPass,
          c.TopologicalSortPass, c.NameFixPass, c.ShapeInferencePass, c.InlinePass, c.RemoveUnusedOpsetsPass):
    m = p()(m).model
onnx_ir.save(m, O); loads(O)''',
    **{f'onnxruntime {level}': f'''
import onnxruntime as r
o = r.SessionOptions(); o.log_severity_level = 3; o.optimized_model_filepath = O
o.graph_optimization_level = r.GraphOptimizationLevel.ORT_{level}
r.InferenceSession(F, o); loads(O)''' for level in ('DISABLE_ALL', 'ENABLE_BASIC', 'ENABLE_EXTENDED', 'ENABLE_ALL')},
    'Olive': '''
import os
from olive.hardware import DEFAULT_CPU_ACCELERATOR as cpu
from olive.model import ONNXModelHandler as Model
from olive.passes.olive_pass import create_pass_from_dict as made
from olive.passes.onnx.peephole_optimizer import OnnxPeepholeOptimizer as Pass
import onnx
d = O + '.olive'
r = made(Pass, {}, disable_search=True, accelerator_spec=cpu).run(Model(F), d)
onnx.save(onnx.load(r.model_path), O); loads(O)''',
}
NEEDS = {'Olive': 'olive', 'onnx_ir': 'onnx_ir', 'onnxoptimizer': 'onnxoptimizer', 'onnxsim': 'onnxsim', 'onnxslim': 'onnxslim'}


def tried(code, path, then=None):
    """None, or the last line of the failure. The result lies beside the model, where the files of its weights are; then(RESULT) is called
    where there is one."""
    with tempfile.NamedTemporaryFile(suffix='.onnx', dir=os.path.dirname(path)) as out:
        r = subprocess.run([sys.executable, '-c', LOADS + code, path, out.name], capture_output=True, text=True, cwd=os.path.dirname(path))
        if r.returncode == 0 and then and os.path.getsize(out.name):
            then(out.name)
    lines = [line for line in r.stderr.splitlines() if line.strip()]
    return None if r.returncode == 0 else (lines[-1] if lines else f'exit {r.returncode}')[:160]


def whole(path, shapes, outputs):
    """MB that the process of ONNX Runtime holds at the most, from before it loads the model; the outputs go to a file."""
    side = Side(model=path, shapes=shapes, seed=0, threads=1, whole=True, outputs=outputs)
    try:
        return max(side.loaded['loading_mb'], *(side.run()['process_mb'] for _ in range(2)))
    finally:
        side.close()


class Measured:
    """The given and the tiled model, run once; of what a tool writes: its line."""

    def __init__(self, given, tiled, shapes, folder):
        self.shapes, self.folder = shapes, folder
        self.outputs = os.path.join(folder, 'tiled.npz')
        self.given, self.tiled = whole(given, shapes, os.path.join(folder, 'given.npz')), whole(tiled, shapes, self.outputs)
        self.line = ''

    def __call__(self, path):
        mine = os.path.join(self.folder, 'mine.npz')
        try:
            mb = whole(path, self.shapes, mine)
        except RuntimeError as e:
            self.line = f'\tdoes not run: {str(e)[:120]}'
            return
        self.line = f'\tNMSE {error_of(self.outputs, mine):.1e}\t{self.given:.0f} -> {self.tiled:.0f} -> {mb:.0f} MB'


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--tool', required=True)
    a.add_argument('--goal', default='memory')
    a.add_argument('--only', default='', help='names of tools, with commas')
    a.add_argument('--measure', action='store_true')
    a.add_argument('model')
    a.add_argument('shapes', nargs='*')
    a = a.parse_args()
    only = [name for name in a.only.split(',') if name]
    if set(only) - set(TOOLS):
        a.error('--only: one of ' + ', '.join(TOOLS))
    worse = 0
    with tempfile.TemporaryDirectory() as d:
        tiled, shapes = os.path.join(d, 'tiled.onnx'), [x for s in a.shapes for x in ('--shape', s)]
        subprocess.run([a.tool, a.model, '-o', tiled, '--goal', a.goal, '-q', *shapes], check=True)
        fed = {name: [int(x) for x in dims.split(',')] for name, dims in (s.rsplit('=', 1) for s in a.shapes)}
        measured = Measured(os.path.abspath(a.model), tiled, fed, d) if a.measure else None
        for name, code in TOOLS.items():
            if only and name not in only or importlib.util.find_spec(NEEDS.get(name, 'onnx')) is None:
                continue
            if measured:
                measured.line = ''
            found = tried(code, tiled, measured)
            before = tried(code, os.path.abspath(a.model)) if found else None
            worse += found is not None and before is None
            print(f'{os.path.basename(a.model)}\t{name}\t{found or "ok"}{"; the given model: " + before if before else ""}'
                  f'{measured.line if measured else ""}', flush=True)
    sys.exit(worse > 0)


if __name__ == '__main__':
    main()
