"""Unwind tables of a file (DWARF call frame information): where a caller's registers are."""

from __future__ import annotations

import bisect
import struct
from functools import cached_property
from typing import TYPE_CHECKING

from nptltrace._dataclasses import dataclass, field, replace
from nptltrace._files.elf import Elf

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["Row", "UnwindTable"]

# DW_EH_PE_…: the ways addresses are written, as GCC and clang write them.
_TABLE, _ABSOLUTE, _RELATIVE = 0x3B, 0x00, 0x10
_SIGNED4, _SIGNED8, _UNSIGNED4, _UNSIGNED8 = 0x0B, 0x0C, 0x03, 0x04
_SIZES = {_ABSOLUTE: "<q", _SIGNED4: "<i", _SIGNED8: "<q", _UNSIGNED4: "<I", _UNSIGNED8: "<q"}
_OMITTED = 0xFF


@dataclass(slots=True)
class Row:
    """Where the caller's registers are, for one place.

    Attributes:
        register: The canonical frame address is this register, by its DWARF number,
        offset: and this many bytes.
        saved: Offsets from the canonical frame address at which registers are saved, by number;
            None for one that cannot be known.
        returns: The number under which the return address is saved.
        signal: It is where a signal handler returns to.
        begin: Where its function begins, as the file counts it.
    """

    register: int = -1
    offset: int = 0
    saved: dict[int, int | None] = field(default_factory=dict)
    returns: int = 16
    signal: bool = False
    begin: int = 0

    def copy(self) -> Row:
        """Return one that changes alone."""
        return replace(self, saved=dict(self.saved))


