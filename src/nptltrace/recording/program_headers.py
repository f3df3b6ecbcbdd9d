"""The program headers of an ELF file: the kind of program, its build-id, where it is loaded.

Recording asks this of every program and library: most of it is in one read of 4 KiB. What reads
traces asks for sections (`trace/symbols/elf/sections.py`).
"""

from __future__ import annotations

import os
import struct

from nptltrace._values import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Elf", "Segment", "parse_elf", "read_elf"]

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP, _PT_NOTE = 1, 2, 3, 4
_NT_GNU_BUILD_ID = 3
_HEADERS_MAX = 1024
_NOTES_MAX = 1 << 20
_BEGIN = 4096
_OFFSET_MAX = (1 << 63) - 1


class Segment(Values):
    """A part of the file that is loaded."""

    vaddr: int
    offset: int
    file_size: int
    memory_size: int


class Elf(Values):
    """What is known of an ELF file.

    Attributes:
        bits: 32 or 64.
        little: Whether it is little endian.
        machine: The architecture, as `e_machine`.
        interpreter: Path of its dynamic linker; empty if it has none.
        dynamic: Whether it has dynamic sections (a static PIE has, but no interpreter).
        build_id: In hexadecimal, or empty.
        segments: What is loaded.
    """

    bits: int
    little: bool
    machine: int
    interpreter: str
    dynamic: bool
    build_id: str
    segments: tuple[Segment, ...]

    def bias(self, start: int, offset: int) -> int | None:
        """Return what was added to the file's addresses if `offset` is mapped at `start`."""
        page = 4096
        for s in self.segments:
            low = s.offset - s.offset % page
            if low <= offset < s.offset + max(s.file_size, 1):
                return start - (s.vaddr + offset - s.offset)
        return None

    def extent(self, bias: int) -> tuple[int, int]:
        """Return the first address and the one behind the last, of all segments."""
        low = min(s.vaddr - s.vaddr % 4096 for s in self.segments)
        high = max(s.vaddr + s.memory_size for s in self.segments)
        return bias + low, bias + high


def read_elf(path: str | os.PathLike[str]) -> Elf | None:
    """Read the headers of a file.

    Returns:
        What they say, or None if the file is no ELF file or is damaged.

    Raises:
        OSError: The file cannot be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return parse_elf(_File(fd).read)
    finally:
        os.close(fd)


def parse_elf(read: Callable[[int, int], bytes]) -> Elf | None:
    """Return what the headers say, or None if they are of no ELF file or are damaged.

    Args:
        read: Returns so many bytes from a place in the file on, fewer where it ends.
    """
    try:
        return _parse(read)
    except (struct.error, ValueError, IndexError):
        return None


class _File:
    """A file of which nearly all that is wanted lies at its beginning: that is read at once."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._begin = os.pread(fd, _BEGIN, 0)

    def read(self, at: int, size: int) -> bytes:
        """Return the bytes from `at` on, fewer at the end of the file."""
        if at + size <= len(self._begin):
            return self._begin[at : at + size]
        return os.pread(self._fd, size, at) if at <= _OFFSET_MAX else b""


def _parse(read: Callable[[int, int], bytes]) -> Elf | None:
    ident = read(0, 16)
    if ident[:4] != b"\x7fELF" or ident[4] not in {1, 2} or ident[5] not in {1, 2}:
        return None
    wide, order = ident[4] == 2, "<" if ident[5] == 1 else ">"  # noqa: PLR2004 -- ELFCLASS64
    header = struct.Struct(order + ("HHIQQQIHHH" if wide else "HHIIIIIHHH"))
    _, machine, _, _, phoff, _, _, _, entry, count = header.unpack(read(16, header.size))
    # A 32-bit entry has its flags elsewhere.
    layout = struct.Struct(order + ("IIQQQQQQ" if wide else "IIIIIIII"))
    if entry < layout.size or count > _HEADERS_MAX:
        return None
    interpreter, build_id, dynamic = "", "", False
    segments: list[Segment] = []
    for i in range(count):
        words = layout.unpack(read(phoff + i * entry, layout.size))
        kind = words[0]
        offset, vaddr, size, memory = (
            (words[2], words[3], words[5], words[6])
            if wide
            else (words[1], words[2], words[4], words[5])
        )
        if kind == _PT_LOAD:
            segments.append(Segment(vaddr, offset, size, memory))
        elif kind == _PT_DYNAMIC:
            dynamic = True
        elif kind == _PT_INTERP:
            interpreter = os.fsdecode(read(offset, min(size, 4096)).rstrip(b"\0"))
        elif kind == _PT_NOTE and not build_id:
            build_id = _build_id(read(offset, min(size, _NOTES_MAX)), order)
    return Elf(
        64 if wide else 32,
        order == "<",
        machine,
        interpreter,
        dynamic,
        build_id,
        tuple(segments),
    )


def _build_id(notes: bytes, order: str) -> str:
    """Return the build-id among the notes, or the empty string."""
    head = struct.Struct(order + "III")
    at = 0
    while at + head.size <= len(notes):
        name_size, size, kind = head.unpack_from(notes, at)
        name = at + head.size
        data = name + (name_size + 3) // 4 * 4
        if kind == _NT_GNU_BUILD_ID and notes[name : name + name_size] == b"GNU\0":
            return notes[data : data + size].hex()
        at = data + (size + 3) // 4 * 4
    return ""
