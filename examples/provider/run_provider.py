#!/usr/bin/env python3
"""Example: a model as it is, in ONNX Runtime on the provider.

  run_provider.py MODEL.onnx [time|memory]

Inputs are random (dimensions that the model leaves free are 64). Prints how far the outputs are from those of ONNX Runtime alone.
"""
import sys

import numpy as np
import onnxruntime

import onnx_tile


def main():
    path, goal = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "memory"
    options = onnx_tile.add_ep(onnxruntime.SessionOptions(), goal=goal, threads=1)
    session = onnxruntime.InferenceSession(path, options)
    alone = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    feeds = {v.name: rng.random([d if isinstance(d, int) else 64 for d in v.shape], np.float32) for v in session.get_inputs()}
    for v, y, want in zip(session.get_outputs(), session.run(None, feeds), alone.run(None, feeds)):
        print(f"{v.name}: {list(y.shape)}, at most {np.abs(y - want).max():.1e} apart, of {np.abs(want).max():.3g}")


if __name__ == "__main__":
    main()
