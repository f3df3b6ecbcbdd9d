"""Units of DWARF, versions 2 to 5: their entries, names and addresses (DWARF 5, chapters 2 and 7).

The library `symbolic` reads most debug information. This module reads what the library does not:
names in a file that several files share (`dwz`), and files of split debug information.
"""

from __future__ import annotations

import bisect
from functools import cached_property
from typing import TYPE_CHECKING

from nptltrace._dataclasses import dataclass, field
from nptltrace.trace.symbols.elf import dwarf_forms as forms
from nptltrace.trace.symbols.elf.dwarf_forms import Bytes, Sizes, text_at
from nptltrace.trace.symbols.elf.dwarf_lines import Lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nptltrace.trace.symbols.elf.dwarf_forms import Value

__all__ = ["At", "DebugFile", "Entry", "Tag", "Unit"]


class Tag:
    """Tags: kinds of entries."""

    FUNCTION, INLINED = 0x2E, 0x1D


class At:
    """Attributes of entries."""

    NAME, LINES, LOW, HIGH, DIRECTORY = 0x03, 0x10, 0x11, 0x12, 0x1B
    ORIGIN, SPECIFICATION, RANGES, CALL_FILE, CALL_LINE = 0x31, 0x47, 0x55, 0x58, 0x59
    LINKAGE_NAME, STRING_BASE, ADDRESS_BASE, RANGES_BASE, SPLIT_NAME = 0x6E, 0x72, 0x73, 0x74, 0x76
    MIPS_LINKAGE_NAME, GNU_SPLIT_NAME, GNU_SPLIT_ID = 0x2007, 0x2130, 0x2131
    GNU_RANGES_BASE, GNU_ADDRESS_BASE = 0x2132, 0x2133


