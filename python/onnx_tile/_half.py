"""Does a model compute in half precision? Read from the file itself: the package `onnx` need not be there.

    ModelProto.graph = 7 -> GraphProto: node = 1, initializer = 5, input = 11, output = 12, value_info = 13
"""
import mmap
from typing import Iterator, Tuple, Union

_FLOAT16 = 10  # TensorProto.DataType
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Span = Tuple[int, int]
Data = Union[bytes, mmap.mmap]


def _varint(data: Data, at: int) -> Tuple[int, int]:
    """(value, what follows it)."""
    value = shift = 0
    while shift < 64:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    raise ValueError("a number without an end")


def _fields(data: Data, span: Span) -> Iterator[Tuple[int, Union[int, Span]]]:
    """(number, value) of a message's numbers, (number, place) of its texts and messages."""
    at, end = span
    while at < end:
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
        elif wire == _BYTES:
            n, at = _varint(data, at)
            yield number, (at, at + n)
            at += n
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        else:
            raise ValueError("no field of that kind")


def _inside(data: Data, span: Span, *path: int) -> Iterator[Union[int, Span]]:
    """What stands at a path of field numbers."""
    for number, value in _fields(data, span):
        if number != path[0]:
            continue
        if len(path) == 1:
            yield value
        elif isinstance(value, tuple):
            yield from _inside(data, value, *path[1:])


def _places(data: Data, span: Span, *path: int) -> Iterator[Span]:
    """The same of texts and messages alone."""
    for value in _inside(data, span, *path):
        if isinstance(value, tuple):
            yield value


def _graph_has_half(data: Data, graph: Span) -> bool:
    types = [_inside(data, graph, 5, 2)]  # initializer: data_type
    types += [_inside(data, graph, info, 2, 1, 1) for info in (11, 12, 13)]  # type: tensor_type: elem_type
    if any(value == _FLOAT16 for found in types for value in found):
        return True
    for attribute in _places(data, graph, 1, 5):  # node: attribute
        names = [data[a:b] for a, b in _places(data, attribute, 1)]
        if names == [b"to"] and _FLOAT16 in _inside(data, attribute, 3):  # a Cast
            return True
        if any(value == _FLOAT16 for value in _inside(data, attribute, 5, 2)):  # a Constant's tensor
            return True
        if any(_graph_has_half(data, body) for body in _places(data, attribute, 6)):
            return True
    return False


def computes_half(path: str) -> bool:
    """Whether a tensor that the file states, or what a Cast or Constant in it makes, is float16. False of what is no model."""
    try:
        with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return any(_graph_has_half(data, graph) for graph in _places(data, (0, len(data)), 7))
    except (ValueError, IndexError, TypeError):
        return False
