"""Protocol buffers: single messages, and thousands of messages with the same fields at once.

In `Rows` a number has a fixed width. Continuation bytes fill the width up; every decoder accepts
them. So a field is a column of a byte matrix, and no loop over rows is needed. The encoding is
described at https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["Rows", "message", "number", "packed", "text"]

_LENGTH = 3  # bytes for the length of a message in rows
_VARINT, _FIXED64, _BYTES = 0, 1, 2


def _varint(value: int) -> bytes:
    encoded = bytearray()
    value &= 2**64 - 1
    while value > 0x7F:  # noqa: PLR2004 -- seven bits a byte
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _tag(field: int, wire: int) -> bytes:
    return _varint(field << 3 | wire)


def number(field: int, value: int) -> bytes:
    """Return a varint field."""
    return _tag(field, _VARINT) + _varint(value)


def message(field: int, *parts: bytes) -> bytes:
    """Return a field with a message. The parts are the fields of the message."""
    body = b"".join(parts)
    return _tag(field, _BYTES) + _varint(len(body)) + body


def packed(field: int, values: Iterable[int]) -> bytes:
    """Return a packed repeated varint field."""
    return message(field, *map(_varint, values))


def text(field: int, value: str) -> bytes:
    """Return a string field."""
    return message(field, value.encode("utf-8", "replace"))


class Rows:
    """Messages with the same fields, one in each row. A field may be missing in some rows.

    The parameter `where` of methods marks the rows with the field; None: all rows have the field.

    Args:
        count: The number of rows.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._parts: list[tuple[NDArray[np.uint8], NDArray[np.bool_] | None]] = []

    def same(self, data: bytes, where: NDArray[np.bool_] | None = None) -> Rows:
        """Add the same bytes to all rows."""
        row = np.frombuffer(data, np.uint8)
        return self._add(np.broadcast_to(row, (self._count, len(row))), where)

    def numbers(self, field: int, values: NDArray[Any], width: int) -> Rows:
        """Add a varint field with `width` bytes: numbers of up to 7 times `width` bits."""
        self.same(_tag(field, _VARINT))
        return self._add(_varints(values, width), None)

    def fixed64(
        self, field: int, values: NDArray[Any], where: NDArray[np.bool_] | None = None
    ) -> Rows:
        """Add a field with a number of 64 bits."""
        self.same(_tag(field, _FIXED64), where)
        data = np.ascontiguousarray(values, "<u8").view(np.uint8).reshape(-1, 8)
        return self._add(data, where)

    def messages(self, field: int, rows: Rows, where: NDArray[np.bool_] | None = None) -> Rows:
        """Add a field with a message: the message of the same row in `rows`."""
        self.same(_tag(field, _BYTES), where)
        self._add(_varints(rows.lengths(), _LENGTH), where)
        for data, present in rows._parts:
            both = where if present is None else present if where is None else where & present
            self._add(data, both)
        return self

    def _add(self, data: NDArray[np.uint8], where: NDArray[np.bool_] | None) -> Rows:
        self._parts.append((data, None if where is None or where.all() else where))
        return self

    def lengths(self) -> NDArray[np.int64]:
        """Return the length of each row in bytes."""
        lengths = np.zeros(self._count, np.int64)
        for data, where in self._parts:
            lengths += data.shape[1] if where is None else data.shape[1] * where
        return lengths

    def encoded(self) -> bytes:
        """Return the bytes of all rows, in order."""
        width = sum(data.shape[1] for data, _ in self._parts)
        bytes_of = np.empty((self._count, width), np.uint8)
        all_there = all(where is None for _, where in self._parts)
        kept = np.ones((0 if all_there else self._count, width), np.bool_)
        at = 0
        for data, where in self._parts:
            end = at + data.shape[1]
            bytes_of[:, at:end] = data
            if where is not None:
                kept[:, at:end] = where[:, np.newaxis]
            at = end
        return (bytes_of if all_there else bytes_of[kept]).tobytes()


def _varints(values: NDArray[Any], width: int) -> NDArray[np.uint8]:
    """Return numbers as varints of exactly `width` bytes."""
    left = values.astype(np.uint64)
    digits = np.empty((len(values), width), np.uint8)
    for at in range(width):
        digits[:, at] = (left & np.uint64(0x7F)) | np.uint64(0x80 if at < width - 1 else 0)
        left = left >> np.uint64(7)
    return digits
