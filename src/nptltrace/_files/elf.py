"""ELF files: program headers, sections, symbols and notes, read on demand; see elf(5).

A recording imports this module, so it imports little itself: no `typing`, for example.
"""

from __future__ import annotations

import os
import stat
import struct
from collections import namedtuple
from functools import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Self

__all__ = ["CORE", "LOAD", "NOTE", "Elf", "Section", "Segment", "notes_of", "read_elf", "text_at"]

CORE = 4  # ET_CORE
LOAD, NOTE = 1, 4  # PT_LOAD, PT_NOTE
_DYNAMIC, _INTERPRETER = 2, 3  # PT_DYNAMIC, PT_INTERP
_NOTES, _NO_BITS = 7, 8  # SHT_NOTE, SHT_NOBITS
_COMPRESSED, _ZLIB = 0x800, 1  # SHF_COMPRESSED, ELFCOMPRESS_ZLIB
_BUILD_ID = 3  # NT_GNU_BUILD_ID

_WIDE, _NARROW = "QQQ", "III"  # entry point and offsets of both tables, of 64 and 32 bits
_SYMBOL = struct.Struct("<IBBHQQ")
_COMPRESSION = struct.Struct("<8xQ")
_PAGE = 4096
# This value means: the count is too large for 16 bits and stands in the first section header.
_MANY = 0xFFFF
# A sparse or damaged file may claim to hold more than there is memory.
_HEADERS_MAX = 1024
_HEADERS_OF_CORE_MAX = 1 << 20
_NOTES_MAX = 1 << 20
_LARGEST, _UNPACKED_MAX = 1 << 30, 1 << 28
_ENDLESS = (1 << 63) - 1


# `typing.NamedTuple` would import `typing`.
# A part of the file that is loaded: its address, where it lies in the file, its sizes in both.
Segment = namedtuple("Segment", "vaddr offset file_size memory_size")  # noqa: PYI024
# A section header; `link` is the number of the section that it refers to.
Section = namedtuple(  # noqa: PYI024
    "Section", "name type flags address offset size link info alignment entry_size"
)


