"""Read the interface of a SPIR-V module: bindings, specialisation constants, push constants.

The layout and the opcodes are those of the SPIR-V specification, sections 2.3 and 3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_MAGIC = 0x07230203
_SPEC_ID, _BINDING, _OFFSET = 1, 33, 35
_UNIFORM_CONSTANT, _PUSH_CONSTANT = 0, 9


class _Op:
    MEMBER_NAME = 6
    TYPE_INT = 21
    TYPE_FLOAT = 22
    TYPE_STRUCT = 30
    TYPE_POINTER = 32
    VARIABLE = 59
    DECORATE = 71
    MEMBER_DECORATE = 72


@dataclass(frozen=True)
class Reflection:
    """The declarations of a module.

    `bindings` maps numbers to `storage buffer` or `texel buffer`; `push` lists (name, offset, type).
    """

    bindings: dict[int, str]
    constants: frozenset[int]
    push: tuple[tuple[str, int, str], ...]


def _instructions(code: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    words = struct.unpack(f"<{len(code) // 4}I", code)
    if not words or words[0] != _MAGIC:
        raise ValueError("not a SPIR-V module")
    position = 5
    while position < len(words):
        length, opcode = words[position] >> 16, words[position] & 0xFFFF
        yield opcode, words[position + 1 : position + length]
        position += length


def _text(words: tuple[int, ...]) -> str:
    return struct.pack(f"<{len(words)}I", *words).split(b"\0")[0].decode()


def reflect(code: bytes) -> Reflection:
    """Return the declarations of a module. Raises ValueError if the bytes are no SPIR-V module."""
    binding_of: dict[int, int] = {}
    constants: set[int] = set()
    names: dict[tuple[int, int], str] = {}
    offsets: dict[tuple[int, int], int] = {}
    scalars: dict[int, str] = {}
    structs: dict[int, tuple[int, ...]] = {}
    pointers: dict[int, tuple[int, int]] = {}
    variables: list[tuple[int, int]] = []
    for opcode, operands in _instructions(code):
        match opcode:
            case _Op.MEMBER_NAME:
                names[operands[0], operands[1]] = _text(operands[2:])
            case _Op.TYPE_INT:
                scalars[operands[0]] = "int" if operands[2] else "uint"
            case _Op.TYPE_FLOAT:
                scalars[operands[0]] = "float"
            case _Op.TYPE_STRUCT:
                structs[operands[0]] = operands[1:]
            case _Op.TYPE_POINTER:
                pointers[operands[0]] = (operands[1], operands[2])
            case _Op.VARIABLE:
                variables.append((operands[1], operands[0]))
            case _Op.DECORATE if operands[1] == _SPEC_ID:
                constants.add(operands[2])
            case _Op.DECORATE if operands[1] == _BINDING:
                binding_of[operands[0]] = operands[2]
            case _Op.MEMBER_DECORATE if operands[2] == _OFFSET:
                offsets[operands[0], operands[1]] = operands[3]
    bindings: dict[int, str] = {}
    push: tuple[tuple[str, int, str], ...] = ()
    for variable, pointer in variables:
        storage, pointee = pointers[pointer]
        if variable in binding_of:
            bindings[binding_of[variable]] = "texel buffer" if storage == _UNIFORM_CONSTANT else "storage buffer"
        elif storage == _PUSH_CONSTANT:
            members = enumerate(structs[pointee])
            push = tuple((names[pointee, i], offsets[pointee, i], scalars[member]) for i, member in members)
    return Reflection(bindings, frozenset(constants), push)
