"""Sections and loaded segments of a 64-bit little-endian ELF file, read as they are asked for.

Each command that names addresses, and each recording when it ends, opens a handful of files for a
few sections; pyelftools takes longer to import than all of them to read.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Section", "Sections", "Segment"]

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_NOTE = struct.Struct("<III")
_PACKED = struct.Struct("<8xQ")
_PT_LOAD = 1
_SHT_NOTE, _SHT_NOBITS = 7, 8
_SHF_COMPRESSED, _ZLIB = 0x800, 1
_NT_GNU_BUILD_ID = 3
# What no file says of itself has no more: sections beyond the numbers of 16 bits are in the first.
_MANY = 0xFFFF
# A sparse file may claim to hold far more than there is memory.
_LARGEST, _UNPACKED_MAX = 1 << 30, 1 << 28


class Section(NamedTuple):
    """A section header."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class Segment(NamedTuple):
    """A segment that is loaded."""

    vaddr: int
    offset: int
    file_size: int


class Sections:
    """The headers of a file.

    Args:
        fd: The file, which stays open as long as this is used.

    Attributes:
        loads: The segments that are loaded.
        headers: Where its headers lie: offset and size of each table.

    Raises:
        ValueError: It is no such file, or damaged.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._size = os.fstat(fd).st_size
        head = self._read(0, _HEADER.size)
        if len(head) < _HEADER.size or not head.startswith(b"\x7fELF"):
            raise ValueError("not an ELF file")
        ident, _, _, _, _, phoff, shoff, _, _, phentsize, phnum, shentsize, shnum, names = (
            _HEADER.unpack(head)
        )
        if ident[4:6] != b"\x02\x01":
            raise ValueError("not a 64-bit little-endian file")
        self.loads = [
            Segment(words[3], words[2], words[5])
            for words in self._table(_SEGMENT, phoff, phentsize, phnum)
            if words[0] == _PT_LOAD
        ]
        first = [Section(*words) for words in self._table(_SECTION, shoff, shentsize, 1)]
        if shoff and not first:
            raise ValueError("its section headers are not in it")
        count = shnum or (first[0].size if shoff else 0)
        self._sections = [
            Section(*words) for words in self._table(_SECTION, shoff, shentsize, count)
        ]
        tables = ((0, _HEADER.size), (phoff, phentsize * phnum), (shoff, shentsize * count))
        self.headers = [(at, max(min(size, self._size - at), 0)) for at, size in tables]
        number = first[0].link if names == _MANY and first else names
        self._names = self.data(self._sections[number]) if number < len(self._sections) else b""

    def _read(self, at: int, size: int) -> bytes:
        """Return bytes of the file, fewer where it ends; none of a part that no such file has."""
        size = min(size, self._size - at)
        return os.pread(self._fd, size, at) if 0 < size <= _LARGEST else b""

    def contents(self) -> Iterator[tuple[str, int, int, int]]:
        """Yield name, offset, size and unpacked size of each section that holds something."""
        for section in self._sections:
            if section.type != _SHT_NOBITS:
                name = self._names[section.name : self._names.find(b"\0", section.name)]
                size = max(min(section.size, self._size - section.offset), 0)
                unpacked = max(size, self._unpacked(section))
                yield name.decode("ascii", "replace"), section.offset, size, unpacked

    def _unpacked(self, section: Section) -> int:
        """Return the size that a compressed section says it unpacks to; 0 of another one."""
        head = self._read(section.offset, _PACKED.size)
        if section.flags & _SHF_COMPRESSED:
            return _PACKED.unpack(head)[0] if len(head) == _PACKED.size else 0
        return int.from_bytes(head[4:12], "big") if head.startswith(b"ZLIB") else 0

    def _table(
        self, layout: struct.Struct, at: int, entry: int, count: int
    ) -> Iterator[tuple[int, ...]]:
        """Yield the entries of a table, as far as they are in the file."""
        if not at or not count or entry < layout.size:
            return
        data = self._read(at, entry * count)
        for start in range(0, len(data) - layout.size + 1, entry):
            yield layout.unpack_from(data, start)

    def named(self, name: str) -> Section | None:
        """Return the section of a name that holds something, None if there is none."""
        wanted = name.encode() + b"\0"
        for section in self._sections:
            if self._names.startswith(wanted, section.name) and section.type != _SHT_NOBITS:
                return section
        return None

    def data(self, section: Section) -> bytes:
        """Return what a section holds."""
        return b"" if section.type == _SHT_NOBITS else self._read(section.offset, section.size)

    def unpacked(self, section: Section) -> bytes:
        """Return what a section holds when it is not compressed; nothing if that cannot be told."""
        data = self.data(section)
        if not section.flags & _SHF_COMPRESSED:
            return data
        size, begin = self._unpacked(section), _PACKED.size + 8
        if not 0 < size <= _UNPACKED_MAX or int.from_bytes(data[:4], "little") != _ZLIB:
            return b""
        try:
            return zlib.decompressobj().decompress(data[begin:], size)
        except zlib.error:
            return b""

    def loaded(self, segment: Segment) -> bytes:
        """Return what a segment has in the file."""
        return self._read(segment.offset, segment.file_size)

    def mapped(self, address: int, size: int) -> bytes:
        """Return what is mapped at an address as the file counts it, fewer where that ends."""
        for segment in self.loads:
            at = address - segment.vaddr
            if 0 <= at < segment.file_size:
                return self._read(segment.offset + at, min(size, segment.file_size - at))
        return b""

    def strings(self, section: Section) -> bytes:
        """Return the strings that the entries of a table have their names from."""
        number = section.link
        return self.data(self._sections[number]) if number < len(self._sections) else b""

    def build_id(self) -> str:
        """Return the build-id in hexadecimal, empty if there is none."""
        for section in self._sections:
            if section.type == _SHT_NOTE:
                found = _build_id(self.data(section), 8 if section.alignment == 8 else 4)  # noqa: PLR2004 -- bytes
                if found:
                    return found
        return ""


def _build_id(notes: bytes, alignment: int) -> str:
    at = 0
    while at + _NOTE.size <= len(notes):
        name_size, size, kind = _NOTE.unpack_from(notes, at)
        name = at + _NOTE.size
        data = name + -(-name_size // alignment) * alignment
        if kind == _NT_GNU_BUILD_ID and notes[name : name + name_size] == b"GNU\0":
            return notes[data : data + size].hex()
        at = data + -(-size // alignment) * alignment
    return ""
