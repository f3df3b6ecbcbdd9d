"""Finds functions by address if the debug information of a file is spread over several files.

`dwz` moves information that several programs share into another file (`.gnu_debugaltlink`).
`-gsplit-dwarf` puts nearly all information of a unit into a `.dwo` file. A `.dwp` file packs many
`.dwo` files (DWARF 5, section 7.3.5).
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nptltrace.trace.symbols.elf.dwarf import At, DebugFile
from nptltrace.trace.symbols.elf.object_file import open_elf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace.trace.symbols.elf.dwarf import Entry, Unit
    from nptltrace.trace.symbols.elf.object_file import ElfFile

__all__ = ["Call", "DebugCalls"]

# By version of the index of a package: sections by their numbers.
_PACKED = {
    2: {1: "info", 3: "abbrev", 6: "str_offsets"},
    5: {1: "info", 3: "abbrev", 6: "str_offsets", 8: "rnglists"},
}


class Call(NamedTuple):
    """A function at an address.

    Attributes:
        symbol: Name of the function, maybe mangled, or empty.
        path: Source file, or empty.
        line: Source line, or 0.
    """

    symbol: str
    path: str
    line: int


class DebugCalls:
    """Finds functions, and reads a unit at the first address in it.

    Args:
        elf: The file.
        shared: The file with the information that several files share, or None.
        directories: Directories to search for split debug information, besides the place where the
            compiler put it.
    """

    def __init__(
        self, elf: ElfFile, shared: ElfFile | None, directories: Sequence[Path] = ()
    ) -> None:
        self._elf = elf
        other = DebugFile(shared.debug_section) if shared is not None else None
        self._file = DebugFile(elf.debug_section, other)
        self._directories = [elf.path.resolve().parent, *directories]
        self._split: dict[int, Unit] = {}
        self._packages: list[ElfFile] | None = None

    def find(self, address: int) -> list[Call]:
        """Return the functions at an address, the deepest inlined function first."""
        try:
            return self._find(address)
        except (IndexError, KeyError, RecursionError, ZeroDivisionError):
            return []  # the information is damaged

    def _find(self, address: int) -> list[Call]:
        n = bisect_right(self._ranges, (address, 1 << 64)) - 1
        if n < 0 or address >= self._ranges[n][1]:
            return []
        half = self._ranges[n][2]
        # The other half of a skeleton unit has its functions. Any other unit has its own.
        unit = self._split.get(half.begin)
        if unit is None:
            unit = self._split[half.begin] = self._find_other_half(half)
        entries = [entry for low, high, entry in unit.functions if low <= address < high]
        if not entries:
            return []
        places = [half.lines.find(address)]
        for entry in reversed(entries[1:]):
            file, line = (entry.values.get(name) for name in (At.CALL_FILE, At.CALL_LINE))
            places.append(
                (half.lines.path(file.number) if file else "", line.number if line else 0)
            )
        names = (_name(unit, entry) for entry in reversed(entries))
        return [Call(name, *place) for name, place in zip(names, places, strict=True)]

    @cached_property
    def _ranges(self) -> list[tuple[int, int, Unit]]:
        """Begin, end and unit of all code."""
        ranges: list[tuple[int, int, Unit]] = []
        for unit in self._file.units:
            try:
                ranges += [(low, high, unit) for low, high in unit.ranges(unit.top) if low < high]
            except (IndexError, KeyError):
                continue  # a unit of types, or a damaged unit
        return sorted(ranges, key=lambda range_: range_[:2])

    # ---- split debug information ----

    def _find_other_half(self, unit: Unit) -> Unit:
        values = unit.top.values
        name = unit.text(values.get(At.SPLIT_NAME) or values.get(At.GNU_SPLIT_NAME))
        if not name:
            return unit
        directory = unit.text(values.get(At.DIRECTORY))
        places = [Path(directory, name), *(d / Path(name).name for d in self._directories)]
        for place in places:
            if (elf := open_elf(place)) is not None:
                for other in DebugFile(partial(self._section, elf, {})).units:
                    other.skeleton = unit
                    if _split_id(other) == _split_id(unit):
                        return other
        return self._packed(unit) or unit

    def _section(self, elf: ElfFile, parts: dict[str, tuple[int, int]], name: str) -> bytes:
        """Return a section of split debug information: the whole section, or the part of a unit."""
        if name in {"addr", "ranges"}:
            return self._file.section(name)
        data = elf.debug_section(f"{name}.dwo")
        at, size = parts.get(name, (0, len(data)))
        return data[at : at + size]

    def _packed(self, unit: Unit) -> Unit | None:
        """Return the other half of a unit from a package, or None."""
        if self._packages is None:
            name = f"{self._elf.path.name}.dwp"
            places = (d / name for d in self._directories)
            self._packages = [elf for place in places if (elf := open_elf(place)) is not None]
        for elf in self._packages:
            parts = _parts(elf.debug_section("cu_index"), _split_id(unit))
            if parts:
                other = DebugFile(partial(self._section, elf, parts)).units[0]
                other.skeleton = unit
                return other
        return None


def _split_id(unit: Unit) -> int:
    try:
        value = unit.top.values.get(At.GNU_SPLIT_ID)
    except IndexError:
        return -1  # the unit is damaged
    return value.number if value is not None else unit.split_id


def _parts(index: bytes, split_id: int) -> dict[str, tuple[int, int]]:
    """Return offset and size of a unit's sections in a package; empty if it has no such unit."""
    words = memoryview(index[: len(index) // 4 * 4]).cast("I")
    version, columns, units, slots = (*words[:4], 0, 0, 0, 0)[:4]
    names = _PACKED.get(version & 0xFFFF)
    table = 4 + 3 * slots  # behind the hashes and the numbers of rows
    if names is None or len(words) < table + columns * (2 * units + 1):
        return {}
    ids = memoryview(index[16 : 16 + 8 * slots]).cast("Q")
    row = next((words[4 + 2 * slots + n] for n in range(slots) if ids[n] == split_id), 0)
    if not row:
        return {}
    parts: dict[str, tuple[int, int]] = {}
    for column in range(columns):
        at = table + row * columns + column
        name = names.get(words[table + column])
        if name:
            parts[name] = words[at], words[at + units * columns]
    return parts


def _name(unit: Unit, entry: Entry) -> str:
    """Return the name of a function from its entry or from its origin; mangled, if there is one."""
    name, seen = "", set[tuple[int, int]]()
    while True:
        values = entry.values
        linkage = values.get(At.LINKAGE_NAME) or values.get(At.MIPS_LINKAGE_NAME)
        if linkage is not None:
            return unit.text(linkage) or name
        name = name or unit.text(values.get(At.NAME))
        origin = values.get(At.ORIGIN) or values.get(At.SPECIFICATION)
        if origin is None:
            return name
        unit, at = unit.referred(origin)
        next_entry, _ = unit.entry(at)
        if next_entry is None or (id(unit), at) in seen:
            return name
        seen.add((id(unit), at))
        entry = next_entry
