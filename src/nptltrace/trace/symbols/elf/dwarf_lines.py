"""Line tables of DWARF, versions 2 to 5 (DWARF 5, section 6.2)."""

from __future__ import annotations

import bisect
from functools import cached_property
from typing import TYPE_CHECKING

from nptltrace._dataclasses import dataclass
from nptltrace.trace.symbols.elf.dwarf_forms import Bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nptltrace.trace.symbols.elf.dwarf_forms import Sizes, Value

__all__ = ["Lines"]

_NAME, _DIRECTORY = 1, 2  # DW_LNCT_path, DW_LNCT_directory_index
_END_OF_SEQUENCE, _SET_ADDRESS = 1, 2


class Lines:
    """A line table.

    Args:
        data: The section.
        at: Offset of the table in the section.
        directory: Directory where the compiler ran.
        sizes: Sizes of values of the unit.
        text: Returns the text of a value.

    Raises:
        IndexError: The table is damaged.
    """

    def __init__(
        self, data: bytes, at: int, directory: str, sizes: Sizes, text: Callable[[Value], str]
    ) -> None:
        self._directory, self._value_sizes, self._text = directory, sizes, text
        read = self._read = Bytes(data, at)
        length, offset_size = read.length()
        self._end = read.at + length
        self._version = read.number(2)
        if self._version >= 5:  # noqa: PLR2004 -- of DWARF
            read.number(2)
        begin = read.number(offset_size)
        self._begin = begin + read.at
        self._step = read.number(1)
        if self._version >= 4:  # noqa: PLR2004 -- of DWARF
            read.number(1)
        read.number(1)
        self._line_base, self._line_range = read.number(1, signed=True), read.number(1)
        self._sizes = [0, *(read.number(1) for _ in range(read.number(1) - 1))]
        self._paths = self._new_paths() if self._version >= 5 else self._old_paths()  # noqa: PLR2004 -- as above

    def _old_paths(self) -> list[str]:
        directories, paths = [self._directory], [""]
        while text := self._read.text():
            directories.append(text.decode("utf-8", "replace"))
        while text := self._read.text():
            directory, _, _ = (self._read.leb() for _ in range(3))
            paths.append(self._joined(directories[directory], text.decode("utf-8", "replace")))
        return paths

    def _new_paths(self) -> list[str]:
        directories = [name for name, _ in self._named()]
        return [self._joined(directories[number], name) for name, number in self._named()]

    def _named(self) -> list[tuple[str, int]]:
        """Return name and number of the directory of each entry in a list of files."""
        read, named = self._read, []
        forms = [(read.leb(), read.leb()) for _ in range(read.number(1))]
        count = read.leb()
        if count > len(read.data):
            raise IndexError(count)
        for _ in range(count):
            values = {kind: self._value_sizes.read(read, form) for kind, form in forms}
            number = values[_DIRECTORY].number if _DIRECTORY in values else 0
            named.append((self._text(values[_NAME]), number))
        return named

    def _joined(self, directory: str, name: str) -> str:
        if name.startswith("/"):
            return name
        directory = directory if directory.startswith("/") else f"{self._directory}/{directory}"
        return f"{directory.rstrip('/')}/{name}"

    def path(self, number: int) -> str:
        """Return the path of a file by its number; empty for an unknown number."""
        return self._paths[number] if 0 <= number < len(self._paths) else ""

    def find(self, address: int) -> tuple[str, int]:
        """Return path and line of an address; an empty path without a line."""
        n = bisect.bisect_right(self._spans, address, key=lambda span: span[0]) - 1
        _, end, file, line = self._spans[n] if n >= 0 else (0, 0, 0, 0)
        return (self.path(file), line) if address < end else ("", 0)

    @cached_property
    def _spans(self) -> list[tuple[int, int, int, int]]:
        """Begin, end, file and line of all code, by address."""
        spans: list[tuple[int, int, int, int]] = []
        begin, file, line = 0, 0, -1
        for row in self._rows():
            if line >= 0 and begin < row[0]:
                spans.append((begin, row[0], file, line))
            begin, file, line = row
        return sorted(spans)

    def _rows(self) -> Iterator[tuple[int, int, int]]:
        """Yield address, file and line of each row. A line of -1 ends a sequence."""
        read, first = Bytes(self._read.data, self._begin), len(self._sizes)
        at = _Place()
        while read.at < self._end:
            code = read.number(1)
            if code >= first:
                steps, lines = divmod(code - first, self._line_range)
                at.address += steps * self._step
                at.line += self._line_base + lines
                yield at.address, at.file, at.line
            elif code == 1:
                yield at.address, at.file, at.line
            elif code:
                self._standard(read, code, at)
            elif self._extended(read, at):
                yield at.address, at.file, -1
                at = _Place()

    def _standard(self, read: Bytes, code: int, at: _Place) -> None:
        match code:
            case 2:
                at.address += read.leb() * self._step
            case 3:
                at.line += read.leb(signed=True)
            case 4:
                at.file = read.leb()
            case 8:
                at.address += (255 - len(self._sizes)) // self._line_range * self._step
            case 9:
                at.address += read.number(2)
            case _:
                for _ in range(self._sizes[code]):
                    read.leb()

    @staticmethod
    def _extended(read: Bytes, at: _Place) -> bool:
        """Run an extended opcode. Return whether it ends the sequence."""
        size = read.leb()
        end, kind = read.at + size, read.number(1)
        if kind == _SET_ADDRESS:
            at.address = read.number(size - 1)
        read.at = end
        return kind == _END_OF_SEQUENCE


@dataclass(slots=True)
class _Place:
    """The registers of the line-number program: an address, and its file and line."""

    address: int = 0
    file: int = 1
    line: int = 1
