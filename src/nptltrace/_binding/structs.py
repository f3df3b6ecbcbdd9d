"""C structs in the memory of others: their sizes, and copies from and to bytes."""

from __future__ import annotations

import ctypes
from typing import TypeVar

__all__ = ["Struct", "put", "size_of", "struct_of"]

Struct = ctypes.Structure
_Struct = TypeVar("_Struct", bound=ctypes.Structure)


def size_of(kind: type[Struct]) -> int:
    """Return the size of a struct in bytes."""
    return ctypes.sizeof(kind)


def struct_of(kind: type[_Struct], data: bytes, at: int = 0) -> _Struct:
    """Return a copy of the struct at an offset.

    Raises:
        ValueError: There are too few bytes.
    """
    return kind.from_buffer_copy(data, at)


def put(data: bytearray, at: int, value: Struct) -> None:
    """Copy a struct to an offset."""
    data[at : at + ctypes.sizeof(value)] = bytes(value)
