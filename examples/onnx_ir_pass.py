#!/usr/bin/env python3
"""Tiling as the last pass of a pipeline of onnx_ir: onnx_ir_pass.py MODEL OUT"""
import sys

import onnx_ir
from onnx_ir.passes.common import CommonSubexpressionEliminationPass, DeduplicateInitializersPass

from onnx_tile.ir import TilePass

before, after = sys.argv[1:]
tiling = TilePass(goal="memory")
pipeline = onnx_ir.passes.Sequential(CommonSubexpressionEliminationPass(), DeduplicateInitializersPass(), tiling)
onnx_ir.save(pipeline(onnx_ir.load(before)).model, after)
print(tiling.result)
