"""Small networks of the tests, with seeded weights."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def conv_chain(height=256, width=256, channels=16, depth=4, rows=None):
    """x [1, 3, height, width] -> 3x3 convolutions with Relu -> y; its intermediates are larger than a small cache. rows: name of the
    height where it is free."""
    rng, nodes, weights, value, have = np.random.default_rng(7), [], [], "x", 3
    for k in range(depth):
        want = 3 if k + 1 == depth else channels
        w = (rng.standard_normal((want, have, 3, 3)) / (3 * np.sqrt(have))).astype(np.float32)
        weights.append(numpy_helper.from_array(w, f"w{k}"))
        nodes.append(helper.make_node("Conv", [value, f"w{k}"], [f"c{k}"], f"conv{k}", pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"c{k}"], ["y" if k + 1 == depth else f"r{k}"], f"relu{k}"))
        value, have = f"r{k}", want
    shape = [1, 3, rows or height, width]
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def typed():
    """Every type of element that a session takes, through Identity; a Shape, and a sum of two."""
    kinds = {"f4": TensorProto.FLOAT, "f8": TensorProto.DOUBLE, "i8": TensorProto.INT64, "i4": TensorProto.INT32,
             "u1": TensorProto.UINT8, "i1": TensorProto.INT8, "b1": TensorProto.BOOL}
    ins = [helper.make_tensor_value_info("in_" + k, t, ["n", 3]) for k, t in kinds.items()]
    outs = [helper.make_tensor_value_info("out_" + k, t, ["n", 3]) for k, t in kinds.items()]
    nodes = [helper.make_node("Identity", ["in_" + k], ["out_" + k], k) for k in kinds]
    graph = helper.make_graph(nodes, "typed", ins, outs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def gathered():
    """ids -> rows of a table; and the table's sums, which depend on no input."""
    table = numpy_helper.from_array(np.arange(20, dtype=np.float32).reshape(5, 4), "table")
    nodes = [helper.make_node("Gather", ["table", "ids"], ["rows"]), helper.make_node("ReduceSum", ["table"], ["sum"], keepdims=0)]
    graph = helper.make_graph(nodes, "gathered", [helper.make_tensor_value_info("ids", TensorProto.INT64, [3])],
                              [helper.make_tensor_value_info("rows", TensorProto.FLOAT, [3, 4]),
                               helper.make_tensor_value_info("sum", TensorProto.FLOAT, [])], [table])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def in_two(height=64, width=48, middle="SampleOp"):
    """Convolutions, something in between, a sum with what was before it, and convolutions. middle: an operator of ONNX Runtime's own domain
    which the engine does not have; "Softmax": over the means of the maps, and a product with that, which the engine has and does not tile."""
    model = conv_chain(height, width)
    graph = model.graph
    w = np.random.default_rng(8).standard_normal((16, 3, 3, 3)).astype(np.float32) / 5
    graph.initializer.append(numpy_helper.from_array(w, "w_last"))
    if middle == "Softmax":
        graph.node.extend([helper.make_node("GlobalAveragePool", ["y"], ["m"], "mean"), helper.make_node("Softmax", ["m"], ["e"], "middle", axis=1),
                           helper.make_node("Mul", ["y", "e"], ["g"], "product")])
    else:
        graph.node.append(helper.make_node(middle, ["y"], ["g"], "middle", domain="com.microsoft"))
        graph.value_info.append(helper.make_tensor_value_info("g", TensorProto.FLOAT, [1, 3, height, width]))
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    graph.node.extend([helper.make_node("Add", ["g", "y"], ["s"], "sum"),
                       helper.make_node("Conv", ["s", "w_last"], ["l0"], "last", pads=[1, 1, 1, 1]),
                       helper.make_node("Conv", ["l0", "w1"], ["l1"], "more", pads=[1, 1, 1, 1]),
                       helper.make_node("Relu", ["l1"], ["z"], "end")])
    graph.output[0].CopyFrom(helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 16, height, width]))
    return model


def rounded(*ends):
    """x, whose size is free, times a million and one less x times a million, as `ends` (operator, inputs, output) write it: "p", "m" are the
    products and "x" is what is left but for rounding."""
    weights = [numpy_helper.from_array(np.float32(v), n) for n, v in (("f", 1e6), ("g", 1000001.0), ("h", 1.5))]
    ops = [("Mul", ("x", "g"), "p"), ("Mul", ("x", "f"), "m"), *ends]
    nodes = [helper.make_node(op, list(ins), [out], f"n_{out}") for op, ins, out in ops]
    shape = ["n", 3, "h", "w"]
    graph = helper.make_graph(nodes, "rounded", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def broken():
    """A Conv whose weights have another number of channels than its input."""
    model = conv_chain(16, 16)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.zeros((16, 5, 3, 3), np.float32), "w0"))
    return model


def path_of(model, folder, name):
    """Write it; the path."""
    path = f"{folder}/{name}.onnx"
    onnx.save(model, path)
    return path
