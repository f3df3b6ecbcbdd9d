"""Memory of the C libraries as NumPy arrays, and C structs from the bytes of other memory."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nptltrace._binding.handle import Handle

__all__ = ["Struct", "dtype_of", "put", "rows", "size_of", "struct_of"]

Struct = ctypes.Structure
_Struct = TypeVar("_Struct", bound=ctypes.Structure)


class _Table(Protocol):
    """A C struct that describes an array: address, number of items, bytes from item to item."""

    items: int | None
    count: int
    stride: int


@cache
def dtype_of(record: type[ctypes.Structure]) -> np.dtype[Any]:
    """Return the NumPy dtype of a struct, with the fields of nested structs as its own fields."""
    names: list[str] = []
    formats: list[Any] = []
    offsets: list[int] = []
    for name, kind, *_ in record._fields_:
        offset = getattr(record, name).offset
        if issubclass(kind, ctypes.Structure):
            inner = dtype_of(kind)
            fields: Any = inner.fields
            names += fields
            formats += [field[0] for field in fields.values()]
            offsets += [offset + field[1] for field in fields.values()]
        else:
            names.append(name)
            formats.append(np.dtype(kind))
            offsets.append(offset)
    layout: Any = {"names": names, "formats": formats, "offsets": offsets}
    layout["itemsize"] = ctypes.sizeof(record)
    dtype: np.dtype[Any] = np.dtype(layout, align=True)
    return dtype


def rows(owner: Handle, table: _Table, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a table of a C library as an array, without a copy.

    Args:
        owner: The handle of the object with the table. The array keeps the object alive.
        table: Where the table is.
        dtype: Type of an item.

    Returns:
        An array of shape (count,) and the given dtype.
    """
    if not table.items or not table.count:
        return np.empty(0, dtype)
    memory = (ctypes.c_uint8 * (table.count * table.stride)).from_address(table.items)
    vars(memory)["owner"] = owner.handle
    return np.ndarray((table.count,), dtype, memoryview(memory).cast("B"), strides=(table.stride,))


def size_of(kind: type[Struct] | Struct) -> int:
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