class _Bytes:
    """Reads numbers one after another."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def one(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return int(value)

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:  # noqa: PLR2004 -- the bit that says that more follows
                return value

    def signed(self) -> int:
        begin = self.at
        value = self.unsigned()
        bits = 7 * (self.at - begin)
        return value - (1 << bits) if value >> (bits - 1) & 1 else value

    def text(self) -> bytes:
        end = self.data.index(b"\0", self.at)
        value, self.at = self.data[self.at : end], end + 1
        return value


@dataclass(frozen=True, slots=True)
class _Common:
    """What several functions share (a CIE)."""

    code: int
    data: int
    returns: int
    encoding: int
    augmented: bool
    signal: bool
    begin: int
    end: int


class UnwindTable:
    """The unwind table of one module.

    Args:
        paths: Its files; the first that has such a table counts. Without one there are no rows.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._frames, self._at = b"", 0
        self._header, self._header_at = b"", 0
        self._commons: dict[int, _Common] = {}
        for path in paths:
            try:
                elf = Elf.open(path)
                self._frames, self._at = _section(elf, ".eh_frame")
                self._header, self._header_at = _section(elf, ".eh_frame_hdr")
            except (OSError, ValueError):
                continue
            if self._frames:
                return

    @cached_property
    def _functions(self) -> Sequence[int]:
        """Where functions begin, in order, each followed by where what is said of it is."""
        header = self._header
        if len(header) < 12 or header[3] != _TABLE or header[2] != _UNSIGNED4:  # noqa: PLR2004
            return self._listed()
        at = 4 + (4 if header[1] & 15 in {_SIGNED4, _UNSIGNED4} else 8)
        (count,) = struct.unpack_from("<I", header, at)
        count = min(count, (len(header) - at - 4) // 8)
        # The table of a large program has a hundred thousand of them, and few are asked for.
        return memoryview(header)[at + 4 : at + 4 + 8 * count].cast("i")

    def _listed(self) -> Sequence[int]:
        """Go through all entries, for a file without a sorted table."""
        found: list[tuple[int, int]] = []
        data = _Bytes(self._frames, 0)
        try:
            while data.at + 8 < len(self._frames):
                begin = data.at
                size = data.one("<I")
                if not size:
                    break
                end, pointer = data.at + size, data.at
                if common := data.one("<i"):
                    place = self._pointer(data, self._common(pointer - common).encoding)
                    found.append((place - self._header_at, self._at + begin - self._header_at))
                data.at = end
        except (IndexError, struct.error, ValueError, KeyError):
            pass  # what was read until there is as good
        found.sort()
        return [number for pair in found for number in pair]

    def row(self, address: int) -> Row | None:
        """Return what holds at an address as the file counts it, None where nothing is known."""
        pairs = self._functions
        wanted = address - self._header_at
        pair = bisect.bisect_right(range(0, len(pairs), 2), wanted, key=pairs.__getitem__) - 1
        if pair < 0:
            return None
        try:
            return self._row(pairs[2 * pair + 1] + self._header_at - self._at, address)
        except (IndexError, struct.error, ValueError, KeyError):
            return None

    def _row(self, at: int, address: int) -> Row | None:
        data = _Bytes(self._frames, at)
        end = data.one("<I") + data.at
        pointer = data.at
        common = self._common(pointer - data.one("<i"))
        begin = self._pointer(data, common.encoding)
        size = data.one(_SIZES[common.encoding & 15])
        if not begin <= address < begin + size:
            return None
        if common.augmented:
            skipped = data.unsigned()
            data.at += skipped
        row = Row(returns=common.returns, signal=common.signal, begin=begin)
        program = _Program(common, row)
        program.run(_Bytes(self._frames, common.begin), common.end, None, begin)
        program.initial = program.row.copy()
        program.run(data, end, address, begin)
        return program.row if program.row.register >= 0 or common.signal else None

    def _common(self, at: int) -> _Common:
        if at not in self._commons:
            self._commons[at] = self._read_common(at)
        return self._commons[at]

    def _read_common(self, at: int) -> _Common:
        data = _Bytes(self._frames, at)
        end = data.one("<I") + data.at
        data.at += 4
        version = data.one("<B")
        names = data.text()
        code, step = data.unsigned(), data.signed()
        returns = data.one("<B") if version == 1 else data.unsigned()
        encoding = _ABSOLUTE
        if names.startswith(b"z"):
            behind = data.unsigned() + data.at
            for name in names[1:].decode("ascii", "replace"):
                if name == "R":
                    encoding = data.one("<B")
                elif name == "L":
                    data.at += 1
                elif name == "P":
                    self._pointer(data, data.one("<B"))
            data.at = behind
        return _Common(
            code, step, returns, encoding, names.startswith(b"z"), b"S" in names, data.at, end
        )

    def _pointer(self, data: _Bytes, encoding: int) -> int:
        if encoding == _OMITTED:
            return 0
        place = self._at + data.at
        value = data.one(_SIZES[encoding & 15])
        return value + place if encoding & 0x70 == _RELATIVE else value


def _section(elf: Elf, name: str) -> tuple[bytes, int]:
    """Return contents and address of a section; a debug file has its header alone."""
    section = elf.named(name)
    return (elf.data(section), section.address) if section is not None else (b"", 0)


class _Program:
    """Runs the instructions of one function up to a place in it."""

    def __init__(self, common: _Common, row: Row) -> None:
        self.common, self.row = common, row
        self.initial = row.copy()
        self._kept: list[Row] = []

    def run(self, data: _Bytes, end: int, until: int | None, place: int) -> None:
        """Run the instructions that hold at a place: all of them without one."""
        while data.at < end:
            code = data.one("<B")
            high, low = code & 0xC0, code & 0x3F
            if high == 0x40 or code in _ADVANCES:  # noqa: PLR2004 -- DW_CFA_advance_loc
                step = low if high else data.one(_ADVANCES[code])
                place += step * self.common.code
                if until is not None and place > until:
                    return
            elif high == 0x80:  # noqa: PLR2004 -- DW_CFA_offset
                self.row.saved[low] = data.unsigned() * self.common.data
            elif high == 0xC0:  # noqa: PLR2004 -- DW_CFA_restore
                self._restore(low)
            else:
                self._other(code, data)

    def _restore(self, register: int) -> None:
        if register in self.initial.saved:
            self.row.saved[register] = self.initial.saved[register]
        else:
            self.row.saved.pop(register, None)

    def _other(self, code: int, data: _Bytes) -> None:  # noqa: C901, PLR0912 -- one case each
        row, step = self.row, self.common.data
        match code:
            case 0x00 | 0x2D:  # nop; a signed return address
                pass
            case 0x05:  # offset_extended
                register = data.unsigned()
                row.saved[register] = data.unsigned() * step
            case 0x11:  # offset_extended_sf
                register = data.unsigned()
                row.saved[register] = data.signed() * step
            case 0x06:  # restore_extended
                self._restore(data.unsigned())
            case 0x07:  # undefined
                row.saved[data.unsigned()] = None
            case 0x08:  # same_value
                row.saved.pop(data.unsigned(), None)
            case 0x09:  # register
                row.saved[data.unsigned()] = None
                data.unsigned()
            case 0x0A:  # remember_state
                self._kept.append(row.copy())
            case 0x0B:  # restore_state
                self.row = self._kept.pop()
            case 0x0C:  # def_cfa
                row.register, row.offset = data.unsigned(), data.unsigned()
            case 0x12:  # def_cfa_sf
                row.register, row.offset = data.unsigned(), data.signed() * step
            case 0x0D:  # def_cfa_register
                row.register = data.unsigned()
            case 0x0E:  # def_cfa_offset
                row.offset = data.unsigned()
            case 0x13:  # def_cfa_offset_sf
                row.offset = data.signed() * step
            case 0x0F:  # def_cfa_expression
                row.register = -1
                skipped = data.unsigned()
                data.at += skipped
            case 0x10 | 0x16:  # expression, val_expression
                row.saved[data.unsigned()] = None
                skipped = data.unsigned()
                data.at += skipped
            case 0x2E:  # GNU_args_size
                data.unsigned()
            case _:
                raise ValueError(code)


# DW_CFA_advance_loc1, 2 and 4, and how much each reads.
_ADVANCES = {0x02: "<B", 0x03: "<H", 0x04: "<I"}