_VERSIONS = range(2, 6)
_TYPE_UNITS, _SPLIT_UNITS = frozenset({2, 6}), frozenset({4, 5})


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a unit (DIE).

    Attributes:
        tag: Its kind; see `Tag`.
        has_children: Whether the next entries are its children.
        values: Values by attribute; see `At`.
    """

    tag: int
    has_children: bool
    values: dict[int, Value]


class DebugFile:
    """Sections of debug information that belong together.

    Args:
        section: Returns the contents of a section by its name: `info`, `abbrev`, `str` and so on.
        shared: The file with the information that several files share, or None.
    """

    def __init__(self, section: Callable[[str], bytes], shared: DebugFile | None = None) -> None:
        self.section = section
        self.shared = shared
        self._abbreviations: dict[int, dict[int, tuple[int, bool, list[tuple[int, int, int]]]]] = {}

    @cached_property
    def units(self) -> list[Unit]:
        """The units, by offset, up to the first damaged unit."""
        data, at, units = self.section("info"), 0, list[Unit]()
        try:
            while at < len(data):
                units.append(self._unit(data, at))
                at = units[-1].end
        except IndexError:
            pass
        return units

    def _unit(self, data: bytes, at: int) -> Unit:
        head = Bytes(data, at)
        length, offset_size = head.length()
        end = head.at + length
        version, kind, split_id = head.number(2), 1, 0
        if version not in _VERSIONS:
            raise IndexError(at)
        if version < 5:  # noqa: PLR2004 -- of DWARF
            abbreviations, address_size = head.number(offset_size), head.number(1)
        else:
            kind, address_size, abbreviations = (head.number(n) for n in (1, 1, offset_size))
            if kind in _SPLIT_UNITS:
                split_id = head.number(8)
            elif kind in _TYPE_UNITS:
                head.number(8 + offset_size)
        reference = offset_size if version > 2 else address_size  # noqa: PLR2004 -- of DWARF
        sizes = Sizes(address_size, offset_size, reference)
        return Unit(self, at, end, head.at, version, sizes, abbreviations, split_id)

    def unit_at(self, offset: int) -> Unit:
        """Return the unit at an offset.

        Raises:
            IndexError: There is no such unit.
        """
        n = bisect.bisect_right(self.units, offset, key=lambda unit: unit.begin) - 1
        if n < 0 or offset >= self.units[n].end:
            raise IndexError(offset)
        return self.units[n]

    def abbreviations(self, at: int) -> dict[int, tuple[int, bool, list[tuple[int, int, int]]]]:
        """Return tag, children and attributes (name, form, implicit value) by abbreviation."""
        known = self._abbreviations.get(at)
        if known is not None:
            return known
        known = self._abbreviations[at] = {}
        read = Bytes(self.section("abbrev"), at)
        while number := read.leb():
            tag, children, parts = read.leb(), bool(read.number(1)), []
            while True:
                name, form = read.leb(), read.leb()
                value = read.leb(signed=True) if form == forms.IMPLICIT else 0
                if not name and not form:
                    break
                parts.append((name, form, value))
            known[number] = tag, children, parts
        return known


@dataclass(eq=False)
class Unit:
    """A unit. All places are offsets in a section.

    Attributes:
        file: Its sections.
        begin: Its begin.
        end: Its end.
        first: Its first entry.
        version: Version of DWARF.
        sizes: Sizes of some of its values.
        abbreviations: Its abbreviations.
        split_id: Id that it shares with its other half, or 0.
        skeleton: For a unit of split debug information: the half of it in the program.
    """

    file: DebugFile
    begin: int
    end: int
    first: int
    version: int
    sizes: Sizes
    abbreviations: int
    split_id: int = 0
    skeleton: Unit | None = field(default=None, repr=False)

    @cached_property
    def top(self) -> Entry:
        """The first entry, which describes the unit."""
        entry, _ = self.entry(self.first)
        if entry is None:
            raise IndexError(self.first)
        return entry

    def entry(self, at: int) -> tuple[Entry | None, int]:
        """Return an entry and the offset of the next. None stands for the end of children.

        Raises:
            IndexError: The entry is damaged.
        """
        read = Bytes(self.file.section("info"), at)
        number = read.leb()
        if not number:
            return None, read.at
        try:
            tag, children, parts = self.file.abbreviations(self.abbreviations)[number]
        except KeyError:
            raise IndexError(at) from None
        values = {name: self.sizes.read(read, form, value) for name, form, value in parts}
        return Entry(tag, children, values), read.at

    # ---- the meaning of values ----

    def _base(self, *names: int) -> int:
        """Return the begin of a table of the unit: behind the head, without such an attribute."""
        unit = self.skeleton if self.skeleton and At.ADDRESS_BASE in names else self
        value = next((unit.top.values[n] for n in names if n in unit.top.values), None)
        if value is not None:
            return value.number
        if self.version < 5 or At.ADDRESS_BASE in names:  # noqa: PLR2004 -- of DWARF
            return 0
        return 2 * self.sizes.offset + 4 * (At.RANGES_BASE in names)

    def text(self, value: Value | None) -> str:
        """Return the text of a value; empty for None."""
        if value is None:
            return ""
        form, number, data = value
        if form in forms.IN_SHARED_STRINGS:
            data = text_at(self.file.shared.section("str"), number) if self.file.shared else b""
        elif form == forms.IN_LINE_STRINGS:
            data = text_at(self.file.section("line_str"), number)
        elif form == forms.IN_STRINGS or form in forms.BY_STRING_NUMBER:
            if form != forms.IN_STRINGS:
                at = self._base(At.STRING_BASE) + number * self.sizes.offset
                number = Bytes(self.file.section("str_offsets"), at).number(self.sizes.offset)
            data = text_at(self.file.section("str"), number)
        return data.decode("utf-8", "replace")

    def _nth_address(self, number: int) -> int:
        base = self._base(At.ADDRESS_BASE, At.GNU_ADDRESS_BASE)
        at = base + number * self.sizes.address
        return Bytes(self.file.section("addr"), at).number(self.sizes.address)

    def _address(self, value: Value) -> int:
        by_number = value.form in forms.BY_ADDRESS_NUMBER
        return self._nth_address(value.number) if by_number else value.number

    def referred(self, value: Value) -> tuple[Unit, int]:
        """Return unit and offset of the entry that a value refers to.

        Raises:
            IndexError: There is no such entry.
        """
        if value.form in forms.IN_UNIT:
            return self, self.begin + value.number
        file = self.file.shared if value.form in forms.IN_SHARED_FILE else self.file
        if file is None or (value.form != forms.IN_FILE and file is self.file):
            raise IndexError(value.number)
        return file.unit_at(value.number), value.number

    @cached_property
    def low(self) -> int:
        """The base address of the unit."""
        if self.skeleton is not None:
            return self.skeleton.low
        value = self.top.values.get(At.LOW)
        return self._address(value) if value else 0

    def ranges(self, entry: Entry) -> list[tuple[int, int]]:
        """Return begin and end of the code of an entry."""
        values = entry.values
        if At.RANGES in values:
            return list(self._listed(values[At.RANGES]))
        if At.LOW not in values or At.HIGH not in values:
            return []
        low, high = self._address(values[At.LOW]), values[At.HIGH]
        return [(low, low + high.number if high.form in forms.CONSTANTS else self._address(high))]

    def _listed(self, value: Value) -> Iterator[tuple[int, int]]:
        if self.version >= 5:  # noqa: PLR2004 -- of DWARF
            yield from self._listed_by_kind(value)
            return
        unit, size = self.skeleton or self, self.sizes.address
        base = unit.top.values.get(At.GNU_RANGES_BASE) if self.skeleton else None
        read = Bytes(self.file.section("ranges"), value.number + (base.number if base else 0))
        low = self.low
        while True:
            begin, end = read.number(size), read.number(size)
            if not begin and not end:
                return
            if begin == (1 << size * 8) - 1:
                low = end
            else:
                yield low + begin, low + end

    def _listed_by_kind(self, value: Value) -> Iterator[tuple[int, int]]:
        data, at = self.file.section("rnglists"), value.number
        low, size = self.low, self.sizes.address
        if value.form == forms.LIST:
            base = self._base(At.RANGES_BASE)
            at = base + Bytes(data, base + at * self.sizes.offset).number(self.sizes.offset)
        read = Bytes(data, at)
        while kind := read.number(1):
            match kind:
                case 1:
                    low = self._nth_address(read.leb())
                case 2:
                    yield self._nth_address(read.leb()), self._nth_address(read.leb())
                case 3:
                    begin = self._nth_address(read.leb())
                    yield begin, begin + read.leb()
                case 4:
                    begin, end = read.leb(), read.leb()
                    yield low + begin, low + end
                case 5:
                    low = read.number(size)
                case 6:
                    yield read.number(size), read.number(size)
                case 7:
                    begin = read.number(size)
                    yield begin, begin + read.leb()
                case _:
                    raise IndexError(kind)

    @cached_property
    def functions(self) -> list[tuple[int, int, Entry]]:
        """Begin, end and entry of functions and inlined calls, the outer ones first."""
        functions: list[tuple[int, int, Entry]] = []
        at, depth = self.first, 0
        while at < self.end:
            entry, at = self.entry(at)
            if entry is None:
                depth -= 1
                if depth <= 0:
                    break
                continue
            if entry.tag in {Tag.FUNCTION, Tag.INLINED}:
                functions += [(low, high, entry) for low, high in self.ranges(entry)]
            depth += entry.has_children
        return functions

    # ---- lines ----

    @cached_property
    def lines(self) -> Lines:
        """Its line table."""
        directory = self.text(self.top.values.get(At.DIRECTORY))
        at = self.top.values[At.LINES].number
        return Lines(self.file.section("line"), at, directory, self.sizes, self.text)