class Elf:
    """An ELF file, in a file or in the memory of a process.

    Args:
        source: Takes an offset and a size, and returns bytes; fewer at the end of the file.
        size: The size of the file, in bytes.
        largest: Read no more bytes at once than this: larger parts count as empty.

    Attributes:
        bits: 32 or 64.
        little: Whether the file is little endian.
        type: The type of the file, as `e_type`.
        machine: The architecture, as `e_machine`.
        program_headers: Type, flags, offset, address, size in the file, size in memory, alignment.

    Raises:
        ValueError: It is not an ELF file, or its program headers are damaged.
    """

    def __init__(
        self,
        source: Callable[[int, int], bytes],
        size: int = _ENDLESS,
        largest: int = _LARGEST,
    ) -> None:
        self._source, self._size, self._largest = source, size, largest
        ident = self.read(0, 16)
        if len(ident) < 16 or ident[:4] != b"\x7fELF" or not {*ident[4:6]} <= {1, 2}:  # noqa: PLR2004
            raise ValueError("not an ELF file")
        self.bits, self.little = 32 * ident[4], ident[5] == 1
        self._order = "<" if self.little else ">"
        words = _WIDE if self.is_wide else _NARROW
        header = struct.Struct(f"{self._order}HHI{words}I6H")
        data = self.read(16, header.size)
        if len(data) < header.size:
            raise ValueError("its header is cut short")
        fields = header.unpack(data)
        self.type, self.machine, _, _, self._segments_at, self._sections_at = fields[:6]
        self._segment_size, self._segment_count = fields[8:10]
        self._section_size, self._section_count, self._names_in = fields[10:]
        self._header_size = 16 + header.size
        self.program_headers = self._read_program_headers()

    @classmethod
    def open(cls, path: str | os.PathLike[str], largest: int = _LARGEST) -> Self:
        """Open a file. The file is closed when the object is deleted.

        Raises:
            OSError: The file cannot be read.
            ValueError: It is not an ELF file, or its program headers are damaged.
        """
        file = _File(path)
        return cls(file.read, file.size, largest)

    @property
    def is_wide(self) -> bool:
        """Whether the file has 64 bits."""
        return self.bits == 64  # noqa: PLR2004

    @property
    def is_native(self) -> bool:
        """Whether the file has 64 bits and is little endian, as on x86-64."""
        return self.is_wide and self.little

    def read(self, at: int, size: int) -> bytes:
        """Return bytes from an offset on; fewer at the end of the file."""
        size = min(size, self._size - at)
        return self._source(at, size) if 0 < size <= self._largest else b""

    def _rows(
        self, layout: struct.Struct, at: int, entry: int, count: int
    ) -> Iterable[tuple[int, ...]]:
        """Return the entries of a table that lie inside the file."""
        if not at or not count or entry < layout.size:
            return ()
        data = self.read(at, entry * count)
        if entry == layout.size:
            return layout.iter_unpack(data[: len(data) // entry * entry])
        return (
            layout.unpack_from(data, start)
            for start in range(0, len(data) - layout.size + 1, entry)
        )

    # ---- program headers -----------------------------------------------------------------

    def _read_program_headers(self) -> list[tuple[int, ...]]:
        count, most = self._segment_count, _HEADERS_MAX
        if self.type == CORE:
            most = _HEADERS_OF_CORE_MAX
            if count == _MANY:
                count = next((first.info for first in self._section_headers(1)), count)
        if count > most:
            raise ValueError("it has more program headers than fit into a file")
        # In a file of 32 bits, the flags come after the sizes.
        layout = struct.Struct(self._order + ("IIQQ8xQQQ" if self.is_wide else "III4xIIII"))
        rows = list(self._rows(layout, self._segments_at, self._segment_size, count))
        if len(rows) < count:
            raise ValueError("its program headers are cut short")
        if self.is_wide:
            return rows
        return [(kind, flags, *places, align) for kind, *places, flags, align in rows]

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The segments that are loaded (PT_LOAD)."""
        return tuple(
            Segment(vaddr, offset, size, memory)
            for kind, _, offset, vaddr, size, memory, _ in self.program_headers
            if kind == LOAD
        )

    @cached_property
    def dynamic(self) -> bool:
        """Whether there is a dynamic section. A static PIE has one, but no interpreter."""
        return any(row[0] == _DYNAMIC for row in self.program_headers)

    @cached_property
    def interpreter(self) -> str:
        """The path of the dynamic linker, or empty."""
        for kind, _, offset, _, size, _, _ in self.program_headers:
            if kind == _INTERPRETER:
                return os.fsdecode(self.read(offset, min(size, _PAGE)).rstrip(b"\0"))
        return ""

    @cached_property
    def build_id(self) -> str:
        """The build-id in hexadecimal, or empty."""
        for kind, _, offset, _, size, _, alignment in self.program_headers:
            if kind == NOTE:
                build_id = self._build_id(self.read(offset, min(size, _NOTES_MAX)), alignment)
                if build_id:
                    return build_id
        # In a debug file, the program headers may not lead to the notes.
        try:
            sections = [s for s in self.sections if s.type == _NOTES]
        except ValueError:
            return ""
        build_ids = (self._build_id(self.data(section), section.alignment) for section in sections)
        return next(filter(None, build_ids), "")

    def _build_id(self, data: bytes, alignment: int) -> str:
        try:
            for name, kind, content in notes_of(data, alignment, self._order):
                if kind == _BUILD_ID and name == b"GNU\0":
                    return content.hex()
        except ValueError:
            pass  # the notes before the damage still count
        return ""

    def bias(self, start: int, offset: int) -> int | None:
        """Return the load bias: the number to add to addresses of the file.

        Args:
            start: Address of a mapping of the file.
            offset: Offset in the file where the mapping begins.

        Returns:
            The bias, or None if no segment has the offset.
        """
        for s in self.segments:
            if s.offset - s.offset % _PAGE <= offset < s.offset + max(s.file_size, 1):
                return start - int(s.vaddr + offset - s.offset)
        return None

    def extent(self, bias: int) -> tuple[int, int]:
        """Return the first address of all segments, and the end; there must be a segment."""
        low = min(s.vaddr - s.vaddr % _PAGE for s in self.segments)
        high = max(s.vaddr + s.memory_size for s in self.segments)
        return bias + low, bias + high

    def loaded(self, segment: Segment) -> bytes:
        """Return the contents of a segment in the file."""
        return self.read(segment.offset, segment.file_size)

    def mapped(self, address: int, size: int) -> bytes:
        """Return the contents of the file at an address; fewer bytes where the segment ends."""
        for segment in self.segments:
            at = address - segment.vaddr
            if 0 <= at < segment.file_size:
                return self.read(segment.offset + at, min(size, segment.file_size - at))
        return b""

    # ---- sections ------------------------------------------------------------------------

    def _section_headers(self, count: int) -> list[Section]:
        layout = struct.Struct(self._order + ("IIQQQQIIQQ" if self.is_wide else "10I"))
        rows = self._rows(layout, self._sections_at, self._section_size, count)
        return [*map(Section._make, rows)]

    @cached_property
    def sections(self) -> list[Section]:
        """All section headers.

        Raises:
            ValueError: The file ends before them.
        """
        headers = self._section_headers(self._section_count or 1)
        if self._sections_at and not headers:
            raise ValueError("its section headers lie outside of the file")
        return (
            headers if self._section_count else self._section_headers(sum(s.size for s in headers))
        )

    @cached_property
    def _names(self) -> bytes:
        number = self._names_in
        if number == _MANY and self.sections:
            number = self.sections[0].link
        return self.data(self.sections[number]) if number < len(self.sections) else b""

    @cached_property
    def _by_name(self) -> dict[bytes, Section]:
        """The first section of each name that has contents in the file."""
        sections: dict[bytes, Section] = {}
        for section in self.sections:
            if section.type != _NO_BITS:
                sections.setdefault(_bytes_at(self._names, section.name), section)
        return sections

    def named(self, name: str) -> Section | None:
        """Return the section of a name that has contents in the file, or None."""
        return self._by_name.get(name.encode())

    def data(self, section: Section | None) -> bytes:
        """Return the contents of a section; empty without a section."""
        if section is None or section.type == _NO_BITS:
            return b""
        return self.read(section.offset, section.size)

    def strings(self, section: Section) -> bytes:
        """Return the string table of a section."""
        number = section.link
        return self.data(self.sections[number]) if number < len(self.sections) else b""

    def symbols(self, table: str) -> tuple[Iterator[tuple[int, ...]], bytes]:
        """Return the rows of a symbol table, and its string table.

        A row has the fields name, info, other, section, value, size. The table is empty if the
        file is not native.
        """
        section = self.named(table) if self.is_native else None
        if section is None:
            return iter(()), b""
        data = self.data(section)
        rows = _SYMBOL.iter_unpack(data[: len(data) // _SYMBOL.size * _SYMBOL.size])
        return rows, self.strings(section)

    def _unpacked_size(self, section: Section) -> int:
        """Return the size that a compressed section claims to unpack to; 0 of another section."""
        head = self.read(section.offset, _COMPRESSION.size)
        if section.flags & _COMPRESSED:
            return int(_COMPRESSION.unpack(head)[0]) if len(head) == _COMPRESSION.size else 0
        return int.from_bytes(head[4:12], "big") if head.startswith(b"ZLIB") else 0

    def unpacked(self, section: Section) -> bytes:
        """Return the uncompressed contents of a section; empty if they cannot be unpacked."""
        data = self.data(section)
        if not section.flags & _COMPRESSED:
            return data
        size, begin = self._unpacked_size(section), _COMPRESSION.size + 8
        if not 0 < size <= _UNPACKED_MAX or int.from_bytes(data[:4], "little") != _ZLIB:
            return b""
        import zlib

        try:
            return zlib.decompressobj().decompress(data[begin:], size)
        except zlib.error:
            return b""

    # ---- where things lie ----------------------------------------------------------------

    def headers(self) -> list[tuple[int, int]]:
        """Return offset and size of the file header and of both tables of headers."""
        tables = (
            (0, self._header_size),
            (self._segments_at, self._segment_size * self._segment_count),
            (self._sections_at, self._section_size * len(self.sections)),
        )
        return [(at, max(min(size, self._size - at), 0)) for at, size in tables]

    def contents(self) -> Iterator[tuple[str, int, int, int]]:
        """Yield name, offset, size and unpacked size of each section with contents."""
        for section in self.sections:
            if section.type != _NO_BITS:
                size = max(min(section.size, self._size - section.offset), 0)
                unpacked = max(size, self._unpacked_size(section))
                name = _bytes_at(self._names, section.name).decode("ascii", "replace")
                yield name, section.offset, size, unpacked


class _File:
    """A file. One call reads its first page, which answers most requests."""

    _fd = -1

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Without O_NONBLOCK, open() waits for a writer of a FIFO.
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a file")
        self.size = status.st_size
        self._begin = os.pread(self._fd, _PAGE, 0)

    def read(self, at: int, size: int) -> bytes:
        if at + size <= len(self._begin):
            return self._begin[at : at + size]
        return os.pread(self._fd, size, at)

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    __del__ = close


def read_elf(path: str | os.PathLike[str]) -> Elf | None:
    """Read the program headers, interpreter and build-id of a file, and close the file.

    Returns:
        The headers, or None if the file is not an ELF file or is damaged.

    Raises:
        OSError: The file cannot be read.
    """
    try:
        file = _File(path)
        elf = Elf(file.read, file.size)
        elf.interpreter, elf.build_id  # noqa: B018 -- read while the file is open
    except ValueError:
        return None
    file.close()
    return elf


def notes_of(
    data: bytes, alignment: int = 4, order: str = "<"
) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield name, kind and contents of each note.

    Args:
        data: The notes.
        alignment: Alignment of the segment or section: 8, or 4 for anything else.
        order: Byte order, as `struct` writes it.

    Raises:
        ValueError: A note is cut short.
    """
    layout, step = struct.Struct(order + "III"), 8 if alignment == 8 else 4  # noqa: PLR2004
    at = 0
    while at + layout.size <= len(data):
        name_size, size, kind = layout.unpack_from(data, at)
        name = at + layout.size
        begin = -(-(name + name_size) // step) * step
        at = -(-(begin + size) // step) * step
        if begin + size > len(data):
            raise ValueError("a note is cut short")
        yield data[name : name + name_size], kind, data[begin : begin + size]


def text_at(strings: bytes, at: int) -> str:
    """Return the text at an offset of a string table."""
    return _bytes_at(strings, at).decode("utf-8", "replace")


def _bytes_at(strings: bytes, at: int) -> bytes:
    return strings[at : strings.find(b"\0", at)]
