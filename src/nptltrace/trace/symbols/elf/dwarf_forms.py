"""Values in DWARF: the size and the meaning of each form (DWARF 5, section 7.5.6)."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "BY_ADDRESS_NUMBER", "BY_STRING_NUMBER", "CONSTANTS", "IMPLICIT", "IN_FILE", "IN_LINE_STRINGS",
    "IN_SHARED_FILE", "IN_SHARED_STRINGS", "IN_STRINGS", "IN_UNIT", "LIST", "Bytes", "Sizes",
    "Value", "text_at",
]  # fmt: skip

_FIXED = {
    0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x19: 0,
    0x1C: 4, 0x1E: 16, 0x20: 8, 0x24: 8, 0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4, 0x29: 1, 0x2A: 2,
    0x2B: 3, 0x2C: 4,
}  # fmt: skip
_OFFSETS = frozenset({0x0E, 0x10, 0x17, 0x1D, 0x1F, 0x1F20, 0x1F21})
_NUMBERS = frozenset({0x0F, 0x15, 0x1A, 0x1B, 0x22, 0x23, 0x1F01, 0x1F02})
_BLOCKS = {0x03: 2, 0x04: 4, 0x0A: 1}
_ADDRESS, _STRING, _BLOCK, _SIGNED, _INDIRECT = 0x01, 0x08, 0x09, 0x0D, 0x16
_EXPRESSION, IMPLICIT, LIST = 0x18, 0x21, 0x23
IN_STRINGS, IN_LINE_STRINGS, IN_SHARED_STRINGS = 0x0E, 0x1F, frozenset({0x1D, 0x1F21})
BY_STRING_NUMBER = frozenset({0x1A, 0x25, 0x26, 0x27, 0x28, 0x1F02})
BY_ADDRESS_NUMBER = frozenset({0x1B, 0x29, 0x2A, 0x2B, 0x2C, 0x1F01})
IN_UNIT, IN_FILE = frozenset({0x11, 0x12, 0x13, 0x14, 0x15}), 0x10
IN_SHARED_FILE = frozenset({0x1C, 0x24, 0x1F20})
CONSTANTS = frozenset({0x05, 0x06, 0x07, 0x0B, 0x0D, 0x0F, 0x17, 0x21})
_LONG = 0xFFFF_FFFF
_LEB_MAX = 70  # bits of a LEB128 number


class Value(NamedTuple):
    """The raw value of an attribute: its form, and a number or a text."""

    form: int
    number: int
    text: bytes = b""


class Bytes:
    """Reads one value after another. All methods raise IndexError behind the end.

    Args:
        data: The bytes.
        at: Offset of the first value.
    """

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def number(self, size: int, *, signed: bool = False) -> int:
        """Return a little-endian number of `size` bytes."""
        end = self.at + size
        if not 0 <= self.at <= end <= len(self.data):
            raise IndexError(self.at)
        number = int.from_bytes(self.data[self.at : end], "little", signed=signed)
        self.at = end
        return number

    def leb(self, *, signed: bool = False) -> int:
        """Return a LEB128 number (DWARF 5, section 7.6)."""
        number = shift = 0
        while shift < _LEB_MAX:
            byte = self.data[self.at]
            self.at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:  # noqa: PLR2004 -- no further byte
                return number - (1 << shift) if signed and byte & 0x40 else number
        raise IndexError(self.at)

    def text(self) -> bytes:
        """Return a text that ends with a zero byte."""
        text = text_at(self.data, self.at)
        self.at += len(text) + 1
        return text

    def length(self) -> tuple[int, int]:
        """Return the initial length of a unit, and the size of its offsets: 4 or 8 bytes."""
        size = self.number(4)
        return (self.number(8), 8) if size == _LONG else (size, 4)


def text_at(data: bytes, at: int) -> bytes:
    """Return the text at an offset.

    Raises:
        IndexError: There is no text.
    """
    end = data.find(b"\0", at)
    if not 0 <= at <= end:
        raise IndexError(at)
    return data[at:end]


class Sizes(NamedTuple):
    """The sizes of some values of a unit.

    Attributes:
        address: Bytes of an address.
        offset: Bytes of an offset.
        reference: Bytes of a reference to another unit.
    """

    address: int
    offset: int
    reference: int

    def read(self, read: Bytes, form: int, implicit: int = 0) -> Value:
        """Return the next value.

        Args:
            read: Reads the value.
            form: The form of the value.
            implicit: The value, for the form that has no bytes.

        Raises:
            IndexError: The form is not known.
        """
        if form == _INDIRECT:
            return self.read(read, read.leb())
        size = self._size(read, form)
        if size is not None:
            return Value(form, read.number(size))
        if form == _STRING:
            return Value(form, 0, read.text())
        if form == IMPLICIT:
            return Value(form, implicit)
        if form in _NUMBERS or form == _SIGNED:
            return Value(form, read.leb(signed=form == _SIGNED))
        raise IndexError(form)

    def _size(self, read: Bytes, form: int) -> int | None:
        """Return the size of a value in bytes; None if its bytes tell the size."""
        if form in _FIXED:
            return _FIXED[form]
        if form == IN_FILE:
            return self.reference
        if form in _OFFSETS:
            return self.offset
        if form == _ADDRESS:
            return self.address
        if form in _BLOCKS:
            return read.number(_BLOCKS[form])
        return read.leb() if form in {_BLOCK, _EXPRESSION} else None
