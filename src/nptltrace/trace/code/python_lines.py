"""Lines of instructions from line tables of CPython, which have three formats.

Sources: `Objects/lnotab_notes.txt` (up to 3.10) and `Objects/locations.md` (3.11 and later) of
CPython.
"""

from __future__ import annotations

__all__ = ["line_of"]

_PAIRS, _RANGES = 9, 10
_NO_LINE = -128
# Kinds of entries in the third format.
_SHORT, _ONE_LINE, _NO_COLUMNS, _LONG, _NONE = 9, 10, 13, 14, 15


def line_of(minor: int, table: bytes, first: int, at: int) -> int:
    """Return the line of an instruction; 0 if the table does not say it.

    Args:
        minor: The minor version of Python 3.
        table: The line table.
        first: The first line of the function.
        at: Offset of the instruction, in bytes; in instructions for 3.10.
    """
    if minor <= _PAIRS:
        return _by_pairs(table, first, at)
    if minor == _RANGES:
        return _by_ranges(table, first, 2 * at)
    return _by_locations(table, first, at)


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte  # noqa: PLR2004


def _by_pairs(table: bytes, first: int, at: int) -> int:
    """Read the format of 3.8 and 3.9: pairs of a step in bytes and a step in lines."""
    line, place = first, 0
    for step, lines in zip(table[::2], table[1::2], strict=False):
        place += step
        if place > at:
            break
        line += _signed(lines)
    return line


def _by_ranges(table: bytes, first: int, at: int) -> int:
    """Read the format of 3.10: pairs of the length of a range and a step in lines."""
    line, place = first, 0
    for length, lines in zip(table[::2], table[1::2], strict=False):
        step = _signed(lines)
        if step != _NO_LINE:
            line += step
        place += length
        if place > at:
            return line if step != _NO_LINE else 0
    return 0


def _by_locations(table: bytes, first: int, at: int) -> int:
    """Read the format of 3.11 and later: entries of a kind, a length, and variable numbers."""
    line, place, read = first, 0, 0
    while read < len(table):
        head = table[read]
        read += 1
        kind, length = head >> 3 & 15, (head & 7) + 1
        if kind in {_NO_COLUMNS, _LONG}:
            raw, read = _variable(table, read)
            line += -(raw >> 1) if raw & 1 else raw >> 1
            for _ in range(3 if kind == _LONG else 0):
                _, read = _variable(table, read)
        elif kind != _NONE:
            line += kind - _ONE_LINE if _ONE_LINE <= kind < _NO_COLUMNS else 0
            read += 2 if kind > _SHORT else 1
        place += 2 * length
        if place > at:
            return 0 if kind == _NONE else line
    return 0


def _variable(table: bytes, read: int) -> tuple[int, int]:
    """Return a number with six bits per byte, and the offset behind it."""
    value = shift = 0
    while read < len(table):
        byte = table[read]
        read += 1
        value |= (byte & 63) << shift
        shift += 6
        if not byte & 64:
            break
    return value, read
