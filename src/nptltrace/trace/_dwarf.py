"""Lines of an ELF file: the compilation unit of an address, and its line program, on demand."""

from __future__ import annotations

import bisect
from functools import cached_property
from typing import Any

__all__ = ["LineTable"]

# (first address, address behind, file, line)
_Row = tuple[int, int, str, int]


class LineTable:
    """Finds file and line of addresses.

    Args:
        elf: The file, as pyelftools gives it.
    """

    def __init__(self, elf: Any) -> None:
        self._elf = elf
        self._rows: dict[int, list[_Row]] = {}

    @cached_property
    def _dwarf(self) -> Any:
        return self._elf.get_dwarf_info(follow_links=False) if self._elf.has_dwarf_info() else None

    def find(self, address: int) -> tuple[str, int] | None:
        """Return file name and line of an instruction."""
        try:
            unit = self._unit(address)
            rows = self._unit_rows(unit) if unit is not None else []
        except Exception:  # noqa: BLE001 -- broken debug information is none, whatever pyelftools raises
            return None
        at = bisect.bisect_right(rows, (address, 2**64, "", 0)) - 1
        if at < 0 or address >= rows[at][1]:
            return None
        return rows[at][2], rows[at][3]

    def _unit(self, address: int) -> Any:
        """Return the compilation unit that covers an address."""
        if self._dwarf is None:
            return None
        ranges = self._dwarf.get_aranges()
        offset = ranges.cu_offset_at_addr(address) if ranges is not None else None
        if offset is not None:
            return self._dwarf.get_CU_at(offset)
        starts = [start for start, _, _ in self._spans]
        at = bisect.bisect_right(starts, address) - 1
        if at >= 0 and address < self._spans[at][1]:
            return self._spans[at][2]
        return None

    @cached_property
    def _spans(self) -> list[tuple[int, int, Any]]:
        """What each unit covers, for files without an index of addresses."""
        found: list[tuple[int, int, Any]] = []
        lists = self._dwarf.range_lists()
        for unit in self._dwarf.iter_CUs():
            top = unit.get_top_DIE().attributes
            low = top["DW_AT_low_pc"].value if "DW_AT_low_pc" in top else 0
            if "DW_AT_ranges" in top and lists is not None:
                base = low
                for entry in lists.get_range_list_at_offset(top["DW_AT_ranges"].value, cu=unit):
                    if hasattr(entry, "base_address"):
                        base = entry.base_address
                        continue
                    shift = 0 if getattr(entry, "is_absolute", False) else base
                    found.append((entry.begin_offset + shift, entry.end_offset + shift, unit))
            elif "DW_AT_high_pc" in top:
                high = top["DW_AT_high_pc"]
                end = high.value if high.form == "DW_FORM_addr" else low + high.value
                found.append((low, end, unit))
        return sorted(found, key=lambda span: span[:2])

    def _unit_rows(self, unit: Any) -> list[_Row]:
        """Return the line table of a unit, sorted by address."""
        known = self._rows.get(unit.cu_offset)
        if known is not None:
            return known
        program = self._dwarf.line_program_for_CU(unit)
        rows: list[_Row] = []
        before = None
        for entry in program.get_entries() if program is not None else ():
            state = entry.state
            if state is None:
                continue
            if before is not None and state.address > before.address and before.line:
                name = _file_name(program, before.file)
                rows.append((before.address, state.address, name, before.line))
            before = None if state.end_sequence else state
        rows.sort()
        self._rows[unit.cu_offset] = rows
        return rows


def _file_name(program: Any, number: int) -> str:
    """Return the last part of a file's name."""
    header = program.header
    entries = header["file_entry"]
    index = number if header["version"] >= 5 else number - 1  # noqa: PLR2004 -- of DWARF
    if not 0 <= index < len(entries):
        return "?"
    name = entries[index].name
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
    return text.rpartition("/")[2]
