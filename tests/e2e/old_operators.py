"""What old_operators.sh has in Python."""
import numpy as np
import onnx

from checks import outputs
from command_line import commands


def view(path):
    """An integer constant of opset 7 is a Constant and a Cast; the view is right."""
    m = onnx.load(path)
    onnx.checker.check_model(m, full_check=True)
    assert [n.op_type for n in m.graph.node] == ['Constant', 'Cast', 'Reshape'], m.graph.node
    assert m.ir_version == 3 and len(m.graph.input) == 1
    x = np.arange(12, dtype='f4').reshape(2, 6)
    y, = outputs(path, {'x': x})
    assert np.array_equal(y, x.reshape(3, 4))


if __name__ == '__main__':
    commands(view)
