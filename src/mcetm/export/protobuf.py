"""ONNX's file format, as far as networks need it: an export should not ask for a package to write it with.

A message is a run of fields, each a number, a wire type and a value (protobuf.dev, "Encoding"). The numbers
of the fields are those of onnx.proto; opset 17, which every runtime of the last years reads.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

_OPSET, _IR_VERSION = 17, 8
_KINDS = {"float32": 1, "int64": 7}
_INTEGER, _INTEGERS = 2, 7  # kinds of attributes


class Graph:
    """Nodes and constants, in the order in which they are added."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._numbers = itertools.count()

    def add(self, op: str, *inputs: str, to: str | None = None, **attributes: Any) -> str:
        """A node with one output; the name of that."""
        name = to or f"{op.lower()}_{next(self._numbers)}"
        fields = [_field(1, one) for one in inputs] + [_field(2, name), _field(3, f"node_{name}")]
        fields += [_field(4, op), *(_field(5, _attribute(key, value)) for key, value in attributes.items())]
        self._nodes.append(b"".join(fields))
        return name

    def constant(self, value: Any, name: str | None = None) -> str:
        """A constant of single precision; of integers where they are."""
        array = np.asarray(value)
        array = array.astype("<i8" if array.dtype.kind in "iu" else "<f4")
        name = name or f"constant_{next(self._numbers)}"
        shape = b"".join(_field(1, n) for n in array.shape)
        kind = _field(2, _KINDS[array.dtype.name])
        self._constants.append(shape + kind + _field(8, name) + _field(9, array.tobytes()))
        return name

    def model(
        self,
        name: str,
        inputs: Mapping[str, tuple[str | int, ...]],
        outputs: Mapping[str, tuple[str | int, ...]],
        *,
        metadata: Mapping[str, str],
        producer: tuple[str, str],
    ) -> bytes:
        """The file; a text in a shape is the name of a width that is open."""
        graph = [_field(1, node) for node in self._nodes] + [_field(2, name)]
        graph += [_field(5, constant) for constant in self._constants]
        graph += [_field(11, _value(key, shape)) for key, shape in inputs.items()]
        graph += [_field(12, _value(key, shape)) for key, shape in outputs.items()]
        model = [_field(1, _IR_VERSION), _field(2, producer[0]), _field(3, producer[1])]
        model += [_field(7, b"".join(graph)), _field(8, _field(1, "") + _field(2, _OPSET))]
        model += [_field(14, _field(1, key) + _field(2, text)) for key, text in metadata.items()]
        return b"".join(model)


def _attribute(name: str, value: int | list[int]) -> bytes:
    if isinstance(value, list):
        numbers = b"".join(_field(8, one) for one in value)
        return _field(1, name) + numbers + _field(20, _INTEGERS)
    return _field(1, name) + _field(3, value) + _field(20, _INTEGER)


def _value(name: str, shape: tuple[str | int, ...]) -> bytes:
    sizes = b"".join(_field(1, _field(2 if isinstance(n, str) else 1, n)) for n in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, _KINDS["float32"]) + _field(2, sizes)))


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # negative numbers are written as their two's complement
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
