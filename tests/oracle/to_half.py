#!/usr/bin/env python3
"""Writes a float32 model with float16 or bfloat16 in place of float32.

  to_half.py [--bfloat16] MODEL.onnx OUT.onnx
Weights, inputs, outputs, constants and Casts change their type; scales and regions of Resize, which are float32 whatever it resizes, do
not. Subgraphs alike. What else asks for float32 is not looked at: the checker says whether the result is a model.
"""
import argparse

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

FLOAT32_INPUTS = {'Resize': (1, 2), 'Upsample': (1,)}


def converted(tensor, to):
    if tensor.data_type != TensorProto.FLOAT:
        return tensor
    values = numpy_helper.to_array(tensor).astype(np.float32)
    out = TensorProto(name=tensor.name, data_type=to, dims=tensor.dims)
    if to == TensorProto.FLOAT16:
        out.raw_data = values.astype(np.float16).tobytes()
    else:
        bits = values.view(np.uint32)
        out.raw_data = ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16).tobytes()
    return out


def convert(graph, to, kept=frozenset()):
    kept = set(kept) | {n.input[k] for n in graph.node for k in FLOAT32_INPUTS.get(n.op_type, ()) if k < len(n.input)}
    for tensor in graph.initializer:
        if tensor.name not in kept:
            tensor.CopyFrom(converted(tensor, to))
    for value in [*graph.input, *graph.output]:
        kind = value.type.tensor_type
        if value.name not in kept and kind.elem_type == TensorProto.FLOAT:
            kind.elem_type = to
    del graph.value_info[:]
    for node in graph.node:
        for attr in node.attribute:
            if attr.type == onnx.AttributeProto.GRAPH:
                convert(attr.g, to, kept)
            if attr.type == onnx.AttributeProto.TENSOR and node.output[0] not in kept:
                attr.t.CopyFrom(converted(attr.t, to))
            if node.op_type == 'Cast' and attr.name == 'to' and attr.i == TensorProto.FLOAT:
                attr.i = to


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--bfloat16', action='store_true')
    ap.add_argument('model')
    ap.add_argument('out')
    a = ap.parse_args()
    model = onnx.load(a.model)
    convert(model.graph, TensorProto.BFLOAT16 if a.bfloat16 else TensorProto.FLOAT16)
    onnx.checker.check_model(model)
    onnx.save(model, a.out)


if __name__ == '__main__':
    main()
