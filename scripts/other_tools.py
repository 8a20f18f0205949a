#!/usr/bin/env python3
"""What simplifiers, checkers and passes of other projects do with tiled models.

  other_tools.py --tool TOOL [--goal memory] MODEL [INPUT=D,D,...]...

Each model is tiled; then each tool reads the result in a process of its own, and ONNX Runtime loads what the tool writes. The packages are
those of scripts/requirements-tools.txt. Prints one line for each model and tool: ok, or the last line of the failure. Exit 1: a tool fails on
the tiled model and not on the given one.
"""
import argparse
import os
import subprocess
import sys
import tempfile

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
    'onnxsim': 'import onnx, onnxsim; m, same = onnxsim.simplify(F); onnx.save(m, O); assert same; loads(O)',
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
}


def tried(code, path):
    """None, or the last line of the failure. The result lies beside the model, where the files of its weights are."""
    with tempfile.NamedTemporaryFile(suffix='.onnx', dir=os.path.dirname(path)) as out:
        r = subprocess.run([sys.executable, '-c', LOADS + code, path, out.name], capture_output=True, text=True, cwd=os.path.dirname(path))
    lines = [line for line in r.stderr.splitlines() if line.strip()]
    return None if r.returncode == 0 else (lines[-1] if lines else f'exit {r.returncode}')[:160]


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--tool', required=True)
    a.add_argument('--goal', default='memory')
    a.add_argument('model')
    a.add_argument('shapes', nargs='*')
    a = a.parse_args()
    worse = 0
    with tempfile.TemporaryDirectory() as d:
        tiled, shapes = os.path.join(d, 'tiled.onnx'), [x for s in a.shapes for x in ('--shape', s)]
        subprocess.run([a.tool, a.model, '-o', tiled, '--goal', a.goal, '-q', *shapes], check=True)
        for name, code in TOOLS.items():
            found = tried(code, tiled)
            before = tried(code, os.path.abspath(a.model)) if found else None
            worse += found is not None and before is None
            print(f'{os.path.basename(a.model)}\t{name}\t{found or "ok"}{"; the given model: " + before if before else ""}', flush=True)
    sys.exit(worse > 0)


if __name__ == '__main__':
    main()
