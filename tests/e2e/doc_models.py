#!/usr/bin/env python3
"""A model for commands of the documents: one of models/make_models.py in small, with dynamic height and width and an input of a given name.

  doc_models.py MODEL OUT.onnx [--input NAME] [--static] [--feeds X.npy]

--feeds also writes random numbers for the input, of the shape that the model has before it is made dynamic.
"""
import argparse
import os
import sys

import numpy as np
import onnx

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'models'))
import make_models  # noqa: E402


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('model')
    p.add_argument('out')
    p.add_argument('--input', default='input')
    p.add_argument('--static', action='store_true')
    p.add_argument('--feeds')
    a = p.parse_args()
    m = make_models.build(a.model, small=True)
    first = m.graph.input[0]
    old, first.name = first.name, a.input
    for n in m.graph.node:
        n.input[:] = [a.input if i == old else i for i in n.input]
    dims = [d.dim_value for d in first.type.tensor_type.shape.dim]
    if a.feeds:
        np.save(a.feeds, np.random.default_rng(0).standard_normal(dims, np.float32))
    if not a.static:
        del m.graph.value_info[:]
        for v in [first, *m.graph.output]:
            for k, d in enumerate(v.type.tensor_type.shape.dim[2:]):
                d.dim_param = f'{"" if v is first else "out_"}{"hw"[k]}'
    onnx.save(m, a.out)


if __name__ == '__main__':
    main()
