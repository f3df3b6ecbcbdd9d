"""Where HotSpot's structures have their fields: the table that the library has for debuggers."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.target import Target
    from nptltrace.trace.code.modules import Module

__all__ = ["JVM", "fields_of"]

JVM = "libjvm.so"
# The tables of fields and of types: how far apart entries are, and where in one its parts are.
_FIELD = ("TypeNameOffset", "FieldNameOffset", "IsStaticOffset", "OffsetOffset", "AddressOffset")
_STRUCTS = ("gHotSpotVMStruct", _FIELD)
_TYPES = ("gHotSpotVMType", ("TypeNameOffset", "SizeOffset"))
_ENTRIES = 1 << 13
_STRINGS = 1 << 23
_NAME_MAX = 128


def fields_of(process: Target, module: Module, names: Names) -> dict[tuple[str, str], int]:
    """Return offsets of fields by type and name; of static ones, their addresses.

    Under a type alone, with no name, stands its size.

    Args:
        process: A process that runs Java.
        module: Its `libjvm.so`.
        names: Names for what lies in it.
    """
    found = [
        (kind, field, address if static & 1 else offset)
        for kind, field, static, offset, address in _entries(process, module, names, _STRUCTS)
    ]
    sizes = [(kind, size) for kind, size in _entries(process, module, names, _TYPES)]
    texts = [at for kind, field, _ in found for at in (kind, field)]
    strings = _Strings(process, texts + [kind for kind, _ in sizes])
    known = {(strings.at(kind), ""): size for kind, size in sizes}
    return known | {(strings.at(kind), strings.at(field)): value for kind, field, value in found}


def _entries(
    process: Target, module: Module, names: Names, table: tuple[str, tuple[str, ...]]
) -> Iterator[list[int]]:
    """Yield the parts of each entry of a table, the first of which is never 0."""
    name, parts = table
    stride, *places = (
        _word(process, names.exported(module, f"{name}Entry{part}").start)
        for part in ("ArrayStride", *parts)
    )
    begin = _word(process, names.exported(module, f"{name}s").start)
    if not begin or not stride or stride & 7:
        return
    data = process.read(begin, _ENTRIES * stride)
    for at in range(0, len(data) - stride + 1, stride):
        words = [int.from_bytes(data[at + place : at + place + 8], "little") for place in places]
        if not words[0]:
            return
        yield words


class _Strings:
    """Texts that are near one another, read at once.

    Args:
        process: Whose they are.
        addresses: Where they begin.
    """

    def __init__(self, process: Target, addresses: list[int]) -> None:
        self._begin = min(addresses, default=0)
        size = max(addresses, default=0) + _NAME_MAX - self._begin
        self._data = process.read(self._begin, size) if size <= _STRINGS else b""

    def at(self, address: int) -> str:
        """Return the text at an address."""
        begin = address - self._begin
        end = self._data.find(b"\0", begin, begin + _NAME_MAX)
        return self._data[begin:end].decode("ascii", "replace") if end >= 0 else ""


def _word(process: Target, address: int) -> int:
    data = process.read(address, 8) if address else b""
    return int(struct.unpack("<Q", data)[0]) if len(data) == 8 else 0  # noqa: PLR2004 -- a word
