"""Where HotSpot's structures have their fields: the table that the library has for debuggers."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.target import Target
    from nptltrace.trace.symbols.places.module_table import Module

__all__ = ["JVM", "fields_of"]

JVM = "libjvm.so"
_TABLE = "gHotSpotVMStructs"
# How far apart entries are, and where in one its parts are.
_LAYOUT = tuple(
    f"gHotSpotVMStructEntry{part}"
    for part in ("ArrayStride", "TypeNameOffset", "FieldNameOffset", "IsStaticOffset",
                 "OffsetOffset", "AddressOffset")
)  # fmt: skip
_ENTRIES = 1 << 13
_STRINGS = 1 << 23
_NAME_MAX = 128


def fields_of(process: Target, module: Module, names: Names) -> dict[tuple[str, str], int]:
    """Return offsets of fields by type and name; of static ones, their addresses.

    Args:
        process: A process that runs Java.
        module: Its `libjvm.so`.
        names: Names for what lies in it.
    """
    stride, kind, field, static, offset, address = (
        _word(process, names.exported(module, name).start) for name in _LAYOUT
    )
    table = _word(process, names.exported(module, _TABLE).start)
    if not table or not stride or stride & 7:
        return {}
    data = process.read(table, _ENTRIES * stride)
    found: list[tuple[int, int, int]] = []
    for at in range(0, len(data) - stride + 1, stride):
        type_at, field_at, static_at, offset_at, address_at = (
            int.from_bytes(data[at + part : at + part + 8], "little")
            for part in (kind, field, static, offset, address)
        )
        if not type_at:
            break
        found.append((type_at, field_at, address_at if static_at & 1 else offset_at))
    texts = [at for type_at, field_at, _ in found for at in (type_at, field_at)]
    strings = _Strings(process, texts)
    return {(strings.at(one), strings.at(other)): value for one, other, value in found}


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
